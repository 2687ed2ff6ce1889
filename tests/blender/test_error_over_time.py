# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of a conversion frame by frame, their picture, the worst frame, and the scale of the error colors."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.core.curve_picture import FRAMES_SIZE, frames_picture
from skinning_tools.preview.error_legend import shown_error
from skinning_tools.scene.convert.result import frame_errors, result_of, worst_frame
from skinning_tools.scene.error_display import read_errors, red_error
from tests.blender import moving_meshes

pytestmark = pytest.mark.usefixtures("extension")

BLUE, ORANGE = (100, 160, 240), (240, 140, 80)


@pytest.fixture
def scene():
    return moving_meshes.fresh_scene()


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 3, "iterations": 5} | given)


def test_each_frames_error_is_kept(scene):
    source = moving_meshes.waving_grid()
    convert(bone_count=1, frame_start=2, frame_end=8, frame_step=2)
    skinned = bpy.data.objects["Flag_skinned"]
    numbers, e_rms, largest = frame_errors(result_of(skinned).figures)
    assert numbers == [2, 4, 6, 8]
    numbers = [int(number) for number in numbers]
    expected = [moving_meshes.world_positions(source, frame) for frame in numbers]
    meter = ErrorMeter(unit_scale(np.array(expected[:1])), len(expected[0]))
    for frame, positions in zip(numbers, expected, strict=True):
        meter.add(positions, moving_meshes.world_positions(skinned, frame))
    np.testing.assert_allclose(e_rms, meter.frame_e_rms, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(largest, meter.frame_max_error, rtol=1e-3, atol=1e-3)
    assert np.ptp(largest) > 0.1


def test_the_worst_frame(scene):
    moving_meshes.waving_grid()
    convert()
    numbers, _, largest = frame_errors(result_of(bpy.data.objects["Flag"]).figures)
    worst = numbers[int(np.argmax(largest))]
    assert worst != scene.frame_current
    assert bpy.ops.skinning.show_worst_frame() == {"FINISHED"}
    assert scene.frame_current == worst


def test_figures_of_an_earlier_version_have_no_worst_frame(scene):
    moving_meshes.waving_grid()
    convert()
    for name in ("Flag_skinned", "Flag_rig"):
        del bpy.data.objects[name]["skinning_report"]["frame_max_error"]
        del bpy.data.objects[name]["skinning_report"]["frame_e_rms"]
    assert worst_frame(result_of(bpy.data.objects["Flag_rig"]).figures) is None
    assert not bpy.ops.skinning.show_worst_frame.poll()


def rows_of(picture, color) -> dict[int, float]:
    """The mean row of a color in each column that has it, within the axes."""
    near = (np.abs(picture.astype(int) - color).max(axis=-1) < 30) & (np.arange(len(picture)) > 40)[:, None]
    return {column: float(np.flatnonzero(near[:, column]).mean()) for column in np.flatnonzero(near.any(axis=0))}


def test_the_picture_shows_both_curves():
    frames = np.arange(101)
    e_rms = np.where(frames < 50, 1.0, 2.0)
    picture = frames_picture(frames, e_rms, 8.0 * np.ones(101))
    assert picture.shape == (FRAMES_SIZE[1], FRAMES_SIZE[0], 3)
    mean, largest = rows_of(picture, BLUE), rows_of(picture, ORANGE)
    columns = sorted(mean)
    early, late = mean[columns[len(columns) // 4]], mean[columns[3 * len(columns) // 4]]
    top = largest[columns[len(columns) // 4]]
    # Logarithmic: from 1 to 2 is a third of the way from 1 to 8. Rows count from the top.
    assert early - late == pytest.approx((early - top) / 3, abs=2)


@pytest.mark.parametrize("count", [1, 2, 5000])
def test_any_number_of_frames_has_a_picture(count):
    errors = np.ones(count)
    errors[count // 2] = 50.0
    picture = frames_picture(np.arange(count), errors, 2 * errors)
    if count > 2:
        # A single bad frame among thousands is seen.
        rows = rows_of(picture, BLUE).values()
        assert max(rows) - min(rows) > 100


def test_no_error_at_all_has_a_picture():
    assert frames_picture([1, 2], [0.0, 0.0], [0.0, 0.0]).shape[2] == 3


def context(**view):
    space = SimpleNamespace(
        overlay=SimpleNamespace(show_overlays=view.get("overlays", True)),
        shading=SimpleNamespace(type="SOLID", color_type=view.get("color_type", "VERTEX")),
    )
    return SimpleNamespace(
        space_data=space, view_layer=bpy.context.view_layer, selected_objects=bpy.context.selected_objects
    )


def test_the_scale_says_what_is_red(scene):
    moving_meshes.waving_grid()
    convert()
    skinned = bpy.data.objects["Flag_skinned"]
    assert shown_error(context()) is None
    bpy.ops.skinning.show_error()
    largest = float(read_errors(skinned.data).max())
    assert red_error(skinned) == pytest.approx(largest)
    for active in (skinned, bpy.data.objects["Flag_rig"]):
        bpy.context.view_layer.objects.active = active
        assert shown_error(context()) == pytest.approx(largest)
    assert shown_error(context(overlays=False)) is None
    assert shown_error(context(color_type="MATERIAL")) is None
    # Whoever changes our notes costs nobody else anything.
    skinned.data["skinning_error_red"], skinned.data["skinning_active_color"] = "text", 2.5
    assert shown_error(context()) is None
    bpy.ops.skinning.show_error()
    assert red_error(skinned) is None
    assert not [key for key in skinned.data.keys() if key.startswith("skinning_")]  # noqa: SIM118
