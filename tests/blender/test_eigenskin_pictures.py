# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of EigenSkin, shortened."""

import numpy as np
import pytest

from tests.blender.demo_runs import make_pictures


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Function from a picture's name to its pixels (H, W, 3)."""
    image = pytest.importorskip("matplotlib.image")
    folder = tmp_path_factory.mktemp("pictures")
    make_pictures("eigenskin.py", folder)
    return lambda name: image.imread(folder / f"eigenskin_{name}.png")[..., :3]


def check_errors(picture) -> None:
    """Three shapes, and the colors of large errors on the first one only."""
    height, width = picture.shape[:2]
    large = []
    for third in range(3):
        # Between the color bar and the captions.
        part = picture[height // 5 : int(0.7 * height), third * width // 3 : (third + 1) * width // 3].reshape(-1, 3)
        shape = part.max(axis=1) > 0.3
        assert 0.15 < shape.mean() < 0.6
        large.append((shape & (part[:, 0] - part[:, 2] > 0.25)).mean())
    assert large[0] > 0.01
    assert max(large[1:]) < 0.1 * large[0]


def test_the_corrected_limb_has_lost_its_error(pictures):
    check_errors(pictures("limb"))


def test_the_corrected_shoulder_has_lost_its_error(pictures, shared_data):
    shared_data("human_rig.npz")
    check_errors(pictures("shoulder"))


def test_a_curve_for_the_limb(pictures):
    plot = pictures("components")
    # Both halves have the limb's curve, in its blue.
    for half in np.array_split(plot, 2, axis=1):
        assert (np.abs(half - np.array([83, 177, 253]) / 255).max(axis=2) < 0.05).sum() > 300
