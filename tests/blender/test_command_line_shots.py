# SPDX-License-Identifier: GPL-3.0-or-later
"""convert-shots and gather-reports: many files, of which some fail, crash, are finished already or are stopped."""

import csv
import importlib.util
import json
import os
import re
import signal
import sys
from pathlib import Path

import bpy
import pytest

import skinning_tools
from skinning_tools import command_line
from skinning_tools.features.shots import blender_child, work
from skinning_tools.features.shots.shots import Shot, find_shots, numbered
from skinning_tools.ui.command_line.common import UsageError
from skinning_tools.ui.command_line.report import Report, json_bytes, settings_of
from skinning_tools.ui.command_line.report_reading import read_report
from tests.blender.refusals import assert_says
from tests.farm import shots

pytestmark = pytest.mark.usefixtures("extension")

started_with = blender_child._blender_options

ROOT = Path(skinning_tools.__file__).parents[1]
SETTINGS = ("--object", "Flag", "--bones", "4", "--iterations", "2")


@pytest.fixture(scope="module", autouse=True)
def children():
    """In a Blender program, those that it starts find scipy where these tests have it from, the Python path."""
    with pytest.MonkeyPatch.context() as patch:
        if bpy.app.binary_path:
            patch.setattr(blender_child, "_blender_options", lambda argv: ["-b", "--python-use-system-env"])
        yield


def run(*arguments) -> int:
    return command_line.main([str(argument) for argument in arguments])


def statuses(folder: Path) -> dict[str, str]:
    return {path.stem: json.loads(path.read_text("utf-8"))["status"] for path in sorted(folder.glob("*.json"))}


def test_an_omission_fails_only_its_shot_unless_it_is_allowed(tmp_path, capfd):
    paths = shots.make_shots(tmp_path / "in", 2)
    bpy.ops.wm.open_mainfile(filepath=str(paths[1]))
    bpy.data.objects["Flag"].driver_add("location", 0).driver.expression = "unheard_of()"
    bpy.ops.wm.save_mainfile()
    given = ("convert-shots", tmp_path / "in", "--output", tmp_path / "out", *SETTINGS)
    assert run(*given) == 1
    assert statuses(tmp_path / "out") == {"shot_01": "done", "shot_02": "failed"}
    told = r"the driver of location\[0\] \(unheard_of\(\)\) of object \"Flag\" is"
    assert re.search(rf"^shot_02 +failed .*{told}", capfd.readouterr().out, re.MULTILINE)
    # Blender tells a driver that it may not run from one that has failed only where it may run some.
    assert run(*given, "--allow-incomplete", "scripts,drivers") == 0
    assert statuses(tmp_path / "out") == {"shot_01": "done", "shot_02": "done"}
    assert re.search(rf"^shot_02 +done .*{told}", capfd.readouterr().out, re.MULTILINE)
    assert run("gather-reports", tmp_path / "out", "--output", tmp_path / "table.csv") == 0
    rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
    assert [bool(re.match(told, row["notes"])) for row in rows] == [False, True]


