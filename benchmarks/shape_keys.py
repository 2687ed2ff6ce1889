# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys to bones: error, playing time, processor time and memory over settings, on the face beside the checkout,
and on a toon that is built here.

_judged_face.py converts and judges in Blender; its head has the definitions.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from _tables import Tables  # noqa: E402 (beside this file)
from _toon_face import toon_face  # noqa: E402 (beside this file)

FACE = ROOT.parent / "shared" / "data" / "ict_face.npz"
CASES = {
    "20 bones": {"bone_count": 20},
    "40 bones, the default": {},
    "40 bones, 4 influences": {"max_influences": 4},
    "40 bones, Draft": {"quality": "DRAFT"},
    "40 bones, Sparsity 0.3": {"sparsity": 0.3},
    "40 bones, Sparsity 0.85": {"sparsity": 0.85},
    "40 bones, Symmetric": {"symmetric": True},
    "60 bones": {"bone_count": 60},
    "100 bones": {"bone_count": 100},
}
# Of the toon: how it is built, and the operator's settings.
TOON_CASES = {
    "symmetric": ({}, {}),
    "symmetric, *Symmetric*": ({}, {"symmetric": True}),
    "symmetric, 4 influences": ({}, {"max_influences": 4}),
    "asymmetric": ({"symmetric": False}, {}),
    "low poly": ({"detail": 0.25}, {}),
}
COLUMNS = (
    *("mean mm", "largest mm", "normals", "mixes: mean", "largest", "normals "),
    *("motions", "update ms", "processor s", "MB"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in this page, too")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at a time (default: 1)")
    options = parser.parse_args()
    if not FACE.is_file():
        print("The face is not next to the checkout (../shared).")
        return 1
    tables = Tables(first=24)
    tables.begin(
        "Error over settings",
        "A whole head with teeth, eyes and lashes: 26,719 vertices, 57 shape keys, Rigid bones, 8 influences and all "
        "else by default, played in Blender. Errors are differences of coordinates, with each slider at 1 and in 20 "
        "mixes of six sliders; normals are the 90th percentile of their angles. *Motions* tells how many of all, of "
        "each bone by each slider, are not zero. *Update* moves all sliders: the shortest of 20, which is longer while "
        "the machine is busy. Seconds of processor time and megabytes of memory are of the whole conversion. Made by "
        "`python3 build.py bench shape-keys --write docs/shape_keys_figures.md`.",
        "settings", *COLUMNS,
    )  # fmt: skip
    with ThreadPoolExecutor(options.jobs) as jobs, tempfile.TemporaryDirectory() as folder:
        for name, found in zip(CASES, jobs.map(lambda given: _judged(FACE, given), CASES.values()), strict=True):
            tables.row(name, *_cells(found))
        tables.begin(
            "A toon",
            "A toon's head of separate parts (benchmarks/_toon_face.py): 10,640 vertices and 37 shape keys, 25 where "
            "it is asymmetric; 744 vertices as low poly. Its jaw drops by 4 cm and its head stretches by a third, "
            "which rigid bones can only approximate. As above otherwise, and made by the same command.",
            "face", *COLUMNS,
        )  # fmt: skip
        cases = [(Path(folder) / f"{number}.npz", *case) for number, case in enumerate(TOON_CASES.values())]
        for name, found in zip(TOON_CASES, jobs.map(lambda case: _judged_toon(*case), cases), strict=True):
            tables.row(name, *_cells(found))
    if options.write:
        tables.replace(options.write)
    return 0


def _judged_toon(path: Path, built: dict, settings: dict) -> dict:
    face = toon_face(**built)
    np.savez(path, rest=face.rest, deltas=face.deltas, quads=face.faces, shape_names=face.names)
    return _judged(path, settings)


def _judged(face: Path, settings: dict) -> dict:
    command = sys.executable, str(ROOT / "benchmarks" / "_judged_face.py"), str(face), json.dumps(settings)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{settings} is not judged: {done.stderr.splitlines()[-1:]}")
    return json.loads(lines[-1])


def _cells(found: dict) -> list[str]:
    cells = []
    for mean, largest, normals in (found["shapes"], found["mixes"]):
        cells += [f"{mean:.4f}", f"{largest:.2f}", f"{normals:.2f}°"]
    cells += [f"{found['share']:.0%}", f"{found['update_ms']:.1f}"]
    return [*cells, f"{found['processor']:.0f}", f"{found['megabytes']:.0f}"]


if __name__ == "__main__":
    sys.exit(main())
