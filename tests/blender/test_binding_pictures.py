# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of binding, shortened."""

import numpy as np
import pytest

from tests.blender.demo_runs import make_pictures


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Function from a picture's name to its pixels (H, W, 3)."""
    image = pytest.importorskip("matplotlib.image")
    folder = tmp_path_factory.mktemp("pictures")
    make_pictures("binding.py", folder)
    return lambda name: image.imread(folder / f"binding_{name}.png")[..., :3]


def shares_in_red(picture) -> list[float]:
    """For each of the five figures, the share of its pixels with the color of a large error."""
    result = []
    for part in np.array_split(picture[: int(0.75 * len(picture))], 5, axis=1):
        figure = part.max(axis=2) > 0.3
        assert 0.1 < figure.mean() < 0.6
        result.append((figure & (part[..., 0] > 1.8 * part[..., 2])).sum() / figure.sum())
    return result


def test_all_methods_follow_the_pose(pictures, shared_data):
    shared_data("human_rig.npz")
    assert max(shares_in_red(pictures("methods"))) < 0.1


def test_only_automatic_weights_fail_on_the_torn_mesh(pictures, shared_data):
    shared_data("human_rig.npz")
    automatic, *ours = shares_in_red(pictures("torn"))
    assert automatic > 0.4
    assert max(ours) < 0.1
