# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation for the glTF exporter: a point attribute in the space of POSITION."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.attributes import has_attribute, write_attribute
from ...blender.center_records import BakeRecord
from ...blender.gltf_space import in_gltf_space
from ...blender.preconditions import check_attributes_writable, unmet
from ...blender.records import read_record, write_record
from .baking import FRESH, MISSING, STALE, bake_record, check_fresh, read_centers

# glTF requires custom attribute names in capitals after an underscore; the exporter keeps only those.
GLTF_ATTRIBUTE = "_COR"

# A custom property of the mesh: the record of the attribute.
EXPORT_PROPERTY = "skinning_exported_centers"

# Tolerance for a matrix's numbers, relative to the largest: evaluating an object again may change them by this.
_SAME_PLACE = 1e-6


@dataclass(frozen=True)
class ExportRecord:
    """The bake whose centers the attribute has, and the object's matrix_world at that time, row by row."""

    bake: str
    to_world: tuple[float, ...]


def write_export_attribute(mesh_object: bpy.types.Object, y_up: bool) -> int:
    """Copy the baked centers of a mesh object into the point attribute GLTF_ATTRIBUTE; returns the number of centers.

    The exporter does not change such attributes, but it converts the positions of a skinned mesh to world space and,
    with y_up, to glTF's axes: (x, y, z) becomes (x, z, −y). This function does the same. Vertices without a center get
    their own position. Raises BadScene if centers are missing or older than the mesh or its weights, or if the name is
    used for something else.
    """
    check_attributes_writable(mesh_object)
    record = check_fresh(mesh_object)
    mesh = mesh_object.data
    if GLTF_ATTRIBUTE in mesh.attributes and not has_attribute(mesh, GLTF_ATTRIBUTE, "FLOAT_VECTOR"):
        raise unmet("ATTRIBUTE_OF_ANOTHER_KIND", object=mesh_object, attribute=GLTF_ATTRIBUTE)
    centers, valid = read_centers(mesh_object)
    points = in_gltf_space(centers, np.array(mesh_object.matrix_world, dtype=np.float64), y_up)
    write_attribute(mesh, GLTF_ATTRIBUTE, "FLOAT_VECTOR", points)
    write_record(mesh, EXPORT_PROPERTY, _export_record(mesh_object, record))
    mesh.update()
    return int(valid.sum())


def export_state(mesh_object: bpy.types.Object) -> str:
    """MISSING without the attribute, FRESH, or STALE: the object has moved since, or was baked again. Cheap."""
    attribute, bake = mesh_object.data.attributes.get(GLTF_ATTRIBUTE), bake_record(mesh_object)
    if attribute is None or bake is None:
        return MISSING
    stored, now = read_record(mesh_object.data, EXPORT_PROPERTY, ExportRecord), _export_record(mesh_object, bake)
    if stored is None or stored.bake != now.bake or len(stored.to_world) != len(now.to_world):
        return STALE
    limit = _SAME_PLACE * np.abs(now.to_world).max()
    return FRESH if np.abs(np.subtract(stored.to_world, now.to_world)).max() <= limit else STALE


def _export_record(mesh_object: bpy.types.Object, bake: BakeRecord) -> ExportRecord:
    return ExportRecord(repr(bake), tuple(np.array(mesh_object.matrix_world, dtype=np.float64).ravel().tolist()))
