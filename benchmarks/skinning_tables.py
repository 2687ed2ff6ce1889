# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables 1 and 2 of Kavan et al. 2010 with every column measured, and Dem Bones for comparison.

Each solve has a process of its own and the machine's cores to itself, as far as this program goes. E_RMS is that of
the whole approximation against the animation. What was measured is kept while the run lasts, so that one that was
interrupted can go on.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import _sequences  # noqa: E402 (beside this file)
from _baselines import dem_bones  # noqa: E402
from _process import in_own_process  # noqa: E402
from _skinning_plot import plot  # noqa: E402
from _skinning_ways import (  # noqa: E402
    AFFINE,
    COLUMNS,
    CORRECTED,
    CPCA,
    DEM_4,
    PAPER_METHOD,
    RIGID,
    SAD,
    SMA,
    SVD,
    WAYS,
    Result,
    measure,
)
from _tables import Tables  # noqa: E402

from skinning_tools.core.decomposition.reduction import (  # noqa: E402 (the checkout's)
    STRATEGIES,
    AnimationMatrix,
    reduce_animation,
)

KEPT = ROOT / "build" / "benchmarks" / "skinning_tables.json"
PAPER_EPSILON = 5e-4
PAPER_COLUMNS = {
    SMA: "sma",
    CORRECTED.format(SMA): "sma_eigenskin10",
    SAD: "sad",
    CORRECTED.format(SAD): "sad_eigenskin10",
    CPCA: "cpca",
    SVD: "svd",
    PAPER_METHOD: "kavan",
}
STRATEGY_COLUMNS = {
    "MAXIMUM_NORM": "max",
    "GRAM_SCHMIDT": "gram_schmidt",
    "POWER_1": "power_1",
    "POWER_2": "power_2",
    "EXACT": "svd",
}
MISS = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="SEQUENCE", help="only these sequences")
    parser.add_argument("--resume", action="store_true", help="resume an interrupted run")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown and a plot beside it")
    options = parser.parse_args()
    # Waiting threads must not use processor time, which is shared and counted.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    rows = [(name, bones) for name, bones in _sequences.available() if not options.only or name in options.only]
    if not rows:
        return 1
    if not dem_bones.available():
        print("Dem Bones is not installed here: build.py bench skinning-tables --rivals (Python 3.11) installs it.")
    files = {name: _sequences.path(name) for name, _ in rows}
    reference = json.loads((_sequences.DATA / "reference_errors.json").read_text()) if _sequences.DATA.is_dir() else {}
    kept = Kept(resume=options.resume)
    tables = Tables(first=26)
    show_reductions(tables, files, kept, reference)
    results = measure_all(rows, files, kept)
    show_errors(tables, files, results, reference)
    show_misses(tables, results, reference)
    show_dem_bones(tables, results)
    show_le_deng(tables, files, kept, reference)
    show_times(tables, results)
    if options.write:
        picture = options.write.parent / "images" / f"{options.write.stem}.png"
        plot(picture, results)
        tables.note(f"![Error over time](images/{picture.name})\n\nError over processor time, both logarithmic.")
        command = f"`python3.11 build.py bench skinning-tables --rivals --write docs/{options.write.name}`"
        tables.write(options.write, "Skinning decomposition beside others", f"{INTRODUCTION} Made by {command}.")
    return 0


INTRODUCTION = (
    "Tables 1 and 2 of Kavan, Sloan & O'Sullivan 2010, with all columns measured: the other methods were written for "
    "this benchmark from their papers, except Dem Bones (EA's implementation of Le & Deng 2012, through py-dem-bones "
    "0.13.1). "
    "E_RMS is per mille of the unit ball around the first frame. elastic_cow, horse_collapse, samba and horse_gallop "
    "are the paper's own animations; flag and skirt are cloth simulated by Blender, similar to the paper's in kind and "
    "size, but not the same."
)


class Kept:
    """Measured values by name, saved to disk at once."""

    def __init__(self, resume: bool):
        self._values = json.loads(KEPT.read_text()) if resume and KEPT.is_file() else {}

    def get(self, name: str, function, *arguments):
        """The value of this name; if unknown, the result of ``function`` in a separate process."""
        if name not in self._values:
            self._values[name] = in_own_process(function, *arguments)
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            KEPT.write_text(json.dumps(self._values))
        return self._values[name]


