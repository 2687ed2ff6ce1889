# SPDX-License-Identifier: GPL-3.0-or-later
"""Center-of-rotation skinning as shape keys and as a point cache: plain Blender, in every version."""

import os
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from skinning_tools.blender.skin_reader import armature_of, read_skin
from skinning_tools.core.errors import BadPath
from skinning_tools.features.centers import playback
from skinning_tools.features.centers.operators import SKINNING_OT_crs_to_shape_keys
from skinning_tools.features.centers.settings import PlaybackSettings
from tests.blender import moving_meshes, scenes
from tests.blender.refusals import refused
from tests.blender.skinned_meshes import diagonal, expected, rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

TOLERANCE = 1e-6


@pytest.fixture
def tube(tmp_path):
    """A baked tube, alone in a saved file."""
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    return ob


OPERATORS = ("crs_to_shape_keys", "crs_to_pc2")


def play(operator: str, **given):
    """Run the operator; returns the copy."""
    before = set(bpy.data.objects)
    assert getattr(bpy.ops.skinning, operator)(**given) == {"FINISHED"}
    (made,) = set(bpy.data.objects) - before
    return made


def core_positions(ob, frames, rest=None) -> np.ndarray:
    positions = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        positions.append(expected(ob, rest=rest))
    bpy.context.scene.frame_set(1)
    return np.array(positions)


def coincide(copy, wanted: np.ndarray, frames, tolerance=TOLERANCE) -> None:
    difference = scenes.played(copy, frames) - wanted
    assert np.abs(difference).max() < tolerance * diagonal(copy)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_frame_is_cores(tube, operator):
    frames = range(1, 9)
    copy = play(operator)
    assert copy.name == "Arm_crs"
    coincide(copy, core_positions(tube, frames), frames)
    assert np.array_equal(np.array(copy.matrix_world), np.array(tube.matrix_world))


@pytest.mark.parametrize("operator", OPERATORS)
def test_plays_alone(tube, operator):
    """The copy plays without the source, its armature and the extension's data."""
    frames = range(1, 9)
    wanted = core_positions(tube, frames)
    copy = play(operator)
    assert [modifier.type for modifier in copy.modifiers] == (["MESH_CACHE"] if operator == "crs_to_pc2" else [])
    assert not any("center" in attribute.name for attribute in copy.data.attributes)
    bpy.data.batch_remove([tube, bpy.data.objects["Rig"]])
    bpy.context.view_layer.update()
    coincide(copy, wanted, frames)


@pytest.mark.parametrize("operator", OPERATORS)
def test_steps_and_what_lies_between(tube, operator):
    copy = play(operator, frame_start=2, frame_end=7, frame_step=2)
    frames = (2, 4, 6)
    wanted = core_positions(tube, frames)
    coincide(copy, wanted, frames)
    coincide(copy, 0.5 * (wanted[:-1] + wanted[1:]), (3, 5))
    coincide(copy, wanted[[0, 2, 2]], (1, 7, 8))


@pytest.mark.parametrize("operator", OPERATORS)
def test_one_frame_is_held(tube, operator):
    copy = play(operator, frame_start=5, frame_end=5)
    coincide(copy, core_positions(tube, [5, 5]), (1, 5), tolerance=TOLERANCE)


@pytest.mark.parametrize("operator", OPERATORS)
def test_scene_that_stretches_time(tube, operator):
    bpy.context.scene.render.frame_map_new = 250
    frames = range(1, 9)
    copy = play(operator)
    coincide(copy, core_positions(tube, frames), frames, tolerance=1e-5)


@pytest.mark.parametrize("operator", OPERATORS)
def test_shape_keys_and_modifiers_before_the_armature_count(tube, operator):
    rest = read_skin(bpy.context, tube).rest
    block = scenes.shape_keys(tube, count=1)[0]
    offsets = np.random.default_rng(0).normal(scale=0.1, size=rest.shape)
    block.points.foreach_set("co", (rest + offsets).astype(np.float32).ravel())
    scenes.key_property(block, "value", {1: 0.0, 8: 0.7})
    tube.modifiers.new("Lift", "DISPLACE").strength = 0.0
    lift = tube.modifiers["Lift"]
    lift.direction, lift.mid_level, lift.strength = "Z", 0.0, 0.25
    tube.modifiers.move(1, 0)
    copy = play(operator)
    lifted = (0, 0, 0.25)
    for frame, value in ((1, 0.0), (8, 0.7)):
        coincide(copy, core_positions(tube, [frame], rest=rest + value * offsets + lifted), [frame], tolerance=2e-6)
    assert [modifier.type for modifier in copy.modifiers] == (["MESH_CACHE"] if operator == "crs_to_pc2" else [])
    assert copy.data.shape_keys is None or "Key 1" not in copy.data.shape_keys.key_blocks


