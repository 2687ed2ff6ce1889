# SPDX-License-Identifier: GPL-3.0-or-later
"""The job types of farm: their settings, and the tasks that they make of them, in a stand-in for Flamenco's Manager."""

import json
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from skinning_tools import command_line
from skinning_tools.blender.cache_clips import ENDINGS
from skinning_tools.features.shots.work import convert_arguments

FARM = Path(__file__).resolve().parents[2] / "farm"
SHOTS, CLIPS = FARM / "skinning_convert.js", FARM / "skinning_clips.js"
MANAGER = Path(__file__).with_name("flamenco_manager.js")
SETTINGS = {
    SHOTS: {"shot_folder": "/farm/shots", "shots": "a.blend|b c.blend", "output_folder": "/farm/out", "object": "Flag"},
    CLIPS: {
        "character": "/farm/horse.blend", "solve_folder": "/farm/range", "clip_folder": "/farm/clips",
        "clips": "a.abc|b c.pc2", "output_folder": "/farm/out", "object": "Horse",
    },
}  # fmt: skip
BOTH = pytest.mark.parametrize("script", SETTINGS, ids=lambda path: path.stem)

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


def compiled(script=SHOTS, **settings) -> subprocess.CompletedProcess:
    command = ["node", str(MANAGER), str(script), json.dumps(SETTINGS[script] | settings)]
    return subprocess.run(command, capture_output=True, text=True)


def job(script=SHOTS, **settings) -> dict:
    result = compiled(script, **settings)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def options_of(task: dict):
    """What the command line understands of a task's only command, as the worker starts it."""
    (command,) = task["commands"]
    parameters = command["parameters"]
    assert command["name"] == "blender-render"
    assert (parameters["exe"], parameters["exeArgs"]) == ("{blender}", "{blenderArgs}")
    assert (parameters["argsBefore"], parameters["blendfile"]) == ([], "")
    assert parameters["args"][:2] == ["--command", "skinning"]
    assert all(isinstance(argument, str) for argument in parameters["args"])
    return command_line.parser().parse_args(parameters["args"][2:])


def test_one_task_a_shot_and_then_the_table():
    *tasks, last = job(bones=7, kind="RIGID", more_settings="--smoothness 0.2")["tasks"]
    assert [task["name"] for task in tasks] == ["convert a", "convert b c"]
    assert {task["type"] for task in [*tasks, last]} == {"blender"}
    for task, name in zip(tasks, ("a.blend", "b c.blend"), strict=True):
        options = options_of(task)
        assert (options.command, options.shots) == ("convert-shots", [f"/farm/shots/{name}"])
        assert (options.output, options.on_failure) == (Path("/farm/out"), "report")
        assert (options.object, options.bones, options.kind) == (["Flag"], 7, "RIGID")
        assert convert_arguments(options)[-2:] == ["--smoothness", "0.2"]
        assert not task["dependencies"]
    options = options_of(last)
    assert options.command == "gather-reports"
    assert (options.folder, options.output) == (Path("/farm/out"), Path("/farm/out/table.csv"))
    assert options.shots == ["/farm/shots/a.blend", "/farm/shots/b c.blend"]
    assert last["dependencies"] == ["convert a", "convert b c"]


