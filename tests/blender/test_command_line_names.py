# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of files with anything in them, on terminals of any encoding and none: what is said never decides how the work
goes, and reports give back the very name."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import bpy
import pytest

import skinning_tools
from skinning_tools import command_line
from skinning_tools.ui.command_line.terminal import shown
from tests.blender import moving_meshes
from tests.farm import shots

pytestmark = pytest.mark.usefixtures("extension")

ROOT = Path(skinning_tools.__file__).parents[1]
SETTINGS = ("--object", "Flag", "--bones", "4", "--iterations", "2")
# As the system has them: bytes, most of them UTF-8. Windows and macOS do not let files have all of them.
NAMES = (
    "日本語", "Łódź", "shot 1", "😀👩‍🚀", "e\u0301", "שלום\u202e", "a'b",
    "%s {x} {0}", "-dash", "--help", "a;b&c", "$HOME",
    "[1]", "#1", "a,b", "\u2028", "\x85", "~", "openjd_fail: x",
)  # fmt: skip
if sys.platform == "linux":
    NAMES += (
        'quo"te', "new\nline", "cr\rx", "tab\tx", "\x1b[31m", "\x07\x08", "a\\b", "*?", "a:b", "<|>", "end ", "\x7f",
        *(os.fsdecode(name) for name in (b"latin\xe9", b"\xff\xfe", b"\xed\xa0\x80", "日本".encode("cp932"))),
    )  # fmt: skip
ENCODINGS = ("utf-8", "cp1252", "ascii", "latin-1", "cp932", "utf-16")


@pytest.fixture
def streams(monkeypatch):
    """Function that puts a terminal of some encoding in the place of Python's, and returns what it gets."""

    def replace(encoding: str) -> io.BytesIO:
        said = io.BytesIO()
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(said, encoding, errors="strict", newline="\n"))
        return said

    return replace


@pytest.fixture
def shot(tmp_path) -> bytes:
    return moving_meshes.saved_flag(tmp_path / "shot.blend").read_bytes()