def measure_all(rows, files, kept: Kept) -> dict[tuple[str, int], dict[str, Result]]:
    """Sequence and bones to column to result."""
    results = {}
    for name, bones in rows:
        results[name, bones] = {}
        print(f"\n{name}, {bones} bones")
        for way, columns in WAYS.items():
            measured = kept.get(f"{name} {bones} {way}", measure, str(files[name]), name, bones, way)
            for column, values in zip(columns, measured, strict=True):
                result = Result(**values)
                results[name, bones][column] = result
                shown = result.missing or f"{result.e_rms:9.3g} {result.wall:7.1f} s {result.processor:7.1f} s"
                print(f"  {column:24} {shown}", flush=True)
    return results


def show_reductions(tables: Tables, files, kept: Kept, reference) -> None:
    tables.begin(
        "Table 1: reduction of the animation",
        "Dimension d, and processor time in seconds in brackets, at which the five methods of reduction reach the "
        f"paper's ε ({PAPER_EPSILON:g} · √(3NF)). Exact: eigenvectors of AAᵀ, instead of LAPACK's singular value "
        "decomposition in the paper; for more than 800 frames a randomized range finder. Each frame's mean position "
        "is subtracted first, which the paper does not do.",
        *("sequence", "N", "3F", *(strategy.lower().replace("_", " ") for strategy in STRATEGY_COLUMNS)),
    )
    for name, file in files.items():
        size, cells = kept.get(f"{name} reduction", reduce, str(file), name)
        shown = (f"{dimension} ({seconds:.1f})" for dimension, seconds in cells)
        tables.row(name, f"{size[0]:,}", f"{size[1]:,}", *shown)
    paper = reference.get("kavan2010_table1_flag")
    if paper:
        cells = (paper[column] for column in STRATEGY_COLUMNS.values())
        tables.row("paper's flag, in 2010", "6,906", "600", *(f"{d} ({seconds:g})" for d, seconds in cells))


def reduce(file: str, name: str) -> tuple[tuple[int, int], list[tuple[int, float]]]:
    assert set(STRATEGIES) == set(STRATEGY_COLUMNS)
    matrix = AnimationMatrix(_sequences.read(Path(file), name).frames)
    cells = []
    for strategy in STRATEGY_COLUMNS:
        start = time.process_time()
        dimension = reduce_animation(matrix, PAPER_EPSILON, strategy).dimension
        cells.append((dimension, time.process_time() - start))
    return (matrix.vertex_count, matrix.height), cells


def show_errors(tables: Tables, files, results, reference) -> None:
    sizes = {name: _sequences.read(file, name).frames.shape for name, file in files.items()}
    tables.begin(
        "Table 2: error",
        "E_RMS. Each column has the same number of bones, clusters or quadruples of components. 4 influences, except "
        "Dem Bones at its defaults (8) and columns that say 8. Kavan et al. 2010 is our implementation of the paper's "
        "text. Clustered PCA and SVD are not skinning: they store 4 or 4P numbers for each vertex, which engines "
        "cannot use for skinning.",
        *("sequence", "vertices", "frames", "bones", *COLUMNS),
    )
    table = reference.get("kavan2010_table2", {})
    for (name, bones), row in results.items():
        frames, vertices, _ = sizes[name]
        shown = (row[column].missing or short(row[column].e_rms) for column in COLUMNS)
        tables.row(name, f"{vertices:,}", str(frames), str(bones), *shown)
        paper = paper_row(table, name, bones)
        if paper:
            title = "paper" if name in dict(_sequences.CAPTURED) else f"paper, its own {name}"
            cells = (paper.get(PAPER_COLUMNS.get(column)) for column in COLUMNS)
            shown = ("" if cell is None else f"{cell:g}" for cell in cells)
            tables.row(title, f"{paper['vertices']:,}", str(paper["frames"]), str(bones), *shown)


def paper_row(table: dict, name: str, bones: int) -> dict | None:
    values = table.get(name if name in table else f"{name}_{bones}")
    return dict(zip(table["columns"], values, strict=True)) if values else None


