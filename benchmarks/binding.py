# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding compared with Blender's automatic weights: error on the human rig, failures, time; and the tools' figures.

Errors are mean vertex distances from the positions by the rig's own weights, as fractions of the diagonal at rest.
Processor time does not include other work on the machine. Memory is the peak of a process.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

from _process import in_own_process, peak_memory  # noqa: E402 (beside this file)
from _rogue_tables import show_rogues  # noqa: E402
from _tables import Tables  # noqa: E402
from binding_human import HumanRig, subdivided, torn, with_triangles  # noqa: E402 (in demos)
from human_rig import HUMAN, MOTIONS  # noqa: E402

from skinning_tools.core.binding.bind import METHODS, bind  # noqa: E402 (the checkout's)
from skinning_tools.core.binding.compression import (  # noqa: E402
    bytes_per_vertex,
    compress_weights,
    positional_error,
)
from skinning_tools.core.binding.drag import DraggedVertices, vertices_around  # noqa: E402
from skinning_tools.core.binding.fit import fit_weights  # noqa: E402
from skinning_tools.core.binding.influence_rows import tidy_influences  # noqa: E402
from skinning_tools.core.binding.types import Body, Skeleton  # noqa: E402
from skinning_tools.core.deform import skin_frame  # noqa: E402
from tests.core.binding import bodies, twisted_bar  # noqa: E402

ENVELOPES = "envelopes"
AUTOMATIC = "automatic weights"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--worst", type=int, default=0, metavar="N", help="print where each method has the largest error"
    )
    parser.add_argument("--influences", type=int, default=4, metavar="K", help="most bones for each vertex")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    options = parser.parse_args()
    tables = Tables(first=34)
    blender = importlib.util.find_spec("bpy") is not None
    if not blender:
        print("Blender's own binding is not measured: there is no bpy here. Run it with build.py.")
    if HUMAN.is_file():
        show_quality(tables, options.influences, options.worst, blender)
        show_dirt(tables, blender)
    else:
        print("The human rig is not next to the checkout (../shared/data).")
    show_failures(tables, blender)
    if HUMAN.is_file():
        show_growth(tables)
        show_rogues(tables, blender)
        show_compression(tables)
        show_fit(tables)
        show_drag(tables)
    show_links(tables)
    if HUMAN.is_file() and blender:
        show_shoulder(tables)
    if options.write:
        command = "`python3 build.py bench binding --write docs/binding_figures.md`"
        tables.write(options.write, "Binding in figures", f"Made by {command}.")
    return 0


def show_quality(tables: Tables, most: int, worst: int, blender: bool) -> None:
    rig = HumanRig.read()
    tables.begin(
        "Error on the human rig",
        f"{len(rig.body.rest):,} vertices, {len(rig.skeleton)} bones. Mean vertex distance over all frames from where "
        f"the rig's own weights take it, divided by the diagonal. Ours: at most {most} bones for each vertex. "
        "Processor time.",
        *("method", *MOTIONS, "bones", "unbound", "seconds"),
    )

    def row(name, bones, weights, processor):
        errors = rig.errors(bones, weights)
        tables.row(
            name,
            *(f"{errors[motion].mean():.6f}" for motion in MOTIONS),
            str(int(np.count_nonzero(weights, axis=1).max())),
            f"{np.count_nonzero(~weights.any(axis=1)):,}",
            f"{processor:.1f}" if processor else "",
        )
        for line in rig.worst_places(bones, weights, errors[MOTIONS[-1]], worst) if worst else ():
            print("  ", line)

    for method in METHODS:
        body = rig.fresh_body()
        processor = time.process_time()
        bones, weights = bind(body, rig.skeleton, method, max_influences=most)
        row(method, bones, weights, time.process_time() - processor)
    for way in (AUTOMATIC, ENVELOPES) if blender else ():
        bones, weights, processor, _ = in_own_process(blender_binding, rig.body.rest, rig.quads, rig.skeleton, way)
        row(f"Blender, {way}", bones, weights, processor)
        if way == AUTOMATIC:
            row(f"the same, strongest {most}", *tidy_influences(bones, weights, most), 0)
    tables.note(
        "Vertices without weights stay in place. Envelopes have Blender's default size for new bones; artists adjust "
        "them by hand."
    )


def show_dirt(tables: Tables, blender: bool) -> None:
    tables.begin(
        "The same rig, dirty",
        "Mean vertex error on the walk as above. Torn: triangles do not share vertices, as after an import that splits "
        "at seams. Where automatic weights fail, no vertex is bound.",
        *("mesh", "vertices", *METHODS, AUTOMATIC),
    )
    for name, rig in dirty().items():
        body, skeleton = rig.body, rig.skeleton
        rows = [bind(body, skeleton, method) for method in METHODS]
        cells = [f"{rig.errors(*row)['walk'].mean():.6f}" for row in rows]
        automatic = "–"
        if blender:
            bones, weights, *_ = in_own_process(blender_binding, body.rest, body.triangles, skeleton, AUTOMATIC)
            automatic = f"{rig.errors(bones, weights)['walk'].mean():.6f}" if weights.any() else "fails"
        tables.row(name, f"{len(body.rest):,}", *cells, automatic)


