# SPDX-License-Identifier: GPL-3.0-or-later
"""Adding examples to an EigenSkin: the current pose, or frames."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.frame_guard import frame_kept
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.animation.simulations import frames_to_play
from ...blender.bodies import stretch_of
from ...blender.character import character_of
from ...blender.lengths import length_text
from ...blender.object_checks import check_cache_content
from ...blender.preconditions import check_attributes_writable, check_posed
from ...blender.shapes import evaluated_shape
from ...blender.skin_reader import Skin, armature_of
from ...blender.wording import counted
from ...core.errors import BadScene, BadSettings
from ...core.geometry import diagonal
from ...core.memory import check_available
from .example_shapes import (
    Uncorrected,
    check_frame,
    check_place,
    check_simulated,
    check_source,
    note_keys,
    other_mesh,
    other_meshes,
    shape_of_key,
    uncorrected,
)
from .examples import (
    all_or_none,
    check_storable,
    current_channels,
    current_pose,
    read_rig,
    replace_examples,
    same_poses,
    store_example,
)

if TYPE_CHECKING:
    from ...core.eigenskin.types import Rig

# As Pose Joints names its timeline markers.
POSE_MARKER = re.compile(r" ([XYZ] [+-]\d+°|ball \d+)$")

# A share of the mesh's extent. A shape that is nowhere farther from linear blending corrects nothing.
_NOTICEABLE = 1e-5


def check_addable(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The mesh for the active object. Raises BadScene with the reason if no example of it can be added. Cheap enough
    for a panel."""
    character = character_of(context, active)
    check_storable(armature_of(character))
    check_attributes_writable(character)
    return character


