# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation on a mesh: baking them, storing them in attributes, and checking that they fit the weights."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import has_attribute, read_attribute, write_attribute
from ...blender.before_armature import is_shaped_before_armature, shape_before_armature
from ...blender.bodies import to_mesh
from ...blender.center_records import BAKE_PROPERTY, BASIS, CURRENT, VALID_ENDING, BakeRecord, native_modifier
from ...blender.character import check_one_character
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_attributes_writable, check_unchanged, object_label, unmet
from ...blender.records import RESERVED, read_record, write_record
from ...blender.skin_reader import Skin, check_even_scale, check_turning, read_arrays, read_in_parts, read_skin
from ...blender.wording import names_text
from ...core.errors import BadMesh, BadScene, BadSettings, SkinningError
from ...core.geometry import diagonal, transform_points
from ...core.progress import Progress

DEFAULT_ATTRIBUTE = "rotation_center"

MISSING, FRESH, STALE, UNKNOWN = "MISSING", "FRESH", "STALE", "UNKNOWN"

# Finer pieces than with this threshold cost memory and time without a visible difference.
LEAST_EPSILON = 0.001

# A bake warns of a shape that differs by more than this share of the mesh's diagonal, on average over the vertices with
# a center. A limb is a tenth of a body wide: a turn by 90° then misses by a hundredth of the limb.
_TOLD_SHARE = 0.005

# Blender cuts longer attribute names.
_LONGEST_NAME = 63


@dataclass(frozen=True)
class Bake(Result):
    """A finished bake of mesh objects as one body, their records, the seconds that the user waited for it, and notes
    for the user."""

    objects: tuple[bpy.types.Object, ...]
    vertex_count: int
    records: tuple[BakeRecord, ...]
    seconds: float
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        names = [ob.name for ob in self.objects]
        whole = replace(self.records[0], center_count=sum(record.center_count for record in self.records))
        playing = [modifier.name for modifier in map(native_modifier, self.objects) if modifier is not None]
        return [
            Figure("Object", names[0] if len(names) == 1 else names),
            Figure("Vertices", self.vertex_count),
            *whole.figures(self.vertex_count),
            *([Figure("Modifier", playing[0] if len(names) == 1 else playing, line="")] if playing else []),
        ]


def bake(
    context: bpy.types.Context,
    meshes: Sequence[bpy.types.Object],
    sigma: float,
    subdivision_epsilon: float,
    attribute_name: str,
    symmetrize: bool = False,
    rest_shape: str = BASIS,
) -> background.Steps:
    """Generator: bake the centers of rotation of the objects into their meshes; yields (fraction, stage), returns a
    Bake.

    Meshes of one armature are one body: vertices with the same weights have the same center, whichever mesh they are
    in. The computation runs in a worker; the meshes are written at the end, all or nothing. symmetrize: give vertices
    that mirror each other across X of the first object mirrored centers. rest_shape: BASIS, the meshes themselves, or
    CURRENT, with what deforms them before the armature does. Raises SkinningError for problems that the user can fix.
    """
    from ...core.rotation_centers import bake_rotation_centers

    begin = time.perf_counter()
    skins = [_read_bakeable(context, ob, attribute_name) for ob in meshes]
    check_one_character(list(meshes))
    if 0 < subdivision_epsilon < LEAST_EPSILON * (1 - 1e-6):
        raise BadSettings(
            f"The subdivision threshold must be 0 (off) or at least {LEAST_EPSILON:g}, not {subdivision_epsilon:g}"
        )
    placements = [np.eye(4), *(to_mesh(meshes[0], ob) for ob in meshes[1:])]
    label = skins[0].label if len(skins) == 1 else f"the meshes {names_text(meshes)}"
    used = [replace(skin, rest=shape_of(context, skin.object, rest_shape, skin.rest)) for skin in skins]

    def work(progress: Progress) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[str]]:
        solve = partial(
            bake_rotation_centers,
            sigma=sigma,
            subdivision_epsilon=subdivision_epsilon,
            progress=progress,
            name=label,
        )
        return _centers_of(used, placements, solve, symmetrize), [fingerprint(skin) for skin in skins]

    placed, marks = yield from background.run_in_worker(work)
    for ob, (centers, _) in zip(meshes, placed, strict=True):
        check_unchanged(ob, len(centers))
    records = []
    for ob, (centers, valid), mark in zip(meshes, placed, marks, strict=True):
        counted = int(valid.sum())
        record = BakeRecord(attribute_name, sigma, subdivision_epsilon, symmetrize, counted, mark, rest_shape)
        write_centers(ob, centers, valid, record)
        records.append(record)
    count = sum(len(centers) for centers, _ in placed)
    notes = [] if rest_shape == CURRENT else [_shape_note(context, *each) for each in zip(skins, placed, strict=True)]
    told = tuple(filter(None, notes))
    return Bake(tuple(meshes), count, tuple(records), time.perf_counter() - begin, told)


