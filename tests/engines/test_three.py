# SPDX-License-Identifier: GPL-3.0-or-later
"""Results in an engine: exported to glTF, skinned by three.js in a browser, compared with Blender at every frame."""

import os

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.blender.clip_tracks import play_clip
from tests.blender import clip_scenes, moving_meshes, shape_key_scenes, skinned_meshes
from tests.engines import formats, samples, three_player

pytestmark = pytest.mark.usefixtures("extension")

# Fractions of the diagonal: the error allowed in an engine, and the error of single precision through a chain of
# joints.
FROM_SOURCE = 1e-4
EXACT = 5e-6
FRAMES = range(1, samples.FRAME_COUNT + 1)


@pytest.fixture(scope="module")
def player():
    reason = three_player.missing()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with three_player.Player() as player:
        yield player


def in_three(player, ob, path, **settings) -> tuple[np.ndarray, np.ndarray, three_player.Playback]:
    """Positions (F, R, 3) in three.js at FRAMES, in Blender's axes, and the vertex (R,) of each row."""
    formats.number_vertices(ob)
    formats.export(ob, path, **settings)
    times = np.array(FRAMES) / bpy.context.scene.render.fps
    playback = player.play(path, times, attribute=formats.VERTEX.lower())
    vertices = playback.attribute[:, 0].astype(np.int64)
    assert set(vertices) == set(range(len(ob.data.vertices)))
    assert playback.facts["skinned"]
    assert len(playback.facts["clips"]) == 1
    assert playback.facts["messages"] == []
    return formats.to_z_up(playback.positions), vertices, playback


def played(ob) -> np.ndarray:
    return formats.played(ob, FRAMES[0], len(FRAMES))


def check_exact(player, ob, path, **settings) -> three_player.Playback:
    """Processor and shaders of three.js have the mesh where Blender has it."""
    expected = played(ob)
    found, vertices, playback = in_three(player, ob, path, **settings)
    assert formats.largest_distance(found, expected[:, vertices]) < EXACT
    assert formats.largest_distance(formats.to_z_up(playback.shaded), expected[:, vertices]) < EXACT
    # It moves, so that a file played at wrong times would be noticed.
    assert np.linalg.norm(np.diff(expected, axis=0), axis=-1).max(axis=1).min() > 1e3 * EXACT
    return playback


@pytest.mark.parametrize("shapes", [0, 3])
@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
def test_a_conversion_plays_as_in_blender(player, tmp_path, kind, shapes):
    ob = samples.convert(samples.swaying_tube(), bone_kind=kind, residual_shapes=shapes)
    playback = check_exact(player, ob, tmp_path / "tube.glb")
    assert playback.facts["morphs"] == (shapes and shapes + 1)
    assert playback.facts["bones"] == (8 if kind == "AFFINE" else 4)


# With shapes, the exporter's mode NLA Tracks plays those of the active clip in all (Blender 4.2 and 5.2). "": the
# extension's own export.
@pytest.mark.parametrize(("mode", "shapes"), [("", 2), ("ACTIONS", 0), ("ACTIONS", 2), ("NLA_TRACKS", 0)])
def test_clips_of_one_mesh_play_by_their_names(player, tmp_path, mode, shapes):
    clip_scenes.character()
    # Flat meshes cost affine bones digits.
    clip_scenes.convert(bone_kind="RIGID", residual_shapes=shapes)
    ob, rig = bpy.data.objects["Walk_skinned"], bpy.data.objects["Walk_rig"]
    formats.number_vertices(ob)
    path = tmp_path / "clips.glb"
    if mode:
        formats.export(ob, path, export_animation_mode=mode)
    else:
        bpy.context.view_layer.objects.active = ob
        assert bpy.ops.skinning.export_character(filepath=str(path), compare=False) == {"FINISHED"}
    for name, frames in clip_scenes.FRAMES.items():
        times = np.array(frames) / bpy.context.scene.render.fps
        playback = player.play(path, times, attribute=formats.VERTEX.lower(), clip=name)
        assert sorted(playback.facts["clips"]) == sorted(clip_scenes.FRAMES)
        play_clip(rig, [ob], name)
        expected = formats.played(ob, frames[0], len(frames))[:, playback.attribute[:, 0].astype(np.int64)]
        assert formats.largest_distance(formats.to_z_up(playback.positions), expected) < EXACT
        assert np.linalg.norm(np.diff(expected, axis=0), axis=-1).max() > 1e3 * EXACT


def test_flat_cloth(player, tmp_path):
    """Affine bones flatten it at a frame, so that the exporter's division by their matrices costs digits."""
    ob = samples.convert(samples.waving_flag())
    expected = played(ob)
    found, vertices, _ = in_three(player, ob, tmp_path / "flag.glb")
    assert formats.largest_distance(found, expected[:, vertices]) < FROM_SOURCE


def test_affine_bones_play_the_source(player, tmp_path):
    source = samples.affine_bands(tmp_path)
    expected = played(source)
    ob = samples.convert(source, residual_shapes=6, iterations=60)
    found, vertices, _ = in_three(player, ob, tmp_path / "bands.glb")
    assert formats.largest_distance(found, expected[:, vertices]) < FROM_SOURCE


