# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading an animation from Alembic, USD, PC2 and MDD caches, also missing, damaged and changing ones."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.animation.animation_reader import read_animation
from skinning_tools.core.errors import BadAnimation, BadScene
from tests.blender import scenes

pytestmark = pytest.mark.usefixtures("empty")


def read(object, *frame_range):
    return scenes.drain(read_animation(bpy.context, object, *frame_range))[0]


def waving():
    object = scenes.grid()
    scenes.wave(object)
    return object


FORMATS = [
    pytest.param("abc", marks=pytest.mark.skipif(not bpy.app.build_options.alembic, reason="built without Alembic")),
    pytest.param("usdc", marks=pytest.mark.skipif(not bpy.app.build_options.usd, reason="built without USD")),
]


def cached(tmp_path, kind, frames=range(1, 9), fps=(24, 1.0)):
    """An object that plays a cache of a waving grid, the path of the cache, and the positions that went into it."""
    object = waving()
    path = tmp_path / f"flag.{kind}"
    _set_fps(fps)
    expected = scenes.played(object, frames)
    scenes.export_cache(path, frames[0], frames[-1])
    scenes.empty_scene()
    _set_fps(fps)
    return scenes.import_cache(path), path, expected


def _set_fps(fps):
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = fps


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("fps", [(24, 1.0), (24, 1.001), (30, 1.001)], ids=["24", "23.976", "29.97"])
def test_scene_caches(tmp_path, kind, fps):
    object, _, expected = cached(tmp_path, kind, fps=fps)
    source = read(object, 1, 8)
    np.testing.assert_allclose(source.animation.frames, expected, rtol=0, atol=1e-6)
    assert np.ptp(source.animation.frames, axis=0).any()
    assert len(source.animation.triangles) == 24


@pytest.mark.parametrize("kind", FORMATS)
def test_scene_cache_that_is_missing(tmp_path, kind):
    object, path, _ = cached(tmp_path, kind)
    path.unlink()
    name = object.modifiers[0].name
    with pytest.raises(BadScene, match=rf'(?s)modifier "{name}" of object ".*" is missing: .*flag.{kind}'):
        read(object, 1, 8)


@pytest.mark.parametrize("kind", FORMATS)
def test_scene_cache_that_is_damaged(tmp_path, kind):
    object, path, _ = cached(tmp_path, kind)
    broken = tmp_path / f"broken.{kind}"
    broken.write_bytes(b"\0" * 100)
    object.modifiers[0].cache_file.filepath = str(broken)
    with pytest.raises(BadScene, match=r"cannot be read: .*broken"):
        read(object, 1, 8)
    assert path.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_scene_cache_without_the_chosen_object(tmp_path, kind):
    object, _, _ = cached(tmp_path, kind)
    object.modifiers[0].object_path = "/Sail"
    with pytest.raises(BadScene, match='has no object "/Sail"'):
        read(object, 1, 8)


@pytest.mark.skipif(not bpy.app.build_options.alembic, reason="built without Alembic")
def test_a_cache_that_is_deleted_while_it_is_read(tmp_path):
    object, path, _ = cached(tmp_path, "abc")
    before = scenes.data_blocks()
    reading = read_animation(bpy.context, object, 1, 8)
    next(reading)
    path.unlink()
    with pytest.raises(BadScene, match="is missing"):
        scenes.drain(reading)
    assert scenes.data_blocks() == before


@pytest.mark.skipif(not bpy.app.build_options.alembic, reason="built without Alembic")
def test_file_sequence_with_a_gap(tmp_path):
    object = scenes.grid()
    for frame in range(1, 6):
        for vertex in object.data.vertices:
            vertex.co.z = frame
        object.data.update()
        bpy.context.scene.frame_set(frame)
        scenes.export_cache(tmp_path / f"flag_{frame:04d}.abc", frame, frame)
    scenes.empty_scene()
    object = scenes.import_cache(tmp_path / "flag_0001.abc")
    object.modifiers.clear()
    modifier = object.modifiers.new("Sequence", "MESH_SEQUENCE_CACHE")
    modifier.cache_file = bpy.data.cache_files[0]
    modifier.cache_file.is_sequence = True
    bpy.context.view_layer.update()
    modifier.object_path = modifier.cache_file.object_paths[0].path
    source = read(object, 1, 5)
    np.testing.assert_array_equal(source.animation.frames[:, :, 2].mean(axis=1), [1, 2, 3, 4, 5])
    (tmp_path / "flag_0003.abc").unlink()
    with pytest.raises(BadScene, match=r"missing at frame 3: .*flag_0003.abc"):
        read(object, 1, 5)


