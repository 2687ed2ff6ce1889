# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of docs/how_binding_works.md: assignment of vertices to bones, the heat that blends it, and rogue weights."""

from pathlib import Path

import creature
import numpy as np
from figure_drawing import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    RED,
    SKY,
    View,
    draw_surface,
    fit,
    mark,
    mixed,
    save,
    subplots,
)
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from scipy.spatial import cKDTree

from skinning_tools.core.binding import containment, delaunay, point_to_line
from skinning_tools.core.binding.assignment import Limits, Request
from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.diffusion import STIFFNESS
from skinning_tools.core.binding.distances import BoneDistances
from skinning_tools.core.binding.rogue import remove_rogue_weights, rogue_islands
from skinning_tools.core.binding.solid import Solid
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform.influences import weight_matrix
from tests.core.binding import bodies

LEVEL = 0.5  # where the hand is cut
STRAY_BONE, STRAYS, PATCH = "front upper.R", 30, 0.09
METHODS = {"CONTAINMENT": "Containment", "POINT_TO_LINE": "Point to Line", "DELAUNAY": "Delaunay"}


def draw_all(folder: Path, quick: bool) -> None:
    print(draw_assignment(folder / "binding_assignment.png", 60 if quick else 360))
    print(draw_heat(folder / "binding_heat.png", 24 if quick else 96))
    print(draw_islands(folder / "binding_islands.png", 0.09 if quick else 0.045), flush=True)


def draw_assignment(path: Path, resolution: int) -> Path:
    """Two fingers that nearly touch: above, cut open, each method's assignment to bones; below, the weights."""
    body, skeleton = hand()
    distances = BoneDistances(body, skeleton)
    volumes = containment.fitted_volumes(body, distances, skeleton, "CAPSULE")
    colors = np.array([to_rgb(color) for color in (GRAY, ORANGE, RED, SKY, BLUE)])
    view, front = View.of((0, 0, 1), up=(0, 1, 0)), View.of((0.15, -0.3, 1), up=(0, 1, 0))
    figure, rows = subplots(2, 3, 4.3)
    for (above, below), (method, title) in zip(rows.T, METHODS.items(), strict=True):
        if method != "DELAUNAY":
            draw_field(above, body, skeleton, colors, volumes if method == "CONTAINMENT" else None, resolution)
        shares = assigned(method, body, distances, skeleton, volumes)
        cut = np.flatnonzero(np.abs(body.points[:, 2] - LEVEL) < 1e-6)
        if method == "DELAUNAY":
            draw_ways(above, body.points[cut], shares[cut].argmax(axis=1), skeleton, colors)
        bones = np.stack([skeleton.heads, skeleton.tails], axis=1)[..., :2]
        above.add_collection(LineCollection(bones, colors="black", linewidths=5.5, capstyle="round", zorder=3))
        above.add_collection(LineCollection(bones, colors=colors, linewidths=3.5, capstyle="round", zorder=4))
        mark(above, view, body.points[cut], s=34, c=mixed(colors, shares[cut]), edgecolors="black", linewidths=0.5)
        fit(above, view, body.rest)
        above.set_title(title, loc="center")
        weights = weight_matrix(*bind(body, skeleton, method), len(skeleton)).toarray()
        draw_surface(below, front, body.rest, body.triangles, mixed(colors, weights))
        fit(below, front, body.rest)
        lower_tip = (body.rest[:, 1] < -1.04) & (body.rest[:, 0] > 2.5)
        stuck = weights[lower_tip][:, 1:3].sum(axis=1).max()
        print(f"{method}: the outer half of the lower finger follows the upper one by {100 * stuck:.0f} % at most")
    return save(figure, path)


def hand() -> tuple[Body, Skeleton]:
    """The hand of ``bodies``, its fingers to the right."""
    body, skeleton = bodies.hand()
    turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    turned = Skeleton(skeleton.heads @ turn.T, skeleton.tails @ turn.T, skeleton.parents, skeleton.names)
    return Body(body.rest @ turn.T, body.triangles, body.edges), turned


def assigned(method: str, body: Body, distances: BoneDistances, skeleton, volumes) -> np.ndarray:
    """(W, P) a method's assignment before smoothing."""
    free = Limits(distances, np.full(len(skeleton), np.inf))
    module = {"CONTAINMENT": containment, "POINT_TO_LINE": point_to_line, "DELAUNAY": delaunay}[method]
    return module.assign(Request(body, skeleton, distances, free, Solid(body), volumes)).shares.toarray()


def draw_field(axes, body: Body, skeleton, colors, volumes, resolution: int) -> None:
    """The bone of each point of the cut, and the volumes, or without volumes the planes at the joints."""
    low, high = body.rest.min(axis=0), body.rest.max(axis=0)
    x, y = np.meshgrid(np.linspace(low[0], high[0], resolution), np.linspace(low[1], high[1], resolution // 2))
    points = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, LEVEL)])
    # No surface: each point of the cut separately.
    cut = Body(points, np.zeros((0, 3)), np.zeros((0, 2)))
    distances = BoneDistances(cut, skeleton)
    method = "POINT_TO_LINE" if volumes is None else "CONTAINMENT"
    shares = assigned(method, cut, distances, skeleton, volumes)
    picture = mixed(0.5 + 0.5 * colors, shares).reshape(*x.shape, 3)
    axes.imshow(picture, origin="lower", extent=(low[0], high[0], low[1], high[1]), interpolation="bilinear")
    if volumes is not None:
        for volume in volumes:
            color = 0.6 * colors[volume.bone]
            axes.contour(x, y, volume.depth(points).reshape(x.shape), levels=[1.0], colors=[color], linewidths=1.6)
        return
    for child, normal in zip(*point_to_line.joint_planes(skeleton), strict=True):
        along = 0.6 * np.array([-normal[1], normal[0]]) / np.hypot(*normal[:2])
        head = skeleton.heads[child, :2]
        axes.plot(*np.stack([head - along, head + along]).T, "--", color="black", linewidth=1.4)


