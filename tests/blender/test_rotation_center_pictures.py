# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of the centers of rotation, shortened."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_pictures_show_three_bars_side_by_side(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    command = [sys.executable, "demos/rotation_centers.py", "--samples", "1", "--percent", "20"]
    result = subprocess.run([*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    picture = image.imread(tmp_path / "rotation_centers_cuboid.png")[..., :3]
    height, width = picture.shape[:2]
    # Each method's third, above the captions, is mostly of that method's color where it is not of the background.
    for third, channel in enumerate((0, 2, 1)):
        part = picture[: int(0.8 * height), third * width // 3 : (third + 1) * width // 3].reshape(-1, 3)
        colored = part[part.max(axis=1) - part.min(axis=1) > 0.2]
        assert len(colored) > 0.02 * len(part)
        assert (colored.argmax(axis=1) == channel).mean() > 0.95
