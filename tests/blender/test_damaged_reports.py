# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of other versions, tampered ones, halves and foreign files: each costs its own shot, never the run."""

import copy
import csv
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.features.shots import blender_child
from skinning_tools.features.shots.shots import Shot
from skinning_tools.features.shots.table import aligned, comma_separated, shot_row
from skinning_tools.features.shots.work import is_finished
from skinning_tools.ui.command_line.report_reading import MOST_BYTES, UnreadableReport, read_report
from tests.blender import moving_meshes, scenes

pytestmark = pytest.mark.usefixtures("extension")

SETTINGS = ("--object", "Flag", "--bones", "4", "--iterations", "2")


def run(*arguments) -> int:
    return command_line.main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def shot(tmp_path_factory) -> Shot:
    """A finished shot, which plays a cache."""
    folder = tmp_path_factory.mktemp("real")
    moving_meshes.fresh_scene()
    flag = moving_meshes.waving_grid()
    rest = np.array([vertex.co for vertex in flag.data.vertices])
    scenes.write_pc2(folder / "flag.pc2", rest + np.random.default_rng(1).normal(size=(9, *rest.shape)))
    scenes.point_cache(flag, folder / "flag.pc2", "PC2")
    shot = Shot(folder / "shot.blend", "shot", folder / "out")
    shot.folder.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(shot.path))
    assert run("convert", *SETTINGS, "--output", shot.output, "--report", shot.report) == 0
    return shot