@pytest.mark.parametrize("operator", OPERATORS)
def test_modifiers_after_the_armature_go_on(tube, operator):
    tube.modifiers.new("Smooth", "SUBSURF").levels = 1
    copy = play(operator)
    assert [modifier.type for modifier in copy.modifiers][-1] == "SUBSURF"
    assert len(scenes.evaluated_positions(copy)) > len(tube.data.vertices)


@pytest.mark.parametrize("operator", OPERATORS)
def test_modifiers_that_are_pinned_to_the_end_stay_there(tube, operator):
    tube.modifiers.new("Pinned", "NODES").use_pin_to_last = True
    copy = play(operator)
    assert copy.modifiers[-1].name == "Pinned"
    coincide(copy, core_positions(tube, range(1, 9)), range(1, 9))


def test_the_copy_of_an_overridden_character_stands_on_its_own(tube, tmp_path):
    own = scenes.overridden((tube, armature_of(tube)), tmp_path / "library.blend")
    bpy.context.view_layer.objects.active = own["MESH"]
    name = play("crs_to_shape_keys").name
    scenes.reopened(tmp_path / "other.blend")
    copy = bpy.data.objects[name]
    assert copy.override_library is None
    assert not copy.modifiers


@pytest.mark.parametrize("operator", OPERATORS)
def test_source_is_untouched(tube, operator):
    positions, ui = scenes.played(tube, range(1, 9)), scenes.ui_state()
    scene = bpy.context.scene
    attributes = sorted(attribute.name for attribute in tube.data.attributes)
    play(operator)
    assert scenes.ui_state() == ui
    assert bpy.data.scenes[:] == [scene]
    assert np.array_equal(scenes.played(tube, range(1, 9)), positions)
    assert sorted(attribute.name for attribute in tube.data.attributes) == attributes
    assert [(modifier.type, modifier.show_viewport) for modifier in tube.modifiers] == [("ARMATURE", True)]
    assert tube.data.shape_keys is None


@pytest.mark.parametrize("operator", OPERATORS)
def test_parent_of_type_armature(tube, operator):
    scenes.deforming_parent(tube, bpy.data.objects["Rig"])
    frames = range(1, 9)
    copy = play(operator)
    coincide(copy, core_positions(tube, frames), frames)


@pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on")
@pytest.mark.parametrize("operator", OPERATORS)
def test_beside_the_native_modifier(tube, operator):
    bpy.ops.skinning.add_center_of_rotation_modifier()
    frames = range(1, 9)
    copy = play(operator)
    assert "NODES" not in [modifier.type for modifier in copy.modifiers]
    coincide(copy, scenes.played(tube, frames), frames, tolerance=1e-5)


def test_cache_is_beside_the_file_and_named_relative_to_it(tube, tmp_path):
    copy = play("crs_to_pc2")
    assert copy.modifiers[0].filepath == "//shot_Arm_crs.pc2"
    assert sorted(path.name for path in tmp_path.glob("*.p*")) == ["shot_Arm_crs.pc2"]
    path = tmp_path / "shot_Arm_crs.pc2"
    samples = 32 + 8 * len(tube.data.vertices) * 12
    assert path.read_bytes()[samples:].startswith(b"\nskinning_tools.cache ")


def test_cache_where_it_is_told(tube, tmp_path):
    (tmp_path / "caches").mkdir()
    copy = play("crs_to_pc2", filepath="//caches/arm")
    assert (tmp_path / "caches" / "arm.pc2").is_file()
    assert copy.modifiers[0].filepath == "//caches/arm.pc2"
    frames = range(1, 9)
    coincide(copy, core_positions(tube, frames), frames)


def test_the_copy_is_where_the_source_is(tube):
    home = scenes.moved_to("Home", tube)
    assert list(play("crs_to_pc2").users_collection) == [home]


@pytest.mark.parametrize("scene_range", [True, False])
def test_from_the_interface_the_panels_range_counts(tube, scene_range):
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 3, 5
    settings = bpy.context.scene.skinning_rotation_centers
    settings.use_scene_range = scene_range
    settings.frame_start, settings.frame_end, settings.frame_step = 20, 30, 2
    given = SimpleNamespace(settings=PlaybackSettings, frame_end=7)
    given.properties = SimpleNamespace(is_property_set=given.__dict__.__contains__)
    SKINNING_OT_crs_to_shape_keys.prepare(given, bpy.context)
    assert (given.frame_start, given.frame_end, given.frame_step) == (3 if scene_range else 20, 7, 2)


