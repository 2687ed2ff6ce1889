# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights from before a bake, stored on the mesh, and Restore Weights, which brings them back.

They are custom properties of the mesh, not vertex groups: nothing new appears in the lists that an artist works with,
and file, copy and undo keep them.
"""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.armatures import check_armature, deformed_meshes
from ...blender.character import mesh_meant
from ...blender.figures import Figure, Result
from ...blender.helper_bones.records import SOLVED, find_helpers
from ...blender.helper_bones.removal import remove_helpers
from ...blender.helper_bones.weight_notes import concerned_meshes
from ...blender.preconditions import check_mode, check_own_mesh, check_type, object_label
from ...blender.records import checksum, has_checksum, read_record, write_record
from ...blender.skin_reader import armature_of, face_corners
from ...blender.vertex_groups import ABSENT, Memberships, put_columns, remove_groups
from ...blender.weight_tools import forget_figures
from ...blender.wording import counted, listed
from ...core.errors import BadMesh, BadScene
from .figures import FIGURES
from .teacher import EARLIER, Switches, switch_on

# On the mesh: the Switches of the bake.
SWITCHES = "skinning_earlier_modifiers"


@dataclass(frozen=True)
class EarlierWeights:
    """groups: the vertex groups whose weights are stored; vertices, columns, weights: each vertex in one of them.
    made: groups that the bake has made. helpers: bones that it has made. shape: checksum of the mesh's faces."""

    groups: tuple[str, ...]
    vertices: tuple[int, ...]
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    made: tuple[str, ...]
    helpers: tuple[str, ...]
    shape: str


@dataclass(frozen=True)
class Restored(Result):
    """modifiers: that are on again. bone_count: helper bones removed; users: meshes for which others stay."""

    name: str
    modifiers: tuple[str, ...]
    bone_count: int
    users: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        told = ["the weights from before the bake are back"]
        if self.modifiers:
            told.append(f"{', '.join(self.modifiers)} on again")
        if self.bone_count:
            told.append(f"{counted(self.bone_count, 'helper bone')} removed")
        if self.users:
            told.append(f"helper bones stay for {listed(self.users)}")
        done = "; ".join(told)
        return [Figure("Object", self.name), Figure("Done", done, line=done)]


def note_weights(mesh_object: bpy.types.Object, names: tuple[str, ...]) -> EarlierWeights:
    """The present weights of the groups ``names`` that exist."""
    groups = tuple(name for name in names if name in mesh_object.vertex_groups)
    columns = Memberships.read(mesh_object).columns(groups)
    column, vertex = np.nonzero(columns != ABSENT)
    return EarlierWeights(
        groups,
        tuple(vertex.tolist()),
        tuple(column.tolist()),
        tuple(columns[column, vertex].tolist()),
        tuple(name for name in names if name not in groups),
        (),
        _shape(mesh_object),
    )


def store(mesh_object: bpy.types.Object, earlier: EarlierWeights, switches: Switches) -> None:
    write_record(mesh_object.data, EARLIER, earlier)
    write_record(mesh_object.data, SWITCHES, switches)


def check_restorable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raises BadScene if there is nothing to restore. Cheap enough for a panel."""
    mesh_object = mesh_meant(context, active)
    check_type(mesh_object, "Select the mesh whose deformers were baked", ("MESH",))
    assert mesh_object is not None
    if EARLIER not in mesh_object.data:
        raise BadScene(f"The {object_label(mesh_object)} has no weights from before Bake Deformers")
    check_mode(mesh_object)
    check_own_mesh(mesh_object, "its weights cannot be changed")


def restore_weights(context: bpy.types.Context, active: bpy.types.Object | None) -> Restored:
    """Bring back the weights and modifiers from before the bake, and remove its helper bones that no other mesh uses,
    such as a duplicate.

    Raises SkinningError, and then changes nothing.
    """
    check_restorable(context, active)
    active = mesh_meant(context, active)
    assert active is not None
    earlier = read_record(active.data, EARLIER, EarlierWeights)
    switches = read_record(active.data, SWITCHES, Switches)
    if earlier is None or switches is None:
        raise _damaged(active)
    if not has_checksum(earlier.shape, *_faces(active)):
        raise BadMesh(
            f"The mesh of {object_label(active)} was edited after the bake, so its earlier weights no longer fit its "
            "vertices. Undo that, or bind the mesh again"
        )
    columns = _columns(active, earlier, switches)
    armature = armature_of(active)
    helpers, users = [], dict[str, None]()
    if armature is not None and earlier.helpers:
        others = [ob for ob in deformed_meshes(armature) if ob.data != active.data]
        for helper in find_helpers(armature, (SOLVED,)):
            if not set(helper.skin) <= set(earlier.helpers):
                continue
            using = concerned_meshes(others, helper)
            users |= dict.fromkeys(ob.name for ob in using)
            if not using:
                helpers.append(helper)
        if helpers:
            check_armature(armature)
    if helpers:
        # First what may fail. No mesh gets their weights: this one has earlier ones.
        remove_helpers(context, armature, helpers, [])
    remove_groups(active, earlier.made)
    put_columns(active, dict(zip(earlier.groups, columns, strict=True)))
    again = switch_on(active, switches)
    for key in (EARLIER, SWITCHES, FIGURES):
        if key in active.data:
            del active.data[key]
    forget_figures(active)
    active.data.update()
    return Restored(active.name, tuple(again), sum(len(helper.skin) for helper in helpers), tuple(users))


def _columns(mesh_object: bpy.types.Object, earlier: EarlierWeights, switches: Switches) -> np.ndarray:
    """(G, N) the stored weights. Raises BadScene if they cannot be those of the mesh."""
    columns = np.full((len(earlier.groups), len(mesh_object.data.vertices)), ABSENT, np.float32)
    places = np.array([earlier.columns, earlier.vertices]) if len(earlier.columns) == len(earlier.vertices) else None
    if (
        places is None
        or len(earlier.weights) != places.shape[1]
        or (places < 0).any()
        or (places >= np.array(columns.shape)[:, None]).any()
        or not len(switches.names) == len(switches.viewport) == len(switches.render)
    ):
        raise _damaged(mesh_object)
    columns[places[0].astype(int), places[1].astype(int)] = earlier.weights
    return columns


def _damaged(mesh_object: bpy.types.Object) -> BadScene:
    return BadScene(f"The stored weights of {object_label(mesh_object)} are damaged. Undo, or bind the mesh again")


def _faces(mesh_object: bpy.types.Object) -> tuple[np.ndarray, np.ndarray]:
    count = np.array([len(mesh_object.data.vertices)])
    return face_corners(mesh_object.data)[0], count


def _shape(mesh_object: bpy.types.Object) -> str:
    return checksum(*_faces(mesh_object))
