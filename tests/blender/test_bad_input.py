# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that cannot be converted are refused with a message that names object and frame, and nothing is left behind.

And what looks as if it could not be converted, but can.
"""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.core import memory
from tests.blender import moving_meshes, refusals, scenes

pytestmark = pytest.mark.usefixtures("extension")


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 4, "iterations": 3} | given)


refused = partial(refusals.refused, convert)


def coincide(source, skinned, tolerance: float) -> None:
    """Source and result have the same world positions at every frame of the scene, but for ``tolerance``."""
    scene = bpy.context.scene
    for frame in range(scene.frame_start, scene.frame_end + 1):
        difference = moving_meshes.world_positions(source, frame) - moving_meshes.world_positions(skinned, frame)
        assert np.linalg.norm(difference, axis=1).max() < tolerance, frame


def test_no_active_object(scene):
    refused("NO_ACTIVE_OBJECT")


def test_not_a_mesh(scene):
    camera = bpy.data.objects.new("Eye", bpy.data.cameras.new("Eye"))
    scene.collection.objects.link(camera)
    bpy.context.view_layer.objects.active = camera
    refused('NOT_A_MESH "Eye"')


def test_no_vertices(scene):
    moving_meshes.add_object("Empty", np.zeros((0, 3)))
    refused('NO_VERTICES "Empty"')


def test_no_vertices_after_the_modifiers(scene):
    ob = moving_meshes.add_object("Masked", *moving_meshes.grid())
    ob.vertex_groups.new(name="None")
    ob.modifiers.new("Mask", "MASK").vertex_group = "None"
    refused('"Masked"', "no vertices", "frame 1")


def test_one_frame(scene):
    moving_meshes.waving_grid()
    refused('ONE_FRAME "Flag"', "frame 5", frame_start=5, frame_end=5)


def test_nothing_moves(scene):
    moving_meshes.add_object("Still", *moving_meshes.grid())
    refused("Nothing moves", '"Still"', "frame 1", "8")


def test_only_the_object_itself_moves(scene):
    ob = moving_meshes.add_object("Moved", *moving_meshes.grid())
    for frame in (1, 8):
        ob.location.x = frame
        ob.keyframe_insert("location", frame=frame)
    refused("Nothing moves", '"Moved"', "object's own transform")


def test_vertex_count_changes(scene):
    ob = moving_meshes.twisting_bar("Growing")
    modifier = ob.modifiers.new("Copies", "ARRAY")
    for frame, count in ((5, 1), (6, 2)):
        modifier.count = count
        modifier.keyframe_insert("count", frame=frame)
    refused('"Growing"', "frame 6", "63", "126")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_position_that_is_not_a_number(scene, tmp_path, value):
    frames = moving_meshes.waving_frames(8)
    frames[4, 17, 1] = value
    moving_meshes.cached_grid(tmp_path / "broken.pc2", frames)
    refused('"Cached"', "frame 5", "vertex 17", "NaN or infinite")


def test_cache_file_missing(scene, tmp_path):
    ob = moving_meshes.cached_grid(tmp_path / "lost.pc2", moving_meshes.waving_frames(8))
    (tmp_path / "lost.pc2").unlink()
    refused(f'"{ob.name}"', "missing", "lost.pc2")


def test_more_bones_than_vertices(scene):
    moving_meshes.waving_grid(columns=3, rows=3)
    refused('"Flag"', "10", "9", bone_count=10)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("bone_count", "Bones"),
        ("max_influences", "Influences"),
        ("iterations", "Iterations"),
        ("frame_step", "Frame Step"),
    ],
)
@pytest.mark.parametrize("value", [0, -3])
def test_counts_below_one(scene, name, label, value):
    moving_meshes.waving_grid()
    refused(f"OUT_OF_RANGE {label} … at least 1 … {value}", **{name: value})


def test_negative_target_error(scene):
    moving_meshes.waving_grid()
    refused("OUT_OF_RANGE Target Error … -1", target_error=-1.0)


@pytest.mark.parametrize("count", [1, 7])
def test_mesh_without_size(scene, tmp_path, count):
    ob = moving_meshes.add_object("Point", np.zeros((count, 3)))
    moving_meshes.add_waving_keys(ob)
    refused('"Point"', "no size", "frame 1", bone_count=1)


def test_reversed_frame_range(scene):
    moving_meshes.waving_grid()
    refused('RANGE_REVERSED "Flag" … 7 … 3', frame_start=7, frame_end=3)


def test_edit_mode(scene):
    moving_meshes.waving_grid()
    bpy.ops.object.mode_set(mode="EDIT")
    refused('MODE "Flag" … Edit Mode')


def test_hidden_object(scene):
    ob = moving_meshes.waving_grid()
    ob.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    refused('HIDDEN "Flag"')


def test_excluded_object(scene):
    """An excluded object cannot be the active one, so it is refused where a script names it."""
    from skinning_tools.core.errors import BadScene
    from skinning_tools.features.convert.conversion import convert as pipeline
    from skinning_tools.features.convert.settings import ConvertSettings

    ob = moving_meshes.waving_grid()
    scenes.moved_to("Away", ob)
    bpy.context.view_layer.layer_collection.children["Away"].exclude = True
    refusals.refused(lambda: next(pipeline(bpy.context, [ob], ConvertSettings())), 'EXCLUDED "Flag"', error=BadScene)


def test_zero_scale(scene):
    moving_meshes.waving_grid().scale.y = 0
    refused('NO_SCALE_ALONG "Flag" … Y')


def test_too_little_memory_is_said_before_anything_is_read(scene, monkeypatch):
    moving_meshes.waving_grid()
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    evaluated = []
    bpy.app.handlers.frame_change_pre.append(lambda *_: evaluated.append(1))
    refused('"Flag"', "63 vertices, 8 frames", "memory", "free", "shorter frame range")
    bpy.app.handlers.frame_change_pre.clear()
    assert evaluated == []


@pytest.mark.parametrize("scale", [(2, 0.5, 1), (-1, 1, 1), (-2, -0.3, -1)])
def test_unapplied_and_negative_scale(scene, scale):
    ob = moving_meshes.waving_grid()
    ob.location, ob.rotation_euler, ob.scale = (1, 2, 3), (0.3, 0.4, 0.5), scale
    assert convert(bone_count=12) == {"FINISHED"}
    coincide(ob, bpy.data.objects["Flag_skinned"], 0.001)


def test_animated_object_and_parent(scene):
    ob = moving_meshes.waving_grid()
    parent = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(parent)
    ob.parent = parent
    for frame in (1, 8):
        parent.rotation_euler.z = ob.location.x = frame * 0.5
        ob.keyframe_insert("location", frame=frame)
        parent.keyframe_insert("rotation_euler", frame=frame)
    assert convert(bone_count=12) == {"FINISHED"}
    coincide(ob, bpy.data.objects["Flag_skinned"], 0.001)


def test_objects_that_share_a_mesh(scene):
    first = moving_meshes.waving_grid()
    second = bpy.data.objects.new("Second", first.data)
    scene.collection.objects.link(second)
    assert convert(bone_count=12) == {"FINISHED"}
    assert second.data == first.data
    assert bpy.data.objects["Flag_skinned"].data != first.data
    coincide(first, bpy.data.objects["Flag_skinned"], 0.001)


def test_linked_library_data(scene, tmp_path):
    moving_meshes.waving_grid()
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    scene = moving_meshes.fresh_scene()
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = ["Flag"]
    linked = bpy.data.objects["Flag"]
    assert linked.library is not None
    scene.collection.objects.link(linked)
    bpy.context.view_layer.objects.active = linked
    assert convert(bone_count=12) == {"FINISHED"}
    skinned, rig = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    for block in (skinned, skinned.data, rig, rig.data, rig.animation_data.action):
        assert block.library is None
    coincide(linked, skinned, 0.001)


def test_loose_vertices_parts_degenerate_faces_and_ngons(scene):
    vertices, faces = moving_meshes.grid()
    count = len(vertices)
    loose = np.add(vertices[:3], (0, 0, 1))
    ngon = np.array([[np.cos(angle), np.sin(angle), -1.0] for angle in np.arange(7) * 2 * np.pi / 7])
    line = np.array([[3.0, 0, 0], [3.5, 0, 0], [4.0, 0, 0]])
    every = np.concatenate([vertices, np.add(vertices, (0, 3, 0)), loose, ngon, line])
    second = [[index + count for index in face] for face in faces]
    offset = 2 * count + 3
    ob = moving_meshes.add_object(
        "Odd", every, [*faces, *second, list(range(offset, offset + 7)), [offset + 7, offset + 8, offset + 9]]
    )
    moving_meshes.add_waving_keys(ob)
    assert convert(bone_count=12) == {"FINISHED"}
    skinned = bpy.data.objects["Odd_skinned"]
    assert len(skinned.data.vertices) == len(every)
    coincide(ob, skinned, 0.5)
