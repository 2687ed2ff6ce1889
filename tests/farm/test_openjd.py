# SPDX-License-Identifier: GPL-3.0-or-later
"""farm/convert_shots.yaml with the real `openjd` command line: twelve shots, one broken, the machine lost half-way."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skinning_tools import command_line
from skinning_tools.features.shots.work import convert_arguments
from tests.farm import shots

openjd = pytest.importorskip("openjd.cli", reason="openjd-cli is not installed")
yaml = pytest.importorskip("yaml")

TEMPLATE = Path(__file__).resolve().parents[2] / "farm" / "convert_shots.yaml"
COUNT, BROKEN, LOST = 12, 3, 6
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
def template() -> dict:
    return yaml.safe_load(TEMPLATE.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("farm")
    shots.make_shots(folder / "shots", COUNT, broken=(BROKEN,))
    return folder


def test_the_template_is_valid():
    result = subprocess.run(openjd_command("check", TEMPLATE), capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_template_offers_what_the_commands_understand(template):
    """Its arguments are those of the subcommands, and its defaults and choices theirs."""
    parameters = {definition["name"]: definition for definition in template["parameterDefinitions"]}
    for step in template["steps"]:
        action = step["script"]["actions"]["onRun"]
        given = [text.replace("{{Task.Param.Shot}}", "1") for text in action["args"]]
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
def test_a_dozen_shots_one_broken_the_machine_lost_half_way(folder):
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
