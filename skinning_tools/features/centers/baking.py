# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation on a mesh: baking them, the attributes they are in, and whether they still fit the weights."""

import time
from collections.abc import Generator
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import has_attribute, read_attribute, write_attribute
from ...blender.center_records import BAKE_PROPERTY, VALID_ENDING, BakeRecord
from ...blender.preconditions import check_attributes_writable, object_label
from ...blender.records import RESERVED, read_record, write_record
from ...blender.skin_reader import Skin, check_even_scale, check_turning, read_arrays, read_in_parts, read_skin
from ...core.errors import BadScene, BadSettings, SkinningError

DEFAULT_ATTRIBUTE = "rotation_center"

MISSING, FRESH, STALE, UNKNOWN = "MISSING", "FRESH", "STALE", "UNKNOWN"

# Finer pieces than those of this threshold cost memory and time, and change nothing that can be seen.
LEAST_EPSILON = 0.001

# Blender cuts longer names of attributes.
_LONGEST_NAME = 63


@dataclass(frozen=True)
class Bake:
    """A finished bake of a mesh object, and the seconds that the user waited for it."""

    object: bpy.types.Object
    vertex_count: int
    record: BakeRecord
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        count = self.record.center_count
        return (
            f"{self.object.name}: {count:,} vertices with a center of rotation, {self.vertex_count - count:,} without, "
            f"{self.seconds:.1f} s"
        )


def bake(
    context, object, sigma: float, subdivision_epsilon: float, attribute_name: str, symmetrize: bool = False
) -> background.Steps:
    """Generator: bake the centers of rotation of ``object`` into its mesh; yields (fraction, stage), returns a Bake.

    The computation runs in a worker; the mesh is written at the end, all or nothing. symmetrize: centers of vertices
    that mirror each other across X do so too. Raises SkinningError for all that the user can mend.
    """
    from ...core import rotation_centers as core

    begin = time.perf_counter()
    skin = read_skin(context, object)
    check_even_scale(object)
    check_attributes_writable(object)
    _check_name(object, attribute_name)
    if 0 < subdivision_epsilon < LEAST_EPSILON * (1 - 1e-6):
        raise BadSettings(
            f"The subdivision threshold must be 0 (off) or at least {LEAST_EPSILON:g}, not {subdivision_epsilon:g}"
        )

    def work(progress):
        centers, valid = core.bake_rotation_centers(
            skin.rest,
            skin.triangles,
            skin.bones,
            skin.weights,
            sigma=sigma,
            subdivision_epsilon=subdivision_epsilon,
            progress=progress,
            name=skin.label,
        )
        if symmetrize:
            centers, valid = core.symmetrized(centers, valid, core.mirror_pairs(skin.rest))
        return centers, valid, fingerprint(skin)

    centers, valid, mark = yield from background.run_in_worker(work)
    if len(object.data.vertices) != len(centers):
        raise BadScene(f"The {skin.label} was edited while its centers of rotation were being baked. Start again")
    record = BakeRecord(attribute_name, sigma, subdivision_epsilon, symmetrize, int(valid.sum()), mark)
    write_centers(object, centers, valid, record)
    return Bake(object, len(centers), record, time.perf_counter() - begin)


def fingerprint(skin: Skin) -> str:
    """Text that changes with whatever the centers depend on; bones without weights do not count."""
    from ...core import rotation_centers as core

    used = np.unique(skin.bones[skin.weights > 0])
    return core.fingerprint(skin.rest, skin.triangles, np.searchsorted(used, skin.bones), skin.weights)


def write_centers(object, centers: np.ndarray, valid: np.ndarray, record: BakeRecord) -> None:
    """Store centers (N, 3), valid (N,) and the record in the mesh, in place of those that it has."""
    mesh = object.data
    write_attribute(mesh, record.attribute, "FLOAT_VECTOR", centers)
    write_attribute(mesh, record.attribute + VALID_ENDING, "BOOLEAN", valid)
    write_record(mesh, BAKE_PROPERTY, record)
    mesh.update()


def read_centers(object) -> tuple[np.ndarray, np.ndarray]:
    """The baked centers (N, 3) float32 and valid (N,) bool. Raises BadScene where there are none."""
    name = _existing_record(object).attribute
    return read_attribute(object.data, name), read_attribute(object.data, name + VALID_ENDING)


def bake_record(object) -> BakeRecord | None:
    """How the centers that ``object`` has were baked; None where it has none, or their attributes are gone."""
    record = read_record(object.data, BAKE_PROPERTY, BakeRecord)
    if record is None:
        return None
    kinds = _data_types(record.attribute).items()
    return record if all(has_attribute(object.data, name, data_type) for name, data_type in kinds) else None


def bake_state(object) -> str:
    """MISSING, FRESH, STALE where mesh or weights are others than those that were baked, UNKNOWN where nothing of that
    can be read at present.

    Reads all weights.
    """
    return background.drain(bake_state_in_parts(object))


def bake_state_in_parts(object) -> Generator[object, None, str]:
    """Generator: ``bake_state``, that gives the caller time in between. The mesh must stay as it is meanwhile."""
    record = bake_record(object)
    if record is None:
        return MISSING
    try:
        skin = yield from read_in_parts(object)
        found = yield from background.run_in_worker(lambda _: fingerprint(skin))
    except SkinningError:
        return UNKNOWN
    return FRESH if found == record.fingerprint else STALE


def check_baked(context, object) -> None:
    """Raises BadScene where the object is no skinned mesh with centers; cheap, so an old bake passes."""
    check_turning(context, object)
    _existing_record(object)


def check_fresh(object) -> BakeRecord:
    """The record of the object's bake. Raises BadScene where it is missing or older than mesh or weights.

    Raises as ``read_arrays`` where these cannot be read.
    """
    record = _existing_record(object)
    if fingerprint(read_arrays(object)) != record.fingerprint:
        raise BadScene(
            f"The centers of rotation of {object_label(object)} are older than its mesh or weights. Bake them again"
        )
    return record


def _existing_record(object) -> BakeRecord:
    record = bake_record(object)
    if record is None:
        raise BadScene(f"The {object_label(object)} has no centers of rotation. Bake them first")
    return record


def _data_types(name: str) -> dict[str, str]:
    """The attributes in which centers are stored under ``name``."""
    return {name: "FLOAT_VECTOR", name + VALID_ENDING: "BOOLEAN"}


def _check_name(object, name: str) -> None:
    """Raises BadSettings where centers cannot be stored under ``name``."""
    if name != name.strip() or name.startswith(RESERVED):
        raise BadSettings(
            f'The attribute\'s name "{name}" begins or ends with a blank, or begins with {RESERVED} as attributes of '
            "this extension do. Choose another name"
        )
    room = _LONGEST_NAME - len(VALID_ENDING)
    if not name or len(name.encode()) > room:
        raise BadSettings(f'The attribute\'s name must have 1 to {room} letters, "{name}" has {len(name.encode())}')
    for given, data_type in _data_types(name).items():
        attribute = object.data.attributes.get(given)
        # Vertex groups are attributes to Blender, and must not share their names.
        foreign = given in object.vertex_groups
        if attribute is not None:
            foreign |= attribute.is_required or not has_attribute(object.data, given, data_type)
        if foreign or given.startswith("."):
            raise BadSettings(
                f'The {object_label(object)} uses the name "{given}" for something else. '
                "Choose another name for the attribute"
            )
