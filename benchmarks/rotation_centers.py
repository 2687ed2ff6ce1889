# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape, memory, time and exactness of center-of-rotation skinning, compared with the evaluation of 2019.

The evaluation's cuboid, twisted and bent: the volume that each method keeps, and how far it bulges. Memory for each
bone and vertex as in its section 5.2.2. Frames per second in Blender. The bake of the human rig of ../shared/data
without subdivision: naive, in parallel, breadth-first and ours. Then ours with subdivision: the human rig, a mesh of
the size of the paper's raptor, and meshes of 10,000 to 200,000 vertices with 79 bones and 4 influences a vertex, as a
tube along a chain of bones and as a ball with bones all through it. Seconds of bakes are of the processor, so that
other work on the machine does not count; memory is the most that the process ever had. Last, everything that the
evaluation measures, on models of the sizes of its three: bakes by all variants, frames, memory.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import _evaluation_tables as evaluation  # noqa: E402 (beside this file)
import rotation_center_poses as poses  # noqa: E402 (in demos)
from _evaluation_models import SIZES as PAPER_SIZES  # noqa: E402
from _evaluation_tables import FLOATS  # noqa: E402
from _meshes import BONES, INFLUENCES, creature, human  # noqa: E402
from _process import in_own_process, peak_memory  # noqa: E402
from _rotation_center_variants import Problem, breadth_first, in_parallel, naive  # noqa: E402
from _tables import Tables  # noqa: E402
from human_rig import HUMAN  # noqa: E402 (in demos)

from skinning_tools.core.deform import METHODS, skin_frame, vertex_transforms  # noqa: E402 (the checkout's)
from skinning_tools.core.rotation_centers import bake_rotation_centers  # noqa: E402

SIZES = (10_000, 20_000, 50_000, 100_000, 200_000)

PLAYBACK_COLUMNS = ("vertices", "minimum ms", "median ms", "90 % below", "frames per second")
SPREAD = "Methods take turns; other work on the machine shows in the spread. Frames per second are of the median."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="vertices of the growth table")
    parser.add_argument("--frames", type=int, default=200, help="number of timed updates")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument(
        "--only", nargs="+", choices=TABLES, help="only these tables; --write leaves the others of the page as they are"
    )
    options = parser.parse_args()
    tables = Tables()
    for name in options.only or TABLES:
        TABLES[name](tables, options)
    if options.write and options.only:
        tables.replace(options.write)
    elif options.write:
        command = "`python3 build.py bench rotation-centers --write docs/rotation_centers_figures.md`"
        tables.write(options.write, "Centers of rotation in figures", f"Made by {command}.")
    return 0


def show_shapes(tables: Tables, options) -> None:
    tables.begin(
        "Cuboid of the evaluation",
        "Three bones in a row, smooth weights. Volume and waist (the ring at the twisted joint) in percent of the rest "
        "pose; bulge: how far the outside of the bend exceeds a bar of constant width, in percent of the width.",
        *("pose", "method", "volume", "waist", "bulge"),
    )
    for name, twist, bend in (
        ("twist 180°", poses.TWIST, 0.0),
        ("bend 120°", 0.0, poses.BEND),
        ("both", poses.TWIST, poses.BEND),
    ):
        pose = poses.bar(twist, bend)
        for method in METHODS:
            bulge = f"{poses.bulge(pose, method, bend):+.1f}" if bend else "–"
            tables.row(name, method, f"{pose.kept_volume(method):.1f}", f"{poses.waist(pose, method):.1f}", bulge)


def show_bind_poses(tables: Tables, options) -> None:
    tables.begin(
        "Bound in a pose",
        "The same bar, whose shape fits the armature when the second joint is bent: at rest it has the shape that "
        "linear blending bends to it. Largest distance of what each method then shows in that pose from the bound "
        "shape; distance of the centers of the rest shape, moved to that pose, from those of the bound shape. All in "
        "percent of the width.",
        *("bound at", *METHODS, "centers, mean", "centers, largest"),
    )
    for bend in (30.0, 60.0, 90.0):
        pose = poses.bar(0.0, bend)
        bound, skin = pose.rest, (pose.bones, pose.weights, pose.matrices)
        blended = vertex_transforms(bound, *skin)
        linear, moves = blended[..., :3], blended[..., 3]
        rest = np.linalg.solve(linear, (bound - moves)[..., None])[..., 0]
        centers, valid = bake_rotation_centers(rest, pose.triangles, pose.bones, pose.weights)
        shown = {method: skin_frame(rest, *skin, method, centers) for method in METHODS}
        apart = [100 / poses.WIDTH * np.linalg.norm(shown[method] - bound, axis=1).max() for method in METHODS]
        moved = np.einsum("nij,nj->ni", linear, centers) + moves
        own, _ = bake_rotation_centers(bound, pose.triangles, pose.bones, pose.weights)
        distances = 100 / poses.WIDTH * np.linalg.norm(moved - own, axis=1)[valid]
        cells = [*(f"{value:.1f}" for value in apart), f"{distances.mean():.1f}", f"{distances.max():.1f}"]
        tables.row(f"{bend:.0f}°", *cells)


