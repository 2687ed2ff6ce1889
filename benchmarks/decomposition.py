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
COLUMNS = {"sequence": 15, "bones": 7, "kind": 8, "E_RMS": 8, "largest error": 15, "d": 5, "seconds": 9} | {
    "paper's E_RMS": 15, "paper's seconds": 17, "error / paper": 15
}  # fmt: skip
SOLVE_STAGES = ("reduction", "segmentation", "iterations", "transforms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="solves of each sequence (3)")
    parser.add_argument("--kinds", nargs="+", choices=BONE_KINDS, default=list(BONE_KINDS))
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("The sequences are not beside the checkout (../shared/data).")
        return 1
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    rows = []
    print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for name, bone_count in SEQUENCES:
        paper = dict(zip(table["columns"], table[name], strict=True))
        for kind in options.kinds:
            rows.append(measure(name, bone_count, kind, paper, options.runs))
            print(
                "".join(f"{cell:>{width}}" for cell, width in zip(rows[-1], COLUMNS.values(), strict=True)), flush=True
            )
    ratios = [float(row[-1]) for row in rows if row[-1]]
    mean = f"Geometric mean of error / paper, affine bones: {np.exp(np.mean(np.log(ratios))):.2f}" if ratios else ""
    print(mean)
    if options.write:
        lines = [list(COLUMNS), ["---"] * len(COLUMNS), *rows]
        text = "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)
        options.write.write_text(f"# Conversion in figures\n\n{text}\n\n{mean}\n", encoding="utf-8")
    return 0


def measure(name: str, bone_count: int, kind: str, paper: dict, runs: int) -> list[str]:
    """One row of the table."""
    data = np.load(DATA / f"{name}.npz")
    animation = Animation(data["frames"], data["triangles"], name=name)
    results = [decompose(animation, Settings(bone_count, kind)) for _ in range(runs)]
    seconds = min(sum(result.seconds[stage] for stage in SOLVE_STAGES) for result in results)
    result = results[0]
    cells = [name, str(bone_count), kind, f"{result.e_rms:.3f}", f"{result.max_error:.1f}", str(result.dimension)]
    cells.append(f"{seconds:.2f}")
    if kind == "AFFINE":
        return [
            *cells,
            f"{paper['kavan']:.1f}",
            f"{paper['kavan_seconds']:.1f}",
            f"{result.e_rms / paper['kavan']:.2f}",
        ]
    return [*cells, "", "", ""]


if __name__ == "__main__":
    sys.exit(main())