def test_clips_depend_on_their_character():
    solve, *tasks, last = job(CLIPS, bones=7, more_settings="--rotation-only --joint-hierarchy")["tasks"]
    options = options_of(solve)
    assert (solve["name"], solve["dependencies"], options.shots) == ("solve horse", [], ["/farm/horse.blend"])
    assert (options.clips, options.output) == ([Path("/farm/range")], Path("/farm/out/character"))
    assert (options.object, options.character, options.on_failure, options.bones) == (["Horse"], None, "fail", 7)
    assert [task["name"] for task in tasks] == ["apply a", "apply b c"]
    for task, name in zip(tasks, ("a.abc", "b c.pc2"), strict=True):
        options = options_of(task)
        assert (task["dependencies"], options.shots) == (["solve horse"], [f"/farm/clips/{name}"])
        assert (options.character, options.output) == (Path("/farm/out/character"), Path("/farm/out"))
        assert (options.object, options.on_failure) == (["Horse_skinned"], "report")
        assert convert_arguments(options)[-2:] == ["--rotation-only", "--joint-hierarchy"]
    options = options_of(last)
    assert (last["dependencies"], options.command, options.clips) == (["apply a", "apply b c"], "gather-reports", True)
    assert options.shots == ["/farm/clips/a.abc", "/farm/clips/b c.pc2"]
    assert options.output == Path("/farm/out/table.csv")


@BOTH
def test_its_defaults_and_choices_are_those_of_the_command(script):
    made = job(script)
    settings = {setting["key"]: setting for setting in made["jobType"]["settings"]}
    options = options_of(made["tasks"][0])
    plain = ["convert-shots", "x", "--output=x", f"--object={options.object[0]}"]
    plain += [f"--clips={each}" for each in options.clips]
    assert convert_arguments(options) == convert_arguments(command_line.parser().parse_args(plain))
    for kind in settings["kind"]["choices"]:
        options_of(job(script, kind=kind)["tasks"][1])
    for choice in settings["on_failure"]["choices"]:
        assert options_of(job(script, on_failure=choice)["tasks"][1]).on_failure == choice


@BOTH
def test_settings_are_as_flamenco_knows_them(script):
    for setting in job(script)["jobType"]["settings"]:
        assert setting.keys() <= {
            "key", "type", "subtype", "choices", "propargs", "description", "label", "default", "eval", "evalInfo",
            "visible", "required", "editable",
        }  # fmt: skip
        assert setting["type"] in {"string", "int32", "float", "bool"}
        assert setting.get("subtype", "") in {"", "file_path", "dir_path", "hashed_file_path"}
        assert "choices" not in setting or setting["type"] == "string"


def test_the_list_of_shots_is_made_by_the_add_on(tmp_path):
    """The expression runs in Blender, with these names at hand."""
    for name in ("b.blend", "a.blend", "a.blend1", "notes.txt"):
        (tmp_path / name).touch()
    settings = {setting["key"]: setting for setting in job()["jobType"]["settings"]}
    values = type("Settings", (), {"shot_folder": str(tmp_path)})
    assert eval(settings["shots"]["eval"], {}, {"settings": values, "abspath": Path, "Path": Path}) == "a.blend|b.blend"
    for ending in (*ENDINGS, ".txt"):
        (tmp_path / f"walk{ending}").touch()
    settings = {setting["key"]: setting for setting in job(CLIPS)["jobType"]["settings"]}
    values = type("Settings", (), {"clip_folder": str(tmp_path)})
    found = eval(settings["clips"]["eval"], {"settings": values, "abspath": Path})
    assert found.split("|") == sorted(f"walk{ending}" for ending in ENDINGS)


@pytest.mark.parametrize(("script", "key", "names"), [(SHOTS, "shots", ""), (CLIPS, "clips", " | ")])
def test_no_shots_are_refused(script, key, names):
    result = compiled(script, **{key: names})
    assert result.returncode != 0
    assert f"There are no {key}" in result.stderr


def test_a_shot_that_is_named_twice_is_converted_once():
    names = [task["name"] for task in job(shots="a.blend| a.blend |b.blend")["tasks"]]
    assert names == ["convert a", "convert b", "gather reports"]


@BOTH
def test_paths_are_arguments_of_their_own(script):
    """Flamenco replaces the beginnings of paths, which it would not find behind an option's name."""
    for task in job(script)["tasks"]:
        for argument in task["commands"][0]["parameters"]["args"]:
            assert "/farm" not in argument or PurePosixPath(argument).is_absolute(), argument
