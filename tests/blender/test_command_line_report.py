# SPDX-License-Identifier: GPL-3.0-or-later
"""--report: its content, also after failures, and that neither report nor result is ever incomplete."""

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools import command_line
from skinning_tools.blender import translation
from skinning_tools.core.catalog import Catalog
from skinning_tools.core.catalog import read as read_catalog
from skinning_tools.core.catalog import translations as catalog_texts
from skinning_tools.features import FEATURES
from skinning_tools.ui.command_line import report as reports
from skinning_tools.ui.command_line import running
from tests.blender import moving_meshes, scenes
from tests.blender.refusals import assert_says
from tools import translations

pytestmark = pytest.mark.usefixtures("extension")

CONVERT = ("convert", "--object", "Flag", "--bones", "4", "--iterations", "2")


@pytest.fixture
def shot(tmp_path):
    return moving_meshes.saved_flag(tmp_path / "shot.blend")


def run(*arguments) -> int:
    return command_line.main([str(argument) for argument in arguments])


def read(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))


def test_the_result_is_reported(shot, tmp_path):
    report, output = tmp_path / "report.json", tmp_path / "out.blend"
    assert run(*CONVERT, "--output", output, "--report", report) == 0
    said = read(report)
    flag = bpy.data.objects["Flag_skinned"]
    assert (said["command"], said["status"], said["exit_code"], said["message"]) == ("convert", "done", 0, "")
    assert said["figures"]["e_rms"] == flag["skinning_e_rms"]
    assert said["figures"]["largest_error"] == flag["skinning_max_error"]
    assert said["figures"]["bones"] == 4
    assert 0 < said["figures"]["normals"]["mean"] < said["figures"]["normals"]["within"]
    assert said["figures"]["frames"] == {"count": 8, "first": 1, "last": 8}
    assert (said["settings"]["object"], said["settings"]["iterations"]) == (["Flag"], 2)
    assert said["settings"]["influences"] == 4  # defaults, too
    assert not {"report", "output", "run", "parse", "progress"} & said["settings"].keys()
    assert said["input"]["sha256"] == hashlib.sha256(shot.read_bytes()).hexdigest()
    assert (said["input"]["path"], said["input"]["size"]) == (str(shot), shot.stat().st_size)
    assert (said["output"]["path"], said["output"]["size"]) == (str(output), output.stat().st_size)
    assert set(said["times"]["stages"]) == {"read", "solve", "write", "measure"}
    assert said["times"]["started"] < said["times"]["ended"]
    assert said["versions"]["numpy"] == np.__version__
    assert said["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))


def test_no_language_of_the_interface_is_in_it(shot, tmp_path, monkeypatch):
    """Nor in what stays in the file; the line for the user is in that language."""
    given, found = (*CONVERT, "--residual-shapes", 20, "--joint-hierarchy", "--rotation-limits"), []
    german = Catalog(catalog_texts(read_catalog(translations.LANGUAGES / "de.po")))
    monkeypatch.setattr(bpy.context.preferences.view, "use_translate_interface", True)
    for language, catalog in (("english", None), ("german", german)):
        monkeypatch.setattr(translation, "_catalog", {bpy.app.translations.locale[:2]: catalog}.get)
        bpy.ops.wm.open_mainfile(filepath=str(shot))
        report, output = tmp_path / f"{language}.json", tmp_path / f"{language}.blend"
        assert run(*given, "--output", output, "--report", report) == 0
        said = read(report)
        found.append([said["notes"], said["figures"], bpy.data.objects["Flag_rig"]["skinning_report"]["notes"]])
    assert found[0] == found[1]
    assert "8 residual shapes instead of 20: there cannot be more shapes than frames" in found[1][0]
    assert translation.translated(found[1][0][0]).startswith("8 Restformen statt 20")


def test_says_which_files_the_input_refers_to(tmp_path):
    moving_meshes.fresh_scene()
    ob = moving_meshes.waving_grid()
    cache = tmp_path / "flag.pc2"
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    scenes.write_pc2(cache, rest + np.random.default_rng(1).normal(size=(9, *rest.shape)))
    scenes.point_cache(ob, cache, "PC2")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert run(*CONVERT, "--overwrite", "--report", tmp_path / "report.json") == 0
    (other,) = read(tmp_path / "report.json")["input"]["refers_to"]
    assert (other["path"], other["size"]) == (str(cache), cache.stat().st_size)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("convert", "--object", "Fleg", "--output", "out.blend"), 1, 'NO_OBJECT "Fleg"'),
        (("convert", "--object", "Flag", "--output", "out.glb"), 2, ".blend file"),
        (("convert", "--object", "Flag", "--bones", "many", "--output", "out.blend"), 2, "many is not a whole number"),
        (("convert", "--objects", "Flag", "--output", "out.blend"), 2, "--object"),
        (("convert", "--input", "none.blend", "--object", "Flag", "--output", "out.blend"), 1, "no file"),
    ],
)
def test_failures_are_reported(shot, tmp_path, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--report", "report.json") == code
    said = read(tmp_path / "report.json")
    assert (said["command"], said["status"], said["exit_code"]) == ("convert", "failed", code)
    assert_says(said["message"], message)
    assert_says(capsys.readouterr().err, message)
    assert (said["output"], said["figures"]) == (None, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "shot.blend"]


def test_faults_of_our_own_are_reported(shot, tmp_path, monkeypatch):
    monkeypatch.setattr("skinning_tools.features.convert.conversion.convert", lambda *_, **__: 1 // 0)
    assert run(*CONVERT, "--overwrite", "--report", tmp_path / "report.json") == 1
    assert "ZeroDivisionError" in read(tmp_path / "report.json")["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it(shot, tmp_path, monkeypatch, number):
    before = moving_meshes.state()

    def stop(fraction, stage):
        os.kill(os.getpid(), number)

    monkeypatch.setattr("skinning_tools.ui.command_line.common.ProgressLines", lambda: stop)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    code = run(*CONVERT, "--output", tmp_path / "out.blend", "--report", tmp_path / "report.json")
    assert code == 128 + number
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert (read(tmp_path / "report.json")["status"], read(tmp_path / "report.json")["exit_code"]) == ("stopped", code)
    assert not (tmp_path / "out.blend").exists()
    assert moving_meshes.state() == before


def test_an_older_report_does_not_speak_for_this_run(shot, tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    assert run(*CONVERT, "--overwrite", "--report", report) == 0

    def power_cut(*_, **__):
        assert not report.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("skinning_tools.features.convert.conversion.convert", power_cut)
    with pytest.raises(KeyboardInterrupt):
        run(*CONVERT, "--overwrite", "--report", report)


def test_a_disk_that_is_full_for_the_report(shot, tmp_path, monkeypatch, capsys):
    """The result is saved first; the exit code says that the report is missing."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("skinning_tools.blender.written_files.Target.write", full)
    output = tmp_path / "out.blend"
    assert run(*CONVERT, "--output", output, "--report", tmp_path / "report.json") == 3
    message = capsys.readouterr().err
    assert "No space left on device" in message
    assert f"The result is saved: {output}" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.blend", "shot.blend"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert "Flag_skinned" in bpy.data.objects


@pytest.mark.skipif(bool(bpy.app.binary_path) or sys.platform == "win32", reason="Python sets the limit and starts it")
def test_a_disk_that_is_full_for_the_result(shot, tmp_path):
    """A real limit to the size of files: an older result stays as it was, and nothing in part is left."""
    import resource

    output, report = tmp_path / "out.blend", tmp_path / "report.json"
    assert run(*CONVERT, "--output", output) == 0
    older = output.read_bytes()
    command = [sys.executable, "-m", "skinning_tools.command_line", *CONVERT, "--progress", "none"]
    command += ["--input", str(shot), "--output", str(output), "--report", str(report)]
    result = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        cwd=Path(skinning_tools.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert f"could not be saved to {output}" in result.stderr
    said = read(report)
    assert (said["status"], said["output"]) == ("failed", None)
    assert output.read_bytes() == older
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.blend", "report.json", "shot.blend"]


def read_only(monkeypatch) -> None:
    """No file can be created in the folder."""

    def refuse(path, mode="r", *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "open", refuse)


def test_a_folder_that_is_read_only_for_the_report(shot, tmp_path, monkeypatch, capsys):
    """The error is reported before the work, and nothing is done."""

    read_only(monkeypatch)
    before = moving_meshes.state()
    assert run(*CONVERT, "--output", tmp_path / "out.blend", "--report", tmp_path / "report.json") == 2
    message = capsys.readouterr().err
    assert "The report cannot be saved" in message
    assert os.strerror(errno.EROFS) in message
    assert "Nothing was done" in message
    assert moving_meshes.state() == before


def test_a_folder_that_is_read_only_for_the_result(shot, tmp_path, monkeypatch, capsys):
    read_only(monkeypatch)
    before = moving_meshes.state()
    assert run(*CONVERT, "--output", tmp_path / "out.blend") == 2
    assert os.strerror(errno.EROFS) in capsys.readouterr().err
    assert moving_meshes.state() == before


@pytest.mark.parametrize(("path", "why"), [("missing/report.json", "there is no folder"), (".", "that is a folder")])
def test_where_no_report_can_be(shot, tmp_path, path, why, capsys):
    assert run(*CONVERT, "--output", tmp_path / "out.blend", "--report", tmp_path / path) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out.blend").exists()


def test_numbers_are_as_json_has_them():
    values = {"a": np.float32(0.5), "b": np.arange(2), "c": float("nan"), "d": (1, Path("x")), "e": np.bool_(True)}
    assert json.loads(reports.json_bytes(values)) == {"a": 0.5, "b": [0, 1], "c": None, "d": [1, "x"], "e": True}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_reports_may_be_read_as_other_new_files(tmp_path):
    assert run("convert", "--report", tmp_path / "report.json") == 2
    (tmp_path / "other").touch()
    assert (tmp_path / "report.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_every_command_has_the_common_options():
    commands = command_line.parser()._subparsers._group_actions[0].choices
    assert len(commands) == sum(len(feature.commands) for feature in FEATURES)
    for command in commands.values():
        text = command.format_help()
        for option in ("--report FILE.json", "--progress", "--quiet"):
            assert option in text
        for code, meaning in running.EXIT_CODES:
            assert f"{code} {meaning}" in " ".join(text.split())


def test_progress_as_open_job_description_has_it(shot, tmp_path, capsys):
    assert run(*CONVERT, "--output", tmp_path / "out.blend", "--progress", "openjd") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("openjd_")]
    percents = [float(line.split(": ")[1]) for line in lines if line.startswith("openjd_progress: ")]
    assert percents == sorted(percents)
    assert 0 <= percents[0] <= percents[-1] <= 100
    assert "openjd_status: Writing the rig" in lines
    assert len(percents) > 3


def test_failures_as_open_job_description_has_them(shot, tmp_path, capsys):
    assert run("convert", "--object", "Fleg", "--overwrite", "--progress", "openjd") == 1
    failed = re.search("^openjd_fail: (.*)", capsys.readouterr().out, re.MULTILINE)
    assert_says(failed[1], 'NO_OBJECT "Fleg"')