def test_one_bad_file_does_not_stop_the_rest(tmp_path, capfd):
    paths = shots.make_shots(tmp_path / "in", 4, broken=(2,))
    bpy.ops.wm.open_mainfile(filepath=str(paths[2]))
    bpy.data.objects["Flag"].name = "Banner"
    bpy.ops.wm.save_mainfile()
    report = tmp_path / "all.json"
    given = ("convert-shots", tmp_path / "in", "--output", tmp_path / "out", *SETTINGS, "--jobs", 2)
    assert run(*given, "--report", report) == 1
    out = capfd.readouterr()
    expected = {"shot_01": "done", "shot_02": "failed", "shot_03": "failed", "shot_04": "done"}
    assert statuses(tmp_path / "out") == expected
    assert "2 of 4 shots failed" in out.err
    for name, status in expected.items():
        assert re.search(rf"^\[\d/4\] {name}  {status}", out.out, re.MULTILINE)
        assert re.search(rf"^{name} +{status}", out.out, re.MULTILINE)
        assert (tmp_path / "out" / f"{name}.blend").exists() == (status == "done")
        assert (tmp_path / "out" / f"{name}.log").exists() == (status == "failed")
    third = read_report(tmp_path / "out" / "shot_03.json")
    assert_says(third["message"], 'NO_OBJECT "Flag" … "Scene" … that fit: Banner')
    said = read_report(report)
    assert (said["exit_code"], said["figures"]["converted"], said["figures"]["failed"]) == (1, 2, 2)
    assert said["figures"]["shots"]["shot_01"]["e_rms"] > 0

    # Again, where a pattern finds the object of the third, too: a shot done with other settings is converted again.
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert run(*given, "--on-failure", "report") == 0
    assert re.search("^Skipped +2, finished before$", capfd.readouterr().out, re.MULTILINE)
    assert statuses(tmp_path / "out") == expected
    for name in ("shot_01.blend", "shot_01.json", "shot_04.blend", "shot_04.json"):
        assert (tmp_path / "out" / name).stat().st_mtime_ns == times[name]
    anew = ("convert-shots", paths[2], "--output", tmp_path / "out", "--object", "B*er", *SETTINGS[2:])
    assert run(*anew) == 0
    assert read_report(tmp_path / "out" / "shot_03.json")["figures"]["object"] == "Banner"

    # The same folder as a table.
    capfd.readouterr()
    table = tmp_path / "table.csv"
    assert run("gather-reports", tmp_path / "out", "--shots", tmp_path / "in", "--output", table) == 1
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["shot"], row["status"]) for row in rows] == list((expected | {"shot_03": "done"}).items())
    assert "1 of 4 shots failed" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_crash_stays_with_its_shot(tmp_path, monkeypatch, capfd):
    shots.make_shots(tmp_path / "in", 2)
    real = blender_child.blender_command
    crash = "import os, signal; print('about to crash', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"

    def command(arguments):
        return [sys.executable, "-c", crash] if any("shot_01" in text for text in arguments) else real(arguments)

    monkeypatch.setattr(blender_child, "blender_command", command)
    assert run("convert-shots", tmp_path / "in", "--output", tmp_path / "out", *SETTINGS) == 1
    assert statuses(tmp_path / "out") == {"shot_01": "failed", "shot_02": "done"}
    said = read_report(tmp_path / "out" / "shot_01.json")
    assert "SIGSEGV" in said["message"]
    assert "about to crash" in said["message"]
    assert said["exit_code"] == 128 + signal.SIGSEGV
    assert (tmp_path / "out" / "shot_01.log").read_text("utf-8").splitlines()[1:] == ["about to crash"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Shot:
    """One converted shot."""
    folder = tmp_path_factory.mktemp("finished")
    (path,) = shots.make_shots(folder / "in", 1)
    assert run("convert-shots", path, "--output", folder / "out", *SETTINGS) == 0
    return Shot(path, "shot_01", folder / "out")


def is_finished(shot: Shot, **changed) -> bool:
    report = read_report(shot.report)
    return work.is_finished(shot, report, report["settings"] | changed)


def test_what_is_finished(finished, tmp_path):
    assert is_finished(finished)
    assert not is_finished(finished, bones=5)
    content = finished.path.read_bytes()
    # The same content at another time: a copy.
    os.utime(finished.path, (1, 1))
    assert is_finished(finished)
    finished.path.write_bytes(content[:-1] + b"\1")
    assert not is_finished(finished)
    finished.path.write_bytes(content + b"\1")
    assert not is_finished(finished)
    finished.path.write_bytes(content)
    assert is_finished(finished)
    moved = finished.output.rename(tmp_path / "elsewhere.blend")
    assert not is_finished(finished)
    moved.rename(finished.output)
    report = read_report(finished.report)
    for change in ({"status": "failed"}, {"status": "stopped"}, {"command": "bind"}, {"input": None}):
        assert not work.is_finished(finished, report | change, report["settings"])


# Settings that reports of the versions before them lack.
LATER = ("allow_incomplete", "on_result")


def before(settings: dict, *without: str) -> dict:
    return {name: value for name, value in settings.items() if name not in without}


def told(*arguments) -> dict:
    """The settings of a conversion, as its report has them."""
    parser = command_line.parser()
    return settings_of(parser.parse_args(["convert", *map(str, arguments)]))


@pytest.mark.parametrize("without", [LATER, LATER[:1], LATER[1:]])
def test_shots_that_an_earlier_version_finished(finished, without):
    """A shot that an earlier version finished counts only with the options that do the same as that version."""
    report = read_report(finished.report)
    report["settings"] = before(report["settings"], *without)
    like_before = {"allow_incomplete": "--allow-incomplete=all", "on_result": "--on-result=CONVERT"}
    asked = [like_before[name] for name in without]
    assert work.is_finished(finished, report, told(*SETTINGS, *asked))
    assert not work.is_finished(finished, report, told(*SETTINGS, *asked[1:]))
    assert not work.is_finished(finished, report, told(*SETTINGS, *asked, "--root-bone"))


EARLIER_LOG = b"Info: what an earlier version has kept\n"


def failed_before(path: Path, folder: Path, without=LATER, log: bytes = EARLIER_LOG, **changed) -> Shot:
    """The report and log that a version before the marks has left of a shot."""
    folder.mkdir(exist_ok=True)
    shot = Shot(path, path.stem, folder)
    report = Report(None, "convert", before(told(*SETTINGS), *without))
    report.input = {"path": str(path)}
    shot.report.write_bytes(json_bytes(report.document("failed", 1, "The work failed") | changed))
    shot.log.write_bytes(log)
    return shot


def test_shots_that_failed_in_an_earlier_version_are_converted(tmp_path):
    shot = failed_before(*shots.make_shots(tmp_path / "in", 1), tmp_path / "out")
    assert run("convert-shots", shot.path, "--output", shot.folder, *SETTINGS) == 0
    assert read_report(shot.report)["status"] == "done"
    assert not shot.log.exists()


@pytest.fixture
def no_blender(tmp_path, monkeypatch):
    """Nothing is converted: what counts is whether it would be started."""
    monkeypatch.setattr(blender_child, "blender_command", lambda _: [str(tmp_path / "no blender")])


@pytest.mark.skipif(sys.platform == "win32", reason="a program that is none is found out another way")
@pytest.mark.usefixtures("no_blender")
@pytest.mark.parametrize("changed", [{}, {"status": "stopped"}, {"without": LATER[:1]}, {"without": LATER[1:]}])
@pytest.mark.parametrize("in_the_way", [False, True])
def test_logs_that_an_earlier_version_has_left_go(tmp_path, changed, in_the_way):
    """Also where something else is in the way, and the shot is started once that is gone."""
    (path,) = shots.make_shots(tmp_path / "in", 1)
    shot = failed_before(path, tmp_path / "out", **changed)
    given = ("convert-shots", path, "--output", shot.folder, *SETTINGS)
    if in_the_way:
        shot.output.mkdir()
        assert run(*given) == 1
        assert "folder" in read_report(shot.report)["message"]
        shot.output.rmdir()
    assert run(*given) == 1
    assert read_report(shot.report)["message"].endswith("cannot be started: No such file or directory")
    assert EARLIER_LOG not in shot.log.read_bytes()


@pytest.mark.usefixtures("no_blender")
@pytest.mark.parametrize(
    "changed",
    [
        {"without": ()},
        {"status": "done"},
        {"command": "bind"},
        {"input": None},
        {"input": {"path": "another.blend"}},
        {"schema": "of others"},
    ],
    ids=str,
)
def test_logs_that_no_report_tells_of_stay(tmp_path, changed):
    (path,) = shots.make_shots(tmp_path / "in", 1)
    shot = failed_before(path, tmp_path / "out", **changed)
    for _ in range(2):  # The second time there is the report of the first.
        assert run("convert-shots", path, "--output", shot.folder, *SETTINGS) == 1
        assert shot.log.read_bytes() == EARLIER_LOG


def test_shots_finished_before_scripts_could_be_allowed(finished):
    report = read_report(finished.report)
    settings = dict(report["settings"])
    del report["settings"]["run_scripts"]
    assert work.is_finished(finished, report, settings)
    assert not work.is_finished(finished, report, settings | {"run_scripts": True})


def test_a_changed_cache_is_converted_again(finished, tmp_path):
    cache = tmp_path / "cache.abc"
    cache.write_bytes(b"frames")
    report = read_report(finished.report)
    status = cache.stat()
    known = {"path": str(cache), "size": status.st_size, "modified_ns": status.st_mtime_ns}
    report["input"]["refers_to"] = [known]
    assert work.is_finished(finished, report, report["settings"])
    os.utime(cache, ns=(0, status.st_mtime_ns + 1_000_000_000))
    assert not work.is_finished(finished, report, report["settings"])
    cache.unlink()
    assert not work.is_finished(finished, report, report["settings"])
    known |= {"size": None, "modified_ns": None}  # it was missing then, too
    assert work.is_finished(finished, report, report["settings"])


def test_nothing_is_started_where_all_is_finished(finished, monkeypatch, capfd):
    monkeypatch.setattr(blender_child, "blender_command", lambda _: pytest.fail("Blender was started"))
    given = ("convert-shots", finished.path, "--output", finished.folder, *SETTINGS)
    assert run(*given, "--jobs", 4) == 0
    assert re.search("^shot_01 +skipped", capfd.readouterr().out, re.MULTILINE)


def test_remains_of_a_killed_run_of_a_finished_shot_are_removed(finished, capfd):
    """The log of a skipped shot is removed if the extension wrote it."""
    log = finished.log
    for content, stays in (
        (b"# skinning_tools.log: what Blender said of shot_01\nInfo\n", False),
        (b"of others", True),
    ):
        log.write_bytes(content)
        assert run("convert-shots", finished.path, "--output", finished.folder, *SETTINGS) == 0
        assert "shot_01  skipped" in capfd.readouterr().out
        assert log.exists() == stays
    log.unlink()


def test_list_prints_numbers_and_does_nothing(tmp_path, capsys):
    shots.make_shots(tmp_path / "in", 3, broken=(1, 2, 3))
    capsys.readouterr()
    assert run("convert-shots", tmp_path / "in", "--output", tmp_path / "out", "--object", "Flag", "--list") == 0
    lines = capsys.readouterr().out.split()
    assert lines == [part for n in (1, 2, 3) for part in (str(n), str(tmp_path / "in" / f"shot_0{n}.blend"))]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["--object=Flag"],
        ["--object=Flag", "--object=B*", "--bones=7", "--kind=rigid", "--root-bone", "--frame-start=-5"],
        ["--object=-x", "--smoothness=0.25", "--no-rest-pose", "--target-error=1.5", "--method=KAVAN2010"],
    ],
)
def test_settings_reach_the_conversion(given):
    parser = command_line.parser()
    options = parser.parse_args(["convert-shots", "in", "--output=out", *given])
    forwarded = parser.parse_args(["convert", "--overwrite", *work.convert_arguments(options)])
    direct = parser.parse_args(["convert", "--overwrite", *given])
    assert vars(forwarded) == vars(direct) | {"parse": forwarded.parse}


