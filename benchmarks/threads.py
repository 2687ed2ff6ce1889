# SPDX-License-Identifier: GPL-3.0-or-later
"""Time of a decomposition by number of threads, how many of them are busy, and what single precision would do to it.

Each solve has a process of its own. While it runs, this program looks hundreds of times a second which of the other
process's threads run or are ready to run: their mean is the number of busy cores on a machine with nothing else to do,
and hardly depends on other work on it, as the seconds do. Rounds with one thread and with all take turns; the shortest
of each counts. Linux only.
"""

import argparse
import hashlib
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import _sequences  # noqa: E402 (beside this file)
from _tables import Tables  # noqa: E402

from skinning_tools.core import threads as cores  # noqa: E402
from skinning_tools.core.decomposition import Settings, decompose  # noqa: E402 (the checkout's)
from skinning_tools.core.decomposition.bone_model import homogeneous  # noqa: E402
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation  # noqa: E402
from skinning_tools.core.decomposition.sweeps import collect_equations  # noqa: E402
from skinning_tools.core.decomposition.vertex_step import VertexState  # noqa: E402
from skinning_tools.core.dense import one_blas_thread  # noqa: E402

KINDS = {"affine": {}, "rigid": {"bone_kind": "RIGID"}, "as published": {"method": "KAVAN2010"}}
BONES_OF_ALL = ("affine", "rigid")
SHOWN_BY_STAGE = "samba", 30
STAGES = ("reduction", "segmentation", "iterations", "transforms", "measuring")
# The progress text of each stage begins with this.
WORDS = {"Reducing": "reduction", "Segmenting": "segmentation", "Iteration": "iterations", "Measuring": "measuring"}
LOOK_EVERY = 0.002


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="solves with each number of threads (2)")
    parser.add_argument("--threads", type=int, default=cores.thread_count(), help="beside one: all cores by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    if not _sequences.DATA.is_dir() or not sys.platform.startswith("linux"):
        print("Needs Linux, and the sequences next to the checkout (../shared/data).")
        return 1
    tables = Tables(first=16)
    show_solves(tables, options.threads, options.rounds)
    show_stages(tables, options.threads, options.rounds)
    show_precision(tables)
    if options.write:
        command = f"`python3 build.py bench threads --write docs/{options.write.name}`"
        text = (
            f"Solves with one thread and with {options.threads}, on a machine with {cores.thread_count()} cores and a "
            f"load of {os.getloadavg()[2]:.0f} by this and other programs: above the number of cores, seconds and "
            "gains say little. Busy: threads that run or are ready to run, on average, which hardly depends on other "
            "programs. "
            f"Made by {command}."
        )
        tables.write(options.write, "Conversion on all cores", text)
    return 0


def show_solves(tables: Tables, threads: int, rounds: int) -> None:
    tables.begin(
        "Whole solves",
        f"Wall time in seconds, the shortest of {rounds}; gain: that with one thread over that with {threads}. "
        "Processor: seconds of all threads together. The results have the same bits.",
        *("sequence", "kind", "1 thread", f"{threads} threads", "gain", "busy, 1", f"busy, {threads}"),
        *("processor, 1", f"processor, {threads}"),
    )
    for name, bones in _sequences.CAPTURED:
        for kind in KINDS if name == SHOWN_BY_STAGE[0] else BONES_OF_ALL:
            one, more = measured(name, bones, kind, threads, rounds)
            assert one.checksum == more.checksum, (name, kind)
            cells = f"{one.wall:.2f}", f"{more.wall:.2f}", f"{one.wall / more.wall:.2f}"
            busy = f"{one.busy():.2f}", f"{more.busy():.2f}"
            tables.row(name, kind, *cells, *busy, f"{one.processor:.2f}", f"{more.processor:.2f}")


def show_stages(tables: Tables, threads: int, rounds: int) -> None:
    name, bones = SHOWN_BY_STAGE
    tables.begin(
        f"Stages of {name}",
        "As above, stage by stage, each with its own shortest time. Segmentation grows regions by a queue, vertex "
        "after vertex, which is Python and cannot be shared out; the sweeps end with the bones' equations, for which a "
        "Cholesky factor of 4P columns is too small to share.",
        *("kind", "stage", "1 thread", f"{threads} threads", "gain", f"busy, {threads}"),
    )
    for kind in KINDS:
        one, more = measured(name, bones, kind, threads, rounds)
        for stage in STAGES:
            before, after = one.seconds.get(stage, 0.0), more.seconds.get(stage, 0.0)
            if before > 0.02:
                busy = f"{more.busy(stage):.2f}" if stage in WORDS.values() else "–"
                tables.row(kind, stage, f"{before:.2f}", f"{after:.2f}", f"{before / after:.2f}", busy)


class Rounds:
    """What several solves took: the shortest seconds, and how many threads were busy in each stage over all of them."""

    def __init__(self):
        self.wall = self.processor = np.inf
        self.seconds: dict[str, float] = {}
        self.checksum = ""
        self._looks: dict[str, list[int]] = {}

    def add(self, run: dict, looks: list[tuple[float, int]]) -> None:
        self.wall, self.processor = min(self.wall, run["wall"]), min(self.processor, run["processor"])
        self.checksum = run["checksum"]
        for stage, seconds in run["seconds"].items():
            self.seconds[stage] = min(self.seconds.get(stage, np.inf), seconds)
        times = [moment for moment, _ in run["moments"]]
        for moment, busy in looks:
            place = int(np.searchsorted(times, moment))
            if run["begun"] <= moment and place < len(times):
                self._looks.setdefault(run["moments"][place][1], []).append(busy)

    def busy(self, stage: str | None = None) -> float:
        looks = [each for name, found in self._looks.items() if stage in (None, name) for each in found]
        return float(np.mean(looks)) if looks else float("nan")


_measured: dict[tuple, tuple[Rounds, Rounds]] = {}


def measured(name: str, bones: int, kind: str, threads: int, rounds: int) -> tuple[Rounds, Rounds]:
    """With one thread, and with ``threads``; kept for the next call."""
    key = name, kind, threads
    if key not in _measured:
        found = Rounds(), Rounds()
        for _ in range(rounds):
            for count, each in zip((1, threads), found, strict=True):
                each.add(*watched(name, bones, kind, count))
        _measured[key] = found
    return _measured[key]


def watched(name: str, bones: int, kind: str, threads: int) -> tuple[dict, list[tuple[float, int]]]:
    """One solve in a process of its own, and when how many of its threads were ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=solve, args=(theirs, name, bones, kind, threads))
    process.start()
    looks = []
    while not ours.poll(LOOK_EVERY):
        looks.append((time.monotonic(), ready_threads(process.pid)))
    run = ours.recv()
    process.join()
    return run, looks


def ready_threads(process: int) -> int:
    count = 0
    for task in Path(f"/proc/{process}/task").glob("*/stat"):
        try:
            count += task.read_text().rpartition(")")[2].split()[0] == "R"
        except OSError:  # it has ended
            continue
    return count


@one_blas_thread()
def show_precision(tables: Tables) -> None:
    tables.begin(
        "Single precision",
        "What a graphics card whose shaders have single precision would do to the transforms. Condition: of the bones' "
        "equations X Xᵀ after a solve. The others: E_RMS in the reduced animation where the transforms are solved "
        "again from these equations, by Cholesky, in double and in single precision.",
        *("sequence", "bones", "condition", "double", "single"),
    )
    for name, bones in _sequences.CAPTURED:
        animation = _sequences.read(_sequences.path(name), name)
        found = decompose(animation, Settings(bones))
        matrix = AnimationMatrix(animation.frames)
        reduction = reduce_animation(matrix, 1e-4)
        rest = matrix.from_object_space(found.rest, found.transforms)[0]
        state = VertexState(homogeneous(rest), found.bones, found.weights)
        equations = collect_equations(state, reduction, bones)
        values = np.linalg.eigvalsh(equations.moments)
        condition = values[-1] / max(values[0], np.finfo(float).tiny)
        errors = []
        for kind in (np.float64, np.float32):
            try:
                lower = np.linalg.cholesky(equations.moments.astype(kind))
                half = np.linalg.solve(lower, equations.products.astype(kind))
                rows = np.linalg.solve(lower.T, half).astype(np.float64)
                squared = equations.squared_error(rows) + matrix.squared_norm
                errors.append(f"{1000 * np.sqrt(squared / (matrix.height * matrix.vertex_count)):.2f}")
            except np.linalg.LinAlgError:
                errors.append("not positive")
        tables.row(name, str(bones), f"{condition:.0e}", *errors)


# This runs in a process of its own.


def solve(answer, name: str, bones: int, kind: str, threads: int) -> None:
    animation = _sequences.read(_sequences.path(name), name)
    settings = Settings(bones, **KINDS[kind])
    moments: list[tuple[float, str]] = []

    def progress(fraction: float, text: str) -> None:
        stage = WORDS.get(text.split()[0])
        if stage:
            moments.append((time.monotonic(), stage))

    cores.thread_count = lambda: threads
    begun, wall, processor = time.monotonic(), time.perf_counter(), time.process_time()
    found = decompose(animation, settings, progress)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    parts = found.rest, found.bones, found.weights, found.transforms
    answer.send(
        {
            "wall": wall,
            "processor": processor,
            "seconds": found.seconds,
            "begun": begun,
            "moments": moments,
            "checksum": hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest(),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
