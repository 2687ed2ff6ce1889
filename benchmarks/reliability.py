# SPDX-License-Identifier: GPL-3.0-or-later
"""Thousands of adverse cases: properties of core, damaged files, random walks, many conversions, disks, existing files.

What the suite tries a little of (tests/core/test_properties.py, tests/blender/test_reliability.py), with the same
seeds on, and the suite's properties of single steps with other inputs than it has. What fails is printed with its
seed; a walk that fails also as a sequence of steps, which --replay makes shorter.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _tables import Tables  # noqa: E402 (beside this file)

from tests.core import properties  # noqa: E402 (the checkout's)
from tests.core.binding import properties as binding_properties  # noqa: E402
from tests.reliability import children, disks  # noqa: E402

PROPERTY_INPUTS, SLOW_INPUTS, SUITE_INPUTS = 150, 20, 6
SLOW = ("pictures_take_any_figures",)
READERS = {
    "PC2 and MDD": ("readers:point_cache", 1500),
    "Alembic": ("readers:alembic", 40),
    ".blend": ("readers:blend_file", 200),
}
WALKS, CONVERSIONS = 200, 200
PATIENCE = 300.0
CONVERT = ["convert", "--object", "Flag", "--bones", "4", "--iterations", "1", "--quiet", "--input", "shot.blend"]
CURVE = ["--target-error", "5", "--curve", "disk/curve.png"]
# Label, arguments of the command line, the disk, and an existing file.
DISKS = (
    ("result", ["--output", "disk/out.blend", "--report", "report.json"], "out.blend"),
    ("report", ["--output", "out.blend", "--report", "disk/report.json"], ""),
    ("curve of error", ["--output", "out.blend", *CURVE, "--report", "report.json"], "curve.png"),
)
WAYS = {
    "deleted": "deleted before the next",
    "undone": "undone before the next",
    "refused": "stopped halfway, or deleted",
    "new_files": "in a reopened file",
    "kept": "all kept",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="fraction of all inputs (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed for the inputs")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument("--only", choices=SECTIONS, help="only this section; --write leaves the others as they are")
    parser.add_argument("--replay", type=Path, metavar="STEPS.json", help="only run these steps, and shorten them")
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    tables, seeds = Tables(first=46), _Seeds(options.first_seed, options.share)
    chosen = [options.only] if options.only else SECTIONS
    failures = sum(SECTIONS[name](tables, seeds) for name in chosen)
    print(f"\n{failures} failures")
    if options.write and options.only and not failures:
        tables.replace(options.write)
    elif options.write and not options.only:
        tables.write(options.write, "Reliability", _head(options.first_seed, failures))
    return int(failures > 0)


class _Seeds:
    def __init__(self, first: int, share: float):
        self._first, self._share = first, share

    def of(self, count: int) -> range:
        return range(self._first, self._first + self.count(count))

    def count(self, count: int) -> int:
        return max(round(count * self._share), 1)


def _head(first_seed: int, failures: int) -> str:
    code = "import bpy; print(bpy.app.version_string)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split("\n")[0]
    return (
        f"How the extension behaves with damaged files, random operations and full disks: {failures} failures in "
        f"all tests below. Blender {said}, Python {sys.version.split()[0]}, numpy {np.__version__}. Seeds from "
        f"{first_seed} on make the inputs, so they are the same in every run; Blender's own crashes on the same "
        "input vary. A failure is any outcome except a correct result or a message that says what is wrong and "
        "what to do: another exception, wrong figures, a damaged file taken for a complete one, data-blocks left "
        "behind, an undo that does not restore the scene. If Blender itself crashes on damaged data before the "
        "extension sees any of it, this is counted separately. The test suite tries the first seeds of each "
        "table. Made by "
        "`python3 build.py bench reliability --write docs/reliability.md`."
    )


def show_properties(tables: Tables, seeds: _Seeds) -> int:
    tables.begin(
        "Properties of core",
        "Animations, meshes, skeletons and weights of all kinds: lines, planes, lumps, torn and doubled meshes, from "
        "micrometers to kilometers, far from the origin, bones without length, mirroring and singular matrices.",
        *("property", "inputs", "failures"),
    )
    warnings.filterwarnings("error", category=RuntimeWarning, module="skinning_tools")
    total = 0
    for holds in (*properties.PROPERTIES, *binding_properties.PROPERTIES):
        tried = seeds.of(SLOW_INPUTS if holds.__name__ in SLOW else PROPERTY_INPUTS)
        failed = 0
        for seed in tried:
            try:
                holds(np.random.default_rng(seed))
            except Exception as error:  # noqa: BLE001 - any is a failure
                failed += 1
                print(f"  {holds.__name__}, seed {seed}: {type(error).__name__}: {str(error)[:300]}")
        total += failed
        tables.row(holds.__name__.replace("_", " "), str(len(tried)), str(failed))
    tried = seeds.of(SUITE_INPUTS)
    failed = sum(suite_fails(seed) for seed in tried)
    tables.row("all those of single steps that the suite has, by sets of inputs", str(len(tried)), str(failed))
    return total + failed


def suite_fails(seed: int) -> bool:
    """Whether the suite's properties fail with the inputs of a seed; prints failures."""
    command = [sys.executable, "-m", "pytest", "tests/core", "-m", "hypothesis", "-q", f"--hypothesis-seed={seed}"]
    came = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if came.returncode:
        print(f"  {' '.join(command[1:])}\n{came.stdout[-2000:]}")
    return came.returncode != 0


