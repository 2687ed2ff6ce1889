# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of a face's bones: from sliders, with sides where the face is symmetric."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.shape_rig import ShapeRig, bone_names

# A bone in the middle below, and one on either side above.
PIVOTS = np.array([[0.02, -1.0, 0.0], [0.6, 0.8, 0.0], [-0.58, 0.8, 0.0]])
SLIDERS = "jawOpen", "browInnerUp_L", "browInnerUp_R"


def grid() -> np.ndarray:
    return np.stack([each.ravel() for each in (*np.meshgrid(*2 * [np.linspace(-1, 1, 9)]), np.zeros((9, 9)))], axis=1)


def rig(pivots=PIVOTS, by=((1, 0, 0), (0, 1, 0), (0, 0, 1)), rest=None) -> ShapeRig:
    """Each vertex on the nearest bone; ``by`` (S, P): how far sliders move bones."""
    rest = grid() if rest is None else rest
    nearest = np.linalg.norm(rest[:, None] - pivots, axis=2).argmin(axis=1)
    moves = np.asarray(by, dtype=float)[:, :, None] * [0.0, 0.1, 0.0]
    return ShapeRig(nearest[:, None].astype(np.int32), np.ones((len(rest), 1)), pivots, np.zeros(moves.shape), moves)


def test_names_tell_place_and_side():
    assert bone_names(rig(), grid(), SLIDERS) == ("jaw", "brow_inner.L", "brow_inner.R")


def test_size_and_place_do_not_matter():
    moved = [50.0, -3.0, 8.0]
    rest = 100.0 * grid() + moved
    found = bone_names(rig(100.0 * PIVOTS + moved, rest=rest), rest, SLIDERS)
    assert found[1:] == ("brow_inner.L", "brow_inner.R")


def test_sliders_say_which_side_is_left():
    mirrored = rig(PIVOTS * [-1, 1, 1])
    assert bone_names(mirrored, grid(), SLIDERS) == ("jaw", "brow_inner.L", "brow_inner.R")


def test_without_symmetry_there_are_no_sides():
    bent = grid()
    bent[:, 1] += 0.3 * bent[:, 0]
    assert bone_names(rig(), bent, SLIDERS) == ("jaw", "brow_inner", "brow_inner_2")


def test_bones_that_move_other_vertices_have_no_sides():
    first = rig()
    weights = np.where(first.bones == 1, grid()[:, 1:2] > 0.4, 1.0)
    bones = np.where(weights > 0, first.bones, 0)
    found = bone_names(replace(first, bones=bones), grid(), SLIDERS)
    assert found == ("jaw", "brow_inner", "brow_inner_2")


def test_names_are_unique_and_free():
    found = bone_names(rig(by=((1, 1, 1),)), grid(), ["jawOpen"], taken={"Jaw", "jaw_2.L"})
    assert found == ("jaw_2", "jaw_3.L", "jaw_3.R")


@pytest.mark.parametrize(
    ("slider", "name"),
    [
        ("mouthSmile_L", "mouth_smile"),
        ("eye.blink.R", "eye_blink"),
        ("Left", "face"),
        ("Key 1", "key_1"),
        ("口を開く", "口を開く"),
        ("JAW_OPEN", "jaw"),
        ("", "face"),
        ("x" * 63, "x" * 40),
    ],
)
def test_words_of_sliders(slider, name):
    assert bone_names(rig(by=((1, 0, 0),)), grid(), [slider])[0] == name


def test_a_slider_that_moves_hardly_anything_gives_no_name():
    by = ((1, 0, 0), (0, 1, 1), (0.0001, 0, 0))
    assert bone_names(rig(by=by), grid(), ["jawOpen", "browUp", "pupil"])[0] == "jaw"
