# SPDX-License-Identifier: GPL-3.0-or-later
"""The export for engines: what is in the file, what the report says of it, and that the scene stays as it was."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions, clip_tracks
from skinning_tools.blender.skin_reader import armature_of
from skinning_tools.core.errors import BadScene
from skinning_tools.features.export import comparison, engines, export
from skinning_tools.features.export.panel import SKINNING_PT_export
from tests.blender import (
    clip_scenes,
    command_runs,
    eigenskin_scenes,
    gltf_file,
    moving_meshes,
    panel_recorder,
    refusals,
    scenes,
    shape_key_scenes,
    skinned_meshes,
    snapshots,
    whereabouts,
)
from tests.engines import formats, samples

pytestmark = pytest.mark.usefixtures("extension")

# Parts of the diagonal: single precision through a chain of bones, and the half precision of USD's scales, through an
# affine bone's chain of two and a limb's of five.
EXACT, HALF, FIVE_HALVES = 1e-5, 2 * 2.0**-11, 5 * 2.0**-11


@pytest.fixture(params=engines.FORMATS)
def file_format(request):
    if not engines.FORMATS[request.param].available:
        pytest.skip("this Blender does not have the format")
    return request.param


def exported(folder, file_format="GLTF", **given) -> export.Exported:
    """The result of an export of the active object, checked to leave the scene as it was, and nothing beside the
    file."""
    active = bpy.context.view_layer.objects.active
    ob = export.character(bpy.context, active)[1]
    before, files, places = snapshots.snapshot(ob), set(folder.iterdir()), whereabouts.whereabouts()
    path = folder / f"file{engines.FORMATS[file_format].ending}"
    result, _ = scenes.drain(export.export(bpy.context, active, str(path), file_format=file_format, **given))
    assert snapshots.snapshot(ob) == before
    assert whereabouts.moved(places, whereabouts.whereabouts()) == []
    assert set(folder.iterdir()) == files | {path}
    return result


def conversion(**given) -> bpy.types.Object:
    ob = samples.convert(samples.swaying_tube(), **given)
    bpy.context.view_layer.objects.active = ob
    return ob


@pytest.mark.parametrize("kind", ["AFFINE", "RIGID"])
def test_a_conversion_plays_as_in_the_scene(tmp_path, file_format, kind):
    conversion(bone_kind=kind, residual_shapes=3)
    result = exported(tmp_path, file_format, engine="UNREAL")
    compared, affine = result.compared, kind == "AFFINE"
    limit = HALF if file_format == "USD" and affine else EXACT
    assert 0 < compared.largest < limit * compared.diagonal
    assert compared.missing == 0
    assert len(compared.sheared) == (4 if affine else 0)
    assert compared.half_way < limit * compared.diagonal
    assert any("shear" in note for note in result.notes) == affine
    assert "in Blender's importer" in result.summary()


@pytest.mark.parametrize("driven", [True, False])
def test_corrections_have_values_from_zero_to_one_in_the_file(tmp_path, file_format, driven):
    ob = samples.corrected_limb()
    if driven:
        bpy.ops.skinning.unbake_eigenskin()
    formats.number_vertices(ob)
    expected = formats.played(ob, 1, samples.FRAME_COUNT)
    names, fps = ob.data.shape_keys.key_blocks.keys(), bpy.context.scene.render.fps
    result = exported(tmp_path, file_format)
    assert result.compared.largest < EXACT * result.compared.diagonal

    # The importers clamp values to this range.
    imported = formats.reimport(result.path, fps)
    # USD allows no spaces in names.
    found_names = [name.replace("_", " ") for name, _ in imported.data.shape_keys.key_blocks.items()]
    assert found_names == [*names, "Offset"]
    found = formats.played(imported, formats.first_frame(imported), samples.FRAME_COUNT)
    assert formats.largest_distance(found, expected[:, formats.vertex_numbers(imported)]) < EXACT


def test_keys_of_the_artist(tmp_path, file_format):
    """With a group, relative to another key, muted, beyond 1 and below 0, on a rig of the artist's; its bones leave
    their parents' ends, to which Blender's FBX importer connects them where no rounding is in the way."""
    ob, rig = skinned_meshes.rigged_tube()
    rig.location = rig.rotation_euler = (0, 0, 0)
    ob.parent = rig
    first, second, third, muted = scenes.shape_keys(ob, count=4)
    ob.data.shape_keys.animation_data_clear()
    second.relative_key, third.vertex_group, muted.mute = first, "Bone 1", True
    for block, values in ((first, (-0.5, 0.4)), (second, (0.2, 2.5)), (third, (0.0, 0.7)), (muted, (0.0, 1.0))):
        block.slider_min, block.slider_max = -3, 3
        for frame, value in zip((1, 8), values, strict=True):
            block.value = value
            block.keyframe_insert("value", frame=frame)
    result = exported(tmp_path, file_format)
    compared = result.compared
    assert compared.largest < (FIVE_HALVES if file_format == "USD" else EXACT) * compared.diagonal
    first.mute = True
    again = scenes.drain(comparison.compare(bpy.context, [ob], result.path, result.file_format, range(1, 9)))[0]
    assert again.largest > 0.01 * again.diagonal


def test_sliders_of_a_face(tmp_path):
    moving_meshes.fresh_scene()
    shape_key_scenes.face()
    bpy.ops.skinning.convert_shape_keys(bone_count=5, max_influences=4)
    rig, name = bpy.data.objects["Face_rig"], shape_key_scenes.NAMES[0]
    bpy.context.view_layer.objects.active = rig
    for frame, value in ((1, 0.0), (8, 1.0)):
        rig[name] = value
        rig.keyframe_insert(f'["{bpy.utils.escape_identifier(name)}"]', frame=frame)
    expected = formats.played(bpy.data.objects["Face_skinned"], 1, 8)
    assert np.linalg.norm(expected[7] - expected[0], axis=1).max() > 0.1
    result = exported(tmp_path)
    assert result.compared.largest < EXACT * result.compared.diagonal


def test_all_visible_meshes_below_a_moved_root_on_strips(tmp_path, file_format):
    """No action of its own: the file has what is played. A parent that moves everything is in the file, too."""
    tube, rig = skinned_meshes.rigged_tube()
    hidden, *_ = skinned_meshes.cut(tube, 20)
    hidden.hide_set(True)
    for ob in (tube, bpy.data.objects["Upper"], hidden):
        ob.parent = rig
    root = scenes.link(bpy.data.objects.new("Root", None))
    root.rotation_euler, root.scale, rig.parent = (0.3, 0.2, 0.1), (2, 2, 2), root
    for frame, place in ((1, 0.0), (8, 3.0)):
        root.location.x = place
        root.keyframe_insert("location", index=0, frame=frame)
    animation = rig.animation_data
    action, animation.action = animation.action, None
    animation.nla_tracks.new().strips.new("Walk", 1, action)
    bpy.context.view_layer.objects.active = tube
    result = exported(tmp_path, file_format)
    assert result.mesh_count == 2
    assert result.compared.largest < (FIVE_HALVES if file_format == "USD" else 2 * EXACT) * result.compared.diagonal


@pytest.mark.parametrize("start", [0, 5])
def test_the_scene_s_frames_wherever_they_begin(tmp_path, file_format, start):
    ob, rig = skinned_meshes.rigged_tube()
    ob.parent = rig
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end, scene.render.fps = start, start + 6, 30
    for curve in actions.existing_curves(rig):
        for point in curve.keyframe_points:
            point.co_ui.x += start - 1
    result = exported(tmp_path, file_format)
    assert result.frame_count == 7
    assert result.compared.largest < (FIVE_HALVES if file_format == "USD" else EXACT) * result.compared.diagonal


@pytest.mark.parametrize(
    ("file_format", "change"), [("GLTF", {"export_def_bones": True}), ("FBX", {"bake_anim_step": 2.0})]
)
def test_the_comparison_finds_wrong_files(tmp_path, file_format, change):
    ob = conversion()
    chosen = engines.FORMATS[file_format]
    path = formats.export(ob, tmp_path / f"file{chosen.ending}", **change)
    compared = scenes.drain(comparison.compare(bpy.context, [ob], path, chosen, range(1, 9)))[0]
    assert compared.largest > 1e-3 * compared.diagonal


def test_the_comparison_misses_meshes(tmp_path):
    tube, _ = skinned_meshes.rigged_tube()
    lower, upper = skinned_meshes.cut(tube, 20)
    path = formats.export(lower, tmp_path / "file.glb")
    chosen = engines.FORMATS["GLTF"]
    compared = scenes.drain(comparison.compare(bpy.context, [lower, upper], path, chosen, range(1, 9)))[0]
    # The ring where both were cut is at the same place, and moves together.
    assert compared.missing == len(upper.data.vertices) - 16
    assert compared.largest < EXACT * compared.diagonal


def keyed_bone(scales, turns) -> None:
    """The active mesh on one bone with these scales, and turns in degrees about its own z, at frames 1, 4, 5 and 8."""
    ob, rig = skinned_meshes.rigged_tube(bone_count=1)
    # The earlier action is still there, and must not be exported with the new one.
    rig.animation_data_clear()
    (bone,) = rig.pose.bones
    bone.matrix_basis.identity()
    bone.rotation_mode = "QUATERNION"
    for frame, scale, turn in zip((1, 4, 5, 8), scales, np.radians(turns) / 2, strict=True):
        bone.scale = scale
        bone.rotation_quaternion = (np.cos(turn), 0, 0, np.sin(turn))
        for path in ("location", "rotation_quaternion", "scale"):
            bone.keyframe_insert(path, frame=frame)
    bpy.context.view_layer.objects.active = ob


@pytest.mark.parametrize("file_format", ["GLTF", "FBX"])
@pytest.mark.parametrize("scale", [(0.4, 1.0, 0.4), (1.0, 1.0, 0.4)])
def test_bones_through_zero_scale_half_way_between_frames(tmp_path, file_format, scale):
    """Blender's exporters write a flipped bone as half a turn, which goes round between two frames."""
    flipped = [-value if value < 1 else value for value in scale]
    keyed_bone([scale, scale, flipped, flipped], [0, 0, 0, 0])
    result = exported(tmp_path, file_format)
    said = any("glTF or Rigid bones avoid that" in note for note in result.notes)
    if file_format == "GLTF":
        assert result.compared.half_way < EXACT * result.compared.diagonal
        assert not said
    else:
        assert result.compared.half_way > 0.05 * result.compared.diagonal
        assert said


