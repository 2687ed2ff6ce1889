# SPDX-License-Identifier: GPL-3.0-or-later
"""Transferred weights compared with Blender's Data Transfer: clothes cut from the human rig, and time.

Errors are mean vertex distances over both motions from where the weights of the body take each vertex, as fractions of
the diagonal at rest. Processor time does not include other work on the machine.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

from _clothes import Garment, at_middles, clothes, influence_rows  # noqa: E402 (beside this file)
from _process import in_own_process, peak_memory  # noqa: E402 (beside this file)
from _tables import Tables  # noqa: E402
from binding_human import HumanRig, subdivided  # noqa: E402 (in demos)
from human_rig import HUMAN, read_human  # noqa: E402

from skinning_tools.core.binding.influence_rows import matrix_influences  # noqa: E402 (the checkout's)
from skinning_tools.core.binding.types import Body  # noqa: E402
from skinning_tools.core.deform.influences import weight_matrix  # noqa: E402
from skinning_tools.core.deform.surface import vertex_normals  # noqa: E402
from skinning_tools.core.transfer import transfer_weights  # noqa: E402

HANDS = "gloves", "mittens"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    if not HUMAN.is_file():
        print("The human rig is not next to the checkout (../shared/data).")
        return 0
    tables = Tables(first=16)
    show_clothes(tables, importlib.util.find_spec("bpy") is not None)
    show_growth(tables)
    if options.write:
        command = "`python3 build.py bench transfer --write docs/transfer_figures.md`"
        tables.write(options.write, "Transferred weights in figures", f"Made by {command}.")
    return 0


def show_clothes(tables: Tables, blender: bool) -> None:
    rig = HumanRig.read()
    garments = clothes(rig)
    tables.begin(
        "Clothes cut from the human rig",
        "Mean vertex distance over the walk and the shamble from where the weights of the body, at the place from "
        "which each vertex comes, take it, divided by the diagonal. Data Transfer: Blender's, nearest face "
        "interpolated, all bones. Ours: at most as many bones as at a vertex of the body, nine; ratio, to Data "
        "Transfer, also without that limit. Seconds: processor time.",
        *("garment", "vertices", "Data Transfer", "ours", "ratio", "all bones", "matched", "seconds"),
    )
    ratios: dict[str, list[float]] = {}
    for name, garment in garments.items():
        theirs = None
        if blender:
            theirs = garment.error(rig, *in_own_process(data_transfer, garment.body.rest, garment.body.triangles))
        limited, matched, seconds = transferred(rig, garment)
        unlimited, _, _ = transferred(rig, garment, len(rig.skeleton))
        errors = garment.error(rig, *limited), garment.error(rig, *unlimited)
        cells = ["–", "–", "–"]
        if theirs is not None:
            ratios[name] = [each / theirs for each in errors]
            cells = [f"{theirs:.6f}", *(f"{ratio:.2f}" for ratio in ratios[name])]
        tables.row(
            name,
            f"{len(garment.body.rest):,}",
            cells[0],
            f"{errors[0]:.6f}",
            *cells[1:],
            f"{100 * matched:.0f} %",
            f"{seconds:.2f}",
        )
    if ratios:
        tight = [ratios[name] for name, garment in garments.items() if garment.tight]
        parts = {
            "Geometric mean of the ratios": list(ratios.values()),
            "of gloves and mittens": [ratios[name] for name in HANDS],
            "of tight clothes": tight,
        }
        means = (
            f"{what}: {mean[0]:.2f}, and with all bones {mean[1]:.2f}"
            for what, rows in parts.items()
            for mean in [np.exp(np.mean(np.log(rows), axis=0))]
        )
        tables.note(f"{'; '.join(means)}.")


def show_growth(tables: Tables) -> None:
    tables.begin(
        "Time and memory over vertices",
        "The whole human, 163 bones, to a copy a centimeter off the skin; both with each triangle split in four, too. "
        "Seconds of processor time, and the peak of the process in MB.",
        *("vertices", "of the source", "seconds", "memory"),
    )
    for times in (0, 1):
        count, source, seconds, memory = in_own_process(one_transfer, times)
        tables.row(f"{count:,}", f"{source:,}", f"{seconds:.2f}", f"{memory:.0f}")


def transferred(rig: HumanRig, garment: Garment, most: int = 0) -> tuple[tuple[np.ndarray, np.ndarray], float, float]:
    """bones and weights (N, K), the share of matched vertices, and seconds."""
    begin = time.process_time()
    target = Body(garment.body.rest, garment.body.triangles, garment.body.edges)
    result = transfer_weights(rig.fresh_body(), weight_matrix(rig.bones, rig.weights, len(rig.skeleton)), target)
    rows = matrix_influences(result.weights, most or int(np.count_nonzero(rig.weights, axis=1).max()))
    return rows, float(result.matched.mean()), time.process_time() - begin


# In processes of their own: Blender's module changes where its parent's children would look for modules.


def data_transfer(rest, triangles) -> tuple[np.ndarray, np.ndarray]:
    import _data_transfer

    return influence_rows(_data_transfer.data_transfer(read_human(), rest, triangles))


def one_transfer(times: int) -> tuple[int, int, float, float]:
    rig = HumanRig.read()
    body = subdivided(rig.body, times)
    weights = weight_matrix(rig.bones, rig.weights, len(rig.skeleton))
    if times:
        weights = sparse.csr_matrix(at_middles(rig.body.triangles, weights.toarray()))
    target = Body(body.rest + 0.1 * vertex_normals(body.rest, body.triangles), body.triangles, body.edges)
    begin = time.process_time()
    result = transfer_weights(body, weights, target)
    matrix_influences(result.weights, 9)
    return len(target.rest), len(body.rest), time.process_time() - begin, peak_memory()


if __name__ == "__main__":
    sys.exit(main())
