# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulations are played from their start, frame by frame, whatever the range and step asked for."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.animation.animation_reader import read_animation
from skinning_tools.blender.animation.simulations import simulation_start
from skinning_tools.blender.animation.used_data import dependencies
from tests.blender import scenes

pytestmark = pytest.mark.usefixtures("empty")


def read(object, *frame_range):
    return scenes.drain(read_animation(bpy.context, object, *frame_range))[0]


def soft_body(object):
    object.vertex_groups.new(name="goal").add([0, 1], 1.0, "REPLACE")
    modifier = object.modifiers.new("Soft Body", "SOFT_BODY")
    modifier.settings.vertex_group_goal = "goal"
    bpy.context.view_layer.update()
    return modifier


SIMULATIONS = {"cloth": scenes.cloth, "soft body": soft_body, "nodes": scenes.simulation_nodes}


def simulated(kind, seed=None):
    scenes.empty_scene()
    object = scenes.grid()
    SIMULATIONS[kind](object)
    return object


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_late_range_and_large_step(kind):
    expected = scenes.played(simulated(kind), range(1, 13))[[5, 8, 11]]
    object = simulated(kind)
    source = read(object, 6, 12, 3)
    np.testing.assert_allclose(source.animation.frames, expected, rtol=0, atol=1e-6)
    assert np.ptp(source.animation.frames, axis=0).max() > 0.01
    assert source.method == "Evaluated mesh, simulated from frame 1"


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_frames_that_the_user_skipped(kind):
    """Scrubbing leaves guessed frames in the caches; those must not be read."""
    expected = scenes.played(simulated(kind), range(1, 13))
    object = simulated(kind)
    bpy.context.scene.frame_set(9)
    bpy.context.scene.frame_set(4)
    source = read(object, 1, 12)
    np.testing.assert_allclose(source.animation.frames, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_reading_twice_gives_the_same(kind):
    object = simulated(kind)
    first, second = read(object, 3, 10), read(object, 3, 10)
    np.testing.assert_array_equal(first.animation.frames, second.animation.frames)


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_frame_restored(kind):
    object = simulated(kind)
    for number in range(1, 6):
        bpy.context.scene.frame_set(number)
    before, state, shape = scenes.data_blocks(), scenes.ui_state(), scenes.evaluated_positions(object)
    reading = read_animation(bpy.context, object, 1, 12)
    for _ in range(7):
        next(reading)
    reading.close()
    assert scenes.ui_state() == state
    assert scenes.data_blocks() == before
    np.testing.assert_allclose(scenes.evaluated_positions(object), shape, rtol=0, atol=1e-6)


def test_start_of_the_caches():
    scene, view_layer = bpy.context.scene, bpy.context.view_layer
    object = scenes.grid()
    assert simulation_start(scene, view_layer, object) is None
    modifier = scenes.cloth(object)
    modifier.point_cache.frame_start = -7
    assert simulation_start(scene, view_layer, object) == -7
    modifier.show_viewport = False
    assert simulation_start(scene, view_layer, object) is None


def test_start_of_simulation_nodes():
    scene, view_layer = bpy.context.scene, bpy.context.view_layer
    object = scenes.grid()
    modifier = scenes.simulation_nodes(object)
    scene.frame_start = 3
    assert simulation_start(scene, view_layer, object) == 3
    modifier.bakes[0].use_custom_simulation_frame_range = True
    modifier.bakes[0].frame_start = -4
    assert simulation_start(scene, view_layer, object) == -4


def test_simulation_that_only_another_object_has():
    proxy = scenes.grid(name="Proxy")
    scenes.cloth(proxy)
    proxy_frames = scenes.played(proxy, range(1, 13))
    object = scenes.grid()
    scene, view_layer = bpy.context.scene, bpy.context.view_layer
    assert proxy not in dependencies(object)
    assert simulation_start(scene, view_layer, object) is None
    join = scenes.geometry_tree()
    info = join.nodes.new("GeometryNodeObjectInfo")
    info.inputs["Object"].default_value = proxy
    join.links.new(info.outputs["Geometry"], join.nodes["Group Output"].inputs[0])
    scenes.nodes_modifier(object, join)
    assert proxy in dependencies(object)
    assert simulation_start(scene, view_layer, object) == 1
    proxy.update_tag(refresh={"DATA"})
    source = read(object, 8, 12, 2)
    np.testing.assert_allclose(source.animation.frames, proxy_frames[[7, 9, 11]], rtol=0, atol=1e-6)


def test_a_baked_cache_needs_no_playing():
    object = scenes.grid()
    modifier = scenes.cloth(object)
    bpy.context.scene.frame_end = 12
    modifier.point_cache.frame_end = 12
    expected = scenes.played(object, range(1, 13))
    with bpy.context.temp_override(point_cache=modifier.point_cache):
        bpy.ops.ptcache.bake(bake=True)
    assert modifier.point_cache.is_baked
    assert simulation_start(bpy.context.scene, bpy.context.view_layer, object) is None
    source, steps = scenes.drain(read_animation(bpy.context, object, 8, 12, 2))
    assert len(steps) == 3
    np.testing.assert_allclose(source.animation.frames, expected[[7, 9, 11]], rtol=0, atol=1e-6)
