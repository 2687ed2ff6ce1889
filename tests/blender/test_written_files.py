# SPDX-License-Identifier: GPL-3.0-or-later
"""What files that the extension writes may replace: every option against every role of a file, marks, leftovers."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import bpy
import pytest

from skinning_tools import command_line
from skinning_tools.blender import written_files
from skinning_tools.blender.written_files import Kind, WrittenFiles, identity
from skinning_tools.core.errors import BadPath
from skinning_tools.ui.command_line import blend_mark
from skinning_tools.ui.command_line.arguments import PathType
from tests.blender import command_runs, moving_meshes
from tests.reliability import file_roles
from tests.reliability.file_roles import LINK, PLAIN, SPELLINGS, command, said

pytestmark = pytest.mark.usefixtures("extension")

NOTES = Kind("note", lambda path: path.read_bytes().startswith(b"note"))
CONVERT = ("convert", *file_roles.SETTINGS)


@pytest.fixture(scope="module")
def stage(extension, tmp_path_factory):
    return file_roles.make_stage(tmp_path_factory.mktemp("roles") / "stage")


def failures(results) -> list[str]:
    return [each for each in results if each]


@pytest.mark.parametrize("place", file_roles.PLACES, ids=lambda place: place.name)
def test_what_is_replaced_and_what_stays(stage, place):
    """All roles as they are and as a link; benchmarks/reliability.py has all spellings."""
    tried = list(file_roles.attempts([place], spellings=(PLAIN, LINK)))
    assert len(tried) > 20
    assert failures(file_roles.attempt(stage, each) for each in tried) == []


def test_every_spelling_of_what_must_stay(stage):
    places = [place for place in file_roles.PLACES if place.name in ("result", "report")]
    roles = (file_roles.INPUT, file_roles.LIBRARY, file_roles.OTHER_OUTPUT)
    tried = list(file_roles.attempts(places, roles, set(SPELLINGS) - {PLAIN, LINK}))
    assert failures(file_roles.attempt(stage, each) for each in tried) == []


def test_every_option_that_names_a_file_is_under_the_rule():
    """Whatever an option is called: one that takes a file says so by its type, and so is in the table."""
    (commands,) = command_line.parser()._subparsers._group_actions
    for name, each in commands.choices.items():
        for action in each._actions:
            # A flag takes none; --list and --settings take texts.
            names_one = re.search(r"FILE|FOLDER|PATH|SHOTS|\.\w+$", str(action.metavar or ""))
            assert bool(names_one) == isinstance(action.type, PathType), (name, action.dest)
            assert not isinstance(action.type, PathType) or action.default in (None, [])


def test_every_option_of_every_subcommand(stage):
    tried = list(file_roles.option_attempts(command_line.parser()))
    assert len({each.place.name for each in tried}) > 35

    def wrong(each) -> str | None:
        failed = file_roles.attempt(stage, each)
        told = "cannot be saved to" in said[0]
        return failed or (None if told else f"{each}: {said[0]}")

    assert failures(map(wrong, tried)) == []


def test_files_of_any_kind_in_the_folder_of_many_shots(stage):
    tried = list(file_roles.shot_attempts())
    assert len(tried) > 60
    assert failures(file_roles.attempt_of_shots(stage, *each) for each in tried) == []


def test_a_shots_report_is_not_replaced_by_one_of_many(stage):
    before = (stage / "reports" / "flag.json").read_bytes()
    for name, more in (("gather-reports", []), ("convert-shots", ["--output", stage / "other", *CONVERT[1:]])):
        given = stage / "reports" if not more else stage / "flag.blend"
        assert command(name, given, *more, "--report", stage / "reports" / "flag.json") == 2
        assert (stage / "reports" / "flag.json").read_bytes() == before
        assert "report of a shot" in said[0]


@pytest.fixture
def shot(tmp_path):
    return moving_meshes.saved_flag(tmp_path / "shot.blend")


@pytest.mark.parametrize("compress", [False, True])
def test_a_mark_says_who_saved_a_blend_file(shot, tmp_path, compress):
    path = tmp_path / "marked.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True, compress=compress)
    assert blend_mark.is_blend(path)
    assert not blend_mark.is_marked(path)
    blend_mark.mark(path)
    assert blend_mark.is_marked(path)
    assert blend_mark.is_compressed(path) == compress
    content = path.read_bytes()
    for end in (0, 1, 7, 20, len(content) // 2, *range(len(content) - 120, len(content))):
        path.write_bytes(content[:end])
        assert not blend_mark.is_marked(path), end
    path.write_bytes(content)
    with bpy.data.libraries.load(str(path)) as (found, _):
        assert list(found.objects) == ["Flag"]
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert len(bpy.data.objects["Flag"].data.shape_keys.key_blocks) == 3
    bpy.ops.wm.save_mainfile()
    assert not blend_mark.is_marked(path)


def test_a_file_saved_by_the_artist_is_not_replaced(shot, tmp_path):
    """Once --overwrite has put work into it, another run must not take it for a result."""
    other = tmp_path / "other.blend"
    other.write_bytes(shot.read_bytes())
    assert command(*CONVERT, "--input", other, "--overwrite") == 0
    assert command(*CONVERT, "--input", shot, "--output", other) == 2
    assert "--overwrite" in said[0]
    assert command(*CONVERT, "--input", shot, "--output", other, "--overwrite") == 0
    assert command(*CONVERT, "--input", shot, "--output", other) == 0
    # A result that is worked on further stays one.
    assert command(*CONVERT, "--input", other, "--overwrite") == 0
    assert command(*CONVERT, "--input", shot, "--output", other) == 0


def test_the_overwritten_file_stays_as_a_backup(shot, tmp_path):
    before = shot.read_bytes()
    backup = tmp_path / "shot.blend1"
    assert command(*CONVERT, "--overwrite", "--input", shot) == 0
    assert backup.read_bytes() == before
    backup.unlink()
    for content in (b"no file of Blender's", None):
        backup.write_bytes(content) if content else backup.mkdir()
        assert command(*CONVERT, "--overwrite", "--input", shot) == 2
        assert "backup" in said[0]
        backup.unlink() if content else backup.rmdir()


def test_a_backup_that_the_scene_refers_to(shot, tmp_path):
    library = tmp_path / "shot.blend1"
    library.write_bytes(shot.read_bytes())
    source = library.read_bytes()
    with bpy.data.libraries.load(str(library), link=True) as (_, linked):
        linked.objects = ["Flag"]
    bpy.context.scene.collection.objects.link(linked.objects[0])
    bpy.ops.wm.save_mainfile()
    library.write_bytes(source)  # Blender has put its own backup there
    before = source, shot.read_bytes()
    assert command(*CONVERT, "--overwrite", "--input", shot) == 2
    assert (library.read_bytes(), shot.read_bytes()) == before
    assert "a file that the scene refers to" in said[0]


@pytest.mark.skipif(not hasattr(os, "symlink") or not Path("/dev/shm").is_dir(), reason="needs another file system")
def test_a_link_to_another_file_system(shot, tmp_path):
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as there:
        if os.stat(there).st_dev == os.stat(tmp_path).st_dev:
            pytest.skip("one file system")
        output, report = tmp_path / "out.blend", tmp_path / "report.json"
        for path in (output, report):
            path.symlink_to(Path(there) / path.name)
        for _ in range(2):
            assert command(*CONVERT, "--input", shot, "--output", output, "--report", report) == 0
            assert output.is_symlink()
            assert report.is_symlink()
        assert sorted(os.listdir(there)) == ["out.blend", "report.json"]
        assert json.loads((Path(there) / "report.json").read_text("utf-8"))["status"] == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_a_file_keeps_its_rights(tmp_path):
    target = WrittenFiles().claim(tmp_path / "note", NOTES)
    target.write(b"note 1")
    (tmp_path / "note").chmod(0o664)
    target.write(b"note 2")
    assert (tmp_path / "note").stat().st_mode & 0o777 == 0o664


def test_a_file_that_appears_at_the_target_meanwhile_stays(tmp_path):
    target = WrittenFiles().claim(tmp_path / "note", NOTES)
    (tmp_path / "note").write_bytes(b"of another program")
    with pytest.raises(OSError, match="meanwhile"):
        target.write(b"note")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"of another program"]


def test_file_systems_without_letter_case(tmp_path, monkeypatch):
    """Simulated, as few are at hand: what a name means is asked at one place."""
    real = written_files.file_status

    def status(path):
        path = Path(path)
        with contextlib.suppress(OSError):
            for each in path.parent.iterdir():
                if each.name.casefold() == path.name.casefold():
                    return real(each)
        return real(path)

    (tmp_path / "shot.blend").write_bytes(b"note")
    files = WrittenFiles()
    files.keep(tmp_path / "shot.blend", "the input")
    assert files.claim(tmp_path / "SHOT.blend", NOTES).path.name == "SHOT.blend"
    monkeypatch.setattr(written_files, "file_status", status)
    with pytest.raises(BadPath, match="the input"):
        files.claim(tmp_path / "Shot.BLEND", NOTES)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a.json", "A.JSON"), ("\u00e9.json", "e\u0301.json"), ("a.json", "a.json."), ("a.json", "a.json "), ("ß", "SS")],
)
def test_names_that_some_file_systems_take_for_one(tmp_path, first, second):
    assert identity(tmp_path / first) == identity(tmp_path / second)
    files = WrittenFiles()
    files.claim(tmp_path / first, NOTES)
    with pytest.raises(BadPath, match="is saved there, too"):
        files.claim(tmp_path / second, NOTES)


def test_settings_of_many_shots_do_not_say_where_to_save(shot, tmp_path):
    named = ("--curve=x.png", "--report=x.json", "--input=a.blend", "--output=b.blend", "--overwrite")
    for text in named:
        given = ("convert-shots", shot, "--output", tmp_path / "out", *CONVERT[1:], f"--settings={text}")
        assert command(*given) == 2
        assert "--settings" in said[0]
        assert text.split("=")[0] in said[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shot.blend"]


def test_results_of_earlier_versions_go_by_their_reports(shot, tmp_path, monkeypatch):
    """Without a mark; and where nothing tells who wrote one, it costs that shot alone."""
    monkeypatch.setattr(blend_mark, "mark", lambda path: None)
    known, unknown = (tmp_path / name / "shot.blend" for name in ("known", "unknown"))
    for path in (known, unknown):
        path.parent.mkdir()
        given = ("--output", path, "--report", path.with_suffix(".json"))
        assert command(*CONVERT, "--input", shot, *given) == 0
        assert not blend_mark.is_marked(path)
    os.utime(unknown, (1, 1))
    monkeypatch.undo()
    before = unknown.read_bytes()
    with command_runs.shots_in_this_blender(monkeypatch):
        for path, code in ((known, 0), (unknown, 1)):
            assert command("convert-shots", shot, "--output", path.parent, *CONVERT[1:], "--again") == code
        assert unknown.read_bytes() == before
        assert "did not write" in json.loads(unknown.with_suffix(".json").read_text("utf-8"))["message"]
        assert blend_mark.is_marked(known)
        again = ("convert-shots", shot, "--output", unknown.parent, *CONVERT[1:], "--overwrite")
        assert command(*again) == 0
        assert blend_mark.is_marked(unknown)


def half(folder: Path, process: int, machine: str | None = None, suffix: str = "") -> Path:
    path = folder / f".skinning_tools.{machine or written_files._machine()}.{process}.0123abcd.part{suffix}"
    path.write_bytes(b"half")
    return path


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leftovers(folder: Path, ended: int) -> tuple[list[Path], list[Path]]:
    """Files to remove, and files to keep."""
    old = half(folder, 1, "00000000", ".blend")
    os.utime(old, (time.time() - 2 * written_files.ABANDONED_SECONDS,) * 2)
    gone = [half(folder, ended), half(folder, ended, suffix=".blend"), half(folder, ended, suffix=".blend@"), old]
    kept = [half(folder, os.getppid()), half(folder, os.getpid(), suffix=".blend"), half(folder, ended, "ffffffff")]
    for name in (".shot.json.tmp", ".skinning_tools.part", ".skinning_tools.zz.1.0123abcd.part", "x.part.blend"):
        kept.append(folder / name)
        kept[-1].write_bytes(b"of others")
    a_folder = folder / f".skinning_tools.{written_files._machine()}.{ended}.89abcdef.part"
    a_folder.mkdir()
    return gone, [*kept, a_folder]


@pytest.mark.parametrize("of", ["convert", "convert-shots", "gather-reports", "crs_to_pc2"])
def test_remains_of_ended_processes_are_removed(stage, shot, tmp_path, ended, of, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    gone, kept = leftovers(out, ended)
    if of == "convert":
        assert command(*CONVERT, "--input", shot, "--output", out / "shot.blend") == 0
    elif of == "convert-shots":
        with command_runs.shots_in_this_blender(monkeypatch):
            assert command("convert-shots", shot, "--output", out, *CONVERT[1:]) == 0
    elif of == "gather-reports":
        assert command("gather-reports", stage / "reports", "--output", out / "table.csv") == 0
    else:
        assert file_roles._cache(stage, str(out / "arm.pc2"), False) == 0
    assert [path for path in gone if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert [path.name for path in out.iterdir() if path.name.startswith(".") and path not in kept] == []


def test_which_processes_are_running(ended):
    assert written_files.is_running(os.getpid())
    assert written_files.is_running(os.getppid())
    assert not written_files.is_running(ended)


@pytest.mark.skipif(sys.platform != "linux", reason="told apart on Linux alone")
def test_a_process_whose_end_nobody_asks_for_is_not_running():
    """As a child is whose parent was killed, until the system's first process has taken note of it."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    os.kill(child.pid, 0)
    assert not written_files.is_running(child.pid)
    child.wait()
