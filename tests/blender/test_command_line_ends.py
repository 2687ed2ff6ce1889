# SPDX-License-Identifier: GPL-3.0-or-later
"""How convert-shots ends before its time: real signals to real processes, at each stage of what its Blenders do. Nobody
is left behind, and the same command goes on where it was ended."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import bpy
import pytest

import skinning_tools
from skinning_tools import command_line
from tests.blender import moving_meshes
from tests.farm import shots

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(bool(bpy.app.binary_path) or sys.platform == "win32", reason="started as Blender's module"),
]

ROOT = Path(skinning_tools.__file__).parents[1]
PARENT, GROUP = "parent", "group"
# Options of a run that its iterations would never end. The signals that end it leave no time for cleanup, or do.
ENDLESS, SHORT = ("--bones", "6", "--iterations", "1000000"), ("--bones", "4", "--iterations", "2")
CLEAN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
ROUGH = (signal.SIGKILL, signal.SIGQUIT) if sys.platform != "win32" else ()
# Seconds: far more than a busy machine needs, so that only what never ends fails.
PATIENCE = 600.0


class Run:
    """A running convert-shots in a session of its own."""

    def __init__(self, folder: Path, settings: tuple[str, ...], **given):
        self.folder = folder
        command = [sys.executable, "-m", "skinning_tools.command_line", "convert-shots", str(folder / "in")]
        command += ["--output", str(folder / "out"), "--object", "Flag", *settings, "--jobs", "2", "--again"]
        command += ["--report", str(folder / "all.json"), "--progress", "openjd"]
        self.said = (folder / "said").open("w+")
        self.process = subprocess.Popen(
            command, stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT, **given
        )

    def members(self) -> set[int]:
        """The processes of its session that run, its own among them."""
        return {number for number, state, session in processes() if session == self.process.pid and state != "Z"}

    def until(self, done) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.001)

    def starts(self) -> bool:
        return "shot_01" in self.text()

    def solves(self) -> bool:
        return any(line.count("Solving") == 2 for line in self.text().splitlines())

    def saves(self) -> bool:
        return any((self.folder / "out").glob(".skinning_tools.*.part.blend"))

    def send(self, number: int, whom: str) -> None:
        (os.killpg if whom == GROUP else os.kill)(self.process.pid, number)

    def end(self) -> int:
        """The exit code, once the process and all others of its session have ended."""
        code = self.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while self.members():
            assert time.monotonic() < end, f"left behind: {self.members()}"
            time.sleep(0.01)
        return code

    def text(self) -> str:
        return Path(self.said.name).read_text("utf-8", "replace")

    def close(self) -> None:
        self.said.close()
        for number in self.members():
            os.kill(number, signal.SIGKILL)
        self.process.wait()


def processes():
    """Number, state and session of every process."""
    if sys.platform == "linux":
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                yield int(entry.name), fields[0], int(fields[3])
        return
    for line in subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True).stdout.splitlines():
        number, state = line.split()
        try:
            yield int(number), state[0], os.getsid(int(number))
        except OSError:
            continue


@pytest.fixture(autouse=True)
def heard():
    """The test run may have been started by nohup, whose children do not hear that their terminal is gone."""
    before = {number: signal.getsignal(number) for number in (*CLEAN, signal.SIGQUIT)}
    ignored = [number for number, handler in before.items() if handler == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def folder(tmp_path):
    """Two shots, large enough that loading and saving them take their time."""
    (path, *others) = shots.make_shots(tmp_path / "in", 2)
    bpy.ops.wm.open_mainfile(filepath=str(path))
    mesh = bpy.data.meshes.new("Large")
    mesh.vertices.add(300_000)
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Large", mesh))
    bpy.ops.wm.save_mainfile(compress=False)
    for other in others:
        other.write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def started(folder):
    """Function that starts a run; ends its remaining processes after the test."""
    runs = []

    def start(settings, **given) -> Run:
        runs.append(Run(folder, settings, **given))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


def goes_on(folder: Path) -> None:
    """Run the same command to its end: all shots are done."""
    arguments = ["convert-shots", str(folder / "in"), "--output", str(folder / "out"), "--object", "Flag", *SHORT]
    assert command_line.main([*arguments, "--jobs", "2", "--quiet"]) == 0
    names = {f"shot_0{number}.{suffix}" for number in (1, 2) for suffix in ("blend", "json")}
    assert {path.name for path in (folder / "out").iterdir()} == names
    for path in (folder / "out").glob("*.json"):
        assert json.loads(path.read_text("utf-8"))["status"] == "done"


STAGES = {"starting": Run.starts, "solving": Run.solves, "saving": Run.saves}


# What a terminal sends to all (Ctrl C, Ctrl \, that it closed), and a system without memory; and at every stage what
# a queue sends to one, which it can answer or not.
CASES = {(number, GROUP, "solving") for number in CLEAN[::2] + ROUGH}
CASES |= {(number, PARENT, stage) for number in CLEAN[1:2] + ROUGH[:1] for stage in STAGES}


@pytest.mark.parametrize(("number", "whom", "stage"), sorted(CASES))
def test_nobody_is_left(folder, started, number, whom, stage):
    run = started(ENDLESS if stage == "solving" else SHORT)
    run.until(lambda: STAGES[stage](run))
    run.send(number, whom)
    code = run.end()
    if number in CLEAN:
        assert code == 128 + number, run.text()
        said = json.loads((folder / "all.json").read_text("utf-8"))
        assert (said["status"], said["exit_code"]) == ("stopped", code)
        assert {path.suffix for path in (folder / "out").iterdir() if path.name[0] == "."} == set()
        assert not list((folder / "out").glob("*.log"))
        if stage == "solving":
            reports = [json.loads(path.read_text("utf-8")) for path in (folder / "out").glob("*.json")]
            assert [report["status"] for report in reports] == ["stopped", "stopped"]
    else:
        assert code == -number
    goes_on(folder)


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment(folder, started, seed):
    chance = random.Random(seed)
    run = started(SHORT)
    time.sleep(chance.uniform(0, 6))
    if run.process.poll() is None:
        run.send(chance.choice(ROUGH), chance.choice((PARENT, GROUP)))
    run.end()
    goes_on(folder)


WITHOUT_PRCTL = """
import ctypes

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
"""


def test_children_that_the_kernel_does_not_end_notice_it_themselves(folder, started, monkeypatch):
    """Only the pipe tells the child that its parent has ended, as on systems other than Linux."""
    sites = folder / "sites"
    sites.mkdir()
    (sites / "sitecustomize.py").write_text(WITHOUT_PRCTL, encoding="utf-8")
    run = started(ENDLESS, env=os.environ | {"PYTHONPATH": os.pathsep.join((str(sites), str(ROOT)))})
    run.until(run.solves)
    run.send(signal.SIGKILL, PARENT)
    assert run.end() == -signal.SIGKILL


def test_a_run_without_a_terminal_outlives_it(folder, started):
    """nohup: a run that ignores the end of its terminal continues."""
    run = started(SHORT, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.until(run.starts)
    run.send(signal.SIGHUP, GROUP)
    assert run.end() == 0, run.text()


@pytest.mark.parametrize("number", CLEAN)
def test_a_handler_does_not_lose_the_signal(tmp_path, number):
    """Blender prints an exception from within a handler, a driver's function among them, and goes on."""
    shot = moving_meshes.saved_flag(tmp_path / "shot.blend")
    handlers = {each: signal.getsignal(each) for each in CLEAN}
    sent = []

    def handler(scene, *_):
        if not sent:
            sent.append(scene.name)
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    bpy.app.handlers.frame_change_post.append(handler)
    try:
        arguments = ["convert", "--object", "Flag", *SHORT, "--output", str(tmp_path / "out.blend"), "--quiet"]
        code = command_line.main([*arguments, "--report", str(tmp_path / "report.json")])
    finally:
        bpy.app.handlers.frame_change_post.remove(handler)
    assert sent
    assert (code, json.loads((tmp_path / "report.json").read_text("utf-8"))["status"]) == (128 + number, "stopped")
    assert not (tmp_path / "out.blend").exists()
    assert {each: signal.getsignal(each) for each in CLEAN} == handlers
    assert shot.exists()
