# SPDX-License-Identifier: GPL-3.0-or-later
"""A partial solve after which the mesh is farther from its target than before says so, and what helps."""

import bpy
import pytest

from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender import panel_recorder, scenes
from tests.blender.partial_scenes import FRAMES, add_bone, figures, moving_copy, rigged_at_rest, select, tube
from tests.blender.test_solve_weights import rig  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("extension")

FARTHER = "farther from the target than before: undo"


def solve(operator: str, **given) -> None:
    assert getattr(bpy.ops.skinning, operator)(**given) == {"FINISHED"}


def walk(*objects) -> None:
    """Let the objects move and turn as a whole."""
    for frame in FRAMES:
        for ob in objects:
            ob.location.x += 0.2
            ob.rotation_euler.z += 0.1
            ob.keyframe_insert("location", frame=frame)
            ob.keyframe_insert("rotation_euler", frame=frame)


def panel_texts() -> str:
    return "; ".join(panel_recorder.drawn(SKINNING_PT_partial_solves).texts)


def test_a_target_that_walks_away_from_bones_that_stay_at_their_joints(capsys):
    """The bones that could move these vertices have no weights."""
    ob, armature, target, _ = rigged_at_rest()
    add_bone(armature, "root", child="Bone 0")
    walk(target)
    solve("solve_transforms")
    assert figures(ob).warning == ""
    assert FARTHER not in panel_texts()
    capsys.readouterr()
    solve("solve_transforms", rotation_only=True)
    ways = 'undo, or move "root", which has no weights and carries the others, with the target, or solve without '
    assert figures(ob).e_rms > figures(ob).e_rms_before
    assert f"Arm: {FARTHER.removesuffix('undo')}{ways}Rotation Only" in capsys.readouterr().out
    assert f"Farther from the target than before: {ways}Rotation Only" in panel_texts()


@pytest.mark.parametrize("connected", [False, True])
def test_a_mesh_that_moves_as_a_whole_against_its_armature(connected, capsys):
    """The bones already have the wanted motion."""
    ob, armature = tube()
    walk(ob)
    target = moving_copy(ob, scenes.played(ob, FRAMES))
    if connected:
        select(armature)
        bpy.ops.object.mode_set(mode="EDIT")
        for bone in list(armature.data.edit_bones)[1:]:
            bone.use_connect = True
        bpy.ops.object.mode_set(mode="OBJECT")
    select(target, ob)
    solve("solve_transforms", rotation_only=not connected)
    assert figures(ob).e_rms_before < 0.01
    way = "disconnect its bones in Edit Mode (Alt P)" if connected else "solve without Rotation Only"
    assert figures(ob).e_rms > figures(ob).e_rms_before
    assert figures(ob).warning.startswith(f'{FARTHER}, or parent object "Arm" to "Rig", or {way}')
    note = 'object "Arm" moves as a whole relative to "Rig", which bones at their joints cannot follow'
    assert note in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "way"),
    [
        ({"smoothness": 1.0}, "solve with less Smoothness"),
        ({"max_influences": 1}, "solve with more Influences"),
        ({"max_influences": 1, "smoothness": 1.0}, "solve with less Smoothness, or with more Influences"),
    ],
)
def test_weights_worse_than_the_earlier_ones_are_reported(rig, given, way):  # noqa: F811
    ob = rig[0]
    solve("solve_weights", max_influences=4)
    assert figures(ob).warning == ""
    solve("solve_weights", **given)
    assert figures(ob).warning == f"{FARTHER}, or {way}"
