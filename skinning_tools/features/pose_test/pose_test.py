# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose test: turns each bone of a skinned mesh in arrays alone, so that pose, keys and file stay as they are."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.armatures import rest_matrices
from ...blender.bodies import named_parents, to_mesh
from ...blender.bone_selection import selectable
from ...blender.character import character_of
from ...blender.error_display import POSE_TEST_COLORS, add_colors
from ...blender.figures import Figure, Result, each
from ...blender.preconditions import check_not_edited, check_own_mesh, check_unchanged
from ...blender.records import write_record
from ...blender.self_contact import SelfContact
from ...blender.skeletons import skeleton_of
from ...blender.skin_reader import Skin, armature_modifier, mesh_edges, read_in_parts
from ...blender.weight_tools import POSE_TEST_PROPERTY
from ...blender.wording import listed
from ...core.bone_order import linked_bones
from ...core.errors import BadScene
from ...core.geometry import transform_points
from ...core.progress import Progress, checkpoint
from .settings import PoseTestSettings

# Names in the line and in the panel.
_MOST_NAMED = 4
# Sound, at the limit of a tear, torn, in contact, and torn in contact.
SOUND, STRAINED, TORN = np.array([[0.6, 0.6, 0.6], [1.0, 0.85, 0.1], [0.9, 0.0, 0.0]])
TOUCHING, BOTH = np.array([[0.1, 0.3, 1.0], [0.8, 0.0, 0.8]])


@dataclass(frozen=True)
class TestedBone:
    """stretch: the largest of an edge; torn: the most edges, and touching: the most faces, in one pose."""

    name: str
    stretch: float = 1.0
    torn: int = 0
    touching: int = 0

    def joined(self, stretch: float, torn: int, touching: int) -> "TestedBone":
        """With another pose of the bone."""
        return replace(
            self,
            stretch=max(self.stretch, stretch),
            torn=max(self.torn, torn),
            touching=max(self.touching, touching),
        )


@dataclass(frozen=True)
class PoseTestFigures:
    """What the last test has found, for the panel. worst: names of bones, the worst first, with what they do."""

    angle: float
    tear_limit: float
    bones: int
    torn: int
    touching: int
    stretch: float
    worst: tuple[str, ...]

    def figures(self) -> list[Figure]:
        return [
            Figure("Bones turned", self.bones),
            Figure("Torn edges", self.torn),
            Figure("Touching faces", self.touching),
            Figure("Largest stretch", self.stretch, "{:.2f}"),
            Figure("Worst bones", list(self.worst), if_any=True),
        ]


@dataclass(frozen=True, eq=False)
class PoseTest(Result):
    """A finished test. stretch (N,): the largest of each vertex's edges in any pose; touching (N,) bool: whether a face
    of it runs into another; bones: all that were turned, the worst first."""

    object_name: str
    record: PoseTestFigures
    bones: tuple[TestedBone, ...]
    stretch: np.ndarray
    touching: np.ndarray
    seconds: float

    def figures(self) -> list[Figure]:
        found = {bone.name: {key: getattr(bone, key) for key in ("stretch", "torn", "touching")} for bone in self.bones}
        form = "{stretch:.2f} times as long, {torn} torn edges, {touching} touching faces"
        rows = [
            Figure(row.label, row.value, row.form, line="", group=row.group) for row in each("{}", found, "bones", form)
        ]
        return [Figure("Object", self.object_name), *self.record.figures(), *rows]