def show_memory(tables: Tables, options) -> None:
    meshes = {name: (vertices, bones) for name, (vertices, _, bones) in PAPER_SIZES.items()}
    if HUMAN.is_file():
        rest, _, _, _ = human()
        meshes["human rig"] = len(rest), len(np.load(HUMAN)["bone_names"])
    tables.begin(
        "Memory on the GPU",
        "Section 5.2.2 of the evaluation: memory of each method for bones and, beyond positions and weights, for "
        "vertices; single precision, in kB. The first three meshes are the evaluation's.",
        *("method", "floats per bone", "floats per vertex", *meshes),
    )
    for method, (per_bone, per_vertex) in FLOATS.items():
        sizes = [4e-3 * (per_bone * bones + per_vertex * vertices) for vertices, bones in meshes.values()]
        tables.row(method, str(per_bone), str(per_vertex), *(f"{size:.2f}" for size in sizes))


def show_playback(tables: Tables, options) -> None:
    if importlib.util.find_spec("bpy") is None:
        print("Playback is not measured: there is no bpy here. Run it by build.py.")
        return
    shown, what, missing = in_own_process(play_modifiers, options.frames)
    tables.begin(
        "Playback by modifiers",
        f"{what}: evaluation of a frame, including the animation of the bones. {SPREAD}",
        *("modifier", *PLAYBACK_COLUMNS),
    )
    for row in shown:
        tables.row(*playback_cells(*row))
    if missing:
        tables.note(missing)
    drawn = in_own_process(draw_overlay, options.frames)
    if drawn is None:
        print("The preview's drawing is not measured: without a window it needs Blender 5.1 and a GPU or Mesa's EGL.")
        return
    rows, what, memory = drawn
    tables.begin(
        "Drawing of the preview",
        f"{what}, the same mesh: sending bones, skinning and shading. {SPREAD}",
        *("method", *PLAYBACK_COLUMNS),
    )
    for row in rows:
        tables.row(*playback_cells(*row))
    tables.note(memory)
    if "llvmpipe" in what:
        tables.note(
            "A software renderer may evaluate all methods for every vertex, and spends most of its time on pixels: "
            "these figures do not rank the methods on a real GPU."
        )


def playback_cells(name: str, vertices: int, seconds: list[float]) -> tuple[str, ...]:
    least, median, most = 1000 * np.quantile(seconds, (0, 0.5, 0.9))
    return name, f"{vertices:,}", f"{least:.2f}", f"{median:.2f}", f"{most:.2f}", f"{1000 / median:.0f}"


def play_modifiers(frames: int):
    """In a process of its own: Blender's module changes where its parent's children would look for modules."""
    import _rotation_center_playback

    return _rotation_center_playback.modifiers(frames)


def draw_overlay(frames: int):
    import _rotation_center_playback

    return _rotation_center_playback.overlay(frames)


def show_variants(tables: Tables, options) -> None:
    if not HUMAN.is_file():
        print("The human rig is not next to the checkout (../shared/data).")
        return
    tables.begin(
        "Bake of the human rig, whole faces",
        "The evaluation's variants and ours on the same task; the error is the largest distance from the naive sum, "
        "divided by the diagonal. Processor time is left out where several processes share the work.",
        *("variant", "seconds", "wall time", "error / diagonal"),
    )
    for row in in_own_process(compare):
        tables.row(*row)


def show_bakes(tables: Tables, options) -> None:
    tables.begin(
        "Bake with subdivision 0.1",
        f"{BONES} bones and {INFLUENCES} influences, except for the human rig (163 and 9). MB: peak of the process.",
        *("mesh", "vertices", "triangles", "seconds", "MB"),
    )
    shapes = [("human rig", 0)] if HUMAN.is_file() else []
    shapes += [("raptor's size", 15_005)]
    shapes += [(shape, size) for shape in ("tube", "ball") for size in options.sizes]
    for name, size in shapes:
        vertices, triangles, seconds, memory = in_own_process(measure, name, size)
        tables.row(name, f"{vertices:,}", f"{triangles:,}", f"{seconds:.2f}", f"{memory:.0f}")


def compare() -> list[tuple[str, str, str, str]]:
    """The human rig without subdivision, all variants; the wall clock too, as one of them runs in several processes."""
    rest, triangles, bones, weights = human()
    problem = Problem.of(rest, triangles, bones, weights)
    diagonal = np.linalg.norm(np.ptp(rest, axis=0))
    variants = {
        "naive": lambda: naive(problem),
        "parallel": lambda: in_parallel(naive, problem).centers,
        "breadth-first": lambda: breadth_first(problem),
        "ours": lambda: bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=0)[0],
    }
    blended = np.count_nonzero(problem.weights, axis=1) > 1
    expected, rows = None, []
    for name, variant in variants.items():
        processor, wall = time.process_time(), time.perf_counter()
        centers = variant()
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        expected = centers if expected is None else expected
        error = np.linalg.norm(centers - expected, axis=1)[blended].max() / diagonal
        own = "–" if name == "parallel" else f"{processor:.2f}"
        rows.append((name, own, f"{wall:.2f}", f"{error:.1e}"))
    return rows


def measure(name: str, size: int) -> tuple[int, int, float, float]:
    """Vertices, triangles, seconds of the processor, and the process' peak of memory in MB (0 where unknown)."""
    rest, triangles, bones, weights = human() if name == "human rig" else creature(name, size)
    start = time.process_time()
    bake_rotation_centers(rest, triangles, bones, weights)
    return len(rest), len(triangles), time.process_time() - start, peak_memory()


# By the name of --only.
TABLES = {
    "shapes": show_shapes,
    "bind-poses": show_bind_poses,
    "memory": show_memory,
    "playback": show_playback,
    "variants": show_variants,
    "bakes": show_bakes,
    "model-bakes": evaluation.show_bakes,
    "model-frames": evaluation.show_playback,
    "model-memory": evaluation.show_memory,
}


if __name__ == "__main__":
    sys.exit(main())
