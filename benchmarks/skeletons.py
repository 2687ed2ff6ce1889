# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons found in the motion of artists' characters, compared with their own: joints, links and number of bones.
What bones that only rotate cost on captured performers, in error and in processor time; and what the skeletons are
worth to who poses them.

Each character of ../shared/data/rigs becomes a mesh that moves, without its skeleton, and is converted with Joint
Hierarchy and up to 60 Rigid bones. ../shared/tools/judge_skeleton.py converts and judges; its head has the definitions.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = str(ROOT / "benchmarks"), str(ROOT)

from _posed_skeletons import CAPTURED, MOST_BONES, posed_skeletons, skeleton_of  # noqa: E402 (beside this file)
from _sequences import captured  # noqa: E402
from _tables import Tables  # noqa: E402

from skinning_tools.core.decomposition import Decomposition, Settings, decompose  # noqa: E402

SHARED = ROOT.parent / "shared"
JUDGE = SHARED / "tools" / "judge_skeleton.py"
COLUMNS = "character", "parts", "bones", "ratio", "joints within 3 %", "within 5 %", "right links", "roots", "E_RMS"
KEYS = "true_parts", "bones", "ratio", "within_3", "within_5", "right_links", "roots", "e_rms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    options = parser.parse_args()
    rigs = sorted((SHARED / "data" / "rigs").glob("*.glb"))
    if not rigs or not JUDGE.is_file():
        print("The characters or their judge are not next to the checkout (../shared).")
        return 1
    tables = Tables(first=18)
    tables.begin(
        "Skeletons of characters",
        f"Up to {MOST_BONES} Rigid bones. *Parts* are the character's own bones that turn by more than 10° against "
        "their parents, *bones* the found ones that carry skin. Joints are counted by their distance from the true "
        "ones, as shares of the body's diagonal. A link between two parts is right if they are parent and child, or "
        "turn about a common point.",
        *COLUMNS,
    )
    found, left_out = [], []
    for path in rigs:
        command = sys.executable, str(JUDGE), str(path), str(MOST_BONES)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{path.stem} is not judged: {done.stderr.splitlines()[-1]}")
            left_out.append(path.stem)
            continue
        figures = json.loads(lines[-1])
        found.append([figures[key] for key in KEYS])
        tables.row(path.stem, *(f"{value:g}" for value in found[-1]))
    tables.row("mean", *(f"{sum(column) / len(found):.2f}" for column in zip(*found, strict=True)))
    if left_out:
        tables.note(f"Not judged, as they have no animation: {', '.join(left_out)}.")
    rotation_only(tables)
    posed_skeletons(tables)
    if options.write:
        command = "`python3 build.py bench skeletons --write docs/skeleton_figures.md`"
        tables.write(options.write, "Skeletons found in animations", f"Made by {command}.")
    return 0


def rotation_only(tables: Tables) -> None:
    tables.begin(
        "Rotation Only on captured performers",
        f"Up to {MOST_BONES} Rigid bones that form a skeleton, each but the root only rotating, beside as many free "
        "bones, and beside half as many, which have the same freedom: three numbers for each turn, six for each free "
        f"bone. *Time*: processor time of the whole solve as a multiple of that of {MOST_BONES} free bones.",
        *("performer", "bones", "E_RMS of free bones", "of half as many", "E_RMS", "ratio", "time"),
    )
    for name in CAPTURED:
        animation = captured(name)
        _, usual = timed(lambda animation=animation: decompose(animation, Settings(MOST_BONES, "RIGID")))
        solved, seconds = timed(lambda animation=animation: skeleton_of(animation, held=True)[0])
        free = decompose(animation, Settings(solved.bone_count, "RIGID"))
        half = decompose(animation, Settings((solved.bone_count + 1) // 2, "RIGID"))
        errors = free.e_rms, half.e_rms, solved.e_rms, solved.e_rms / free.e_rms
        tables.row(name, str(solved.bone_count), *(f"{value:.2f}" for value in (*errors, seconds / usual)))


def timed(solve: Callable[[], Decomposition]) -> tuple[Decomposition, float]:
    """What ``solve`` returns, and the seconds that all processors were busy with it."""
    begin = time.process_time()
    return solve(), time.process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