def test_eigenskin_corrections_play_as_in_blender(player, tmp_path):
    ob = samples.corrected_limb()
    expected = played(ob)
    playback = check_exact(player, ob, tmp_path / "limb.glb")
    assert playback.facts["morphs"] == len(ob.data.shape_keys.key_blocks) - 1
    bpy.ops.skinning.unbake_eigenskin()
    bpy.ops.skinning.mute_eigenskin(mute=True)
    assert formats.largest_distance(played(ob), expected) > 1e3 * EXACT


@pytest.mark.parametrize(("kind", "plays"), [("AFFINE", False), ("SCALED", True), ("RIGID", True)])
def test_affine_bones_need_all_bones_in_the_file(player, tmp_path, kind, plays):
    """The exporter's option Export Deformation Bones Only drops the bones that carry affine ones."""
    ob = samples.convert(samples.swaying_tube(), bone_kind=kind)
    expected = played(ob)
    found, vertices, _ = in_three(player, ob, tmp_path / "tube.glb", export_def_bones=True)
    assert (formats.largest_distance(found, expected[:, vertices]) < EXACT) == plays


@pytest.mark.parametrize("every", [True, False])
def test_more_than_four_influences(player, tmp_path, every):
    """three.js, like most engines, uses four influences; it ignores the additional ones of the exporter's option."""
    ob = samples.convert(samples.swaying_tube(), bone_count=8, max_influences=8)
    expected = played(ob)
    found, vertices, playback = in_three(player, ob, tmp_path / "tube.glb", export_all_influences=every)
    assert formats.largest_distance(found, expected[:, vertices]) > 1e2 * EXACT
    assert playback.facts["attributes"].count("skinWeight") == 1


@pytest.mark.parametrize("optimize", [True, False])
def test_small_meshes_keep_their_motion_without_optimized_animation(player, tmp_path, optimize):
    """The exporter treats values that change by less than 0.0001 units as constant."""
    source = samples.swaying_tube()
    source.location, source.scale = (0, 0, 0), (1, 1, 1)
    source.data.transform(Matrix.Scale(1e-4, 4), shape_keys=True)
    ob = samples.convert(source, bone_kind="RIGID")
    expected = played(ob)
    found, vertices, _ = in_three(player, ob, tmp_path / "tube.glb", export_optimize_animation_size=optimize)
    distance = formats.largest_distance(found, expected[:, vertices])
    assert distance > 1e2 * EXACT if optimize else distance < EXACT


def test_a_root_bone_and_a_joint_hierarchy(player, tmp_path):
    ob = samples.convert(samples.swaying_tube(), bone_kind="RIGID", root_bone=True, joint_hierarchy=True)
    check_exact(player, ob, tmp_path / "tube.glb")


@pytest.mark.parametrize("mode", ["ACTIONS", "NLA_TRACKS"])
def test_poses_of_sliders_add_up(player, tmp_path, mode):
    """Each alone is exact; of several, engines multiply rotations that Blender adds."""
    moving_meshes.fresh_scene()
    shape_key_scenes.face()
    bpy.ops.skinning.convert_shape_keys(bone_count=5, max_influences=4)
    ob, rig = bpy.data.objects["Face_skinned"], bpy.data.objects["Face_rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.skinning.add_slider_poses(kind="CLIPS")
    formats.number_vertices(ob)
    formats.export(ob, tmp_path / "face.glb", export_animation_mode=mode)
    first, second, third = shape_key_scenes.NAMES
    for clips, largest in (({}, EXACT), ({first: 1.0}, EXACT), ({first: 0.5, second: 0.8, third: 0.6}, FROM_SOURCE)):
        weights = {"base": "Neutral", "clips": clips}
        playback = player.play(tmp_path / "face.glb", [0.0], attribute=formats.VERTEX.lower(), weights=weights)
        assert set(playback.facts["clips"]) == {"Neutral", first, second, third}
        vertices = playback.attribute[:, 0].astype(np.int64)
        expected = shape_key_scenes.played(ob, rig, **clips)[None, vertices]
        assert formats.largest_distance(formats.to_z_up(playback.positions), expected) < largest


def test_centers_of_rotation_arrive(player, tmp_path):
    ob, _ = skinned_meshes.rigged_tube()
    bpy.ops.skinning.bake_rotation_centers(sigma=0.3)
    bpy.ops.skinning.prepare_centers_for_export()
    expected = np.array([value.vector for value in ob.data.attributes["_COR"].data])
    formats.number_vertices(ob)
    formats.export(ob, tmp_path / "tube.glb")
    numbers = player.play(tmp_path / "tube.glb", [0], attribute=formats.VERTEX.lower()).attribute[:, 0].astype(np.int64)
    found = player.play(tmp_path / "tube.glb", [0], attribute="_cor").attribute
    np.testing.assert_array_equal(found, expected[numbers])


def test_unplayable_objects_are_reported(player, tmp_path):
    (tmp_path / "broken.glb").write_bytes(b"nothing that three.js knows")
    with pytest.raises(three_player.PlayerFailed, match=r"Unexpected|Unsupported|JSON"):
        player.play(tmp_path / "broken.glb", [0])
