# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs subcommands of the command line for the tests, each with a report, which is checked as well; the files that they
work on."""

import contextlib
import json
import tempfile
from pathlib import Path

import bpy

from skinning_tools import command_line

STATUS = {0: "done", 1: "failed", 2: "failed", 3: "failed", 129: "stopped", 130: "stopped", 143: "stopped"}
SAVE_NOTHING = ("find-unweighted", "export")


def run(*arguments) -> int:
    """Exit code of a subcommand. Raises AssertionError where its report does not say the same."""
    given = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        code = command_line.main([*given, "--report", str(path)])
        assert [entry.name for entry in Path(folder).iterdir()] == ([] if "--help" in given else [path.name])
        if path.exists():
            check(json.loads(path.read_text("utf-8"), parse_constant=_no_constant), code)
    return code


def saved(folder: Path) -> Path:
    """The scene as an opened file in ``folder``."""
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def check(report: dict, code: int) -> None:
    """Check what every report must have."""
    assert (report["schema"], report["schema_version"]) == ("skinning_tools.report", 1)
    assert (report["exit_code"], report["status"]) == (code, STATUS[code])
    assert bool(report["message"]) == (code != 0)
    assert report["versions"]["blender"] == bpy.app.version_string
    assert report["versions"]["extension"]
    assert report["times"]["seconds"] >= sum(report["times"]["stages"].values())
    if code == 0:
        assert report["figures"]
        if report["command"] not in SAVE_NOTHING:
            assert report["output"]["size"] == Path(report["output"]["path"]).stat().st_size
        assert len(report["input"]["sha256"]) == 64


def _no_constant(name: str):
    raise AssertionError(f"{name} is not JSON")


@contextlib.contextmanager
def shots_in_this_blender(monkeypatch):
    """Where Blender is a program, its children find scipy where these tests have it from."""
    from skinning_tools.features.shots import blender_child

    if bpy.app.binary_path:
        monkeypatch.setattr(blender_child, "_blender_options", lambda argv: ["-b", "--python-use-system-env"])
    yield
