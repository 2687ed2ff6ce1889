# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries many inputs in a separate process, as Blender itself may crash or hang on damaged ones.

A task is a function of (seed, folder) that returns a dict with "outcome" and what else there is to tell; its module may
have a ``prepare``, called once with the folder. Each result is a line of a file; a process that ends before its time
is followed by another, which goes on behind the input that ended it.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRASHED, HUNG, RAISED = "crashed", "hung", "raised"
POLL_SECONDS = 0.05
# Of a crash's report by Python: the frames of it that say where the program was.
STACK_LINES = 8


def tried(task: str, seeds: Iterable[int], patience: float = 60.0) -> Iterator[dict]:
    """Generator: the result of each seed in order. task: "module:function". patience: seconds for one input."""
    waiting = list(seeds)
    while waiting:
        with tempfile.TemporaryDirectory(prefix="skinning_tools_child_") as folder:
            done = 0
            for result in _run(task, waiting, Path(folder), patience):
                done += 1
                yield result
        waiting = waiting[done:]


def _run(task: str, seeds: list[int], folder: Path, patience: float) -> Iterator[dict]:
    """One process, up to the input that ends it."""
    results, stack, printed = folder / "results", folder / "stack", folder / "printed"
    results.touch()
    arguments = [task, str(folder), ",".join(map(str, seeds))]
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.children", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    seen, since = 0, time.monotonic()
    try:
        while True:
            running = process.poll() is None
            # What has no end yet is still being written.
            lines = results.read_text().split("\n")[:-1]
            for line in lines[seen:]:
                yield json.loads(line)
            if len(lines) > seen:
                seen, since = len(lines), time.monotonic()
            if not running:
                break
            if time.monotonic() - since > patience:
                process.send_signal(signal.SIGABRT)
                process.wait()
                yield {"seed": seeds[seen], "outcome": HUNG, "where": _where(stack)}
                return
            time.sleep(POLL_SECONDS)
        if seen < len(seeds):
            said = printed.read_text(errors="replace")[-2000:]
            if not (folder / "ready").exists():
                raise RuntimeError(f"{task}: no process could be started: {said}")
            code = process.returncode
            yield {"seed": seeds[seen], "outcome": CRASHED, "code": code, "where": _where(stack), "printed": said}
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _where(stack: Path) -> list[str]:
    """The innermost Python lines of a process that crashed."""
    lines = stack.read_text().splitlines() if stack.exists() else []
    return [line.strip() for line in lines if line.strip().startswith("File ")][:STACK_LINES]


def is_of_blender(where: list[str]) -> bool:
    """Whether a crash came from within a call of Blender's own, as from ``bpy.ops`` or the evaluation of a frame.

    Those are C++: the innermost Python line is the call. NumPy and SciPy would have lines of their own there.
    """
    return bool(where) and not any(part in where[0] for part in ("numpy", "scipy"))


def main() -> None:
    """Runs in the child process."""
    import faulthandler

    task, folder, seeds = sys.argv[1:]
    module, name = task.split(":")
    folder = Path(folder)
    faulthandler.enable((folder / "stack").open("w"))
    # Blender prints what it likes, also with the descriptor of Python's standard output.
    results = (folder / "results").open("a", buffering=1)
    place = importlib.import_module(module)
    if hasattr(place, "prepare"):
        place.prepare(folder)
    (folder / "ready").touch()
    for seed in seeds.split(","):
        try:
            result = getattr(place, name)(int(seed), folder)
        except Exception as error:  # noqa: BLE001 - what it is, is the result
            frames = traceback.extract_tb(error.__traceback__)
            where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames][::-1][:STACK_LINES]
            result = {"outcome": RAISED, "error": f"{type(error).__name__}: {error}", "where": where}
        results.write(json.dumps({"seed": int(seed), **result}) + "\n")
    results.flush()
    sys.stdout.flush()
    # Blender's modules before 5.2 can crash while Python shuts down.
    os._exit(0)


if __name__ == "__main__":
    main()
