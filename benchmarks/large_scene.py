# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of all panels and all polls in a scene with thousands of other objects, in every mode.

A layout that draws nothing stands in for Blender's, so that the time is the extension's own. Milliseconds of the
processor, the least of several runs: with everything as it was at the last redraw, and after a change of the scene, as
while something is dragged. Anew: where nothing may be remembered, as in background mode.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import bpy  # noqa: E402
from _tables import Tables  # noqa: E402 (beside this file)

import skinning_tools  # noqa: E402 (the checkout's)
from skinning_tools.blender import look_ups  # noqa: E402
from tests.blender import crowded_scenes  # noqa: E402
from tests.reliability import paper_layout, walk  # noqa: E402


class _Blank(paper_layout.PaperLayout):
    """A layout that accepts all calls and checks nothing, which would take longer than the panels."""

    def _nothing(self, *_, **__) -> None:
        pass

    label = prop = prop_search = progress = _nothing

    def operator(self, *_, **__):
        return type("Properties", (), {})()

    operator_menu_enum = operator


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=3000, help="number of other objects (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=15, help="runs, of which the fastest counts (default: %(default)s)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    skinning_tools.register()
    paper_layout.PaperLayout = _Blank
    crowded_scenes.character()
    with tempfile.TemporaryDirectory() as folder:
        crowded_scenes.add_crowd(options.objects, Path(folder) / "crowd.blend")
    # The method whose panel searches most.
    bpy.context.scene.skinning_bind.method = "CONTAINMENT"
    tables = Tables(first=28)
    kinds = ", ".join(crowded_scenes.KINDS)
    tables.begin(
        f"{options.objects:,} other objects",
        f"Milliseconds of all panels and of all polls. The others are in equal parts: {kinds}.",
        *("active", "panels", "after a change", "uncached", "polls", "after a change", "uncached"),
    )
    for name, mode in crowded_scenes.STATES:
        crowded_scenes.enter(name, mode)
        cells = [each for call in (paper_layout.draw_all, _poll_all) for each in _milliseconds(call, options.runs)]
        tables.row(f"{name}, {mode}", *(f"{each:.1f}" for each in cells))
    if options.write:
        command = "`python3 build.py bench large-scene --write docs/large_scene_figures.md`"
        tables.write(options.write, "Panels in large scenes", f"{__doc__.splitlines()[0]} Made by {command}.")
    return 0


def _milliseconds(call, runs: int) -> list[float]:
    """With remembered look-ups, after a change, and without remembered look-ups."""
    look_ups._has_redraws = lambda: True
    call()
    found = [_least(call, runs, lambda: None), _least(call, runs, look_ups._forget)]
    look_ups._has_redraws = lambda: False
    return [*found, _least(call, runs, lambda: None)]


def _least(call, runs: int, before) -> float:
    least = float("inf")
    for _ in range(runs):
        before()
        start = time.thread_time()
        call()
        least = min(least, time.thread_time() - start)
    return 1000 * least


def _poll_all() -> None:
    for name in walk.operator_names():
        walk._poll(name)


if __name__ == "__main__":
    sys.exit(main())