def test_more_settings_in_one_text(tmp_path, capsys):
    parser = command_line.parser()
    given = ["convert-shots", "in", "--output=out", "--object=Flag"]
    options = parser.parse_args([*given, "--settings", "--bones 9 --object 'Long name'"])
    forwarded = parser.parse_args(["convert", "--overwrite", *work.convert_arguments(options)])
    assert (forwarded.bones, forwarded.object) == (9, ["Flag", "Long name"])
    (tmp_path / "a.blend").touch()
    for wrong in ("--bone-count-of 3", "--object 'x"):
        given = ("convert-shots", tmp_path, "--output", tmp_path / "out", "--object", "Flag", "--settings", wrong)
        assert run(*given) == 2
        assert capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_settings_reach_the_clips_of_a_character():
    given = ["--object=Horse_skinned", "--kind=SCALED", "--frame-step=2", "--bones=9"]
    parser = command_line.parser()
    options = parser.parse_args(
        ["convert-shots", "clips", "--output=out", "--character=horse.blend", *given, "--settings=--rotation-only"]
    )
    found = work.work_of(options)
    assert (found.command, found.character) == ("solve-transforms", Path("horse.blend").absolute())
    asked = ["solve-transforms", "--object=Horse_skinned", "--kind=SCALED", "--frame-step=2", "--rotation-only"]
    assert found.settings == settings_of(parser.parse_args(asked))
    clip = Shot(Path("walk.abc"), "walk", Path("out"))
    forwarded = parser.parse_args([*found.arguments_for(clip), "--output=out.blend"])
    assert (forwarded.input, forwarded.clip) == (found.character, clip.path.absolute())
    assert found.settings_for(clip) == found.settings | {"clip": "walk.abc"}


