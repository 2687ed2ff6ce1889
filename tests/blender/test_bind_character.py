# SPDX-License-Identifier: GPL-3.0-or-later
"""bpy.ops.skinning.bind on characters: several meshes, skeletons from other programs, controls, chosen bones."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.blender.bone_selection import selectable
from skinning_tools.features.bind.bind import bind_record
from tests.blender import scenes
from tests.blender.binding_scenes import (
    activate,
    armature_of_segments,
    bound,
    check_bound,
    cube,
    every_method,
    refused,
    tube,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")

# Four bones along the limb, and a target beside it.
LIMB = [[(x, 0, 0), (x + 1.5, 0, 0)] for x in (0, 1.5, 3, 4.5)]
TARGET = [(3, 0, 4), (3, 1, 4)]


def limb(low=0.0, high=6.0, rows=24) -> bpy.types.Object:
    """An open tube along x."""
    ring = np.radians(np.arange(0, 360, 30))
    x = np.linspace(low, high, round(rows * (high - low) / 6) + 1)
    points = [(place, 0.5 * np.cos(angle), 0.5 * np.sin(angle)) for place in x for angle in ring]
    faces = [
        (12 * row + side, 12 * row + (side + 1) % 12, 12 * (row + 1) + (side + 1) % 12, 12 * (row + 1) + side)
        for row in range(len(x) - 1)
        for side in range(12)
    ]
    return scenes.mesh_object(points, faces, name="Limb")


def rig_of(segments=LIMB):
    return armature_of_segments(segments, parents=[-1, 0, 1, 2, -1][: len(segments)])


@pytest.mark.parametrize("method", ["AUTOMATIC", "DELAUNAY", "POINT_TO_LINE", "CONTAINMENT"])
def test_meshes_bound_together_agree_where_they_meet(method):
    """The border lies beside a joint, where each half alone would guess otherwise."""
    scenes.empty_scene()
    rig = rig_of()
    halves = [limb(0, 3.25), limb(3.25, 6)]
    # Objects with places of their own.
    halves[1].matrix_world = Matrix.Translation((1, 2, 3)) @ Matrix.Rotation(0.4, 4, "Z")
    halves[1].data.transform(halves[1].matrix_world.inverted())
    activate(rig, *halves)
    bpy.context.view_layer.update()
    bound(method=method)
    for bone in rig.pose.bones:
        bone.rotation_mode = "XYZ"
        bone.rotation_euler = (0.3, 0.5, -0.4)
    bpy.context.view_layer.update()
    ends = []
    for half in halves:
        check_bound(half, rig)
        places = (
            scenes.evaluated_positions(half) @ np.array(half.matrix_world)[:3, :3].T + half.matrix_world.translation
        )
        ends.append(places)
    assert np.abs(ends[0][-12:] - ends[1][:12]).max() < 5e-6


@every_method
def test_a_target_gets_nothing_and_is_named(method, capfd):
    scenes.empty_scene()
    rig = rig_of([*LIMB, TARGET])
    ob = limb()
    # So near a vertex that every method would take it.
    bound(method=method)
    assert not weights_of(ob, rig)[:, 4].any()
    assert "bones left out Bone 4" in capfd.readouterr().out
    assert bind_record(ob).left_out == ("Bone 4",)
    assert bind_record(ob).idle == ()


def test_all_bones_keeps_the_target():
    scenes.empty_scene()
    rig = rig_of([*LIMB, [(3, 0, 0.7), (3, 0.2, 0.7)]])
    ob = limb()
    bound(method="RIGID")
    assert not weights_of(ob, rig)[:, 4].any()
    bound(method="RIGID", all_bones=True, replace=True)
    assert weights_of(ob, rig)[:, 4].any()
    assert bind_record(ob).left_out == ()


def test_other_meshes_of_the_armature_show_what_a_bone_is_for():
    """A bone in the arm of another mesh is no control, though this mesh is far from it."""
    scenes.empty_scene()
    rig = rig_of()
    halves = [limb(0, 3), limb(3, 6)]
    halves[1].modifiers.new("Armature", "ARMATURE").object = rig
    activate(halves[0])
    bound()
    assert bind_record(halves[0]).left_out == ()
    assert "Bone 3" in bind_record(halves[0]).idle


def test_tails_without_meaning_do_not_count():
    """Bones as glTF files have them: the weights are those of the bones from joint to joint."""
    scenes.empty_scene()
    rig = rig_of()
    ob = limb()
    bound()
    expected = weights_of(ob, rig)
    scenes.empty_scene()
    rig = rig_of([[head, (head[0], 0, 0.01)] for head, _ in LIMB])
    ob = limb()
    bound()
    found = weights_of(ob, rig)
    assert np.abs(found - expected).mean() < 0.01
    # The armature stays as it is.
    assert [bone.length for bone in rig.data.bones] == pytest.approx([0.01] * 4)


def test_an_eye_follows_what_it_touches():
    scenes.empty_scene()
    rig = rig_of()
    body = limb()
    eye = cube("Eye", (5.5, 0, 0.55), 0.2)
    activate(rig, body, eye)
    bound()
    weights = check_bound(eye, rig)
    assert np.ptp(weights, axis=0).max() < 1e-6
    assert weights[0].argmax() == 3


def test_selected_bones_alone():
    ob, rig = tube()
    for bone in selectable(rig):
        bone.select = bone.name in ("Bone 1", "Bone 2")
    bound(selected_bones=True)
    assert set(np.flatnonzero(check_bound(ob, rig).any(axis=0))) == {1, 2}
    for bone in selectable(rig):
        bone.select = False
    refused('NO_BONE_SELECTED "Rig"', selected_bones=True, replace=True)


@pytest.mark.parametrize("scale", [1000, 0.001])
def test_other_units_are_noted(scale, capfd):
    ob, rig = tube()
    ob.data.transform(Matrix.Scale(scale, 4))
    bound()
    said = capfd.readouterr().out
    assert f"the {'mesh' if scale > 1 else 'skeleton'} is" in said
    assert "times as large as" in said
    check_bound(ob, rig)


def test_long_tails_of_an_importer_are_not_other_units(capfd):
    ob, rig = tube()
    activate(rig, ob)
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones[-1]
    bone.tail = bone.head + 1000 * (bone.tail - bone.head)
    bpy.ops.object.mode_set(mode="OBJECT")
    activate(ob, rig)
    bound()
    assert "times as large as" not in capfd.readouterr().out


def test_a_character_of_three_hundred_loose_parts():
    scenes.empty_scene()
    rig = rig_of()
    random = np.random.default_rng(0)
    parts = [limb()]
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.02
    faces = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    angles = random.uniform(0, 2 * np.pi, 300)
    places = np.column_stack([random.uniform(0.2, 5.8, 300), 0.5 * np.cos(angles), 0.5 * np.sin(angles)])
    points = (places[:, None] + corners).reshape(-1, 3)
    studs = scenes.mesh_object(points, (8 * np.arange(300)[:, None, None] + faces).reshape(-1, 4), name="Studs")
    activate(rig, *parts, studs)
    bound()
    weights = check_bound(studs, rig).reshape(300, 8, 4)
    assert np.ptp(weights, axis=1).max() < 1e-6


def test_an_armature_inside_out():
    """Mirrored by a negative scale: the weights are those of the bones where they are."""
    scenes.empty_scene()
    rig = rig_of()
    ob = limb()
    bound()
    expected = weights_of(ob, rig)
    scenes.empty_scene()
    rig = rig_of([[(-head[0], *head[1:]), (-tail[0], *tail[1:])] for head, tail in LIMB])
    rig.scale = (-1, 1, 1)
    ob = limb()
    bpy.context.view_layer.update()
    bound()
    assert np.allclose(weights_of(ob, rig), expected, atol=1e-4)
