# SPDX-License-Identifier: GPL-3.0-or-later
"""A small share of what benchmarks/reliability.py tries: damaged files, random walks, many conversions, real disks.

Each in processes of its own, as Blender itself may crash on what is damaged; that is no failure of the extension's.
"""

import subprocess
import sys

import bpy
import pytest

import skinning_tools
from tests.blender import moving_meshes
from tests.reliability import children, damage, disks, readers, walk

pytestmark = pytest.mark.skipif(bool(bpy.app.binary_path), reason="Python starts the processes")
needs_alembic = pytest.mark.skipif(not bpy.app.build_options.alembic, reason="built without Alembic")
needs_disks = pytest.mark.skipif(not disks.can_mount(), reason="disks cannot be mounted here")
CONVERT = ("convert", "--object", "Flag", "--bones", "4", "--iterations", "1", "--quiet", "--input", "shot.blend")


def tried(task: str, seeds) -> list[dict]:
    """The results; none of them is a failure of the extension."""
    results = list(children.tried(f"tests.reliability.{task}", seeds))
    failed = [each for each in results if each["outcome"] in (*readers.FAILURES, walk.FAILED, children.RAISED)]
    assert failed == []
    crashed = [each for each in results if each["outcome"] in (children.CRASHED, children.HUNG)]
    assert all(children.is_of_blender(each["where"]) for each in crashed), crashed
    assert [each["seed"] for each in results] == list(seeds)
    return results


def outcomes(results) -> set[str]:
    return {each["outcome"] for each in results}


def test_damaged_point_caches():
    assert outcomes(tried("readers:point_cache", range(120))) == {readers.CONVERTED, readers.REFUSED}


@needs_alembic
def test_damaged_alembic_caches():
    tried("readers:alembic", range(6))


def test_damaged_blend_files():
    results = tried("readers:blend_file", range(25))
    assert {readers.CONVERTED, readers.REFUSED} <= outcomes(results)


def test_random_walks():
    results = tried("walk:walk", range(14))
    # Nothing is damaged here: where Blender crashes, it must not be in a call of ours.
    package = str(children.ROOT / "skinning_tools")
    assert [each for each in results if package in "".join(each.get("where", [])[:1])] == []
    assert sum(each.get("taken", 0) for each in results) > 20
    assert sum(each.get("undone", 0) for each in results) > 0


@pytest.mark.parametrize("way", ["deleted", "undone", "refused", "new_files"])
def test_many_conversions_leave_nothing(way):
    (result,) = tried(f"repeated:{way}", [8])
    assert not result["left"]
    first, _, last = result["blocks"]
    assert first == last


@pytest.fixture
def extension():
    skinning_tools.register()
    yield
    skinning_tools.unregister()


@pytest.mark.usefixtures("extension")
def test_a_failing_sequence_is_reported_and_shortened(tmp_path, monkeypatch):
    """A failure that the random walk finds can be repeated."""
    monkeypatch.setattr(walk.Walker, "_redo", lambda self: 1 // 0)
    steps = [["scene", 0], ["edit", "frame", "Flag", 3, 0.0], ["undo"], ["redo"], ["undo"]]
    assert walk.replay(steps, tmp_path).startswith("ZeroDivisionError")
    assert walk.shrunk(steps, tmp_path) == [["scene", 0], ["redo"]]


@pytest.mark.parametrize("kind", ["PC2", "MDD"])
def test_the_reader_of_the_tests_reads_sound_caches(kind, tmp_path):
    data = readers._sound_cache(kind, tmp_path)
    assert (damage.read_point_cache(data, kind).frames == readers.waving_frames()).all()
    assert damage.read_point_cache(data[:-1], kind) is None


@pytest.fixture
def shot(tmp_path):
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid(columns=40, rows=30)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    return tmp_path / "shot.blend"


@needs_disks
@pytest.mark.parametrize("free", [0, 40_000])
def test_a_full_disk_for_the_result(shot, free):
    arguments = [*CONVERT, "--output", "disk/out.blend", "--report", "report.json"]
    came = disks.OnDisk(arguments, disks.FULL, shot, free, old=("out.blend",))
    assert came.code == 1
    assert "could not be saved" in came.report["message"]
    assert came.files == {"out.blend": disks.OLDER["out.blend"]}


@needs_disks
@pytest.mark.parametrize(("kind", "code"), [(disks.FULL, 1), (disks.READ_ONLY, 2)])
def test_no_room_for_the_curve(shot, kind, code):
    arguments = [*CONVERT, "--target-error", "5", "--curve", "disk/curve.png", "--output", "out.blend"]
    came = disks.OnDisk([*arguments, "--report", "report.json"], kind, shot, old=("curve.png",))
    assert (came.code, came.report["exit_code"]) == (code, code)
    assert "curve.png" in came.report["message"]
    assert "Errno" not in came.report["message"]
    assert came.files == {"curve.png": disks.OLDER["curve.png"]}


@needs_disks
def test_a_read_only_disk_for_the_result(shot):
    arguments = [*CONVERT, "--output", "disk/out.blend", "--report", "report.json"]
    came = disks.OnDisk(arguments, disks.READ_ONLY, shot, old=("out.blend",))
    assert came.code == 2
    assert "read-only" in came.report["message"]
    assert came.files == {"out.blend": disks.OLDER["out.blend"]}


@needs_disks
@pytest.mark.parametrize(("kind", "code"), [(disks.FULL, 3), (disks.READ_ONLY, 2)])
def test_no_room_for_the_report(shot, kind, code):
    arguments = [*CONVERT, "--output", "out.blend", "--report", "disk/report.json"]
    came = disks.OnDisk(arguments, kind, shot)
    assert came.code == code
    assert "report.json could not be written" in came.error or "report cannot be saved" in came.error
    assert came.files == {}


def test_two_processes_save_to_one_file(shot):
    """One of the results is there as a whole, whoever came last, and nothing else."""
    output = shot.with_name("out.blend")
    arguments = [*CONVERT[:-1], str(shot), "--output", str(output)]
    command = [sys.executable, "-m", "skinning_tools.command_line", *arguments]
    both = [subprocess.Popen(command, cwd=children.ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert sorted(path.name for path in shot.parent.iterdir()) == ["out.blend", "shot.blend"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert "Flag_skinned" in bpy.data.objects