def test_characters_that_cannot_be_meant(tmp_path, capsys):
    (tmp_path / "walk.pc2").touch()
    given = ("convert-shots", tmp_path, "--output", tmp_path / "out", "--character", tmp_path)
    assert run(*given, "--object=Horse_skinned") == 2
    assert "--character must name a .blend file, or a folder with only one" in capsys.readouterr().err
    assert run(*given, "--object=Horse_skinned", "--object=Rider_skinned") == 2
    assert "--character needs one --object" in capsys.readouterr().err
    (tmp_path / "walk.blend").touch()
    assert run(*given[:2], "--output", tmp_path, *given[-2:], "--object=Horse_skinned", "--overwrite") == 2
    assert "as that is the character. Choose another folder" in capsys.readouterr().err
    (tmp_path / "walk.blend").unlink()
    assert run(*given[:-1], tmp_path / "run.blend", "--object=Horse_skinned") == 2
    assert "run.blend, which --character names" in capsys.readouterr().err
    assert run(*given[:-2], "--object=Horse") == 2
    assert "There are no .blend files in" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_every_shot_lacks_is_said_once_before_the_first(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.blend").touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "scipy", raising=False)
    assert run("convert-shots", tmp_path, "--output", tmp_path / "out", *SETTINGS) == 1
    assert capsys.readouterr().err.count("scipy is missing for Python") == 1
    assert not (tmp_path / "out").exists()


def test_blender_is_started_as_it_was():
    given = ["blender", "-b", "-y", "a.blend", "-t", "2", "--command", "skinning", "convert"]
    assert started_with(given) == ["-b", "-y", "-t", "2"]
    assert started_with(["blender", "--command", "skinning"]) == ["-b"]
    # A script that calls the command line from inside is not to start once more.
    assert started_with(["blender", "-b", "--python", "script.py", "--", "-c", "file"]) == ["-b"]


def test_cores_are_shared(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert blender_child._environment(3)["OMP_NUM_THREADS"] == "4"
    assert blender_child._environment(3)["OPENBLAS_NUM_THREADS"] == "5"
    assert "OMP_NUM_THREADS" not in blender_child._environment(1)


@pytest.fixture
def tree(tmp_path) -> Path:
    for name in ("b.blend", "a.blend", "a.blend1", "deep/c.blend", "deep/out/d.blend"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "in" / "list.txt").write_text("# the good ones\nb.blend\n\ndeep/c.blend\n", encoding="utf-8")
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("given", "recursive", "names"),
    [
        (["."], False, ["a", "b"]),
        (["."], True, ["a", "b", "deep/c"]),
        (["list.txt"], False, ["b", "c"]),
        (["*.blend", "deep/*.blend"], False, ["a", "b", "c"]),
        (["b.blend", "."], False, ["b", "a"]),
        (["missing.blend"], False, ["missing"]),
    ],
)
def test_shots_are_found_by_name_folder_or_list(tree, monkeypatch, given, recursive, names):
    monkeypatch.chdir(tree)
    found = find_shots(given, tree / "deep" / "out", recursive)
    assert [shot.name for shot in found] == names
    assert all(shot.output.is_relative_to(tree / "deep" / "out") for shot in found)


def test_brackets_in_a_name_are_no_pattern(tmp_path):
    path = tmp_path / "shot [old].blend"
    path.touch()
    assert [shot.path for shot in find_shots([str(path)], tmp_path / "out")] == [path]


@pytest.mark.parametrize(
    ("given", "folder", "message"),
    [
        (["a.blend", "deep/a.blend"], "out", "Two shots would be saved"),
        (["a.blend"], ".", "would replace it"),
        (["none/*.blend"], "out", "There are no .blend files"),
        (["none.txt"], "out", "cannot be read"),
    ],
)
def test_invalid_shots_are_refused(tree, monkeypatch, given, folder, message):
    monkeypatch.chdir(tree)
    with pytest.raises(UsageError, match=message):
        find_shots(given, (tree / folder).absolute())


@pytest.mark.parametrize(
    ("numbers", "expected"), [(None, [1, 2, 3, 4, 5]), ("2", [2]), ("4-5, 1", [4, 5, 1]), ("1-5:2", [1, 3, 5])]
)
def test_shots_by_number(numbers, expected):
    assert list(numbered([1, 2, 3, 4, 5], numbers)) == expected


@pytest.mark.parametrize("numbers", ["0", "6", "3-2", "a", "", "1-", "1-5:0", "-1"])
def test_numbers_that_no_shot_has(numbers):
    with pytest.raises(UsageError):
        numbered([1, 2, 3, 4, 5], numbers)


def test_gathering_tells_of_shots_without_a_report(tree, tmp_path, capsys):
    folder = tmp_path / "reports"
    folder.mkdir()
    figures = {"object": "Flag", "bones": 4, "frames": {"count": 8}, "e_rms": 0.123456789, "largest_error": 1.0}
    report = Report(None, "convert", {}).document("done", 0) | {"figures": figures}
    report["times"]["seconds"] = 2.0
    (folder / "a.json").write_bytes(json_bytes(report))
    (folder / "z.json").write_bytes(json_bytes(report | {"command": "convert-shots"}))
    (folder / "y.json").write_bytes(json_bytes({"something": "else"}))
    assert run("gather-reports", folder) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][:2] == ["shot", "a"]
    assert run("gather-reports", folder, "--shots", tree) == 1
    out = capsys.readouterr().out
    assert re.search(r"^a +done +Flag +4 +8 +0\.1235 +1 +2$", out, re.MULTILINE)
    assert re.search(r"^b +missing +there is no report$", out, re.MULTILINE)
    assert run("gather-reports", folder, "--shots", tree, "--only", "1") == 0
    assert run("gather-reports", folder, "--only", "1") == 2
    assert run("gather-reports", tree) == 1
    assert "There are no reports" in capsys.readouterr().err
    assert run("gather-reports", folder / "none") == 2


