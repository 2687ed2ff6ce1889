# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that draws the figures of docs/how_it_works.md, shortened; and that the pages show what it draws."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("how_*.md"))


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The output of the script, and the folder with its figures."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("figures")
    command = [sys.executable, "demos/how_it_works.py", "--quick", "--output", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, folder


def test_every_figure_is_on_a_page(said):
    shown = {name for page in PAGES for name in re.findall(r"\(images/(\S+)\)", page.read_text(encoding="utf-8"))}
    assert {path.name for path in said[1].iterdir()} <= shown
    assert all((ROOT / "docs" / "images" / name).is_file() for name in shown)


def test_figures_are_drawn_on_white_and_not_empty(said):
    image = pytest.importorskip("matplotlib.image")
    for path in said[1].iterdir():
        picture = image.imread(path)[..., :3]
        assert (picture[[0, -1]][:, [0, -1]] == 1).all(), path.name
        assert 0.02 < (picture.min(axis=2) < 0.97).mean() < 0.8, path.name


def test_ours_ends_below_the_published_algorithm(said):
    errors = re.findall(r"^(.*), (as published|ours): E_RMS ([\d.]+)$", said[0], re.MULTILINE)
    by_method = {(sequence, method): float(error) for sequence, method, error in errors}
    sequences = {sequence for sequence, _ in by_method}
    assert len(sequences) == 2
    assert all(by_method[name, "ours"] < by_method[name, "as published"] for name in sequences)


def test_more_bones_leave_less(said):
    rows = re.findall(r", affine: (.*)$", said[0], re.MULTILINE)
    assert len(rows) == 2
    for row in rows:
        errors = [float(error) for error in row.split(", ")]
        assert errors == sorted(errors, reverse=True)


def test_centers_of_rotation_keep_more_than_linear_blending_and_bulge_less_than_dual_quaternions(said):
    figures = {
        (title, method): float(value)
        for title, method, value in re.findall(r"^(.* a (?:twist|bend)), (\w+): ([-\d.]+)$", said[0], re.MULTILINE)
    }
    for title in ("Volume kept by a twist", "Volume kept by a bend"):
        assert figures[title, "CRS"] > figures[title, "LBS"]
    assert figures["Bulge of a bend", "CRS"] < figures["Bulge of a bend", "DQS"]


def test_only_delaunay_keeps_the_fingers_apart(said):
    found = re.findall(r"^(\w+): the outer half.* by (\d+) %", said[0], re.MULTILINE)
    stuck = {method: int(share) for method, share in found}
    assert stuck.keys() == {"CONTAINMENT", "POINT_TO_LINE", "DELAUNAY"}
    assert stuck["DELAUNAY"] == 0
    assert min(stuck["CONTAINMENT"], stuck["POINT_TO_LINE"]) > 0


def test_all_planted_strays_are_found_and_corrected(said):
    islands, vertices, left = map(
        int, re.search(r"(\d+) rogue islands, (\d+) vertices; (\d+) of them still follow", said[0]).groups()
    )
    assert islands > 10
    assert vertices > islands
    assert left == 0