def back(text: str, name: str) -> str:
    """A file name from a table in UTF-8, with other bytes escaped as numbers."""
    if not any("\udc80" <= letter <= "\udcff" for letter in name):
        return text
    return re.sub(r"\\u(dc[89a-f][0-9a-f])", lambda found: chr(int(found[1], 16)), text)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name(shot, tmp_path, streams, name):
    """Named for the file, its folder, the result, the report and the object, on a terminal that has few letters."""
    said = streams("cp1252")
    folder = tmp_path / name
    folder.mkdir()
    source, output, report = (folder / f"{name}{end}" for end in (".blend", "_out.blend", ".json"))
    source.write_bytes(shot)
    given = ["convert", *SETTINGS, "--input", str(source), "--output", str(output), "--report", str(report)]
    assert command_line.main(given) == 0
    document = json.loads(report.read_text("utf-8"))
    assert (document["status"], document["input"]["path"]) == ("done", str(source))
    assert document["output"]["path"] == str(output)
    assert output.is_file()
    lines = said.getvalue().decode("cp1252").split("\n")
    assert lines[-2].startswith("Saved to ")
    assert "\x1b" not in said.getvalue().decode("cp1252")
    # A missing file is named as well.
    missing = folder / f"{name}_missing.blend"
    assert (
        command_line.main([*given[:-6], "--input", str(missing), "--output", str(output), "--report", str(report)]) == 1
    )
    document = json.loads(report.read_text("utf-8"))
    assert str(missing) in document["message"]
    assert document["input"]["path"] == str(missing)
    assert len(said.getvalue().decode("cp1252").split("\n")) == len(lines) + 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_terminal(shot, tmp_path, streams, encoding):
    """All names at once, skipped shots and failures in the table among them."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    good = {}
    for number, name in enumerate(NAMES):
        (tmp_path / "in" / f"{name}.blend").write_bytes(shot)
        if number % 2:
            good[name] = "done"
            output, report = (tmp_path / "out" / f"{name}.{end}" for end in ("blend", "json"))
            given = ["convert", *SETTINGS, "--input", str(tmp_path / "in" / f"{name}.blend"), "--output", str(output)]
            assert command_line.main([*given, "--report", str(report), "--quiet"]) == 0
    said = streams(encoding)
    table, report = tmp_path / "table.csv", tmp_path / "gathered.json"
    given = ["gather-reports", str(tmp_path / "out"), "--shots", str(tmp_path / "in"), "--output", str(table)]
    assert command_line.main([*given, "--report", str(report)]) == 1
    with table.open(encoding="utf-8", newline="") as file:
        rows = {row["shot"]: row["status"] for row in csv.DictReader(file)}
    expected = {name: good.get(name, "missing") for name in NAMES}
    assert {back(each, name): rows[each] for each, name in zip(rows, sorted(expected), strict=True)} == expected
    figures = json.loads(report.read_text("utf-8"))["figures"]["shots"]
    assert {name: row["status"] for name, row in figures.items()} == expected
    # A line each, and nothing that steers the terminal.
    lines = said.getvalue().decode(encoding).split("\n")
    statuses = [line for line in lines if re.search(r"  (done|missing)  ", line)]
    assert len(statuses) == len(NAMES)
    listed = ["convert-shots", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--object", "Flag", "--list"]
    assert command_line.main([*listed, "--report", str(report)]) == 0
    paths = json.loads(report.read_text("utf-8"))["figures"].values()
    assert {str(path) for path in paths} == {str(tmp_path / "in" / f"{name}.blend") for name in NAMES}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_lists_have_names_as_the_system_has_them(shot, tmp_path):
    """Lists of names as ls prints them, and as editors on Windows save them."""
    names = [
        name for name in NAMES if "\n" not in name and "\r" not in name and name == name.strip() and name[0] != "#"
    ]
    names = [name for name in names if name != "~"]
    for name in names:
        (tmp_path / f"{name}.blend").write_bytes(shot)
    lines = b"\r\n".join(os.fsencode(f"{name}.blend") for name in names)
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf" + lines)
    given = [
        "convert-shots",
        str(tmp_path / "list.txt"),
        "--output",
        str(tmp_path / "out"),
        "--object",
        "Flag",
        "--list",
    ]
    assert command_line.main([*given, "--report", str(tmp_path / "report.json")]) == 0
    paths = json.loads((tmp_path / "report.json").read_text("utf-8"))["figures"].values()
    assert list(paths) == [str(tmp_path / f"{name}.blend") for name in names]


def test_control_characters_are_shown_not_sent_to_the_terminal():
    assert shown("a\x1b[31m\n\t\r\u2028\u202eé日") == "a\\x1b[31m\\n\t\\r\\u2028\\u202eé日"


def start(arguments, **given) -> subprocess.Popen:
    command = [sys.executable, "-m", "skinning_tools.command_line", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **given)


module_only = pytest.mark.skipif(bool(bpy.app.binary_path), reason="started as Blender's module")


@module_only
@pytest.mark.parametrize("encoding", ["cp1252", "ascii:strict", "utf-8"])
def test_a_pipe_of_another_encoding(tmp_path, encoding):
    """Real processes and their children, started as users start them."""
    (path,) = shots.make_shots(tmp_path / "日本", 1)
    path = path.rename(path.with_name("映画.blend"))
    given = ["convert-shots", path.parent, "--output", tmp_path / "出力", *SETTINGS, "--report", tmp_path / "報告.json"]
    process = start(
        given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONIOENCODING": encoding}
    )
    said, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert b"done" in said
    assert json.loads((tmp_path / "報告.json").read_text("utf-8"))["figures"]["shots"]["映画"]["status"] == "done"
    assert (tmp_path / "出力" / "映画.blend").is_file()


@module_only
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes them")
@pytest.mark.parametrize(
    ("command", "closing"),
    [
        *(("convert", closing) for closing in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>&1 | head -c 1")),
        *(("convert-shots", closing) for closing in ("<&- >&- 2>&-", "2>&1 | true", "> /dev/full")),
        *(("--help", closing) for closing in (">&-", "| true", "> /dev/full")),
    ],
)
def test_output_that_nobody_reads(tmp_path, command, closing):
    """The work is done nevertheless, and the exit code shows it."""
    if closing == "> /dev/full" and not Path("/dev/full").exists():
        pytest.skip("this system has no such device")
    (path,) = shots.make_shots(tmp_path / "in", 1)
    given = {
        "convert": ["convert", "--input", str(path), "--output", str(tmp_path / "out.blend"), *SETTINGS],
        "convert-shots": ["convert-shots", str(path), "--output", str(tmp_path / "out"), *SETTINGS],
        "--help": ["--help"],
    }[command]
    if command != "--help":
        given += ["--report", str(tmp_path / "report.json")]
    script = f'({{ "$@"; echo $? > "$CODE"; }}) {closing}'
    program = [sys.executable, "-m", "skinning_tools.command_line", *given]
    environment = os.environ | {"CODE": str(tmp_path / "code")}
    subprocess.run(["sh", "-c", script, "sh", *program], cwd=ROOT, env=environment, capture_output=True, timeout=120)
    assert (tmp_path / "code").read_text().strip() == "0"
    if command != "--help":
        assert json.loads((tmp_path / "report.json").read_text("utf-8"))["status"] == "done"
        assert len(list(tmp_path.rglob("*out*/*.blend" if command == "convert-shots" else "out.blend"))) == 1