@pytest.mark.parametrize(
    ("only", "code", "expected"),
    [("2", 0, [2]), ("1,3", 0, [1, 3]), ("3,1-2", 0, [3, 1, 2]), ("4", 2, []), ("0", 2, []), ("a", 2, []), ("", 2, [])],
)
def test_list_prints_only_those_that_are_asked_for(tmp_path, capsys, only, code, expected):
    shots.make_shots(tmp_path / "in", 3, broken=(1, 2, 3))
    capsys.readouterr()
    given = ("convert-shots", tmp_path / "in", "--output", tmp_path / "out", "--object", "Flag", "--list")
    assert run(*given, "--only", only) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [[str(n), str(tmp_path / "in" / f"shot_0{n}.blend")] for n in expected]


@pytest.mark.parametrize(
    "settings", ["--report a.json", "--input a.blend", "--output a.blend", "--curve a.png", "--help"]
)
def test_settings_that_say_how_a_shot_is_run(tmp_path, capsys, settings):
    """Such options would be ignored, or name the same file for all shots."""
    shots.make_shots(tmp_path / "in", 2)
    given = ("convert-shots", tmp_path / "in", "--output", tmp_path / "out", "--object", "Flag", "--settings", settings)
    assert run(*given) == 2
    assert "--settings" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a program that is none is found out another way")