def dirty() -> dict[str, HumanRig]:
    """The human rig, and with what everyday meshes have."""
    rig, random = HumanRig.read(), np.random.default_rng(0)
    triangles = rig.body.triangles
    some = random.random(len(triangles)) < 0.2
    return {
        "as it is": rig,
        "a fifth of the faces missing": with_triangles(rig, triangles[~some]),
        "a fifth of the faces torn off": torn(rig, some),
        "all faces torn apart": torn(rig, np.ones(len(triangles), bool)),
    }


def show_failures(tables: Tables, blender: bool) -> None:
    tables.begin(
        "What binds",
        "Vertices without weights, and vertices in all.",
        *("body", "vertices", *METHODS, AUTOMATIC),
    )
    for name, (body, skeleton) in difficult().items():
        left = [unbound(bind(body, skeleton, method)[1]) for method in METHODS]
        automatic = "–"
        if blender:
            _, weights, *_ = in_own_process(blender_binding, body.rest, body.triangles, skeleton, AUTOMATIC)
            automatic = unbound(weights)
        tables.row(name, f"{len(body.rest):,}", *left, automatic)


def difficult() -> dict[str, tuple[Body, Skeleton]]:
    """The bodies and skeletons for which a binding must not fail."""
    bar, chain = bodies.bar(), bodies.chain()
    button = Body(0.1 * bar.rest + [2.0, 0.0, 0.7], bar.triangles, bodies.NO_EDGES)
    outside = Skeleton(
        np.vstack([chain.heads, [[2, 9, 0]]]), np.vstack([chain.tails, [[4, 9, 0]]]), np.append(chain.parents, -1)
    )
    return {
        "closed bar": (bar, chain),
        "20 loose parts": (bodies.parts(), chain),
        "a button off the skin": (bodies.joined(bar, button), chain),
        "open sheet": (bodies.sheet(), chain),
        "triangles without area": (bodies.with_flat_triangles(bar), chain),
        "every vertex twice": (bodies.joined(bar, bar), chain),
        "a bone outside": (bar, outside),
        "one bone": (bar, bodies.chain(1)),
        "300 bones": (bar, bodies.chain(300)),
        "two fingers, nearly touching": bodies.hand(),
    }


def show_growth(tables: Tables) -> None:
    tables.begin(
        "Time and memory over vertices",
        "The human rig, with each triangle split in four once and twice. Processor time in seconds, and MB.",
        *("method", "vertices", "seconds", "memory"),
    )
    for method in METHODS:
        for times in range(3):
            count, processor, memory = in_own_process(one_binding, method, times)
            tables.row(method, f"{count:,}", f"{processor:.1f}", f"{memory:.0f}")


def show_compression(tables: Tables) -> None:
    rig = HumanRig.read()
    tables.begin(
        "Compression",
        "The human rig's own weights. Largest rounding: the largest change of a weight; no rounding with exact sums is "
        "closer. Largest distance: of a vertex from its position with unrounded weights, over both motions, divided by "
        "the diagonal. Sums: rows whose steps do not sum to 255 or 65535.",
        *("bits and bones", "bytes a vertex", "largest rounding", "largest distance", "sums"),
    )
    matrices = np.concatenate(list(rig.matrices.values()))
    for bits in (8, 16):
        for most in (2, 3, 4):
            exact = tidy_influences(rig.bones, rig.weights, most)
            packed = compress_weights(rig.bones, rig.weights, bits=bits, max_influences=most)
            error = positional_error(rig.body.rest, exact, (packed.bones, packed.weights), matrices)
            tables.row(
                f"{bits} bits, {most} bones",
                str(bytes_per_vertex(most, bits, len(rig.skeleton))),
                f"{100 * packed.largest_error:.4f} %",
                f"{error.largest / rig.body.diagonal:.1e}",
                str(np.count_nonzero(packed.steps.astype(int).sum(axis=1) != 2**bits - 1)),
            )