def short(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def show_misses(tables: Tables, results, reference) -> None:
    """The columns whose figures are not the paper's, on the paper's own animations."""
    tables.begin(
        "Baselines that miss the paper's figure",
        f"Our error divided by the error in the paper, on the paper's own animations; bold beyond a factor of {MISS}.",
        *("sequence", *PAPER_COLUMNS),
    )
    missed = set()
    for (name, bones), row in results.items():
        paper = paper_row(reference.get("kavan2010_table2", {}), name, bones)
        if name not in dict(_sequences.CAPTURED) or not paper:
            continue
        cells = []
        for column, key in PAPER_COLUMNS.items():
            ratio = row[column].e_rms / paper[key]
            far = not 1 / MISS <= ratio <= MISS
            cells.append(f"**{ratio:.2f}**" if far else f"{ratio:.2f}")
            if far:
                missed.add(column)
        tables.row(name, *cells)
    for column, why in WHY.items():
        if column in missed:
            tables.note(f"{column}: {why}")


WHY = {
    SMA: (
        "mean shift and its bandwidths are not the paper's software. Here clusters are split into connected parts, and "
        "the bandwidth with the least error out of six is used."
    ),
    CORRECTED.format(SMA): (
        "keys and shapes are fitted to the frames after the decomposition in the rest pose, so they answer the error "
        "itself; what they start from differs as the column before does."
    ),
    SAD: (
        "bones start from the motion of whole cells around the proxy joints, and all transforms are solved by LSQR to "
        "1e-8 from there. With bones that start from a ring of vertices around each joint, which the paper may have "
        "had, errors are [larger](published_method_figures.md#sad-from-cells-and-from-rings)."
    ),
    CORRECTED.format(SAD): (
        "the SAD that it starts from has less error here, and keys and shapes are fitted to the error of the frames."
    ),
    SVD: (
        "no 4P components leave less than these (Eckart & Young 1936). On all four animations the paper has less than "
        "is [possible with the public data](published_method_figures.md#the-papers-truncated-svd); on horse_gallop "
        "next to nothing is left, and the files' single precision decides."
    ),
    CPCA: "clusters start from cells spread over the rest pose and take turns with their components 30 times.",
    PAPER_METHOD: "[what the text leaves open](published_method_figures.md) decides by that much.",
}


def show_dem_bones(tables: Tables, results) -> None:
    if not dem_bones.available():
        tables.note("Dem Bones was not installed: `build.py bench skinning-tables --rivals` installs it (Python 3.11).")
        return
    tables.begin(
        "Rigid bones beside Dem Bones at its best",
        "Four influences. Dem Bones tuned: 100 iterations, no affine softening, smoothness 1e-6. Error, wall time and "
        "processor time are divided by those of Dem Bones.",
        *("sequence", "bones", "Dem Bones", "ours", "error", "wall", "processor"),
    )
    for (name, bones), row in results.items():
        theirs, ours = row[DEM_4], row[RIGID]
        tables.row(
            name,
            str(bones),
            f"{theirs.e_rms:.3f}",
            f"{ours.e_rms:.3f}",
            f"{ours.e_rms / theirs.e_rms:.2f}",
            f"{ours.wall / theirs.wall:.3f}",
            f"{ours.processor / theirs.processor:.3f}",
        )


def show_le_deng(tables: Tables, files, kept: Kept, reference) -> None:
    rows = {name: counts for name, counts in reference.get("le_deng_ssdr_affine", {}).items() if name in files}
    if not rows:
        return
    tables.begin(
        "Affine bones beside Le & Deng's own results",
        "Theirs: the published output of their program at 4 influences, with the seconds from its files.",
        *("sequence", "bones", "theirs", "ours", "error", "their seconds", "our seconds", "processor"),
    )
    ratios = []
    for name, counts in rows.items():
        for bones, error, seconds in counts if name != "columns" else ():
            measured = kept.get(f"{name} {bones} {AFFINE}", measure, str(files[name]), name, bones, AFFINE)
            ours = Result(**measured[0])
            ratios.append(ours.e_rms / error)
            cells = f"{error:.3f}", f"{ours.e_rms:.3f}", f"{ratios[-1]:.2f}", f"{seconds:.0f}"
            tables.row(name, str(bones), *cells, f"{ours.wall:.1f}", f"{ours.processor:.1f}")
    tables.note(f"Geometric mean of the shares: {np.exp(np.mean(np.log(ratios))):.2f}; largest: {max(ratios):.2f}.")


def show_times(tables: Tables, results) -> None:
    cores = os.cpu_count()
    for kind, what in (("wall", "Wall time"), ("processor", "Processor time")):
        tables.begin(
            what,
            f"{what} in seconds{'' if kind == 'wall' else ', all threads together'}, on a machine with {cores} cores "
            "that did other work too. Times of corrections do not include the method that they correct. SMA tries six "
            "bandwidths.",
            *("sequence", "bones", *COLUMNS),
        )
        for (name, bones), row in results.items():
            cells = ("–" if row[column].missing else f"{getattr(row[column], kind):.1f}" for column in COLUMNS)
            tables.row(name, str(bones), *cells)


if __name__ == "__main__":
    sys.exit(main())