@pytest.fixture(scope="module")
def real(shot) -> dict:
    """Its report as it lies on the disk."""
    return json.loads(shot.report.read_text("utf-8"))


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """The path of keys to every value in a document."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def changed(document: dict, place: tuple, value: object) -> object:
    """A copy with another value there; ``place`` itself missing where the value is ``GONE``."""
    if not place:
        return value
    document = copy.deepcopy(document)
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    if value is GONE:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    return document


GONE = object()
WRONG = (
    GONE, None, True, 0, -1, 3, 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf"), "", "text", "a\0b", "a\nb",
    "\ud800", [], {}, [None], ["a"], [[]], {"path": None}, {"a": {}}, {"count": "8"},
)  # fmt: skip
# What may have any content.
FREE = {("settings",), ("figures",), ("files",), ("versions",), ("times", "stages")}


def variants(real: dict) -> Iterator[tuple[tuple, object, object]]:
    for place in places(real):
        for wrong in WRONG:
            if place or wrong is not GONE:
                yield place, wrong, changed(real, place, wrong)


def test_the_report_as_it_is_written_is_read(shot, real):
    assert read_report(shot.report) == real
    assert len(list(places(real))) > 60
    assert real["input"]["refers_to"]


def test_no_value_that_is_wrong_stops_a_table(shot, real, tmp_path):
    """Every key of a real report with every wrong value is refused with a message, or the report still works."""
    path = tmp_path / "shot.json"
    refused = 0
    for place, wrong, document in variants(real):
        path.write_text(json.dumps(document), encoding="utf-8")
        try:
            report = read_report(path)
        except UnreadableReport:
            refused += 1
            continue
        rows = [shot_row("shot", report)]
        assert aligned(rows).encode("utf-8", "backslashreplace"), (place, wrong)
        assert comma_separated(rows), (place, wrong)
        assert is_finished(Shot(shot.path, "shot", tmp_path), report, real["settings"]) in (True, False)
    assert refused > 500


def test_a_key_that_is_needed_is_missing_or_of_another_type(real, tmp_path):
    path = tmp_path / "shot.json"
    others = {str: 5, int: "5", float: "5", dict: [], list: {}, type(None): 5}
    for place in places(real):
        value = real
        for key in place:
            value = value[key]
        if any(place[: len(each)] == each and len(place) > len(each) for each in FREE):
            continue  # below those, names and values are free; those of the figures have their own test
        path.write_text(json.dumps(changed(real, place, others[type(value)])), encoding="utf-8")
        with pytest.raises(UnreadableReport):
            read_report(path)
        if len(place) == 1:
            path.write_text(json.dumps(changed(real, place, GONE)), encoding="utf-8")
            with pytest.raises(UnreadableReport):
                read_report(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("object", ["Flag"]), ("objects", "Flag"), ("objects", [1]), ("bones", "4"), ("vertices", 1.5), ("frames", 8),
        ("frames", {}), ("frames", {"count": None}), ("e_rms", "0.1"), ("e_rms", 10**400), ("largest_error", True),
    ],
)  # fmt: skip
def test_invalid_figures(real, tmp_path, name, value):
    (tmp_path / "shot.json").write_text(json.dumps(changed(real, ("figures", name), value)))
    with pytest.raises(UnreadableReport, match=rf"its figures\.{name}|lacks figures\.{name}"):
        read_report(tmp_path / "shot.json")


def _link(path: Path, text: str) -> None:
    path.symlink_to(path.parent / "nowhere")


def _sparse(path: Path, text: str) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


# What somebody may find in the place of a report, and whether it is whole but of another kind.
FOREIGN = {
    "list": lambda path, text: path.write_text(f"[{text}]"),
    "number": lambda path, text: path.write_text("17"),
    "null": lambda path, text: path.write_text("null"),
    "string": lambda path, text: path.write_text('"done"'),
    "other": lambda path, text: path.write_text('{"schema": "other.report", "schema_version": 1}'),
    "no_schema": lambda path, text: path.write_text(text.replace('"schema"', '"scheme"')),
    "schema_of_another_type": lambda path, text: path.write_text(text.replace('"skinning_tools.report"', "{}")),
    "folder": lambda path, text: path.mkdir(),
    "full_folder": lambda path, text: (path.mkdir(), (path / "a.txt").touch()),
}
DAMAGED = {
    "empty": lambda path, text: path.write_text(""),
    "blank": lambda path, text: path.write_text(" \n\n"),
    "zeros": lambda path, text: path.write_bytes(bytes(4096)),
    "cut": lambda path, text: path.write_text(text[: len(text) // 2]),
    "cut_at_its_end": lambda path, text: path.write_text(text.rstrip()[:-1]),
    "twice": lambda path, text: path.write_text(text + text),
    "no_json": lambda path, text: path.write_text("done"),
    "python": lambda path, text: path.write_text(str(json.loads(text))),
    "nan": lambda path, text: path.write_text(text.replace('"seconds": ', '"seconds": NaN, "x": ')),
    "infinity": lambda path, text: path.write_text(text.replace('"seconds": ', '"seconds": -Infinity, "x": ')),
    "overflow": lambda path, text: path.write_text(text.replace('"seconds": ', '"seconds": 1e999, "x": ')),
    "many_digits": lambda path, text: path.write_text(text.replace('"exit_code": 0', f'"exit_code": {"9" * 5000}')),
    "nested": lambda path, text: path.write_text("[" * 1_000_000),
    "nested_within": lambda path, text: path.write_text(text.replace('"notes": []', f'"notes": {"[" * 200_000}')),
    "huge": _sparse,
    "wrong_encoding": lambda path, text: path.write_bytes(text.replace("Flag", "Fl\u00e4g").encode("cp1252")),
    "older": lambda path, text: path.write_text(text.replace('"schema_version": 1', '"schema_version": 0')),
    "newer": lambda path, text: path.write_text(text.replace('"schema_version": 1', '"schema_version": 2')),
    "version_as_text": lambda path, text: path.write_text(text.replace('"schema_version": 1', '"schema_version": "1"')),
    "version_true": lambda path, text: path.write_text(text.replace('"schema_version": 1', '"schema_version": true')),
    "status_of_another_type": lambda path, text: path.write_text(text.replace('"done"', '["done"]')),
    "status_unknown": lambda path, text: path.write_text(text.replace('"done"', '"finished"')),
    "binary": lambda path, text: path.write_bytes(np.random.default_rng(0).bytes(5000)),
}
if sys.platform != "win32":
    FOREIGN |= {"pipe": lambda path, text: os.mkfifo(path), "device": lambda path, text: path.symlink_to("/dev/zero")}
    DAMAGED |= {
        "link_to_nowhere": _link,
        "link_to_itself": lambda path, text: path.symlink_to(path),
    }
    if os.geteuid() != 0:
        DAMAGED["locked"] = lambda path, text: (path.write_text(text), path.chmod(0))
# Of those, what the extension does not know for its own: it stays, and its shot fails. All others are replaced.
NOT_OURS = {"blank", "zeros", "no_json", "python", "nested", "huge", "binary", "link_to_itself"}
# Read as what they are: the encoding is the only thing that an editor has changed.
READABLE = {
    "mark": lambda path, text: path.write_text(text, encoding="utf-8-sig"),
    "utf_16": lambda path, text: path.write_text(text, encoding="utf-16"),
    "one_line": lambda path, text: path.write_text(json.dumps(json.loads(text))),
    "newer_names": lambda path, text: path.write_text(text.replace("{", '{"new": [1],', 1)),
}


@pytest.fixture
def folder(shot, tmp_path) -> Path:
    """A finished shot for each kind of damage to its report."""
    folder, text = tmp_path / "out", shot.report.read_text("utf-8")
    (tmp_path / "in").mkdir()
    folder.mkdir()
    for name, damage in (FOREIGN | DAMAGED | READABLE).items():
        shutil.copy2(shot.path, tmp_path / "in" / f"{name}.blend")
        (folder / f"{name}.blend").touch()
        damage(folder / f"{name}.json", text)
    return folder


def table(path: Path) -> dict[str, dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["shot"]: row for row in csv.DictReader(file)}


def test_gathering_reports_it_in_its_row(folder, tmp_path, capfd):
    path = tmp_path / "table.csv"
    assert run("gather-reports", folder, "--shots", tmp_path / "in", "--output", path) == 1
    rows = table(path)
    assert {name: rows[name]["status"] for name in rows} == {
        **dict.fromkeys(FOREIGN | DAMAGED, "unreadable"),
        **dict.fromkeys(READABLE, "done"),
    }
    assert all(rows[name]["message"] for name in FOREIGN | DAMAGED)
    assert f"{len(FOREIGN | DAMAGED)} of {len(rows)} shots failed" in capfd.readouterr().err


def test_gathering_without_names_tells_what_it_leaves_out(folder, tmp_path, capfd):
    path = tmp_path / "table.csv"
    assert run("gather-reports", folder, "--output", path) == 1
    rows = table(path)
    assert {name: rows[name]["status"] for name in rows} == {
        **dict.fromkeys(DAMAGED, "unreadable"),
        **dict.fromkeys(READABLE, "done"),
    }
    note = next(line for line in capfd.readouterr().out.splitlines() if line.startswith("Note"))
    assert all(f"{name}.json" in note for name in FOREIGN)


def test_converting_costs_each_its_own_shot(folder, tmp_path, shot, monkeypatch, capfd):
    """A program in place of Blender that writes the report of a finished shot."""
    done = "import shutil, sys; a = sys.argv; shutil.copy(a[1], a[a.index('--report') + 1])"
    monkeypatch.setattr(
        blender_child, "blender_command", lambda given: [sys.executable, "-S", "-c", done, str(shot.report), *given]
    )
    code = run("convert-shots", tmp_path / "in", "--output", folder, *SETTINGS, "--jobs", 4, "--report", tmp_path / "r")
    said = read_report(tmp_path / "r")
    rows = said["figures"]["shots"]
    kept = set(FOREIGN) | NOT_OURS & set(DAMAGED)
    expected = {name: "failed" if name in kept else "done" for name in FOREIGN | DAMAGED}
    assert {name: row["status"] for name, row in rows.items()} == expected | dict.fromkeys(READABLE, "skipped")
    assert (code, said["figures"]["failed"]) == (1, len(kept))
    for name in expected:
        if name in kept:
            assert "cannot be saved to" in rows[name]["message"]
        else:
            assert read_report(folder / f"{name}.json")["status"] == "done"
    assert (folder / "full_folder.json" / "a.txt").exists()
    assert "bug in Skinning Tools" not in capfd.readouterr().err
