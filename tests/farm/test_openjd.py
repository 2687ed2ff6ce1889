# SPDX-License-Identifier: GPL-3.0-or-later
"""The templates of farm with the real `openjd` command line: eight shots, and the clips of one character; one is
broken, a machine is lost half-way."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import bpy
import pytest

from skinning_tools import command_line
from skinning_tools.features.shots.work import convert_arguments
from tests.farm import shots

openjd = pytest.importorskip("openjd.cli", reason="openjd-cli is not installed")
yaml = pytest.importorskip("yaml")

FARM = Path(__file__).resolve().parents[2] / "farm"
TEMPLATE, OF_CLIPS = FARM / "convert_shots.yaml", FARM / "solve_clips.yaml"
COUNT, BROKEN, LOST = 8, 3, 5
LIMIT_SECONDS = 300

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Blender's program is a shell script")


def openjd_command(*arguments) -> list[str]:
    # The module, as the script may be outside the search path.
    return [sys.executable, "-c", "from openjd.cli import main; main()", *map(str, arguments)]


def run_command(folder: Path, *more) -> list[str]:
    parameters = {
        "Shots": folder / "shots", "ShotNumbers": f"1-{COUNT}", "OutputFolder": folder / "out", "Object": "Flag",
        "Bones": 4, "Iterations": 2, "MoreSettings": "--influences 3", "Blender": shots.blender_program(folder),
    }  # fmt: skip
    given = [part for name, value in parameters.items() for part in ("-p", f"{name}={value}")]
    return openjd_command("run", TEMPLATE, *given, *more)


def start(command: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=shots.one_thread()
    )


def clip_parameters(folder: Path) -> dict:
    return {
        "Character": folder / "horse.blend", "Object": "Horse", "SolveFrom": folder / "range",
        "Clips": folder / "clips", "ClipNumbers": "1-3", "OutputFolder": folder / "out", "Bones": 4, "Iterations": 2,
        "Blender": shots.blender_program(folder),
    }  # fmt: skip


def worker(folder: Path, step: str, clip: int = 0) -> subprocess.Popen:
    """What a worker of a farm runs for a task of OF_CLIPS."""
    template = yaml.safe_load(OF_CLIPS.read_text("utf-8"))
    values = {each["name"]: each.get("default", "") for each in template["parameterDefinitions"]}
    values |= clip_parameters(folder)
    (action,) = (each["script"]["actions"]["onRun"] for each in template["steps"] if each["name"] == step)
    command = [action["command"], *action["args"]]
    for name, value in values.items():
        command = [text.replace(f"{{{{Param.{name}}}}}", str(value)) for text in command]
    return start([text.replace("{{Task.Param.Clip}}", str(clip)) for text in command])


def reports(folder: Path) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in (folder / "out").glob("*.json")}


def kill_with_descendants(process: subprocess.Popen) -> None:
    """Like a power failure: no process can clean up."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" (")
            parents[int(number)] = int(rest.rpartition(") ")[2].split()[1])
        except (OSError, ValueError):
            continue
    doomed = [process.pid]
    for number in doomed:
        doomed += [child for child, parent in parents.items() if parent == number]
    for number in doomed:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("farm")
    shots.make_shots(folder / "shots", COUNT, broken=(BROKEN,))
    return folder


@pytest.mark.parametrize("template", [TEMPLATE, OF_CLIPS], ids=lambda path: path.stem)
def test_the_template_is_valid(template):
    result = subprocess.run(openjd_command("check", template), capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", [TEMPLATE, OF_CLIPS], ids=lambda path: path.stem)
def test_the_template_offers_what_the_commands_understand(path):
    """Its arguments are those of the subcommands, and its defaults and choices theirs."""
    template = yaml.safe_load(path.read_text("utf-8"))
    parameters = {definition["name"]: definition for definition in template["parameterDefinitions"]}
    for step in template["steps"]:
        action = step["script"]["actions"]["onRun"]
        given = [re.sub(r"{{Task\.Param\.\w+}}", "1", text) for text in action["args"]]
        for name, definition in parameters.items():
            given = [text.replace(f"{{{{Param.{name}}}}}", str(definition.get("default", "x"))) for text in given]
        assert given[:3] == ["-b", "--command", "skinning"]
        assert not [text for text in given if "{{" in text]
        options = command_line.parser().parse_args(given[3:])
        if step["name"] == "Convert":
            assert convert_arguments(options) == convert_arguments(
                command_line.parser().parse_args(["convert-shots", "x", "--output=x", "--object=x"])
            )
    kinds = [f"--kind={kind}" for kind in parameters["Kind"]["allowedValues"]]
    for kind in kinds:
        command_line.parser().parse_args(["convert", "--object=x", "--overwrite", kind])


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")
def test_many_shots_one_broken_the_machine_lost_half_way(folder):
    first = start(run_command(folder))
    for line in first.stdout:
        if f"openjd_status: shot_{LOST:02}" in line:
            break
    kill_with_descendants(first)
    before = reports(folder)
    done = [f"shot_{number:02}" for number in range(1, LOST) if number != BROKEN]
    assert sorted(name for name, report in before.items() if report["status"] == "done") == done
    assert before[f"shot_{BROKEN:02}"]["status"] == "failed"
    assert f"shot_{LOST:02}" not in before
    times = {name: (folder / "out" / f"{name}.blend").stat().st_mtime_ns for name in done}

    second = start(run_command(folder))
    output, _ = second.communicate(timeout=LIMIT_SECONDS)
    after = reports(folder)
    assert second.returncode != 0, output  # the last step fails, as one shot did
    for number in range(1, COUNT + 1):
        report = after[f"shot_{number:02}"]
        assert report["status"] == ("failed" if number == BROKEN else "done"), report
        assert (folder / "out" / f"shot_{number:02}.blend").exists() == (number != BROKEN)
    assert "cannot be opened" in after[f"shot_{BROKEN:02}"]["message"]
    assert {report["settings"]["influences"] for report in after.values()} == {3}
    # Finished shots have not changed.
    assert {name: (folder / "out" / f"{name}.blend").stat().st_mtime_ns for name in done} == times
    assert {name: after[name]["times"] for name in done} == {name: before[name]["times"] for name in done}
    assert output.count("finished before") == COUNT
    assert output.count("openjd_progress: 100.0") == COUNT
    with (folder / "out" / "table.csv").open(encoding="utf-8", newline="") as file:
        table = {row["shot"]: row for row in csv.DictReader(file)}
    assert [row["status"] for row in table.values()] == [after[name]["status"] for name in table]
    assert sorted(table) == sorted(after)
    assert float(table["shot_01"]["e_rms"]) == after["shot_01"]["figures"]["e_rms"]
    assert f"openjd_fail: 1 of {COUNT} shots failed" in output
    left = {path.suffix for path in (folder / "out").iterdir()}
    assert left == {".blend", ".json", ".csv", ".log"}
    assert [path.stem for path in (folder / "out").glob("*.log")] == [f"shot_{BROKEN:02}"]


def test_a_shot_may_fail_its_task(folder, tmp_path):
    more = ["-p", "OnFailure=fail", "-p", f"OutputFolder={tmp_path / 'out'}"]
    one = ["--step", "Convert", "--no-run-dependencies", "--task-param", f"Shot={BROKEN}"]
    process = start(run_command(folder, *more, *one))
    output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode != 0
    assert "openjd_fail: 1 of 1 shots failed" in output
    assert json.loads((tmp_path / "out" / f"shot_{BROKEN:02}.json").read_text("utf-8"))["status"] == "failed"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")
def test_clips_of_one_character_by_two_workers_one_lost_one_clip_broken(tmp_path):
    shots.make_clips(tmp_path, ("run", "walk"), broken="jump")
    solving = worker(tmp_path, "Solve")
    output, _ = solving.communicate(timeout=LIMIT_SECONDS)
    assert solving.returncode == 0, output
    lost, other = worker(tmp_path, "Apply", 2), worker(tmp_path, "Apply", 3)
    for line in lost.stdout:
        if "openjd_status: run" in line:
            break
    kill_with_descendants(lost)
    output, _ = other.communicate(timeout=LIMIT_SECONDS)
    assert other.returncode == 0, output
    before = reports(tmp_path)
    assert {name: report["status"] for name, report in before.items()} == {"walk": "done"}
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.blend")}
    assert {path.name for path in times} == {"horse.blend", "walk.blend"}

    given = [part for name, value in clip_parameters(tmp_path).items() for part in ("-p", f"{name}={value}")]
    process = start(openjd_command("run", OF_CLIPS, *given))
    output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode != 0, output  # the last step fails, as one clip did
    # What was finished has not changed: the character, and the clip of the worker that was not lost.
    assert {path: path.stat().st_mtime_ns for path in times} == times
    after = reports(tmp_path)
    expected = {"jump": "failed", "run": "done", "walk": "done"}
    assert {name: report["status"] for name, report in after.items()} == expected
    assert "is not in the PC2 format" in after["jump"]["message"]
    assert "openjd_fail: 1 of 3 shots failed" in output
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8", newline="") as file:
        table = {row["shot"]: row for row in csv.DictReader(file)}
    assert {name: row["status"] for name, row in table.items()} == expected
    assert {name: row["frames"] for name, row in table.items()} == {"jump": "", "run": "6", "walk": "6"}
    assert float(table["run"]["e_rms"]) == after["run"]["figures"]["e_rms"]
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "out" / "walk.blend"))
    animation = bpy.data.objects["Horse_rig"].animation_data
    assert (animation.action.name, "walk" in animation.nla_tracks) == ("walk", True)