def test_one_frame_is_one(tube):
    result, _ = scenes.drain(playback.to_shape_keys(bpy.context, tube, 2, 2))
    assert "Arm: 1 shape key, played by" in result.summary()
    result, _ = scenes.drain(playback.to_point_cache(bpy.context, tube, "", 2, 3))
    assert "Arm: 2 frames in " in result.summary()


@pytest.mark.parametrize("make", [playback.to_shape_keys, playback.to_point_cache])
def test_cancelling_leaves_nothing(tube, tmp_path, make):
    before, files = moving_meshes.state(), sorted(tmp_path.iterdir())
    steps = make(bpy.context, tube)
    for _ in range(4):
        next(steps)
    assert moving_meshes.state() != before
    steps.close()
    assert moving_meshes.state() == before
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize("make", [playback.to_shape_keys, playback.to_point_cache])
def test_a_fault_leaves_no_scene_behind(tube, make):
    """No scene is left behind while the exception is kept, although its traceback refers to the running frames."""
    before = moving_meshes.state()
    steps = make(bpy.context, tube)
    for _ in range(3):
        next(steps)
    with pytest.raises(ZeroDivisionError) as kept:
        steps.throw(ZeroDivisionError())
    assert moving_meshes.state() == before
    assert kept.value is not None


def test_failing_keeps_an_older_cache(tube, tmp_path):
    path = tmp_path / "old.pc2"
    bpy.data.objects.remove(play("crs_to_pc2", filepath=str(path)))
    older = path.read_bytes()
    steps = playback.to_point_cache(bpy.context, tube, filepath=str(path))
    next(steps)
    steps.close()
    assert path.read_bytes() == older


def test_cache_needs_a_place(tube, tmp_path):
    refused("crs_to_pc2", "no folder", "missing", filepath=str(tmp_path / "missing" / "arm.pc2"))


def test_cache_of_an_unsaved_file():
    rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    refused("crs_to_pc2", "Save the .blend file first")
    refused("crs_to_pc2", "relative to the .blend file", filepath="//arm.pc2")


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_cannot_be_played_is_refused(tube, operator):
    refused(operator, "RANGE_REVERSED", frame_start=5, frame_end=4)
    refused(operator, "OUT_OF_RANGE at least 1 … 0", frame_step=0)
    tube.modifiers.new("Finer", "SUBSURF").levels = 1
    tube.modifiers.move(1, 0)
    refused(operator, '"Arm"', "changes the number of vertices", "frame 1")
    tube.modifiers.remove(tube.modifiers[0])
    tube.vertex_groups["Bone 1"].add([300], 0.1, "REPLACE")
    refused(operator, '"Arm"', "older than its mesh or weights")
    bpy.data.meshes["Arm mesh"].attributes.remove(tube.data.attributes["rotation_center"])
    refused(operator, 'NO_CENTERS "Arm"')


@pytest.mark.skipif(bpy.app.version >= (5, 1, 0), reason="has the modifier")
def test_the_modifier_explains_what_to_do_instead(tube):
    refused("add_center_of_rotation_modifier", "Blender 5.1 or newer", "Apply as Shape Keys", "Bake to PC2")


def second(ob, name: str):
    """Another mesh of that name with the same skin, baked, whose motion is the first one's mirrored."""
    other = ob.copy()
    other.data = ob.data.copy()
    other.name = name
    for vertex in other.data.vertices:
        vertex.co.y += 5.0
    bpy.context.scene.collection.objects.link(other)
    activate(other)
    bpy.ops.skinning.bake_rotation_centers()
    return other


def activate(ob) -> None:
    for each in bpy.context.selected_objects:
        each.select_set(False)
    ob.select_set(True)
    bpy.context.view_layer.objects.active = ob


def played_file(copy) -> str:
    return bpy.path.abspath(copy.modifiers[0].filepath)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("arm.L", "arm_L"),
        ("arm L", "arm/L"),
        ("Müller", "Möller"),
        ("Arm", "ARM"),
        ("e\u0301", "\u00e9"),
        ("...", "---"),
        ("a" * 50 + ".", "a" * 50 + "-"),
        ("x\\", "x:"),
        ("腕", "脚"),
    ],
)
def test_two_objects_never_share_a_cache(tube, first, other):
    tube.name = first
    one = play("crs_to_pc2")
    wanted = scenes.played(one, range(1, 9))
    two = play_of(second(tube, other))
    names = [os.path.basename(played_file(copy)).casefold() for copy in (one, two)]
    assert len(set(names)) == 2
    assert all(os.path.isfile(played_file(copy)) for copy in (one, two))
    assert np.array_equal(scenes.played(one, range(1, 9)), wanted)
    assert not np.allclose(scenes.played(two, range(1, 9)), wanted)