def show_readers(tables: Tables, seeds: _Seeds) -> int:
    tables.begin(
        "Damaged files",
        "Files that are cut short, with flipped bits, with numbers in the header or elsewhere replaced by zero, "
        "negative or huge ones or NaN, with blocks of zeros or repeated parts, or replaced by other files and folders; "
        "point caches that also change while they are read. Each is converted. For point caches, a second reader "
        "written from the format's description checks the result.",
        *("format", "inputs", "converted", "refused", "Blender crashed", "failures"),
    )
    total = 0
    for name, (task, count) in READERS.items():
        results = list(children.tried(f"tests.reliability.{task}", seeds.of(count)))
        counts = Counter(_kind(result) for result in results)
        total += counts["failure"]
        numbers = (counts[kind] for kind in ("converted", "refused", "of Blender", "failure"))
        tables.row(name, str(len(results)), *map(str, numbers))
    return total


def _kind(result: dict) -> str:
    """The category of a result; prints failures."""
    if result["outcome"] in ("converted", "refused", "held", "done"):
        return result["outcome"]
    if result["outcome"] in (children.CRASHED, children.HUNG) and children.is_of_blender(result["where"]):
        return "of Blender"
    print(f"  failure: {json.dumps(result)[:2000]}")
    return "failure"


def show_walks(tables: Tables, seeds: _Seeds) -> int:
    tables.begin(
        "Random walks",
        "Fourteen steps each from one of seven scenes: any operator whose poll allows it, with settings of all kinds; "
        "edits that users make (objects, modifiers, groups, bones and keys deleted or renamed, the extension's stored "
        "data overwritten, modes, frames); undo and redo. Checked after each step: a refused operator changed nothing, "
        "no unused data-blocks, no NaN, an undo restored everything, every panel draws.",
        *("walks", "operators done", "refused", "undo and redo", "Blender crashed", "failures"),
    )
    results = list(children.tried("tests.reliability.walk:walk", seeds.of(WALKS), PATIENCE))
    counts = Counter(_kind(result) for result in results)
    for result in (each for each in results if each["outcome"] == "failed"):
        path = Path(tempfile.gettempdir()) / f"walk_{result['seed']}.json"
        path.write_text(json.dumps(result["steps"]))
        print(f"  its steps: {path}")
    sums = (str(sum(result.get(name, 0) for result in results)) for name in ("taken", "refused", "undone"))
    tables.row(str(len(results)), *sums, str(counts["of Blender"]), str(counts["failure"]))
    return counts["failure"]


def show_memory(tables: Tables, seeds: _Seeds) -> int:
    count = seeds.count(CONVERSIONS)
    tables.begin(
        f"{count} conversions in one process",
        "1,200 vertices, 24 frames. MB in memory, and data-blocks in the file, by number of conversions. Kept results "
        "take memory: each is a mesh, an armature and an action.",
        *("results", "MB after 1", "after 20", f"after {count}", "most", "blocks after 20", f"after {count}"),
    )
    failures = 0
    for way, text in WAYS.items():
        (result,) = children.tried(f"tests.reliability.repeated:{way}", [count], PATIENCE)
        failed = result["outcome"] != "done" or result["left"]
        failures += failed
        if failed:
            print(f"  failure: {json.dumps(result)[:2000]}")
            continue
        first, warm, most, last = (f"{value:.0f}" for value in result["megabytes"])
        tables.row(text, first, warm, last, most, *map(str, result["blocks"][1:]))
    return failures