def test_a_bone_that_turns_far_between_two_frames_goes_on_turning(tmp_path):
    keyed_bone([(1, 1, 1)] * 4, [0, 0, 150, 150])
    result = exported(tmp_path)
    assert result.compared.half_way < EXACT * result.compared.diagonal


def test_what_the_file_lacks_is_noted(tmp_path):
    ob = conversion(bone_count=8, max_influences=8)
    ob.modifiers.new("Smoother", "SMOOTH")
    result = exported(tmp_path, compare=False)
    assert result.compared is None
    text = result.summary()
    assert "with more than 4 influences" in text
    assert 'modifiers of object "Tube_skinned" are not in the file: Smoother' in text


def test_a_mirrored_armature_is_named_where_the_importer_reads_it_wrong(tmp_path):
    armature_of(conversion()).scale.z = -1.0
    result = exported(tmp_path)
    assert result.compared.largest > 1e-3 * result.compared.diagonal
    assert "is mirrored, which glTF files play but Blender's importer does not" in result.summary()
    assert "does not play as the scene does" not in result.summary()


def test_a_name_without_ending_gets_one(tmp_path):
    conversion()
    active = bpy.context.view_layer.objects.active
    scenes.drain(export.export(bpy.context, active, str(tmp_path / "file"), compare=False))
    assert [path.name for path in tmp_path.iterdir()] == ["file.glb"]