def _centers_of(
    skins: Sequence[Skin], placements: Sequence[np.ndarray], solve: Callable, symmetrize: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """centers (N, 3) and valid (N,) of each skin in its own space, found by ``solve`` for all of them as one body.

    placements: (4, 4) from the space of each skin to that of the first.
    """
    from ...core import rotation_centers as core

    for skin in skins:
        core.check_positions(skin.rest, skin.label)
    rest, triangles, bones, weights = core.joined_skins(_in_one_space(skins, placements))
    centers, valid = solve(rest, triangles, bones, weights)
    if symmetrize:
        centers, valid = core.symmetrized(centers, valid, core.mirror_pairs(rest))
    ends = np.cumsum([len(skin.rest) for skin in skins])[:-1]
    parts = zip(np.split(centers, ends), np.split(valid, ends), strict=True)
    return [
        (_in_own_space(skin, placement, *part), part[1])
        for skin, placement, part in zip(skins, placements, parts, strict=True)
    ]


def _read_bakeable(context: bpy.types.Context, mesh_object: bpy.types.Object, attribute_name: str) -> Skin:
    """Raises SkinningError if centers of the mesh cannot be found, or not be stored under that name."""
    skin = read_skin(context, mesh_object)
    check_even_scale(mesh_object)
    check_attributes_writable(mesh_object)
    _check_name(mesh_object, attribute_name)
    return skin


def shape_of(
    context: bpy.types.Context, mesh_object: bpy.types.Object, rest_shape: str, basis: np.ndarray
) -> np.ndarray:
    """(N, 3) the rest shape of a mesh object that BASIS or CURRENT means; ``basis`` is the mesh itself. Raises BadMesh
    as ``shape_before_armature``."""
    if rest_shape == BASIS or not is_shaped_before_armature(mesh_object):
        return basis
    return shape_before_armature(context, mesh_object)


def _shape_note(context: bpy.types.Context, skin: Skin, baked: tuple[np.ndarray, np.ndarray]) -> str:
    """For the user, if the armature gets another shape than the centers were taken from; else ""."""
    try:
        shape = shape_of(context, skin.object, CURRENT, skin.rest)
    except BadMesh:
        # The modifier and the frame range refuse such a mesh, with the reason.
        return ""
    valid = baked[1]
    moved = np.linalg.norm(shape - skin.rest, axis=1)[valid]
    share = float(moved.mean()) / diagonal(skin.rest) if valid.any() else 0.0
    if share <= _TOLD_SHARE:
        return ""
    return (
        f"shape keys or modifiers above the armature move the vertices of {skin.label} by {100 * share:.2g} % of its "
        "size. If that shape is the one that fits the armature, bake again with Rest Shape set to Current"
    )


def _in_one_space(skins: Sequence[Skin], placements: Sequence[np.ndarray]) -> list[tuple]:
    """rest, triangles, bones and weights of each skin, in the space of the first one, with the bones of all numbered
    alike. placements: (4, 4) from each space to it."""
    known = {name for skin in skins for name in skin.bone_names}
    names = [bone.name for bone in skins[0].armature.data.bones if bone.name in known]
    order = {name: index for index, name in enumerate(names)}
    found = []
    for skin, placement in zip(skins, placements, strict=True):
        rest = transform_points(skin.rest, placement)
        bones = np.array([order[name] for name in skin.bone_names])[skin.bones]
        found.append((rest, skin.triangles, bones, skin.weights))
    return found


def _in_own_space(skin: Skin, placement: np.ndarray, centers: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(N, 3) float32 the centers of a skin in its own space; those of vertices without one are their rest positions."""
    if np.array_equal(placement, np.eye(4)):
        return centers
    back = np.linalg.inv(placement)
    own = transform_points(centers, back)
    return np.where(valid[:, None], own, skin.rest).astype(np.float32)


def fingerprint(skin: Skin) -> str:
    """Text that changes with everything that the centers depend on; bones without weights do not count."""
    from ...core import rotation_centers as core

    used = np.unique(skin.bones[skin.weights > 0])
    return core.fingerprint(skin.rest, skin.triangles, np.searchsorted(used, skin.bones), skin.weights)


def write_centers(mesh_object: bpy.types.Object, centers: np.ndarray, valid: np.ndarray, record: BakeRecord) -> None:
    """Store centers (N, 3), valid (N,) and the record in the mesh, replacing earlier ones."""
    mesh = mesh_object.data
    write_attribute(mesh, record.attribute, "FLOAT_VECTOR", centers)
    write_attribute(mesh, record.attribute + VALID_ENDING, "BOOLEAN", valid)
    write_record(mesh, BAKE_PROPERTY, record)
    mesh.update()


def read_centers(mesh_object: bpy.types.Object) -> tuple[np.ndarray, np.ndarray]:
    """The baked centers (N, 3) float32 and valid (N,) bool. Raises BadScene if there are none."""
    name = _existing_record(mesh_object).attribute
    return read_attribute(mesh_object.data, name), read_attribute(mesh_object.data, name + VALID_ENDING)


def bake_record(mesh_object: bpy.types.Object) -> BakeRecord | None:
    """The settings with which the centers of ``mesh_object`` were baked; None without centers or their attributes."""
    record = read_record(mesh_object.data, BAKE_PROPERTY, BakeRecord)
    if record is None:
        return None
    kinds = _data_types(record.attribute).items()
    return record if all(has_attribute(mesh_object.data, name, data_type) for name, data_type in kinds) else None


def bake_state(mesh_object: bpy.types.Object) -> str:
    """MISSING, FRESH, STALE if mesh or weights have changed since the bake, UNKNOWN if they cannot be read at present.

    Reads all weights.
    """
    return background.drain(bake_state_in_parts(mesh_object))


def bake_state_in_parts(mesh_object: bpy.types.Object) -> Generator[float | tuple[float, str], None, str]:
    """Generator: ``bake_state`` in parts, with time for the caller in between. The mesh must not change meanwhile."""
    record = bake_record(mesh_object)
    if record is None:
        return MISSING
    try:
        skin = yield from read_in_parts(mesh_object)
        found = yield from background.run_in_worker(lambda _: fingerprint(skin))
    except SkinningError:
        return UNKNOWN
    return FRESH if found == record.fingerprint else STALE


def check_baked(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if the object is not a skinned mesh with centers; cheap, so an outdated bake passes."""
    check_turning(context, mesh_object)
    _existing_record(mesh_object)


def check_fresh(mesh_object: bpy.types.Object) -> BakeRecord:
    """The record of the object's bake. Raises BadScene if it is missing or older than mesh or weights.

    Raises like ``read_arrays`` if these cannot be read.
    """
    record = _existing_record(mesh_object)
    if fingerprint(read_arrays(mesh_object)) != record.fingerprint:
        raise BadScene(
            f"The centers of rotation of {object_label(mesh_object)} are older than its mesh or weights. Bake them "
            "again"
        )
    return record


def _existing_record(mesh_object: bpy.types.Object) -> BakeRecord:
    record = bake_record(mesh_object)
    if record is None:
        raise unmet("NO_CENTERS", object=mesh_object, remedy="Bake them first")
    return record


def _data_types(name: str) -> dict[str, str]:
    """The attributes that store centers under ``name``, with their types."""
    return {name: "FLOAT_VECTOR", name + VALID_ENDING: "BOOLEAN"}


def _check_name(mesh_object: bpy.types.Object, name: str) -> None:
    """Raise BadSettings if centers cannot be stored under ``name``."""
    if name != name.strip() or name.startswith(RESERVED):
        raise BadSettings(
            f'The attribute\'s name "{name}" begins or ends with a blank, or begins with {RESERVED} as attributes of '
            "this extension do. Choose another name"
        )
    room = _LONGEST_NAME - len(VALID_ENDING)
    if not name or len(name.encode()) > room:
        raise BadSettings(f'The attribute\'s name must have 1 to {room} letters, "{name}" has {len(name.encode())}')
    for given, data_type in _data_types(name).items():
        attribute = mesh_object.data.attributes.get(given)
        # Vertex groups are attributes to Blender, and must not share their names.
        foreign = given in mesh_object.vertex_groups
        if attribute is not None:
            foreign |= attribute.is_required or not has_attribute(mesh_object.data, given, data_type)
        if foreign or given.startswith("."):
            raise BadSettings(
                f'The {object_label(mesh_object)} uses the name "{given}" for something else. '
                "Choose another name for the attribute"
            )
