# SPDX-License-Identifier: GPL-3.0-or-later
"""Time, memory and exactness of the bake of centres of rotation, beside the variants of the evaluation of 2019.

First the human rig of ../shared/data, without subdivision: naive, in parallel, breadth-first and ours. Then ours with
subdivision: the human rig, a mesh of the size of the paper's raptor, and meshes of 10,000 to 200,000 vertices with 79
bones and 4 influences a vertex, as a tube along a chain of bones and as a ball with bones all through it. Seconds are
of the processor, so that other work on the machine does not count; memory is the most that the process ever had.
"""

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull, cKDTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _rotation_center_variants import Problem, breadth_first, naive, parallel  # noqa: E402 (beside this file)

from skinning_tools.core.rotation_centers import bake_rotation_centers  # noqa: E402 (the checkout's)

HUMAN = ROOT.parent / "shared" / "data" / "human_rig.npz"
SIZES = (10_000, 20_000, 50_000, 100_000, 200_000)
BONES, INFLUENCES = 79, 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="vertices of the growth table")
    parser.add_argument("--skip-variants", action="store_true", help="only ours: the variants take minutes")
    options = parser.parse_args()
    if HUMAN.is_file():
        if not options.skip_variants:
            in_own_process(compare)
    else:
        print("The human rig is not beside the checkout (../shared/data).")
    print(f"{'with subdivision 0.1':<24}{'vertices':>10}{'triangles':>11}{'seconds':>9}{'MB':>7}")
    shapes = [("human rig", 0)] if HUMAN.is_file() else []
    shapes += [("raptor's size", 15_005)]
    shapes += [(shape, size) for shape in ("tube", "ball") for size in options.sizes]
    for name, size in shapes:
        vertices, triangles, seconds, memory = in_own_process(measure, name, size)
        print(f"{name:<24}{vertices:>10,}{triangles:>11,}{seconds:>9.2f}{memory:>7.0f}", flush=True)
    return 0


def in_own_process(function, *arguments):
    """Its result; the peak of memory is that of one process, and inherited from the one that starts it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def compare() -> None:
    """The human rig without subdivision, all variants; the wall clock too, as one of them runs in several processes."""
    rest, triangles, bones, weights = human()
    problem = Problem.of(rest, triangles, bones, weights)
    diagonal = np.linalg.norm(np.ptp(rest, axis=0))
    variants = {
        "naive": lambda: naive(problem),
        "parallel": lambda: parallel(problem),
        "breadth-first": lambda: breadth_first(problem),
        "ours": lambda: bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=0)[0],
    }
    blended = np.count_nonzero(problem.weights, axis=1) > 1
    print(f"{'human rig, whole faces':<24}{'seconds':>9}{'on the wall':>13}{'error / diagonal':>18}")
    expected = None
    for name, variant in variants.items():
        processor, wall = time.process_time(), time.perf_counter()
        centers = variant()
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        expected = centers if expected is None else expected
        error = np.linalg.norm(centers - expected, axis=1)[blended].max() / diagonal
        own = "" if name == "parallel" else f"{processor:.2f}"
        print(f"{name:<24}{own:>9}{wall:>13.2f}{error:>18.1e}", flush=True)
    print()


def measure(name: str, size: int) -> tuple[int, int, float, float]:
    """Vertices, triangles, seconds of the processor, and the process' peak of memory in MB (0 where unknown)."""
    rest, triangles, bones, weights = human() if name == "human rig" else creature(name, size)
    start = time.process_time()
    bake_rotation_centers(rest, triangles, bones, weights)
    return len(rest), len(triangles), time.process_time() - start, peak_memory()


def peak_memory() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def human():
    """Rest, triangles, bones and weights of the human rig."""
    data = np.load(HUMAN)
    triangles = np.concatenate([data["quads"][:, [0, 1, 2]], data["quads"][:, [0, 2, 3]]])
    return data["rest"].astype(float), triangles, data["influence_bones"], data["influence_weights"].astype(float)


def creature(shape: str, size: int):
    """A smooth mesh of about ``size`` vertices, each skinned to its four nearest joints."""
    random = np.random.default_rng(0)
    if shape == "ball":
        rest = spiral(size)
        triangles = ConvexHull(rest).simplices
        joints = random.normal(size=(BONES, 3))
        joints *= 0.9 * random.random((BONES, 1)) ** (1 / 3) / np.linalg.norm(joints, axis=1, keepdims=True)
    else:
        whole = 11_200 if shape == "raptor's size" else size
        rest, triangles = tube(whole)
        heights = np.linspace(0, 20, BONES)
        joints = np.stack([2 * np.sin(heights / 3), 0 * heights, heights], axis=1)
        if shape == "raptor's size":
            rest, triangles = with_seams(rest, triangles, size)
    distances, bones = cKDTree(joints).query(rest, INFLUENCES)
    weights = 1 / (distances + 1e-3) ** 4
    return rest, triangles, bones, weights / weights.sum(axis=1, keepdims=True)


def spiral(count: int) -> np.ndarray:
    """(count, 3) points evenly on the unit ball."""
    steps = np.arange(count) + 0.5
    heights, angles = 1 - 2 * steps / count, np.pi * (1 + np.sqrt(5)) * steps
    radii = np.sqrt(1 - heights**2)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles), heights], axis=1)


def tube(count: int):
    """Rest and triangles of a bent tube of about ``count`` vertices."""
    columns = int(np.sqrt(count / 4))
    rows = count // columns
    along, angle = np.meshgrid(np.linspace(0, 20, rows), 2 * np.pi * np.arange(columns) / columns, indexing="ij")
    rest = np.stack([np.cos(angle) + 2 * np.sin(along / 3), np.sin(angle), along], axis=-1).reshape(-1, 3)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b = index[:-1], index[1:]
    next_a, next_b = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    triangles = [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((a, next_b, b), (a, next_a, next_b))]
    return rest, np.concatenate(triangles)


def with_seams(rest: np.ndarray, triangles: np.ndarray, count: int):
    """The same surface with ``count`` vertices: corners of its first faces get vertices of their own."""
    triangles = triangles.copy()
    corners = triangles.reshape(-1)[: count - len(rest)]
    rest = np.vstack([rest, rest[corners]])
    triangles.reshape(-1)[: len(corners)] = np.arange(count - len(corners), count)
    return rest, triangles


if __name__ == "__main__":
    sys.exit(main())