@pytest.mark.parametrize("shapes", [0, 2])
def test_all_clips_are_in_one_file_and_play_as_in_the_scene(tmp_path, file_format, shapes):
    clip_scenes.character()
    clip_scenes.convert(bone_kind="RIGID", residual_shapes=shapes)
    bpy.context.view_layer.objects.active = bpy.data.objects["Walk_skinned"]
    # Clips have times of their own, so that the file holds all of them.
    render = bpy.context.scene.render
    render.frame_map_new = 200
    result = exported(tmp_path, file_format)
    render.frame_map_new = 100
    if file_format == "USD":
        assert "without the clips on muted NLA tracks: Idle, Run. For all of them, USD holds one" in result.summary()
        return
    assert result.clips == tuple(clip_scenes.FRAMES)
    assert result.frame_count == sum(map(len, clip_scenes.FRAMES.values()))
    assert "NLA tracks" not in result.summary()
    assert set(result.compared.by_clip) == set(clip_scenes.FRAMES)
    assert max(result.compared.by_clip.values()) == result.compared.largest < EXACT * result.compared.diagonal
    if file_format == "GLTF":
        names = [each["name"] for each in gltf_file.GltfFile.read(result.path).content["animations"]]
        assert sorted(names) == sorted(clip_scenes.FRAMES)
    # Each clip is compared with its own.
    rig, *meshes = export.character(bpy.context, bpy.context.object)
    clip_tracks.play_clip(rig, meshes, "Idle")
    for curve in actions.existing_curves(rig):
        for point in curve.keyframe_points:
            point.co.y += 0.2
    clips = export.file_clips(rig, meshes)
    comparing = comparison.compare(bpy.context, meshes, result.path, engines.FORMATS[file_format], range(1, 3), clips)
    found, _ = scenes.drain(comparing)
    wrong = {name for name, distance in found.by_clip.items() if distance > 1e-3 * found.diagonal}
    assert wrong == {"Idle"}