def draw_ways(axes, points: np.ndarray, owners: np.ndarray, skeleton, colors) -> None:
    """A line from each of ``points`` (n, 3) to the nearest point on its bone."""
    heads, along = skeleton.heads[owners], (skeleton.tails - skeleton.heads)[owners]
    share = np.einsum("ni,ni->n", points - heads, along) / np.einsum("ni,ni->n", along, along)
    ends = heads + np.clip(share, 0, 1)[:, None] * along
    lines = np.stack([points, ends], axis=1)[..., :2]
    axes.add_collection(LineCollection(lines, colors=colors[owners], linewidths=1.4))


def draw_heat(path: Path, columns: int) -> Path:
    """Along a bar with two bones: the assignment, and the weights after heat has flowed."""
    body, skeleton = bodies.bar(columns=columns, rows=4), bodies.chain(2)
    distances = BoneDistances(body, skeleton)
    joint, radius = skeleton.heads[1, 0], 0.5
    assigned_shares = assigned("POINT_TO_LINE", body, distances, skeleton, None)[body.place, 1]
    weights = weight_matrix(*bind(body, skeleton, "POINT_TO_LINE"), 2).toarray()[:, 1]
    line = np.flatnonzero((np.abs(body.rest[:, 1]) < 1e-9) & (body.rest[:, 2] > radius - 1e-9))
    line = line[np.argsort(body.rest[line, 0])]
    x = (body.rest[line, 0] - joint) / radius
    figure, axes = subplots(1, 1, 3.6)
    axes.plot(x, assigned_shares[line], color=ORANGE, drawstyle="default", label="assigned, Point to Line")
    axes.plot(x, weights[line], color=BLUE, label="after heat has flowed")
    fall = np.sqrt(STIFFNESS)
    axes.plot(
        x, np.where(x < 0, 0.5 * np.exp(fall * np.minimum(x, 0)), 1 - 0.5 * np.exp(-fall * np.maximum(x, 0))), ":",
        color="black", linewidth=1.2, label=f"from a sharp edge: ½ exp(−√{STIFFNESS:g} · x / r)",
    )  # fmt: skip
    axes.set_xlim(-4, 4)
    axes.set_xlabel("distance from the joint, in radii of the limb")
    axes.set_ylabel("weight of the second bone")
    axes.legend(loc="upper left")
    return save(figure, path)


def draw_islands(path: Path, resolution: int) -> Path:
    """Rogue weights planted into a leg's weights, their islands, and the cleaned weights."""
    skin = creature.bound_flesh(resolution)
    body, skeleton, bone = skin.body, skin.skeleton, skin.skeleton.names.index(STRAY_BONE)
    bones, weights = planted(body, skin.bones, skin.weights, bone)
    named = rogue_islands(body, skeleton, bones, weights)
    islands = [island for island in named if island.bone == bone]
    clean = remove_rogue_weights(body, skeleton, bones, weights, named)
    before = weight_matrix(bones, weights, len(skeleton)).toarray()[:, bone]
    after = weight_matrix(clean.bones, clean.weights, len(skeleton)).toarray()[:, bone]
    kinds = np.zeros((len(body.rest), 2))
    kinds[before > 0, 0] = 1
    for island in islands:
        kinds[island.vertices] = 0, 1
    view = View.of((0.35, -1.0, 0.2))
    figure, row = subplots(1, 3, 2.7)
    orange, green, blue = (np.array(to_rgb(color)) for color in (ORANGE, GREEN, BLUE))
    pictures = (
        ("Weights of one bone, with strays", mixed([blue], before[:, None])),
        (f"{len(islands)} rogue islands", mixed([green, orange], kinds)),
        ("Given to the bones around them", mixed([blue], after[:, None])),
    )
    for axes, (title, colors) in zip(row, pictures, strict=True):
        draw_surface(axes, view, body.rest, body.triangles, colors)
        fit(axes, view, body.rest)
        axes.set_title(title, loc="center")
    far = kinds[:, 1] > 0
    left = int((after[far] > 0).sum())
    print(f"{len(islands)} rogue islands, {far.sum()} vertices; {left} of them still follow the bone")
    return save(figure, path)


def planted(body: Body, bones: np.ndarray, weights: np.ndarray, bone: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows with some single vertices, and all of a patch on the back, given wholly to ``bone``."""
    random = np.random.default_rng(3)
    own = cKDTree(body.rest[((bones == bone) & (weights > 0)).any(axis=1)])
    away = np.flatnonzero((body.rest[:, 1] < -0.05) & (own.query(body.rest)[0] > 2 * PATCH))
    chosen = random.choice(away, STRAYS, replace=False)
    middle = away[np.argmax(body.rest[away, 2] - 3 * np.abs(body.rest[away, 0] + 0.4))]
    patch = np.flatnonzero(np.linalg.norm(body.rest - body.rest[middle], axis=1) < PATCH)
    rows, shares = bones.copy(), weights.copy()
    for vertices in (chosen, patch):
        rows[vertices], shares[vertices] = bone, 0.0
        shares[vertices, 0] = 1.0
    return rows, shares
