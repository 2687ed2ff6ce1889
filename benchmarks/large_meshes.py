# SPDX-License-Identifier: GPL-3.0-or-later
"""Large meshes: solved on a sample of their vertices first, as they are by default, and on all vertices throughout.

The captured sequences of ../shared/data, subdivided, and a tube of synthetic motion. Each solve has a process of its
own. Seconds of the processor do not count other work on the machine.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import _sequences  # noqa: E402 (beside this file)
from _meshes import subdivided, tube  # noqa: E402
from _process import in_own_process  # noqa: E402
from _tables import Tables  # noqa: E402
from scale import BONES, FRAME_COUNT, moving, timed  # noqa: E402

from skinning_tools.core import solve_effort  # noqa: E402 (the checkout's)
from skinning_tools.core.animation import Animation  # noqa: E402
from skinning_tools.core.decomposition import BONE_KINDS  # noqa: E402

# Steps of subdivision.
STEPS = {"elastic_cow": 2, "horse_collapse": 1, "samba": 1, "horse_gallop": 2}
TUBE = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=BONE_KINDS, default=["AFFINE", "RIGID"])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    options = parser.parse_args()
    tables = Tables(first=14)
    show(tables, options.kinds)
    if options.write:
        command = "`python3 build.py bench large-meshes --write docs/large_meshes_figures.md`"
        text = "The captured sequences subdivided after Loop, and a tube of synthetic motion; other settings at their "
        text += f"defaults. Processor time in seconds. Made by {command}."
        tables.write(options.write, "Large meshes, with and without a sample", text)
    return 0


def show(tables: Tables, kinds) -> None:
    tables.begin(
        "Sample first",
        "The last columns divide by the solve of all vertices throughout.",
        *("sequence", "vertices", "frames", "bones", "kind", "sample", "all: E_RMS", "all: time"),
        *("E_RMS", "time", "error / all", "time / all"),
    )
    names = [*(each for each in _sequences.CAPTURED if _sequences.DATA.is_dir()), ("tube", BONES)]
    ratios = []
    for name, bones in names:
        for kind in kinds:
            whole, first = (in_own_process(solve, name, bones, kind, sample) for sample in (False, True))
            ratios.append((first["e_rms"] / whole["e_rms"], first["processor"] / whole["processor"]))
            sizes = f"{first['vertices']:,}", f"{first['frame_count']:,}", str(bones), kind, f"{first['sample']:,}"
            both = [cell for run in (whole, first) for cell in (f"{run['e_rms']:.3f}", f"{run['processor']:.1f}")]
            tables.row(name, *sizes, *both, *(f"{ratio:.2f}" for ratio in ratios[-1]))
    error, seconds = np.exp(np.mean(np.log(ratios), axis=0))
    tables.note(f"Geometric means of the ratios: error {error:.2f}, time {seconds:.2f}.")


# This runs in a process of its own.


def solve(name: str, bones: int, kind: str, sample: bool) -> dict:
    if name == "tube":
        rest, triangles = tube(TUBE)
        frames = np.array(list(moving(rest, FRAME_COUNT)), np.float32)
    else:
        animation = _sequences.read(_sequences.path(name), name)
        frames, triangles = animation.frames, animation.triangles
        for _ in range(STEPS[name]):
            frames, triangles = subdivided(frames, triangles)
    if not sample:
        solve_effort.SMALL_MESHES = dict.fromkeys(solve_effort.SMALL_MESHES, sys.maxsize)
    return timed(Animation(frames, triangles), kind, bones)[0] | {"frame_count": len(frames)}


if __name__ == "__main__":
    sys.exit(main())