def play_of(ob):
    activate(ob)
    return play("crs_to_pc2")


def test_linked_objects_of_one_name(tube, tmp_path):
    """From two libraries, baked one after the other, their copies deleted between."""
    paths = [tmp_path / name for name in ("one.blend", "two.blend")]
    bpy.ops.wm.save_as_mainfile(filepath=str(paths[0]), copy=True)
    for vertex in tube.data.vertices:
        vertex.co.y += 5.0
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.wm.save_as_mainfile(filepath=str(paths[1]), copy=True)
    moving_meshes.fresh_scene()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    files = {}
    for path in (*paths, *paths):
        with bpy.data.libraries.load(str(path), link=True) as (_, linked):
            linked.objects = ["Arm", "Rig"]
        for ob in linked.objects:
            if ob.name not in bpy.context.scene.collection.objects:
                bpy.context.scene.collection.objects.link(ob)
        bpy.context.view_layer.update()
        copy = play_of(linked.objects[0])
        file = played_file(copy)
        # The same file again for the same object, and for no other.
        assert files.setdefault(path, file) == file
        bpy.data.objects.remove(copy)
        for ob in linked.objects:
            bpy.context.scene.collection.objects.unlink(ob)
    assert len(set(files.values())) == 2


def test_two_files_in_one_folder(tube, tmp_path):
    """ "shot_a" with "Arm" and "shot" with "a_Arm" would have one name."""
    tube.name = "a_Arm"
    one = played_file(play("crs_to_pc2"))
    content = Path(one).read_bytes()
    bpy.data.objects.remove(bpy.data.objects["a_Arm_crs"])
    tube.name = "Arm"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot_a.blend"))
    two = played_file(play("crs_to_pc2"))
    assert one != two
    assert Path(one).read_bytes() == content
    bpy.data.objects.remove(bpy.data.objects["Arm_crs"])
    refused("crs_to_pc2", "the motion of another object or file", filepath=one)
    assert Path(one).read_bytes() == content


def again(**given) -> None:
    """Bake again: no object, mesh or file is added or removed."""
    folder = Path(bpy.data.filepath).parent

    def there():
        blocks = (bpy.data.objects, bpy.data.meshes)
        return [block.name for each in blocks for block in each], sorted(folder.rglob("*"))

    before = there()
    assert bpy.ops.skinning.crs_to_pc2(**given) == {"FINISHED"}
    assert there() == before


@pytest.mark.parametrize("path", ["", "//", "//arm.pc2", "//arm", "//link.pc2"])
def test_baked_again_after_a_change(tube, tmp_path, path):
    """The copy is kept with all edits, and plays the new file."""
    (tmp_path / "arm.pc2").touch()
    (tmp_path / "link.pc2").symlink_to(tmp_path / "arm.pc2")
    copy = play("crs_to_pc2", filepath=path)
    copy.location, copy.name = (1, 2, 3), "Hero"
    copy.modifiers.new("Thick", "SOLIDIFY").show_viewport = False
    copy.data.materials.append(bpy.data.materials.new("Skin"))
    for vertex in tube.data.vertices:
        vertex.co.y *= 2.0
    bpy.ops.skinning.bake_rotation_centers()
    again(filepath=path, frame_start=2, frame_end=8, frame_step=2)
    frames = (2, 4, 6, 8)
    coincide(copy, core_positions(tube, frames), frames)
    assert [modifier.type for modifier in copy.modifiers] == ["MESH_CACHE", "SOLIDIFY"]
    assert tuple(copy.location) == (1, 2, 3)
    assert [material.name for material in copy.data.materials][-1] == "Skin"
    assert [vertex.co for vertex in copy.data.vertices] == [vertex.co for vertex in tube.data.vertices]
    assert (tmp_path / "link.pc2").is_symlink()


def fewer_vertices(ob) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    for vertex in ob.data.vertices[:12]:
        vertex.select = True
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")


def other_faces(ob) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.quads_convert_to_tris()
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.parametrize("change", [fewer_vertices, other_faces])
def test_baked_again_with_another_mesh(tube, change):
    copy = play("crs_to_pc2")
    change(tube)
    bpy.ops.skinning.bake_rotation_centers()
    before = len(bpy.data.meshes)
    assert bpy.ops.skinning.crs_to_pc2() == {"FINISHED"}
    assert len(bpy.data.meshes) == before
    assert len(copy.data.polygons) == len(tube.data.polygons)
    frames = range(1, 9)
    coincide(copy, core_positions(tube, frames), frames)


