# SPDX-License-Identifier: GPL-3.0-or-later
"""What a shot costs on a farm: seconds of the processor, the most memory, and the sizes of the files, by size.

Each shot is a file with a tube that waves of a PC2 cache move, converted by the command line in a process of its own,
as each of a batch is: the seconds include the start of Blender, reading, solving, measuring and saving.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import numpy as np  # noqa: E402
from _meshes import tube  # noqa: E402 (beside this file)
from _process import in_own_process  # noqa: E402
from _tables import Tables  # noqa: E402
from scale import moving  # noqa: E402

# Vertices and frames of a shot, and bones of its result.
SHOTS = ((2_500, 50, 20), (10_000, 100, 30), (10_000, 400, 30), (40_000, 100, 60), (160_000, 100, 60))
TITLE = "What a shot costs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in this page")
    options = parser.parse_args()
    if not hasattr(os, "wait4"):
        print("This system does not say what a process has used")
        return 0
    tables = Tables(first=10)
    tables.begin(
        TITLE,
        "One Blender for each shot, with the default settings. Seconds are of the processor, with its start: with two "
        "cores or more, the clock shows less of the solve. MB: the most memory of the process, the cache that it read "
        "and the result. Made by `python3 build.py bench shot-costs --write docs/command_line.md`.",
        *("vertices", "frames", "bones", "seconds", "MB of memory", "MB read", "MB saved"),
    )
    for vertices, frames, bones in SHOTS:
        with tempfile.TemporaryDirectory(prefix="shot_costs_") as folder:
            count = in_own_process(make_shot, folder, vertices, frames)
            seconds, memory = converted(Path(folder), bones)
            read, saved = ((Path(folder) / name).stat().st_size / 1e6 for name in ("cache.pc2", "result.blend"))
        tables.row(
            f"{count:,}", str(frames), str(bones), f"{seconds:.0f}", f"{memory:.0f}", f"{read:.1f}", f"{saved:.1f}"
        )
    if options.write:
        tables.replace(options.write)
    return 0


def make_shot(folder: str, vertices: int, frames: int) -> int:
    """Save a file whose object Tube a cache moves; returns the number of its vertices. In a process of its own."""
    import bpy

    from tests.blender import moving_meshes, scenes

    rest, triangles = tube(vertices)
    scenes.write_pc2(Path(folder) / "cache.pc2", np.stack(list(moving(rest, frames))))
    moving_meshes.fresh_scene(frames)
    scenes.point_cache(moving_meshes.add_object("Tube", rest, triangles), Path(folder) / "cache.pc2", "PC2")
    bpy.ops.wm.save_as_mainfile(filepath=str(Path(folder) / "shot.blend"))
    return len(rest)


def converted(folder: Path, bones: int) -> tuple[float, float]:
    """Convert the shot; returns the seconds of the processor and the most memory, in MB, of the process."""
    command = [sys.executable, "-m", "skinning_tools.command_line", "convert", "--input", str(folder / "shot.blend")]
    command += ["--object", "Tube", "--bones", str(bones), "--output", str(folder / "result.blend")]
    process = subprocess.Popen([*command, "--progress", "none"], cwd=ROOT, stdout=subprocess.DEVNULL)
    status, used = os.wait4(process.pid, 0)[1:]
    if status:
        raise RuntimeError(f"The conversion ended with the status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    sys.exit(main())