def test_a_blender_that_cannot_be_started_costs_its_shot(tmp_path, monkeypatch, capfd):
    """It was updated or removed meanwhile; a folder has come into the place of the log, and another of the results."""
    shots.make_shots(tmp_path / "in", 4)
    real = blender_child.blender_command
    missing = [str(tmp_path / "no blender")]
    monkeypatch.setattr(
        blender_child, "blender_command", lambda given: missing if "shot_01" in str(given) else real(given)
    )
    (tmp_path / "out" / "shot_02.log").mkdir(parents=True)
    (tmp_path / "out" / "shot_03.blend").mkdir()
    report = tmp_path / "all.json"
    assert run("convert-shots", tmp_path / "in", "--output", tmp_path / "out", *SETTINGS, "--report", report) == 1
    rows = read_report(report)["figures"]["shots"]
    assert [row["status"] for row in rows.values()] == ["failed", "failed", "failed", "done"]
    for name, words in (("shot_01", "cannot be started"), ("shot_02", "folder"), ("shot_03", "folder")):
        assert words in rows[name]["message"]
        assert read_report(tmp_path / "out" / f"{name}.json")["message"] == rows[name]["message"]
    assert "bug in Skinning Tools" not in capfd.readouterr().err


def foreign(place: Path, kind: str) -> None:
    """Something else in the place of a shot's report."""
    if kind == "folder":
        place.mkdir()
    elif kind == "link":
        place.symlink_to(place.parent / "settings.txt")
        (place.parent / "settings.txt").write_text("mine")
    else:
        place.write_text({"object": '{"a":1}', "list": "[1, 2]", "text": "mine", "table": "shot,status\n"}[kind])