def check_testable(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The skinned mesh to test and color for the active object. Cheap enough for a panel. Raises BadScene."""
    mesh_object = character_of(context, active)
    check_own_mesh(mesh_object, "no colors can be added to it")
    return mesh_object


def run_pose_test(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[PoseTest]:
    """Generator: test the skinned mesh of the active object by the PoseTestSettings ``given``; changes nothing. Raises
    SkinningError."""
    begin, settings = time.perf_counter(), PoseTestSettings(**given)
    mesh_object = character_of(context, active)
    skin: Skin = yield from background.part_of(read_in_parts(mesh_object), 0.0, 0.05, "Reading the weights")
    testing = background.run_in_worker(_work(skin, settings))
    record, bones, stretch, touching = yield from background.part_of(testing, 0.05, 1.0)
    return PoseTest(skin.object.name, record, bones, stretch, touching, time.perf_counter() - begin)


def show_pose_test(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[PoseTest]:
    """Generator: ``run_pose_test``, whose result colors the mesh and is noted on it for the panel."""
    mesh_object = check_testable(context, active)
    test = yield from run_pose_test(context, mesh_object, **given)
    check_not_edited(mesh_object)
    check_unchanged(mesh_object, len(test.stretch))
    add_colors(mesh_object, POSE_TEST_COLORS, pose_test_colors(test.stretch, test.touching, test.record.tear_limit))
    write_record(mesh_object, POSE_TEST_PROPERTY, test.record)
    return test


def pose_test_colors(stretch: np.ndarray, touching: np.ndarray, limit: float) -> np.ndarray:
    """(N, 4) float32: gray where nothing happens, to yellow at the limit, red beyond; blue in contact, purple both."""
    share = np.clip((stretch - 1.0) / (limit - 1.0), 0.0, 1.0)[:, None]
    torn = stretch > limit
    colors = np.ones((len(stretch), 4), np.float32)
    colors[:, :3] = (1.0 - share) * SOUND + share * STRAINED
    colors[touching, :3], colors[torn, :3], colors[torn & touching, :3] = TOUCHING, TORN, BOTH
    return colors


def _work(
    skin: Skin, settings: PoseTestSettings
) -> Callable[[Progress], tuple[PoseTestFigures, tuple[TestedBone, ...], np.ndarray, np.ndarray]]:
    """The test, for a worker: what it needs of the scene is read now."""
    from ...core.pose_test import shares_below, stretches, turns
    from ...core.seams import with_seams

    joints, name = _joints(skin), skin.armature.name
    # In the armature's space, in which bones turn whatever the scale of the mesh.
    to_armature = np.linalg.inv(to_mesh(skin.object, skin.armature))
    parts, linked = joints.bones[np.arange(len(skin.rest)), skin.weights.argmax(axis=1)], linked_bones(joints.parents)
    own_edges, triangles = mesh_edges(skin.object.data), skin.triangles
    modifier = armature_modifier(skin.object)
    volume = modifier is not None and modifier.use_deform_preserve_volume

    def test(progress: Progress) -> tuple[PoseTestFigures, tuple[TestedBone, ...], np.ndarray, np.ndarray]:
        rest = transform_points(skin.rest, to_armature)
        edges = with_seams(rest, own_edges)
        lengths = np.linalg.norm(rest[edges[:, 0]] - rest[edges[:, 1]], axis=1)
        contact = SelfContact(rest, triangles, parts, linked) if settings.contact and len(triangles) else None
        longest, touching_faces = np.ones(len(edges)), np.zeros(len(triangles), bool)
        shares = shares_below(joints.bones, skin.weights, joints.parents, joints.turned)
        tested: dict[int, TestedBone] = {}
        for turn in turns(rest, shares, joints.rest, settings.angle, volume):
            now = stretches(turn.points, edges, lengths)
            np.maximum(longest, now, out=longest)
            met = contact.touching(turn.points, turn.vertices, turn.shares) if contact is not None else np.zeros(0, int)
            touching_faces[met] = True
            bone = tested.get(turn.bone, TestedBone(joints.names[turn.bone]))
            torn = int((now > settings.tear_limit).sum())
            tested[turn.bone] = bone.joined(float(now.max(initial=1.0)), torn, len(met))
            checkpoint(progress, turn.bone / len(joints.names), "Turning the bones")
        if not tested:
            raise BadScene(
                f'No bone of the armature "{name}" moves a part of the mesh against the rest, so there is '
                "no joint to test. Bind the mesh to more bones"
            )
        stretch, touching = np.ones(len(rest)), np.zeros(len(rest), bool)
        np.maximum.at(stretch, edges.ravel(), np.repeat(longest, 2))
        touching[triangles[touching_faces]] = True
        bones = sorted(tested.values(), key=lambda bone: (bone.torn, bone.touching, bone.stretch), reverse=True)
        record = PoseTestFigures(
            settings.angle,
            settings.tear_limit,
            len(tested),
            int((longest > settings.tear_limit).sum()),
            int(touching_faces.sum()),
            float(stretch.max()),
            tuple(_told(bone) for bone in bones[:_MOST_NAMED] if bone.torn or bone.touching),
        )
        return record, tuple(bones), stretch, touching

    return test


def _told(bone: TestedBone) -> str:
    parts = [f"{bone.torn} torn"] if bone.torn else []
    parts += [f"{bone.touching} touching"] if bone.touching else []
    return f"{bone.name} ({listed(parts)})"


@dataclass(frozen=True, eq=False)
class _Joints:
    """The bones to turn: ``names`` and rest matrices (P, 4, 4) in the armature's space; they are the rows ``turned``
    (P,) of all bones with ``parents``, among which ``bones`` (N, K) are those of the weights."""

    names: tuple[str, ...]
    rest: np.ndarray
    turned: np.ndarray
    parents: np.ndarray
    bones: np.ndarray


def _joints(skin: Skin) -> _Joints:
    """The deforming bones; if none of them is below another, the visible bones that carry them."""
    armature, names = skin.armature, skin.bone_names
    skeleton = skeleton_of(armature, names)
    if (skeleton.parents >= 0).any():
        return _Joints(names, skeleton.rest, np.arange(len(names)), skeleton.parents, skin.bones)
    every = tuple(armature.data.bones.keys())
    place = np.array([every.index(name) for name in names])
    turned = [index for index, name in enumerate(every) if _is_shown(armature, name)]
    turned = turned or place.tolist()
    shown = tuple(every[index] for index in turned)
    parents = named_parents(armature, every)
    return _Joints(shown, rest_matrices(armature, shown), np.array(turned), parents, place[skin.bones])


def _is_shown(armature: bpy.types.Object, name: str) -> bool:
    collections = armature.data.bones[name].collections
    shown = not collections or any(each.is_visible_effectively for each in collections)
    return shown and not selectable(armature)[name].hide