@pytest.mark.skipif(not bpy.app.build_options.alembic, reason="built without Alembic")
def test_cache_whose_vertex_count_changes(tmp_path):
    object = scenes.grid()
    array = object.modifiers.new("Array", "ARRAY")
    scenes.key_property(array, "count", {1: 1, 3: 1, 4: 2})
    path = tmp_path / "flag.abc"
    scenes.export_cache(path, 1, 6)
    scenes.empty_scene()
    object = scenes.import_cache(path)
    before, state = scenes.data_blocks(), scenes.ui_state()
    with pytest.raises(BadAnimation, match=r'object "Flag" .*at frame 4 its vertices change from 20 to 40'):
        read(object, 1, 6)
    assert scenes.data_blocks() == before
    assert scenes.ui_state() == state
    assert read(object, 1, 3).animation.vertex_count == 20


def point_positions(object, count=6):
    base = np.array([vertex.co for vertex in object.data.vertices])
    return np.array([base + np.random.default_rng(frame).normal(size=base.shape) for frame in range(count)], np.float32)


WRITERS = {"PC2": scenes.write_pc2, "MDD": scenes.write_mdd}


@pytest.mark.parametrize("kind", WRITERS)
def test_point_caches(tmp_path, kind):
    object = scenes.grid()
    expected = point_positions(object)
    WRITERS[kind](tmp_path / "flag.cache", expected)
    scenes.point_cache(object, tmp_path / "flag.cache", kind)
    np.testing.assert_allclose(read(object, 1, 6).animation.frames, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", WRITERS)
def test_point_cache_with_other_vertices(tmp_path, kind):
    object = scenes.grid()
    WRITERS[kind](tmp_path / "flag.cache", point_positions(object)[:, :-1])
    scenes.point_cache(object, tmp_path / "flag.cache", kind)
    with pytest.raises(BadScene, match="has 19 points, but the mesh has 20 vertices"):
        read(object, 1, 6)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_is_not_a_point_cache(tmp_path, kind):
    object = scenes.grid()
    (tmp_path / "flag.cache").write_bytes(b"xy")
    scenes.point_cache(object, tmp_path / "flag.cache", kind)
    with pytest.raises(BadScene, match=f"is not in the {kind} format"):
        read(object, 1, 6)


def point_cached(path, kind="PC2", value=0.1):
    """A grid with a point cache of 6 frames; ``value`` is a coordinate of vertex 3 at the third."""
    object = scenes.grid()
    positions = point_positions(object)[:6]
    positions[2, 3, 1] = value
    WRITERS[kind](path, positions)
    scenes.point_cache(object, path, kind)
    return object


@pytest.mark.parametrize("kind", WRITERS)
def test_point_cache_that_is_cut_short(tmp_path, kind):
    """Blender would show the mesh at rest at the frames that are missing."""
    path = tmp_path / "flag.cache"
    object = point_cached(path, kind)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadScene, match="is incomplete: it has 5 of its 6 frames"):
        read(object, 1, 4)


def test_point_cache_without_times(tmp_path):
    path = tmp_path / "flag.cache"
    object = point_cached(path)
    data = bytearray(path.read_bytes())
    data[24:28] = bytes(4)
    path.write_bytes(data)
    assert len(read(object, 1, 6).animation.frames) == 6, "seconds a frame, which do not count for frames"
    object.modifiers[0].time_mode = "TIME"
    with pytest.raises(BadScene, match="is not in the PC2 format"):
        read(object, 1, 6)


def test_point_cache_that_is_written_while_it_is_read(tmp_path):
    path = tmp_path / "flag.cache"
    object = point_cached(path)
    steps = read_animation(bpy.context, object, 1, 6)
    next(steps)
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(BadScene, match='cache file of object "Flag" was changed while it was being read'):
        next(steps)


def test_position_out_of_all_measure(tmp_path):
    object = point_cached(tmp_path / "flag.cache", value=-1e30)
    with pytest.raises(BadAnimation, match=r"far too large, -1e\+30, at frame 3, vertex 3"):
        read(object, 1, 6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_position_that_is_not_a_number(tmp_path, value):
    object = scenes.grid()
    positions = point_positions(object)
    positions[3, 7, 1] = value
    positions[5, 1, 1] = value
    scenes.write_pc2(tmp_path / "flag.pc2", positions)
    scenes.point_cache(object, tmp_path / "flag.pc2", "PC2").interpolation = "NONE"
    before, state = scenes.data_blocks(), scenes.ui_state()
    with pytest.raises(BadAnimation, match=r'object "Flag" .*at frame 4, vertex 7'):
        read(object, 1, 6)
    assert scenes.data_blocks() == before
    assert scenes.ui_state() == state
