# SPDX-License-Identifier: GPL-3.0-or-later
"""How well binding guesses an artist's weights: the human rig, bound anew, walks and shambles beside itself.

`python3 benchmarks/_binding_quality.py` prints the table; `--worst 10` also where each method is furthest off.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

from _tables import Tables  # noqa: E402 (beside this file)
from rotation_center_poses import HUMAN  # noqa: E402 (in demos)

from skinning_tools.core.binding.bind import METHODS, bind  # noqa: E402 (the checkout's)
from skinning_tools.core.binding.types import Body, Skeleton  # noqa: E402
from skinning_tools.core.deform import convex_influences, skin_frame  # noqa: E402

MOTIONS = ("walk", "shamble")
# Of the same table, measured with Blender: its automatic weights, all influences, and its envelopes.
BONE_HEAT = {"walk": 0.00061, "shamble": 0.00083}
ENVELOPES = {"walk": 0.085, "shamble": 0.087}


@dataclass(frozen=True, eq=False)
class HumanRig:
    """body, skeleton; bones and weights (N, 9): its own; matrices: per motion (F, P, 3, 4)."""

    body: Body
    skeleton: Skeleton
    bones: np.ndarray
    weights: np.ndarray
    matrices: dict[str, np.ndarray]


def load_human(path: Path = HUMAN) -> HumanRig:
    data = np.load(path)
    quads = data["quads"]
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    sides = np.stack([quads, np.roll(quads, -1, axis=1)], axis=-1).reshape(-1, 2)
    skeleton = Skeleton(data["heads"], data["tails"], data["parents"], tuple(map(str, data["bone_names"])))
    own = convex_influences(data["influence_bones"], data["influence_weights"], len(data["rest"]), len(skeleton))
    matrices = {motion: data[f"{motion}_matrices"].astype(np.float64) for motion in MOTIONS}
    return HumanRig(Body(data["rest"], triangles, sides), skeleton, *own, matrices)


def measure(rig: HumanRig, bones: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Per motion (N,) the mean distance over all frames from each vertex, deformed by ``bones`` and ``weights`` (N, K),
    to where its own weights take it, as a share of the diagonal at rest. Their means are the figures of the table."""
    rest, result = rig.body.rest, {}
    for motion, matrices in rig.matrices.items():
        distances = np.zeros(len(rest))
        for frame in matrices:
            expected = skin_frame(rest, rig.bones, rig.weights, frame)
            distances += np.linalg.norm(skin_frame(rest, bones, weights, frame) - expected, axis=1)
        result[motion] = distances / len(matrices) / rig.body.diagonal
    return result


def worst_places(rig: HumanRig, bones, weights, distances, count: int) -> list[str]:
    """The ``count`` vertices with the largest ``distances`` (N,), no two close together, with both their weights."""
    chosen: list[int] = []
    for vertex in np.argsort(-distances):
        gaps = np.linalg.norm(rig.body.rest[chosen] - rig.body.rest[vertex], axis=1)
        if (gaps > 0.03 * rig.body.diagonal).all():
            chosen.append(int(vertex))
        if len(chosen) == count:
            break

    def described(bones, weights, vertex):
        order = np.argsort(-weights[vertex])[:4]
        return ", ".join(f"{rig.skeleton.names[bones[vertex, i]]} {weights[vertex, i]:.2f}" for i in order)

    return [
        f"{vertex} at {np.round(rig.body.rest[vertex], 2)}: {distances[vertex]:.4f}; "
        f"{described(bones, weights, vertex)}; its own: {described(rig.bones, rig.weights, vertex)}"
        for vertex in chosen
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="show where each method is furthest off")
    parser.add_argument("--influences", type=int, default=4, metavar="K", help="at most so many bones a vertex")
    options = parser.parse_args()
    if not HUMAN.is_file():
        print("The human rig is not beside the checkout (../shared/data).")
        return 1
    rig, tables = load_human(), Tables()
    what = f"Mean vertex distance from its own weights as a share of the diagonal, at most {options.influences} bones."
    tables.begin("Binding the human rig", what, "method", *MOTIONS, "seconds")
    for method in METHODS:
        start = time.process_time()
        fresh = Body(rig.body.rest, rig.body.triangles, rig.body.edges)
        bones, weights = bind(fresh, rig.skeleton, method, max_influences=options.influences)
        seconds = time.process_time() - start
        distances = measure(rig, bones, weights)
        tables.row(method, *(f"{distances[motion].mean():.6f}" for motion in MOTIONS), f"{seconds:.1f}")
        for line in worst_places(rig, bones, weights, distances["shamble"], options.worst) if options.worst else ():
            print("  ", line)
    for name, figures in (("Blender, automatic weights", BONE_HEAT), ("Blender, envelopes", ENVELOPES)):
        tables.row(name, *(f"{figures[motion]:.5f}" for motion in MOTIONS), "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
