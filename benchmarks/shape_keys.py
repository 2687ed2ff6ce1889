# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys to bones: error, playing time and solving time over the number of bones, on the face beside the checkout.

../shared/tools/judge_face.py converts and judges in Blender; its head has the definitions.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from _tables import Tables  # noqa: E402 (beside this file)

SHARED = ROOT.parent / "shared"
JUDGE, FACE = SHARED / "tools" / "judge_face.py", SHARED / "data" / "ict_face.npz"
# Bones and influences.
CASES = (20, 8), (40, 8), (40, 4), (60, 8), (100, 8)
COLUMNS = (
    "bones, influences",
    "mean mm",
    "largest mm",
    "normals",
    "mixes: mean",
    "largest",
    "normals ",
    "update ms",
    "s",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    options = parser.parse_args()
    if not FACE.is_file() or not JUDGE.is_file():
        print("The face or its judge is not next to the checkout (../shared).")
        return 1
    tables = Tables(first=18)
    tables.begin(
        "Error over bones",
        "A whole head with teeth, eyes and lashes: 26,719 vertices, 57 shape keys, Rigid bones, all else by default, "
        "played in Blender. Errors are differences of coordinates, with each slider at 1 and in 20 mixes of six "
        "sliders; normals are the 90th percentile of their angles. *Update* moves all sliders.",
        *COLUMNS,
    )
    for bones, influences in CASES:
        command = sys.executable, str(JUDGE), str(FACE), str(bones), str(influences)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{bones} bones are not judged: {done.stderr.splitlines()[-1]}")
            return 1
        found = json.loads(lines[-1])
        cells = []
        for mean, largest, normals in (found["shapes"], found["mixes"]):
            cells += [f"{mean:.4f}", f"{largest:.2f}", f"{normals:.2f}°"]
        tables.row(f"{bones}, {influences}", *cells, f"{found['update_ms']:.1f}", f"{found['seconds']:.0f}")
    if options.write:
        command = "`python3 build.py bench shape-keys --write docs/shape_keys_figures.md`"
        tables.write(options.write, "Shape keys to bones in figures", f"Made by {command}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