def show_fit(tables: Tables) -> None:
    rig = HumanRig.read()
    tables.begin(
        "Fit weights to a pose",
        "Vertices of the human rig, placed where its own weights, four bones each, take them in frames of the walk; "
        "solved from one bone each. Largest remaining distance, divided by the diagonal.",
        *("may use", "poses", "vertices", "largest", "seconds"),
    )
    random = np.random.default_rng(0)
    bones, weights = tidy_influences(rig.bones, rig.weights, 4)
    chosen = np.sort(random.choice(len(bones), 2000, replace=False))
    rest, own = rig.body.rest[chosen], (bones[chosen], weights[chosen])
    rigid = own[0][:, :1], np.ones((len(chosen), 1))
    for poses in (1, 3):
        matrices = rig.matrices["walk"][5 : 5 + 10 * poses : 10]
        targets = np.array([skin_frame(rest, *own, frame) for frame in matrices])
        start = time.process_time()
        fitted = fit_weights(rest, *rigid, matrices, targets, candidates=np.arange(len(rig.skeleton)))
        seconds = time.process_time() - start
        largest = fitted.residuals.max() / rig.body.diagonal
        tables.row("all 163 bones", str(poses), f"{len(chosen):,}", f"{largest:.1e}", f"{seconds:.1f}")


def show_drag(tables: Tables) -> None:
    rig = HumanRig.read()
    tables.begin(
        "Drag a vertex",
        "Vertices of the human rig, each dragged in a frame of the walk by up to 5 % of the diagonal, as seen from the "
        "front. Radius: within which other vertices follow, divided by the diagonal. Milliseconds: of one step, "
        "processor time on one core, the median.",
        *("may use", "radius", "vertices", "milliseconds"),
    )
    random = np.random.default_rng(0)
    bones, weights = tidy_influences(rig.bones, rig.weights, 4)
    matrices = rig.matrices["walk"][5]
    places = skin_frame(rig.body.rest, bones, weights, matrices)
    movable = np.flatnonzero(np.count_nonzero(weights, axis=1) > 1)
    ways = (("own bones", None, 0.0), ("all 163 bones", np.arange(len(rig.skeleton)), 0.0), ("own bones", None, 0.03))
    for label, candidates, radius in ways:
        seconds, counts = [], []
        for vertex in random.choice(movable, 100, replace=False):
            around, shares = vertices_around(rig.body.rest, rig.body.edges, vertex, radius * rig.body.diagonal)
            rows = rig.body.rest[around], places[around], bones[around], weights[around]
            dragged = DraggedVertices(*rows, matrices, shares, candidates)
            target = places[vertex] + 0.05 * rig.body.diagonal * random.uniform(-1, 1, 3)
            start = time.process_time()
            dragged.to(target, np.array([0.0, 0.0, -1.0]))
            seconds.append(time.process_time() - start)
            counts.append(len(around))
        row = f"{radius:g}", f"{np.median(counts):.0f}", f"{1000 * np.median(seconds):.1f}"
        tables.row(label, *row)


def show_links(tables: Tables) -> None:
    tables.begin(
        "Bone links",
        "A bar twisted by half a turn at its middle: the smallest remaining area of a cross-section. Theory: cos² of "
        "half a step, with equal steps.",
        *("links", "smallest area", "theory"),
    )
    for count in range(6):
        areas = twisted_bar.ring_areas(twisted_bar.twisted(count, spread=2.0)[2])
        theory = np.cos(np.pi / (count + 1) / 2) ** 2
        tables.row(str(count), f"{areas.min():.3f}", f"{theory:.3f}")


def show_shoulder(tables: Tables) -> None:
    results = in_own_process(shoulder_in_blender)
    poses = list(next(iter(results.values())))
    tables.begin(
        "Shoulder",
        "The human rig's own weights, its left upper arm turned the shortest way from its rest pose, 40° from hanging "
        "down; no other bone is posed. First the change of the body's volume in liters. Then the area inside "
        "the ring around the shoulder on which arm and body have half of the weight each, relative to the rest pose.",
        *("bones", *poses, *(f"ring, {pose}" for pose in poses)),
    )
    for name, found in results.items():
        volumes, areas = ([values[place] for values in found.values()] for place in (0, 1))
        tables.row(name, *(f"{each:+.2f}" for each in volumes), *(f"{each:.2f}" for each in areas))


def unbound(weights) -> str:
    return str(np.count_nonzero(~np.asarray(weights).any(axis=1)))


# In processes of their own: Blender's module changes where its parent's children would look for modules.


def blender_binding(rest, faces, skeleton, way: str):
    import binding_blender

    return binding_blender.bind_in_blender(
        rest, faces, skeleton.heads, skeleton.tails, skeleton.parents, skeleton.names, way
    )


def shoulder_in_blender() -> dict[str, dict[str, tuple[float, float]]]:
    import _shoulder

    return _shoulder.shoulders(HUMAN)


def one_binding(method: str, times: int) -> tuple[int, float, float]:
    rig = HumanRig.read()
    body = subdivided(rig.body, times)
    processor = time.process_time()
    bind(body, rig.skeleton, method)
    return len(body.rest), time.process_time() - processor, peak_memory()


if __name__ == "__main__":
    sys.exit(main())