def test_one_clip_alone(tmp_path):
    clip_scenes.character()
    clip_scenes.convert()
    bpy.context.view_layer.objects.active = bpy.data.objects["Walk_skinned"]
    result = exported(tmp_path, compare=False, all_clips=False)
    assert result.clips == ()
    assert "without the clips on muted NLA tracks: Idle, Run. For all of them, switch All Clips on" in result.summary()
    animation = bpy.data.objects["Walk_rig"].animation_data
    # With All Clips on, the note says what else is in the way.
    walk, animation.action = animation.action, None
    told = exported(tmp_path, compare=False, replace=True).summary()
    assert "Walk, Idle, Run. For all of them, choose one of them in the Action Editor" in told
    animation.action, animation.nla_tracks["Walk"].mute = walk, False
    told = exported(tmp_path, compare=False, replace=True).summary()
    assert "Idle, Run. For all of them, mute the other NLA tracks" in told
    # Strips that play are the scene's animation.
    for track in animation.nla_tracks:
        track.mute = track.name == "Walk"
    result = exported(tmp_path, compare=False, replace=True)
    assert result.clips == ()
    assert "NLA tracks" not in result.summary()


def test_what_this_session_exported_is_replaced_and_nothing_else(tmp_path):
    conversion()
    first = exported(tmp_path, compare=False)
    scenes.drain(export.export(bpy.context, bpy.context.object, str(first.path), compare=False))
    first.path.write_bytes(b"of the artist")
    with refusals.raises_unmet("this extension did not write the file there, or it was changed since"):
        bpy.ops.skinning.export_character(filepath=str(first.path))
    assert first.path.read_bytes() == b"of the artist"
    bpy.ops.skinning.export_character(filepath=str(first.path), replace=True, compare=False)
    assert first.path.read_bytes().startswith(b"glTF")
    with refusals.raises_unmet("end in .fbx", "Correct the name file.glb"):
        bpy.ops.skinning.export_character(filepath=str(first.path), engine="UNITY")


def test_a_linked_character_with_driven_keys_is_refused(tmp_path):
    """Its keys cannot be replaced by keyframes, without which the file would play wrong."""
    ob = samples.corrected_limb()
    bpy.ops.skinning.unbake_eigenskin()
    name = ob.name
    eigenskin_scenes.link_objects(tmp_path / "library.blend", name, ob.find_armature().name)
    path = tmp_path / "file.glb"
    with pytest.raises(BadScene, match=f'"{name}" is linked') as raised:
        scenes.drain(export.export(bpy.context, bpy.context.view_layer.objects.active, str(path)))
    assert raised.value.code == "LINKED_OBJECT"
    assert not path.exists()


@pytest.mark.parametrize(
    ("kind", "engine", "warned"), [("AFFINE", "UNREAL", True), ("AFFINE", "THREE", False), ("RIGID", "UNREAL", False)]
)
def test_the_panel_warns_of_bones_that_an_engine_cannot_play(kind, engine, warned):
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    bpy.ops.skinning.convert_animation(bone_count=2, iterations=1, bone_kind=kind)
    bpy.context.scene.skinning_export.engine = engine
    assert (
        any(text.startswith("Affine bones shear") for text in panel_recorder.drawn(SKINNING_PT_export).texts) == warned
    )


@pytest.mark.parametrize("path", ["a.b/hero.v2", "a.b/hero.v2.glb", "a.b/hero.v2.FBX"])
def test_the_file_browser_proposes_the_ending_of_the_chosen_format(path):
    """Blender remembers the path of the last export, which may have another one."""
    assert engines.with_ending(path, ".fbx") == "a.b/hero.v2.fbx"


