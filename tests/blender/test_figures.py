# SPDX-License-Identifier: GPL-3.0-or-later
"""Report line, panel rows, table and JSON come from one list of figures."""

from dataclasses import dataclass

import pytest

from skinning_tools.blender.figures import Figure, Result, each, rows_of_panel
from skinning_tools.ui.command_line.outcome import Outcome
from tests.blender import moving_meshes


@dataclass(frozen=True)
class Made(Result):
    seconds: object = 2.0
    notes: tuple[str, ...] = ("the armature is scaled",)

    def figures(self):
        return [
            Figure("Object", ["Body", "Hair"], panel=""),
            Figure("Vertices bound", 1200),
            Figure("Supports", 1),
            Figure("Bytes per vertex", 5, line=""),
            Figure("Locked islands", 0, if_any=True),
            Figure("E_RMS", 0.51234, "{:.2f}"),
            Figure("Largest distance", 0.25, "{:.6g}", length=True),
            Figure("Worst vertex", {"vertex": 7, "frame": 3}, "{vertex} at frame {frame}"),
        ]


@pytest.fixture
def scene():
    scene = moving_meshes.fresh_scene()
    scene.unit_settings.system, scene.unit_settings.length_unit = "METRIC", "CENTIMETERS"
    return scene


def test_the_line_of_a_report(scene):
    line = "Body, Hair: 1,200 vertices bound, 1 support, E_RMS 0.51, largest distance 25 cm, worst vertex 7 at frame 3"
    line += ", 2.0 s"
    assert Made().line() == line
    assert Made().summary() == f"{line}; the armature is scaled"
    assert Made({"read": 1.0, "solve": 2.5}).line().endswith(" 3.5 s")


def test_the_rows_of_a_panel(scene):
    assert rows_of_panel(Made().figures()) == [
        ("Vertices Bound", "1,200"),
        ("Supports", "1"),
        ("Bytes per Vertex", "5"),
        ("E_RMS", "0.51"),
        ("Largest Distance", "25 cm"),
        ("Worst Vertex", "7 at frame 3"),
    ]


def test_the_table_and_the_values_for_programs(scene):
    outcome = Outcome([*Made().figures(), *each("Links of {}", {"hand": 2, "{arm}": 1}, "added")])
    assert outcome.lines() == [
        ("Object", "Body, Hair"),
        ("Vertices bound", "1200"),
        ("Supports", "1"),
        ("Bytes per vertex", "5"),
        ("Locked islands", "0"),
        ("E_RMS", "0.51"),
        ("Largest distance", "0.25"),
        ("Worst vertex", "7 at frame 3"),
        ("Links of hand", "2"),
        ("Links of {arm}", "1"),
    ]
    assert outcome.figures() == {
        "object": ["Body", "Hair"],
        "vertices_bound": 1200,
        "supports": 1,
        "bytes_per_vertex": 5,
        "locked_islands": 0,
        "e_rms": 0.51234,
        "largest_distance": 0.25,
        "worst_vertex": {"vertex": 7, "frame": 3},
        "added": {"hand": 2, "{arm}": 1},
    }


def test_of_many_in_a_group_the_line_has_some(scene):
    class Linked(Result):
        def figures(self):
            counts = {f"joint {number}": number for number in range(1, 10)}
            return [Figure("Armature", "Rig"), *each("Links of {}", counts, "added"), Figure("Meshes", 1)]

    assert Linked().line().startswith("Rig: 1 link of joint 1, 2 links of joint 2, ")
    assert Linked().line().endswith("6 links of joint 6 and 3 more, 1 mesh")
