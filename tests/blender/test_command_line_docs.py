# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/command_line.md says what the command line is."""

import json
import re
import shlex

import bpy

from skinning_tools import command_line
from tests.blender import moving_meshes
from tools import command_line_docs, references

PAGE = command_line_docs.PAGE


def test_the_reference_is_up_to_date():
    """Where this fails: python -m tools.references, with the Python of .venv."""
    assert PAGE.read_text("utf-8") == references.page(command_line_docs)


def test_its_examples_are_understood():
    lines = re.findall(
        r"--command skinning (.*)", "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S))
    )
    assert len(lines) > 3
    for line in lines:
        if "--help" not in line:
            command_line.parser().parse_args(shlex.split(line))


def test_every_name_of_a_report_is_explained(tmp_path):
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    report = tmp_path / "report.json"
    given = ["convert", "--object", "Flag", "--bones", "4", "--iterations", "1", "--overwrite", "--report", str(report)]
    assert command_line.main(given) == 0
    table = PAGE.read_text("utf-8").partition("## Reports")[2].partition("## ")[0]
    explained = re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line[:1] == "|"))
    assert explained == list(json.loads(report.read_text("utf-8")))