@pytest.mark.parametrize("also", ["", ".blend", ".log"])
@pytest.mark.parametrize("kind", ["object", "list", "text", "table", "folder", "link"])
def test_a_report_whose_place_is_taken(tmp_path, capfd, kind, also):
    """The foreign file stays; the shot fails, and its message says once that it has no report."""
    shots.make_shots(tmp_path / "in", 1)
    folder = tmp_path / "out"
    folder.mkdir()
    foreign(folder / "shot_01.json", kind)
    if also:
        (folder / f"shot_01{also}").write_text("mine, too")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    report = tmp_path / "all.json"
    assert run("convert-shots", tmp_path / "in", "--output", folder, *SETTINGS, "--report", report) == 1
    came = capfd.readouterr()
    assert came.err.splitlines() == ["Error: 1 of 1 shots failed"]
    message = read_report(report)["figures"]["shots"]["shot_01"]["message"]
    assert message.count("This shot has no report") == 1
    assert message.count("The report cannot be saved") == 1
    assert "meanwhile" not in came.out + message
    assert message in came.out
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    # Nor does it stay unknown to those who gather the reports.
    table = tmp_path / "table.csv"
    assert run("gather-reports", folder, "--shots", tmp_path / "in", "--output", table) == 1
    assert [row["status"] for row in csv.DictReader(table.open(encoding="utf-8"))] == ["unreadable"]


@pytest.mark.skipif(sys.platform == "win32", reason="a program that is none is found out another way")
def test_a_report_whose_place_is_taken_while_the_shot_runs(tmp_path, monkeypatch, capfd):
    (path,) = shots.make_shots(tmp_path / "in", 1)
    place = tmp_path / "out" / "shot_01.json"
    crash = f"open({str(place)!r}, 'w').write('mine'); raise SystemExit(5)"
    monkeypatch.setattr(blender_child, "blender_command", lambda given: [sys.executable, "-c", crash])
    assert run("convert-shots", path, "--output", tmp_path / "out", *SETTINGS) == 1
    came = capfd.readouterr()
    assert re.search("^shot_01 .*exit code 5.*This shot has no report: The report cannot be saved", came.out, re.M)
    assert came.err.splitlines() == ["Error: 1 of 1 shots failed"]
    assert place.read_text() == "mine"
