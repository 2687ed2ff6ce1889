# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that makes the pictures of the gallery, shortened; the page says what they show."""

import re

import pytest

from tests.blender.demo_runs import make_pictures
from tools.commands import DEMOS


@pytest.fixture(scope="module")
def said(tmp_path_factory, shared_data):
    """The output of the script, and the folder with its pictures."""
    pytest.importorskip("matplotlib")
    shared_data("rigs/Fox.glb")
    folder = tmp_path_factory.mktemp("gallery")
    return make_pictures("gallery.py", folder, percent=10), folder


def test_all_pictures_are_there(said):
    assert {path.name for path in said[1].iterdir()} == set(DEMOS["gallery"])


def test_the_fox_gets_one_tree_of_bones(said):
    bones, joints = map(int, re.search(r"Their skeleton: (\d+) bones, (\d+) joints", said[0]).groups())
    assert joints == bones - 1
    assert 20 <= bones <= 40


def test_bind_is_close_where_automatic_weights_fail(said):
    total, without = re.search(
        r"([\d,]+) vertices, frame.*?Automatic weights: ([\d,]+) vertices", said[0], re.S
    ).groups()
    assert total == without
    assert float(re.search(r"Bind: ([\d.]+) % of the body", said[0])[1]) < 2
