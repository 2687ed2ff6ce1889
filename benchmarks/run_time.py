# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of conversions, and the error of the panel's estimate, which is in skinning_tools/core/run_time.py.

Whole conversions in Blender of the captured sequences, of cloth that is simulated while it is read and of tubes of
several sizes, each in a process of its own, with settings that vary. Seconds are of the processor, so that other work
on the machine does not count; with two cores or more the wall clock shows less of the solve.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import _sequences  # noqa: E402 (beside this file)
from _meshes import tube  # noqa: E402
from _process import in_own_process  # noqa: E402
from _tables import Tables  # noqa: E402
from scale import moving  # noqa: E402

from skinning_tools.core.decomposition import Settings  # noqa: E402 (the checkout's)
from skinning_tools.core.run_time import Work, stage_seconds  # noqa: E402

# Stages by the first word of the progress text.
STAGES = {"Reading": "read", "Solving": "solve", "Writing": "write", "Reducing": "reduce", "Measuring": "measure"}
SEQUENCES = (
    "elastic_cow",
    "horse_collapse",
    "horse_gallop",
    "samba",
    "cloth 40",
    "cloth 80",
    "tube 5000",
    "tube 40000",
    "tube 3000 800",
)
VARIANTS = (
    {},
    {"bone_count": 60, "iterations": 30},
    {"bone_count": 10, "bone_kind": "RIGID", "max_influences": 8},
    {"bone_count": 40, "bone_kind": "SCALED", "residual_shapes": 6},
    {"bone_count": 30, "smoothness": 0.3, "key_tolerance": 0.5},
    {"bone_count": 30, "target_error": 2.0},
    {"bone_count": 30, "bone_kind": "RIGID"},
    {"bone_count": 30, "max_influences": 8},
    {"bone_count": 30, "bone_kind": "RIGID", "joint_hierarchy": True},
    {"bone_count": 30, "bone_kind": "RIGID", "joint_hierarchy": True, "rotation_only": True},
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", nargs="+", default=list(SEQUENCES), help="a file, 'cloth N' or 'tube N F'")
    parser.add_argument(
        "--runs", type=Path, metavar="FILE", help="store measurements in this file, and reuse stored ones"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    runs = measured(options.sequences, options.runs)
    tables = Tables(first=16)
    show(tables, runs)
    if options.write:
        command = "`python3 build.py bench run-time --write docs/run_time_figures.md`"
        text = f"Whole conversions in Blender, processor time in seconds. Made by {command}."
        tables.write(options.write, "How long a conversion takes, and how good the estimate is", text)
    return 0


def measured(sequences, file: Path | None) -> list[dict]:
    runs = json.loads(file.read_text()) if file and file.is_file() else []
    for name in sequences:
        for variant in VARIANTS:
            if any((run["name"], run["variant"]) == (name, variant) for run in runs):
                continue
            run = in_own_process(convert, name, variant)
            print(name, variant, {stage: round(value, 2) for stage, value in run["seconds"].items()}, flush=True)
            runs.append(run)
            if file:
                file.write_text(json.dumps(runs))
    return runs


def show(tables: Tables, runs: list[dict]) -> None:
    tables.begin(
        "Estimate over what it took",
        "Measured: seconds of all stages together. Ratio: the estimate over that; its constants were chosen by these "
        "runs.",
        *("sequence", "bones", "kind", "other", "measured", "ratio"),
    )
    ratios = []
    for run in runs:
        settings = Settings(**run["settings"])
        total = sum(run["seconds"].values())
        ratios.append(sum(stage_seconds(Work(settings=settings, **run["work"])).values()) / total)
        other = ", ".join(f"{key} {value:g}" for key, value in run["variant"].items() if key not in SHOWN) or "–"
        cells = str(settings.bone_count), settings.bone_kind.lower(), other, f"{total:.1f}"
        tables.row(run["name"], *cells, f"{ratios[-1]:.2f}")
    logs = np.abs(np.log(ratios))
    tables.note(
        f"Half of the estimates are within a factor of {np.exp(np.median(logs)):.2f}, nine of ten within "
        f"{np.exp(np.quantile(logs, 0.9)):.2f}, the worst is off by {np.exp(logs.max()):.2f}."
    )


# In columns of their own.
SHOWN = ("bone_count", "bone_kind")


# This runs in a process of its own.


def convert(name: str, variant: dict) -> dict:
    import bpy

    import skinning_tools
    from skinning_tools.features.convert import conversion, estimate
    from skinning_tools.features.convert.settings import ConvertSettings

    bpy.ops.wm.read_factory_settings(use_empty=True)
    skinning_tools.register()
    with tempfile.TemporaryDirectory() as folder:
        source = _cloth(int(name.split()[1])) if name.startswith("cloth") else _cached(name, Path(folder))
        bpy.context.view_layer.update()
        settings = ConvertSettings(**variant)
        work = estimate.work_of(bpy.context, [source], settings)
        steps = conversion.convert(bpy.context, [source], settings)
        seconds, before, stage = dict.fromkeys(STAGES.values(), 0.0), time.process_time(), "read"
        begin = time.perf_counter()
        for _, text in steps:
            now = time.process_time()
            seconds[stage] += now - before
            before, stage = now, STAGES[text.split()[0].rstrip(":")]
        seconds[stage] += time.process_time() - before
    counts = ("frame_count", "vertex_count", "simulated", "key_tolerance", "jointed")
    return {
        "name": name,
        "variant": variant,
        "settings": asdict(settings.for_solver()),
        "work": {count: getattr(work, count) for count in counts},
        "seconds": {each: value for each, value in seconds.items() if value},
        "wall": time.perf_counter() - begin,
    }


def _cached(name: str, folder: Path):
    """A mesh that a Mesh Cache modifier moves."""
    from tests.blender import scenes

    if name.startswith("tube"):
        vertices, frame_count = (*map(int, name.split()[1:]), 100)[:2]
        rest, triangles = tube(vertices)
        frames = np.array(list(moving(rest, frame_count)), np.float32)
    else:
        animation = _sequences.read(_sequences.path(name), name)
        frames, triangles = animation.frames, animation.triangles
    source = scenes.mesh_object(frames[0], triangles.tolist())
    scenes.write_pc2(folder / "cache.pc2", frames)
    scenes.point_cache(source, folder / "cache.pc2", "PC2")
    _range(len(frames))
    return source


def _cloth(side: int):
    """A falling flag of ``side`` × ``side`` faces, simulated during reading."""
    from mathutils import Matrix

    from tests.blender import scenes

    source = scenes.grid(side, side)
    source.data.transform(Matrix.Scale(2 / side, 4))
    scenes.cloth(source, pinned=range(side + 1))
    _range(60)
    return source


def _range(frame_count: int) -> None:
    import bpy

    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frame_count


if __name__ == "__main__":
    sys.exit(main())