def test_all_copies_play_what_is_baked_again(tube):
    copies = [play("crs_to_pc2")]
    for _ in range(2):
        copies.append(copies[0].copy())
        bpy.context.scene.collection.objects.link(copies[-1])
    copies[1].data = copies[0].data.copy()
    fewer_vertices(tube)
    bpy.ops.skinning.bake_rotation_centers()
    assert bpy.ops.skinning.crs_to_pc2(frame_start=3) == {"FINISHED"}
    frames = range(3, 9)
    wanted = core_positions(tube, frames)
    for copy in copies:
        coincide(copy, wanted, frames)


def test_a_copy_that_is_in_no_scene_is_not_the_result(tube):
    first = play("crs_to_pc2")
    first.use_fake_user = True
    for home in first.users_collection:
        home.objects.unlink(first)
    copy = play("crs_to_pc2", frame_end=2)
    assert copy.name in bpy.context.scene.objects
    assert played_file(copy) == played_file(first)
    coincide(copy, core_positions(tube, (1, 2)), (1, 2))


def test_stopping_a_second_bake_leaves_the_first(tube, tmp_path):
    copy = play("crs_to_pc2")
    before, content = moving_meshes.state(), Path(played_file(copy)).read_bytes()
    steps = playback.to_point_cache(bpy.context, tube, "", 3, 5)
    for _ in range(2):
        next(steps)
    steps.close()
    assert moving_meshes.state() == before
    assert Path(played_file(copy)).read_bytes() == content


def in_edit_mode(ob, copy, path) -> None:
    activate(copy)
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.context.view_layer.objects.active = ob


def by_the_source(ob, copy, path) -> None:
    modifier = ob.modifiers.new("Cache", "MESH_CACHE")
    modifier.cache_format, modifier.filepath, modifier.show_viewport = "PC2", str(path), False


def by_a_modifier_of_the_artists(ob, copy, path) -> None:
    copy.modifiers[0].name = "Hand-made"


def from_a_library(ob, copy, path) -> None:
    copy.name = "Linked"
    library = path.with_name("library.blend")
    bpy.data.libraries.write(str(library), {copy}, path_remap="ABSOLUTE")
    bpy.data.objects.remove(copy)
    with bpy.data.libraries.load(str(library), link=True) as (_, linked):
        linked.objects = ["Linked"]
    bpy.context.scene.collection.objects.link(linked.objects[0])


@pytest.mark.parametrize("played", [by_the_source, by_a_modifier_of_the_artists, from_a_library, in_edit_mode])
def test_a_cache_that_is_played_in_another_way_stays(tube, tmp_path, played):
    """A player that cannot be changed to a later cache."""
    path = tmp_path / "arm.pc2"
    copy = play("crs_to_pc2", filepath=str(path))
    content = path.read_bytes()
    played(tube, copy, path)
    before = moving_meshes.state()
    with pytest.raises(BadPath, match=r"a cache that the object .* plays"):
        scenes.drain(playback.to_point_cache(bpy.context, tube, str(path)))
    assert moving_meshes.state() == before
    assert path.read_bytes() == content


def test_the_cache_goes_into_a_folder(tube, tmp_path):
    (tmp_path / "caches").mkdir()
    copy = play("crs_to_pc2", filepath="//caches/")
    assert Path(played_file(copy)) == tmp_path / "caches" / "shot_Arm_crs.pc2"
    again(filepath="//caches")
    assert Path(played_file(play("crs_to_pc2"))) == tmp_path / "shot_Arm_crs.pc2"
    refused("crs_to_pc2", "no folder", filepath="//none/")


def test_names_that_are_too_long_for_a_file(tube, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{'ä' * 90}.blend"))
    tube.name = "x" * 60
    one, two = played_file(play("crs_to_pc2")), played_file(play_of(second(tube, "x" * 59 + "y")))
    assert one != two
    assert all(os.path.isfile(path) and len(os.fsencode(os.path.basename(path))) <= 143 for path in (one, two))


def test_a_folder_that_moved_with_its_files(tube, tmp_path):
    """The owner of a cache is stored relative to it: a cache from another machine may be baked again."""
    bpy.data.objects.remove(play("crs_to_pc2"))
    bpy.ops.wm.save_mainfile()
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("shot.blend", "shot_Arm_crs.pc2"):
        (tmp_path / name).rename(moved / name)
    bpy.ops.wm.open_mainfile(filepath=str(moved / "shot.blend"))
    assert Path(played_file(play_of(bpy.data.objects["Arm"]))) == moved / "shot_Arm_crs.pc2"
