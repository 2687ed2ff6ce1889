# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation in the form that the glTF exporter writes: a point attribute in the space of POSITION."""

from dataclasses import dataclass

import numpy as np

from ...blender.attributes import has_attribute, write_attribute
from ...blender.center_records import BakeRecord
from ...blender.preconditions import check_attributes_writable, object_label
from ...blender.records import read_record, write_record
from ...core.errors import BadScene
from .baking import FRESH, MISSING, STALE, bake_record, check_fresh, read_centers

# glTF wants names of an application's own attributes in capitals after an underscore; the exporter keeps only those.
GLTF_ATTRIBUTE = "_COR"

# What is known of the attribute, a custom property of the mesh.
EXPORT_PROPERTY = "skinning_exported_centers"

# Of a matrix's numbers, relative to the largest: what evaluating an object anew may change.
_SAME_PLACE = 1e-6


@dataclass(frozen=True)
class ExportRecord:
    """Of which bake the attribute has the centers, and where the object was: its matrix_world, row by row."""

    bake: str
    to_world: tuple[float, ...]


def write_export_attribute(object, y_up: bool = True) -> int:
    """Copy the baked centers of a mesh object into the point attribute GLTF_ATTRIBUTE; returns how many are centers.

    The exporter leaves such attributes as they are, but puts the positions of a skinned mesh into the world's space and
    turns them, with y_up, to glTF's axes: (x, y, z) becomes (x, z, −y). The same is done here. Vertices without a
    center have their own position. Raises BadScene where centers are missing or older than the mesh or its weights, and
    where the name is in use for something else.
    """
    check_attributes_writable(object)
    record = check_fresh(object)
    mesh = object.data
    if GLTF_ATTRIBUTE in mesh.attributes and not has_attribute(mesh, GLTF_ATTRIBUTE, "FLOAT_VECTOR"):
        raise BadScene(
            f'The {object_label(object)} has an attribute "{GLTF_ATTRIBUTE}" of another kind. Rename or remove it'
        )
    centers, valid = read_centers(object)
    points = in_gltf_space(centers, np.array(object.matrix_world, dtype=np.float64), y_up)
    write_attribute(mesh, GLTF_ATTRIBUTE, "FLOAT_VECTOR", points)
    write_record(mesh, EXPORT_PROPERTY, _export_record(object, record))
    mesh.update()
    return int(valid.sum())


def export_state(object) -> str:
    """MISSING without the attribute, FRESH, or STALE: the object has moved since, or was baked again. Cheap."""
    attribute, bake = object.data.attributes.get(GLTF_ATTRIBUTE), bake_record(object)
    if attribute is None or bake is None:
        return MISSING
    stored, now = read_record(object.data, EXPORT_PROPERTY, ExportRecord), _export_record(object, bake)
    if stored is None or stored.bake != now.bake or len(stored.to_world) != len(now.to_world):
        return STALE
    limit = _SAME_PLACE * np.abs(now.to_world).max()
    return FRESH if np.abs(np.subtract(stored.to_world, now.to_world)).max() <= limit else STALE


def _export_record(object, bake: BakeRecord) -> ExportRecord:
    return ExportRecord(repr(bake), tuple(np.array(object.matrix_world, dtype=np.float64).ravel().tolist()))


def in_gltf_space(points: np.ndarray, to_world: np.ndarray, y_up: bool = True) -> np.ndarray:
    """``points`` (N, 3) of a skinned mesh as the exporter writes its positions; to_world (4, 4) of the mesh object."""
    points = points @ to_world[:3, :3].T + to_world[:3, 3]
    return points[:, [0, 2, 1]] * [1.0, 1.0, -1.0] if y_up else points
