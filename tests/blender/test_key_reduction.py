# SPDX-License-Identifier: GPL-3.0-or-later
"""Key Tolerance: how far Blender's own playback moves when keys are left out, and the report of it."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions, conversion_figures
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.features.convert import conversion
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, scenes

pytestmark = pytest.mark.usefixtures("extension")

FRAMES = range(1, 31)


@pytest.fixture
def scene():
    return moving_meshes.fresh_scene(FRAMES[-1])


def converted(source, **given):
    """The skinned object of a conversion of ``source``, and its armature."""
    before = set(bpy.data.objects)
    bpy.context.view_layer.objects.active = source
    assert bpy.ops.skinning.convert_animation(**{"bone_count": 4, "iterations": 4} | given) == {"FINISHED"}
    made = set(bpy.data.objects) - before
    return next(ob for ob in made if ob.type == "MESH"), next(ob for ob in made if ob.type == "ARMATURE")


def played(ob) -> np.ndarray:
    return np.array([moving_meshes.world_positions(ob, frame) for frame in FRAMES])


def key_count(skinned, rig) -> int:
    curves = actions.existing_curves(rig)
    if skinned.data.shape_keys:
        curves += actions.existing_curves(skinned.data.shape_keys)
    return sum(len(curve.keyframe_points) for curve in curves)


@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
@pytest.mark.parametrize("shapes", [0, 2])
@pytest.mark.parametrize("tolerance", [0.5, 8.0])
def test_no_vertex_moves_by_more_than_the_tolerance(scene, kind, shapes, tolerance):
    source = moving_meshes.waving_grid()
    expected = played(source)
    skinned, rig = converted(source, bone_kind=kind, residual_shapes=shapes)
    full, full_count = played(skinned), key_count(skinned, rig)
    skinned, rig = converted(source, bone_kind=kind, residual_shapes=shapes, key_tolerance=tolerance)
    reduced, count = played(skinned), key_count(skinned, rig)
    scale = unit_scale(expected)
    moved = 1000 * scale * np.linalg.norm(reduced - full, axis=2).max()
    assert 0 < moved <= tolerance + 1e-3
    assert count < full_count
    # What is reported is measured on the rig with the keys that are left.
    report = skinned[conversion_figures.REPORT_PROPERTY].to_dict()
    assert report["keys"] == {"before": full_count, "after": count, "tolerance": pytest.approx(tolerance)}
    meter = ErrorMeter(scale, len(full[0]))
    for wanted, shown in zip(expected, reduced, strict=True):
        meter.add(wanted, shown)
    assert skinned["skinning_e_rms"] == pytest.approx(meter.e_rms, rel=1e-3, abs=1e-3)
    assert skinned["skinning_max_error"] == pytest.approx(meter.max_error, rel=1e-3, abs=1e-3)


def test_remaining_keys_are_unchanged_and_linear(scene):
    source = moving_meshes.waving_grid()
    _, rig = converted(source)
    _, reduced = converted(source, key_tolerance=3.0)
    before = {(curve.data_path, curve.array_index): curve for curve in actions.existing_curves(rig)}
    after = actions.existing_curves(reduced)
    assert {(curve.data_path, curve.array_index) for curve in after} == set(before)
    for curve in after:
        whole = {tuple(point.co) for point in before[curve.data_path, curve.array_index].keyframe_points}
        kept = [tuple(point.co) for point in curve.keyframe_points]
        assert set(kept) <= whole
        assert kept == sorted(kept)
        assert {point.interpolation for point in curve.keyframe_points} == {"LINEAR"}
        assert curve.group.name in reduced.data.bones
        if len(whole) > 1:
            assert (kept[0][0], kept[-1][0]) == (1, 30)


def test_off_by_default(scene):
    source = moving_meshes.waving_grid()
    skinned, rig = converted(source)
    report = skinned[conversion_figures.REPORT_PROPERTY].to_dict()
    assert "keys" not in report
    assert list(report["seconds"]) == ["read", "solve", "write", "measure"]
    lengths = {len(curve.keyframe_points) for curve in actions.existing_curves(rig)}
    assert lengths <= {1, len(FRAMES)}


def test_with_a_frame_step_and_stretched_time(scene):
    source = moving_meshes.waving_grid()
    scene.render.frame_map_new = 200
    wanted = [moving_meshes.world_positions(source, frame) for frame in FRAMES[::3]]
    full, _ = converted(source, frame_step=3)
    reduced, rig = converted(source, frame_step=3, key_tolerance=5.0)
    moved = [
        moving_meshes.world_positions(full, frame) - moving_meshes.world_positions(reduced, frame)
        for frame in FRAMES[::3]
    ]
    assert 0 < 1000 * unit_scale(np.array(wanted)) * np.linalg.norm(moved, axis=2).max() <= 5.001
    last = max(point.co[0] for curve in actions.existing_curves(rig) for point in curve.keyframe_points)
    assert last == pytest.approx(14)


def test_a_moving_object_keeps_its_own_keys(scene):
    source = moving_meshes.waving_grid()
    scenes.key_property(source, "location", {1: (0, 0, 0), 30: (3, 1, 2)})
    expected = played(source)
    reduced, rig = converted(source, bone_count=8, iterations=8, key_tolerance=1.0)
    assert 1000 * unit_scale(expected) * np.linalg.norm(played(reduced) - expected, axis=2).max() < (
        reduced["skinning_max_error"] + 0.1
    )
    assert any(curve.data_path == "location" for curve in actions.existing_curves(rig))


@pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
def test_tolerances_that_make_no_sense(scene, tolerance):
    moving_meshes.waving_grid()
    before = moving_meshes.state()
    with pytest.raises(RuntimeError, match="Key Tolerance must be"):
        bpy.ops.skinning.convert_animation(bone_count=4, key_tolerance=tolerance)
    assert moving_meshes.state() == before


def test_cancelled_it_leaves_nothing(scene):
    source = moving_meshes.waving_grid()
    before = moving_meshes.state()
    steps = conversion.convert(bpy.context, [source], ConvertSettings(bone_count=4, iterations=2, key_tolerance=1.0))
    assert any(text.startswith("Reducing keys") for _, text in steps)
    steps.close()
    assert moving_meshes.state() == before


def test_progress_never_goes_back(scene):
    source = moving_meshes.waving_grid()
    settings = ConvertSettings(bone_count=8, iterations=2, target_error=5.0, residual_shapes=2, key_tolerance=1.0)
    steps = conversion.convert(bpy.context, [source], settings)
    fractions = [fraction for fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] <= 1


def test_the_report_counts_keys(scene):
    source = moving_meshes.waving_grid()
    steps = conversion.convert(bpy.context, [source], ConvertSettings(bone_count=4, iterations=2, key_tolerance=5.0))
    result, _ = scenes.drain(steps)
    keys = result.record["keys"]
    assert f"{keys['after']:,} of {keys['before']:,} keys" in result.summary()
    assert keys["after"] < keys["before"]