@dataclass(frozen=True)
class Added:
    """Examples that were added. difference: the largest distance of a shape from plain linear blending, in world space.
    plain: number of examples that do not differ noticeably from it. replaced: number of older examples with the same
    poses. source: name of the other mesh with the shapes, "" for the mesh itself."""

    object_name: str
    names: tuple[str, ...]
    total: int
    difference: float
    plain: int
    replaced: int
    source: str = ""
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in one line."""
        count = len(self.names)
        what = f'example "{self.names[0]}"' if count == 1 else f"{count} examples"
        if self.source:
            what += f' with the shape{"s" if count > 1 else ""} of "{self.source}"'
        parts = [f"{self.object_name}: {what} added, {self.total} in all"]
        if self.plain == count:
            parts.append("the same as plain linear blending, so it corrects nothing")
        else:
            distance = length_text(bpy.context.scene, self.difference, 3)
            parts.append(f"up to {distance} from plain linear blending")
            if self.plain:
                parts.append(f"{self.plain} of them not at all")
        if self.replaced:
            parts.append(f"{counted(self.replaced, 'of the same pose')} replaced")
        return "; ".join([", ".join(parts), *self.notes])


def add_example(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    source: str = "EVALUATED",
    name: str = "",
    shape_key: str = "",
) -> Added:
    """Store the current pose with its correct shape from ``source``: "EVALUATED", "MESH" or "SHAPE_KEY".

    name: of the example; if empty, the posed joint's. shape_key: its name; if empty, the active one.
    Raises BadScene, BadMesh, BadAnimation.
    """
    mesh_object = check_addable(context, active)
    skin, rig = read_rig(context, mesh_object)
    depsgraph = context.evaluated_depsgraph_get()
    rotations, matrices = current_pose(skin, rig, depsgraph)
    if not _moves(rotations):
        check_posed(skin.armature)
        raise BadScene(
            f'No joint of "{skin.armature.name}" is turned, and an example is a pose with its correct shape. Pose the '
            "armature first"
        )
    frame, other = context.scene.frame_current, mesh_object
    notes: tuple[str, ...] = ()
    channels = current_channels(skin, depsgraph)
    if source == "SHAPE_KEY":
        shape = shape_of_key(skin, matrices, shape_key, frame)
    else:
        other = mesh_object if source == "EVALUATED" else other_mesh(context, skin, depsgraph)
        check_source(context, skin, other)
        check_simulated(other, frame)
        omissions = Omissions(context, [other], [frame], [skin.armature], same_vertices=True)
        with uncorrected(context, mesh_object, other) as left_out:
            shape = evaluated_shape(skin, other, context.evaluated_depsgraph_get(), frame)
        notes = (*left_out.notes(), *texts_of(omissions.finish()))
        check_place(context, skin, other, matrices, shape, frame)
    reading = _Reading(name or pose_name(rig, rotations), frame, rotations, matrices, shape, channels)
    return _store(skin, rig, [reading], source, other, notes)


def add_frames(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
    use_markers: bool = True,
    source: bpy.types.Object | None = None,
) -> background.Steps:
    """Generator: store pose and shape of every frame of a range that poses a joint; yields (fraction, stage), returns
    Added.

    The shape is that of ``source``, by default the other selected mesh, else ``active`` with all its modifiers.
    use_markers: read only the frames marked by Pose Joints, if there are any. A range of None is that of the marks, or
    the scene's. Of successive frames with the same pose only the last is stored, because a simulation has settled by
    then. All or nothing; the scene's frame is restored. Raises BadScene, BadSettings, BadMesh, BadAnimation.
    """
    scene, view_layer = context.scene, context.view_layer
    mesh_object = check_addable(context, active)
    skin, rig = read_rig(context, mesh_object)
    marks = pose_marks(scene) if use_markers else {}
    numbers = _frame_numbers(scene, marks, frame_start, frame_end, frame_step)
    depsgraph = context.evaluated_depsgraph_get()
    if source is None:
        source = other_mesh(context, skin, depsgraph) if other_meshes(view_layer, mesh_object) else mesh_object
    check_source(context, skin, source)
    check_cache_content(source, depsgraph)
    check_simulated(source, numbers[-1])
    check_available(
        len(numbers) * len(skin.rest) * 2 * 3 * np.dtype(np.float32).itemsize,
        f"The shapes of {skin.label} ({len(skin.rest)} vertices, {len(numbers)} frames)",
    )
    omissions = Omissions(context, [source], numbers, [skin.armature], same_vertices=True)
    with uncorrected(context, mesh_object, source) as left_out:
        reading = _read_frames(context, skin, rig, source, numbers, marks, left_out)
        readings, resting, repeated = yield from background.part_of(reading, 0.0, 0.95)
    if not readings:
        raise BadScene(
            f"No joint of {skin.label} is posed at any of the {len(numbers)} frames from {numbers[0]} to "
            f"{numbers[-1]}. Animate the armature, for instance by Pose Joints"
        )
    yield 0.95, "Storing the examples"
    notes = [*left_out.notes(), *texts_of(omissions.finish())]
    if resting:
        notes.append(f"{counted(resting, 'frame')} at rest left out")
    if repeated:
        notes.append(f"{counted(repeated, 'frame')} with the pose of the next one left out")
    return _store(skin, rig, readings, "FRAMES" if source == mesh_object else "MESH", source, tuple(notes))


def pose_marks(scene: bpy.types.Scene) -> dict[int, str]:
    """The frames marked by Pose Joints, with the names of the markers."""
    markers = sorted(scene.timeline_markers, key=lambda marker: marker.frame)
    return {marker.frame: marker.name for marker in markers if POSE_MARKER.search(marker.name)}


def default_range(scene: bpy.types.Scene, use_markers: bool) -> tuple[int, int]:
    """The first and the last frame to read if no range is given."""
    marks = pose_marks(scene) if use_markers else {}
    return (min(marks), max(marks)) if marks else (scene.frame_start, scene.frame_end)


def pose_name(rig: "Rig", rotations: np.ndarray) -> str:
    """The name of a pose: the joint with the largest rotation, its angle, and the number of other posed joints."""
    from ...core.eigenskin import is_turned, rotation_angles

    angles = rotation_angles(rotations)
    joint = int(np.argmax(angles))
    vector = rotations[joint, 1:] * (-1 if rotations[joint, 0] < 0 else 1)
    axis = int(np.argmax(np.abs(vector)))
    degrees = round(float(np.degrees(angles[joint])))
    along = abs(vector[axis]) >= 0.999 * np.linalg.norm(vector)
    turn = f"{'XYZ'[axis]} {degrees if vector[axis] > 0 else -degrees:+d}°" if along else f"{degrees}°"
    others = int(is_turned(rotations).sum()) - 1
    return f"{rig.joint_names[joint]} {turn}" + (f" and {others} more" if others else "")


@dataclass(frozen=True, eq=False)
class _Reading:
    """An example before it is stored."""

    name: str
    frame: int
    rotations: np.ndarray
    matrices: np.ndarray
    shape: np.ndarray
    channels: dict[str, list[float]]


def _read_frames(
    context: bpy.types.Context,
    skin: Skin,
    rig: "Rig",
    source: bpy.types.Object,
    numbers: list[int],
    marks: dict[int, str],
    left_out: Uncorrected,
) -> background.Steps[tuple[list[_Reading], int, int]]:
    """Generator: play the frames ``numbers``; yields (fraction, stage), returns what is to be stored, and the numbers
    of frames at rest and of frames with the pose of the next one, which are not."""
    scene, view_layer = context.scene, context.view_layer
    readings: list[_Reading] = []
    resting, repeated, latest = 0, 0, None
    for number, fraction in _played(scene, view_layer, source, numbers):
        yield fraction, f"Reading frame {number}"
        if number not in numbers:
            continue
        check_frame(scene, view_layer, source, number)
        depsgraph = view_layer.depsgraph
        rotations, matrices = current_pose(skin, rig, depsgraph)
        if not _moves(rotations):
            resting, latest = resting + 1, None
            continue
        shape = evaluated_shape(skin, source, depsgraph, number)
        check_place(context, skin, source, matrices, shape, number)
        if source.data == skin.object.data:
            note_keys(left_out, source, depsgraph)
        if latest is not None and _is_same(latest, rotations):
            readings.pop()
            repeated += 1
        latest = rotations
        name = marks.get(number, f"Frame {number}")
        readings.append(_Reading(name, number, rotations, matrices, shape, current_channels(skin, depsgraph)))
    return readings, resting, repeated


def _store(
    skin: Skin, rig: "Rig", readings: list[_Reading], kind: str, source: bpy.types.Object, notes: tuple[str, ...]
) -> Added:
    """Add all of the examples or none, and remove older ones with the same poses. source: their object."""
    from ...core.deform import skin_frame

    group = skin.armature.skinning_eigenskin
    rotations = np.array([reading.rotations for reading in readings])
    older = same_poses(skin.armature, skin.object, rig, rotations)
    enabled = _stay_enabled(skin, older, len(readings))
    stretch = stretch_of(skin.object)
    size = diagonal(skin.rest @ stretch.T)
    differences = []
    with all_or_none(skin.armature):
        for reading in readings:
            store_example(skin, kind=kind, **vars(reading))
            plain = skin_frame(skin.rest, skin.bones, skin.weights, reading.matrices)
            differences.append(float(np.linalg.norm((reading.shape - plain) @ stretch.T, axis=1).max()))
    names = replace_examples(skin.armature, older, [reading.name for reading in readings])
    for item, chosen in zip(list(group.examples)[-len(readings) :], enabled, strict=True):
        item.enabled = chosen
    return Added(
        skin.object.name,
        names,
        len(group.examples),
        max(differences),
        sum(bool(difference <= _NOTICEABLE * size) for difference in differences),
        len(older),
        "" if source == skin.object else source.name,
        notes,
    )


def _stay_enabled(skin: Skin, older: dict[str, np.ndarray], count: int) -> list[bool]:
    """Which of ``count`` new examples are enabled: all but those that replace only disabled ones, given by uid."""
    states: list[set[bool]] = [set() for _ in range(count)]
    for item in skin.armature.skinning_eigenskin.examples:
        for row in older.get(item.uid, ()):
            states[row].add(item.enabled)
    return [state != {False} for state in states]


def _frame_numbers(
    scene: bpy.types.Scene, marks: dict[int, str], start: int | None, end: int | None, step: int
) -> list[int]:
    first, last = default_range(scene, bool(marks))
    first, last = first if start is None else start, last if end is None else end
    numbers = list(frame_range(scene, first, last, step))
    if not marks:
        return numbers
    numbers = [frame for frame in marks if first <= frame <= last][::step]
    if not numbers:
        raise BadSettings(
            f"No frame from {first} to {last} is marked as a pose; the marks are at frames {min(marks)} to "
            f"{max(marks)}. Choose another range, or disable Only Marked Poses"
        )
    return numbers


def _played(
    scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, source: bpy.types.Object, numbers: list[int]
) -> Iterator[tuple[int, float]]:
    """Set the scene to each of the frames, or if there is a simulation, to all frames from its start; yields the
    frame and the fraction done, and restores the scene's frame at the end."""
    steps = frames_to_play(scene, view_layer, [source], numbers)
    with frame_kept(scene):
        for done, number in enumerate(steps):
            scene.frame_set(number)
            yield number, (done + 1) / len(steps)


def _moves(rotations: np.ndarray) -> bool:
    from ...core.eigenskin import is_turned

    return bool(is_turned(rotations).any())


def _is_same(first: np.ndarray, second: np.ndarray) -> bool:
    from ...core import quaternions

    return not _moves(quaternions.product(quaternions.conjugate(first), second))