def show_files(tables: Tables, seeds: _Seeds) -> int:
    """Run all of them, ignoring the share."""
    with tempfile.TemporaryDirectory(prefix="skinning_tools_") as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "tests.reliability.file_roles", str(path)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        results = json.loads(path.read_text())
    places = [place for place in dict.fromkeys(each["place"] for each in results) if " --" not in place]
    options = {each["place"] for each in results if " --" in each["place"]}
    tables.begin(
        "Files in the place of others",
        "Every way to name a file to write, against every kind of existing file, each by its path, a relative path, a "
        "link, a link to a link, a hard link and through a linked folder. The whole folder is compared before and "
        f"after. In addition, all {len(options)} options of the subcommands that name a file to write, against inputs, "
        "libraries and files of other programs. The rule: [What is replaced](command_line.md#what-is-replaced). "
        "If there are two words, the second is with `--overwrite`.",
        *("existing file", *places, "tried", "failures"),
    )
    for role in dict.fromkeys(each["role"] for each in results):
        of_role = [each for each in results if each["role"] == role]
        cells = []
        for place in places:
            found = {each["overwrite"]: each["expected"] for each in of_role if each["place"] == place}
            cells.append(", ".join(dict.fromkeys(found[each] for each in sorted(found))) or "-")
        tables.row(role, *cells, str(len(of_role)), str(sum(each["failure"] is not None for each in of_role)))
    failed = [each["failure"] for each in results if each["failure"]]
    for text in failed:
        print(f"  failure: {text}")
    return len(failed)


def show_disks(tables: Tables, seeds: _Seeds) -> int:
    if not disks.can_mount():
        print("\nDisks cannot be mounted here: those that are full or read-only are left out")
        return 0
    tables.begin(
        "Disks",
        "The command line on real disks that are full or read-only, with an older file of the same name. Exit codes: "
        "[command line](command_line.md).",
        *("file", "disk", "exit code", "older file", "incomplete file", "says why"),
    )
    failures = 0
    with tempfile.TemporaryDirectory(prefix="skinning_tools_") as folder:
        shot = Path(folder) / "shot.blend"
        _write_shot(shot)
        for what, arguments, old in DISKS:
            for kind in (disks.FULL, disks.READ_ONLY):
                came = disks.OnDisk([*CONVERT, *arguments], kind, shot, old=(old,) if old else ())
                others = came.files.keys() - {old}
                same = came.files.get(old) == disks.OLDER.get(old)
                words = "full" in came.error or "No space" in came.error or "ead-only" in came.error
                failures += not (same and words) or bool(others) or came.code == 0
                untouched = "as it was" if old and same else "-" if same else "spoiled"
                tables.row(what, kind, str(came.code), untouched, str(len(others)), "yes" if words else "no")
    return failures


def _write_shot(path: Path) -> None:
    code = "import sys, os, bpy; sys.path.insert(0, sys.argv[1]); from tests.blender import moving_meshes as meshes; "
    code += "meshes.fresh_scene(); meshes.waving_grid(columns=40, rows=30); "
    code += "bpy.ops.wm.save_as_mainfile(filepath=sys.argv[2]); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(ROOT), str(path)], check=True, stdout=subprocess.DEVNULL)


SECTIONS = {
    "properties": show_properties,
    "readers": show_readers,
    "walks": show_walks,
    "memory": show_memory,
    "disks": show_disks,
    "files": show_files,
}


def replay(path: Path) -> int:
    """Run a walk's steps, and print the shortest sequence that fails in the same way."""
    from tests.reliability import walk

    steps = json.loads(path.read_text())
    with tempfile.TemporaryDirectory(prefix="skinning_tools_") as folder:
        walk.prepare(Path(folder))
        print(walk.replay(steps, Path(folder)) or "nothing breaks")
        print(json.dumps(walk.shrunk(steps, Path(folder))))
    sys.stdout.flush()
    # Blender's modules before 5.2 can crash while Python shuts down.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
