# SPDX-License-Identifier: GPL-3.0-or-later
"""Error and time of the decomposition on the sequences of Kavan et al. 2010, beside the paper's own figures.

Reads ../shared/data. The time is that of the solve, from the reduction to the transforms, the shortest of a few runs:
on a machine that does other things too, that is the one that was disturbed least. The paper's seconds were measured on
a dual-core desktop of 2010.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from skinning_tools.core.animation import Animation  # noqa: E402 (the checkout, not an installed copy)
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SEQUENCES = (("horse_gallop", 30), ("horse_collapse", 6), ("samba", 30), ("elastic_cow", 18))
SOLVE_STAGES = ("reduction", "segmentation", "iterations", "transforms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="solves of each sequence (3)")
    parser.add_argument("--kinds", nargs="+", choices=BONE_KINDS, default=list(BONE_KINDS))
    options = parser.parse_args()
    if not DATA.is_dir():
        print("The sequences are not beside the checkout (../shared/data).")
        return 1
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    columns = table["columns"]
    print(f"{'sequence':<15}{'bones':>6}  {'kind':<8}{'E_RMS':>8}{'largest':>9}{'d':>6}{'seconds':>9}"
          f"{'paper E_RMS':>13}{'paper s':>9}{'E ratio':>9}")  # fmt: skip
    ratios = []
    for name, bone_count in SEQUENCES:
        data = np.load(DATA / f"{name}.npz")
        animation = Animation(data["frames"], data["triangles"], name=name)
        paper_error, paper_seconds = (table[name][columns.index(key)] for key in ("kavan", "kavan_seconds"))
        for kind in options.kinds:
            runs = [decompose(animation, Settings(bone_count, kind)) for _ in range(options.runs)]
            seconds = min(sum(run.seconds[stage] for stage in SOLVE_STAGES) for run in runs)
            row = f"{name:<15}{bone_count:>6}  {kind:<8}{runs[0].e_rms:>8.3f}{runs[0].max_error:>9.1f}"
            row += f"{runs[0].dimension:>6}{seconds:>9.2f}"
            if kind == "AFFINE":
                ratio = runs[0].e_rms / paper_error
                ratios.append(ratio)
                row += f"{paper_error:>13.1f}{paper_seconds:>9.1f}{ratio:>9.2f}"
            print(row, flush=True)
    if ratios:
        print(f"Geometric mean of the ratios of error to the paper's: {np.exp(np.mean(np.log(ratios))):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
