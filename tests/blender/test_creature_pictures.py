# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of joints and partial solves, shortened; the documentation quotes its output."""

import re

import pytest

from tests.blender.demo_runs import make_pictures


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The output of the script, and the folder with its pictures."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("pictures")
    return make_pictures("creature_pictures.py", folder, percent=15), folder


def test_all_pictures_are_there(said):
    names = {path.name for path in said[1].iterdir()}
    assert names == {
        f"{name}.png"
        for name in ("error_over_bones", "joint_hierarchy", "partial_weights", "partial_helpers", "pose_test")
    }


def test_the_joints_of_the_creature_are_found(said):
    near, real = map(int, re.search(r"(\d+) of (\d+) joints have a found one", said[0]).groups())
    assert real == 19
    assert near >= 16


def test_each_solve_brings_it_closer(said):
    solves = re.findall(r"E_RMS ([\d.]+) before, ([\d.]+) after", said[0])
    assert len(solves) == 2
    assert all(float(after) < 0.7 * float(before) for before, after in solves)
