# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of the centers of rotation, shortened."""

import pytest

from tests.blender.demo_runs import make_pictures


def test_the_pictures_show_three_bars_side_by_side(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    make_pictures("rotation_centers.py", tmp_path)
    picture = image.imread(tmp_path / "rotation_centers_cuboid.png")[..., :3]
    height, width = picture.shape[:2]
    # Each method's third, above the captions, is mostly of that method's color where it is not of the background.
    for third, channel in enumerate((0, 2, 1)):
        part = picture[: int(0.8 * height), third * width // 3 : (third + 1) * width // 3].reshape(-1, 3)
        colored = part[part.max(axis=1) - part.min(axis=1) > 0.2]
        assert len(colored) > 0.02 * len(part)
        assert (colored.argmax(axis=1) == channel).mean() > 0.95
