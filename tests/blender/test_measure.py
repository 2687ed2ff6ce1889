# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured error is that of the rig as it is written, and measuring leaves no trace."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.animation.animation_reader import SourceAnimation
from skinning_tools.blender.measure import RigMeter, measure_rig
from skinning_tools.core.animation import Animation, unit_scale
from skinning_tools.core.deform.surface import normal_errors
from skinning_tools.core.errors import BadScene
from tests.blender import rig_samples, scenes

pytestmark = pytest.mark.usefixtures("empty")


def with_frames(source, frames):
    old = source.animation
    return SourceAnimation(
        source.object, Animation(frames, old.triangles, old.frame_numbers, old.name), source.method, source.mesh
    )


@pytest.mark.parametrize("kind", rig_samples.KINDS)
def test_an_exact_rig_has_next_to_no_error(kind):
    _, source, rig = rig_samples.written(kind)
    meter, _ = scenes.drain(measure_rig(rig, source))
    assert 0 < meter.e_rms < 1e-5 * 1000 * np.abs(source.animation.frames).max() * unit_scale(source.animation.frames)


def test_the_error_is_what_was_put_there():
    """Every vertex moved by 0.5 in one frame, one by 2 in another."""
    _, source, rig = rig_samples.written("RIGID")
    frames = source.animation.frames.copy()
    frames[3] += np.float32([0.3, 0, 0.4])
    frames[5, 7] += np.float32([0, 2, 0])
    meter, _ = scenes.drain(measure_rig(rig, with_frames(source, frames)))
    scale = 1000 * unit_scale(frames)
    assert meter.max_error == pytest.approx(2 * scale, rel=1e-4)
    assert meter.frame_max_error[3] == pytest.approx(0.5 * scale, rel=1e-4)
    assert meter.e_rms == pytest.approx(scale * np.sqrt((60 * 0.25 + 4) / frames.size), rel=1e-4)
    expected = np.full(60, 0.5)
    expected[7] = 2
    assert np.allclose(meter.vertex_error, expected, atol=1e-5)


def test_normals_turn_with_what_is_expected():
    """All frames turned by 5 degrees about an axis."""
    _, source, rig = rig_samples.written("RIGID")
    frames, sine = source.animation.frames, np.sin(np.radians(5.0))
    turned = frames @ np.array([[1, 0, 0], [0, np.sqrt(1 - sine**2), sine], [0, -sine, np.sqrt(1 - sine**2)]])
    triangles = source.animation.triangles
    angles = np.concatenate([normal_errors(*each, triangles) for each in zip(frames, turned, strict=True)])
    meter = RigMeter(1.0, [60], normals=True)
    scenes.drain(measure_rig(rig, with_frames(source, turned), meter))
    assert meter.normals["mean"] == pytest.approx(angles.mean(), abs=0.01)
    assert meter.normals["within"] == pytest.approx(np.quantile(angles, 0.9), abs=0.01)
    assert scenes.drain(measure_rig(rig, source))[0].normals is None


def test_the_rig_is_measured_as_it_is_now():
    """Measures the written rig, not the solver's arrays: an edited weight changes the error."""
    _, source, rig = rig_samples.written("RIGID")
    before, _ = scenes.drain(measure_rig(rig, source))
    rig.object.vertex_groups[0].remove(list(range(60)))
    after, _ = scenes.drain(measure_rig(rig, source))
    assert after.e_rms > 1000 * before.e_rms


def test_progress_counts_the_frames():
    _, source, rig = rig_samples.written(frames=4)
    assert scenes.drain(measure_rig(rig, source))[1] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("steps", [0, 1, 3, None])
def test_nothing_is_left_however_it_ends(steps):
    _, source, rig = rig_samples.written(frames=5)
    other = scenes.grid(name="Other")
    bpy.context.scene.frame_set(17, subframe=0.25)
    before = scenes.data_blocks()
    generator = measure_rig(rig, source)
    if steps is None:
        scenes.drain(generator)
    else:
        for _ in range(steps):
            next(generator)
        generator.close()
    assert scenes.data_blocks() == before
    assert (bpy.context.scene.frame_current, bpy.context.scene.frame_subframe) == (17, 0.25)
    assert bpy.context.active_object == other


def test_the_source_is_not_evaluated_again(monkeypatch):
    object, source, rig = rig_samples.written(frames=3)
    seen = []

    def note(scene, depsgraph):
        seen.append({instance.object.name for instance in depsgraph.object_instances})

    bpy.app.handlers.depsgraph_update_post.append(note)
    bpy.app.handlers.frame_change_post.append(note)
    try:
        scenes.drain(measure_rig(rig, source))
    finally:
        bpy.app.handlers.depsgraph_update_post.remove(note)
        bpy.app.handlers.frame_change_post.remove(note)
    assert len(seen) >= 3
    assert all(object.name not in names for names in seen)


def test_the_rig_removed_in_between_is_a_clear_error():
    _, source, rig = rig_samples.written(frames=4)
    scenes_before = len(bpy.data.scenes)
    generator = measure_rig(rig, source)
    next(generator)
    bpy.data.objects.remove(rig.object)
    with pytest.raises(BadScene, match="removed"):
        next(generator)
    assert len(bpy.data.scenes) == scenes_before


def test_an_object_scaled_to_nothing_has_no_error_that_nobody_sees():
    result = rig_samples.decomposition(rig_samples.random_transforms("RIGID", 6, 3), "RIGID")
    object = rig_samples.cloud(result)
    scenes.key_property(object, "scale", {1: (0, 0, 0), 6: (1, 2, 1)})
    source = rig_samples.source_animation(object, result)
    rig = rig_samples.write_rig(source, result)
    meter, _ = scenes.drain(measure_rig(rig, source))
    assert meter.frame_max_error[0] == 0
    assert meter.max_error < 0.01


@pytest.mark.parametrize("scale", [(-1, 2, 0.5), (1e-4, 1e-4, 1e-4), (300, 300, 300)])
def test_e_rms_is_in_the_object_s_own_space_and_vertices_in_world_space(scale):
    result = rig_samples.decomposition(rig_samples.random_transforms("AFFINE", 4, 3))
    object = rig_samples.cloud(result)
    object.scale, object.rotation_euler = scale, (0.3, 0.2, 0.1)
    source = rig_samples.source_animation(object, result)
    rig = rig_samples.write_rig(source, result)
    frames = source.animation.frames + np.float32([0, 0, 1])
    meter, _ = scenes.drain(measure_rig(rig, with_frames(source, frames)))
    # They are one unit of the object's own z axis too high.
    assert np.allclose(meter.vertex_error, abs(scale[2]), rtol=1e-4)
    assert np.isclose(meter.max_error, 1000 * unit_scale(frames), rtol=1e-3)
