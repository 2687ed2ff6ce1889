# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of the decomposition over vertices and over frames, and of a sequence that stays on disk.

Synthetic smooth motion: a bent tube that many waves run along, none of them ever repeating. Each solve has a process of
its own, whose peak of memory counts the frames as well. Seconds of the processor do not count other work on the
machine.
"""

import argparse
import hashlib
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

from _meshes import tube  # noqa: E402 (beside this file)
from _process import in_own_process, peak_memory  # noqa: E402
from _tables import Tables  # noqa: E402

from skinning_tools.core.animation import Animation  # noqa: E402 (the checkout's)
from skinning_tools.core.decomposition import Settings, decompose  # noqa: E402
from skinning_tools.core.solve_effort import effort_of  # noqa: E402

VERTICES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
FRAMES = (50, 100, 200, 500, 1000, 2000)
BONES, FRAME_COUNT, VERTEX_COUNT = 60, 100, 10_000
ON_DISK = 100_000, 1000
KINDS = ("AFFINE", "RIGID")
WAVES = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, nargs="*", default=list(VERTICES))
    parser.add_argument("--frames", type=int, nargs="*", default=list(FRAMES))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--no-disk", action="store_true", help="leave the sequence on disk out (1.2 GB)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    tables = Tables(first=10)
    show_vertices(tables, options.vertices, options.kinds)
    show_frames(tables, options.frames, options.kinds)
    if not options.no_disk and sys.platform.startswith("linux"):
        show_disk(tables)
    if options.write:
        command = "`python3 build.py bench scale --write docs/decomposition_scale.md`"
        text = f"Synthetic smooth motion, {BONES} bones, other settings at their defaults. "
        text += f"MB: peak of the process, including the frames. Made by {command}."
        tables.write(options.write, "Cost of a skinning decomposition", text)
    return 0


def show_vertices(tables: Tables, sizes, kinds) -> None:
    tables.begin(
        "Over vertices",
        f"{FRAME_COUNT} frames. Share: processor time per vertex over that of the first row of its kind.",
        *("kind", "vertices", "d", "E_RMS", "wall time", "processor", "µs a vertex", "share", "frames MB", "peak MB"),
    )
    for kind in kinds:
        first = None
        for size in sizes:
            run = in_own_process(solve, size, FRAME_COUNT, kind)
            each = 1e6 * run["processor"] / run["vertices"]
            first = first or each
            tables.row(kind, *cells(run, f"{run['vertices']:,}", f"{each:.0f}", f"{each / first:.2f}"))


def show_frames(tables: Tables, sizes, kinds) -> None:
    tables.begin(
        "Over frames",
        f"About {VERTEX_COUNT:,} vertices. Share: processor time per frame over that of the first row of its kind; a "
        "solve has costs that do not depend on frames, so it falls.",
        *("kind", "frames", "d", "E_RMS", "wall time", "processor", "ms a frame", "share", "frames MB", "peak MB"),
    )
    for kind in kinds:
        first = None
        for size in sizes:
            run = in_own_process(solve, VERTEX_COUNT, size, kind)
            each = 1e3 * run["processor"] / size
            first = first or each
            tables.row(kind, *cells(run, f"{size:,}", f"{each:.1f}", f"{each / first:.2f}"))


def cells(run: dict, size: str, each: str, share: str) -> tuple[str, ...]:
    times = f"{run['wall']:.1f}", f"{run['processor']:.1f}"
    memory = f"{run['frames']:.0f}", f"{run['peak']:.0f}"
    return size, str(run["dimension"]), f"{run['e_rms']:.3f}", *times, each, share, *memory


def show_disk(tables: Tables) -> None:
    vertices, frames = ON_DISK
    tables.begin(
        "From disk",
        f"About {vertices:,} vertices, {frames:,} frames: in memory, and mapped from a file by numpy.memmap. MB beyond "
        "the frames: the process' own memory, without the file's pages in the system's cache.",
        *("frames in", "frames MB", "MB beyond", "wall time", "processor", "E_RMS"),
    )
    results = {}
    with tempfile.TemporaryDirectory(prefix="scale_", dir=_folder()) as folder:
        file = Path(folder) / "frames.npy"
        in_own_process(write, str(file), vertices, frames)
        for where, mapped in (("memory", False), ("a file", True)):
            run = in_own_process(solve_file, str(file), vertices, mapped)
            results[where] = run["e_rms"], run["checksum"]
            row = f"{run['frames']:.0f}", f"{run['beyond']:.0f}", f"{run['wall']:.1f}", f"{run['processor']:.1f}"
            tables.row(where, *row, f"{run['e_rms']:.3f}")
    same = "the same bits" if len(set(results.values())) == 1 else "**not the same**"
    tables.note(f"Bones, weights and rest pose of both are {same}.")


def _folder() -> Path:
    folder = ROOT / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# Each of these runs in a process of its own.


def solve(vertices: int, frame_count: int, kind: str) -> dict:
    rest, triangles = tube(vertices)
    frames = np.empty((frame_count, len(rest), 3), np.float32)
    for row, positions in enumerate(moving(rest, frame_count)):
        frames[row] = positions
    return timed(Animation(frames, triangles), kind)[0]


def write(file: str, vertices: int, frame_count: int) -> None:
    rest = tube(vertices)[0]
    frames = np.lib.format.open_memmap(file, "w+", np.float32, (frame_count, len(rest), 3))
    for row, positions in enumerate(moving(rest, frame_count)):
        frames[row] = positions
    frames.flush()


def solve_file(file: str, vertices: int, mapped: bool) -> dict:
    frames = np.load(file, mmap_mode="r" if mapped else None)
    with OwnMemory() as memory:
        run, found = timed(Animation(frames, tube(vertices)[1]), KINDS[0])
    parts = (found.transforms, found.weights, found.bones, found.rest)
    checksum = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    return run | {"beyond": memory.most, "checksum": checksum}


def timed(animation: Animation, kind: str, bones: int = BONES):
    processor, wall = time.process_time(), time.perf_counter()
    settings = Settings(bones, kind)
    found = decompose(animation, settings)
    run = {
        "vertices": animation.vertex_count,
        "sample": effort_of(animation.vertex_count, settings).sample,
        "dimension": found.dimension,
        "e_rms": found.e_rms,
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "frames": animation.frames.nbytes / 1e6,
        "peak": peak_memory(),
    }
    return run, found


def moving(rest: np.ndarray, frame_count: int):
    """Yield positions (N, 3) of each frame: waves of all directions, lengths and speeds run through ``rest``."""
    random = np.random.default_rng(0)
    directions = 0.4 * random.normal(size=(WAVES, 3))
    heights = (0.1 * random.normal(size=(WAVES, 3))).astype(np.float32)
    speeds = random.uniform(0.05, 0.8, WAVES)
    phases = (rest @ directions.T + random.uniform(0, 2 * np.pi, WAVES)).astype(np.float32)
    rest = rest.astype(np.float32)
    for frame in range(frame_count):
        yield rest + np.sin(phases + (speeds * frame).astype(np.float32)) @ heights


class OwnMemory:
    """The peak of the process's own memory (MB) inside the block, minus its memory before (Linux)."""

    def __enter__(self) -> "OwnMemory":
        self._before = self._now()
        self.most = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._now() - self._before)

    @staticmethod
    def _now() -> float:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1e3


if __name__ == "__main__":
    sys.exit(main())