def test_a_failed_exporter_leaves_nothing(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("the fault")

    ob = samples.corrected_limb()
    before = snapshots.snapshot(ob)
    monkeypatch.setattr(engines.Format, "save", fails)
    with refusals.raises_unmet("could not be saved", "the fault"):
        bpy.ops.skinning.export_character(filepath=str(tmp_path / "file.glb"))
    assert snapshots.snapshot(ob) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("active", "mode"), [("Tube_skinned", "OBJECT"), ("Tube", "OBJECT"), ("Tube_rig", "OBJECT"), ("Tube_rig", "POSE")]
)
def test_the_result_is_selected(active, mode):
    conversion(iterations=1)
    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    bpy.ops.object.mode_set(mode=mode)
    bpy.ops.skinning.select_for_export()
    assert {ob.name for ob in bpy.context.selected_objects} == {"Tube_skinned", "Tube_rig"}
    assert bpy.context.object.name == "Tube_rig"


def test_an_armature_in_no_collection_cannot_be_selected():
    ob = conversion(iterations=1)
    rig = ob.find_armature()
    for collection in list(rig.users_collection):
        collection.objects.unlink(rig)
    refusals.refused("select_for_export", "NOT_IN_SCENE")
    assert bpy.context.view_layer.objects.active == ob


def test_a_hidden_armature_in_pose_mode(tmp_path):
    conversion()
    rig = bpy.data.objects["Tube_rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    result = exported(tmp_path)
    assert result.compared.largest < EXACT * result.compared.diagonal
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = bpy.data.objects["Tube_skinned"]
    rig.hide_viewport = True
    result = exported(tmp_path)
    assert result.compared.largest < EXACT * result.compared.diagonal
    assert rig.hide_viewport


def test_the_command_line(tmp_path, capsys):
    conversion()
    shot, path = tmp_path / "shot.blend", tmp_path / "file.fbx"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    given = "--object", "Tube_rig", "--input", shot, "--file", path
    assert command_runs.run("export", *given, "--engine", "unity") == 0
    printed = capsys.readouterr().out
    assert "Largest distance" in printed
    assert str(path) in printed
    path.write_bytes(b"of the artist")
    assert command_runs.run("export", *given, "--engine", "unity") == 2
    assert command_runs.run("export", *given, "--engine", "unity", "--overwrite", "--no-compare") == 0
    assert "Largest distance" not in capsys.readouterr().out


def test_poses_without_keyframes_stay(tmp_path, file_format):
    """Exporters play the frames in the window's scene, which would put the bones back to their curves."""
    ob = samples.corrected_limb()
    rig = ob.find_armature()
    lower = rig.pose.bones["lower"]
    # A property that no longer exists, as on rigs from earlier versions of Blender.
    lower.constraints.new("COPY_ROTATION").mute = True
    gone = f'{actions.bone_path("lower")}.constraints["Copy Rotation"].gone'
    actions.write_channels(actions.curve_container(rig), gone, np.ones((1, 1)), np.ones(1), "lower")
    bpy.context.scene.frame_set(3)
    turned = (0.9, 0.1, 0.2, 0.3)
    lower.rotation_quaternion = turned
    ob.data.shape_keys.key_blocks[1].value = 0.25
    rig["slider"] = 0.5
    rig.keyframe_insert('["slider"]', frame=1)
    rig["slider"] = 0.75
    exported(tmp_path, file_format)
    np.testing.assert_allclose(lower.rotation_quaternion, turned, rtol=1e-6)
    assert rig["slider"] == 0.75


def test_bones_without_keyframes_keep_their_pose(tmp_path, file_format):
    ob, rig = skinned_meshes.rigged_tube()
    ob.parent = rig
    actions.remove_curves(rig, lambda path: path.startswith(actions.bone_path("Bone 2")))
    bone = rig.pose.bones["Bone 2"]
    bone.rotation_euler, bone.scale, bone.location = (0.5, 0.2, 0.1), (1, 1, 1), (0, 0, 0)
    result = exported(tmp_path, file_format)
    assert tuple(bone.rotation_euler) == pytest.approx((0.5, 0.2, 0.1))
    assert result.compared.largest < (FIVE_HALVES if file_format == "USD" else EXACT) * result.compared.diagonal
