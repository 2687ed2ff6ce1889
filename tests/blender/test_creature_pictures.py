# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of joints and partial solves, shortened; what it says is in the documentation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the script prints, and the folder with its pictures."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("pictures")
    command = [
        sys.executable,
        "demos/creature_pictures.py",
        "--samples",
        "1",
        "--percent",
        "15",
        "--output",
        str(folder),
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, folder


def test_all_pictures_are_there(said):
    names = {path.name for path in said[1].iterdir()}
    assert names == {
        f"{name}.png" for name in ("error_over_bones", "joint_hierarchy", "partial_weights", "partial_helpers")
    }


def test_the_joints_of_the_creature_are_found(said):
    near, real = map(int, re.search(r"(\d+) of (\d+) joints have a found one", said[0]).groups())
    assert real == 19
    assert near >= 16


def test_each_solve_brings_it_closer(said):
    solves = re.findall(r"E_RMS ([\d.]+) before, ([\d.]+) after", said[0])
    assert len(solves) == 2
    assert all(float(after) < 0.7 * float(before) for before, after in solves)
