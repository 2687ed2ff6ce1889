# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of docs/how_centers_work.md: similarity of weights, centers, and volume over the angle of a joint."""

from pathlib import Path

import creature
import numpy as np
import rotation_center_poses as poses
from figure_drawing import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    SHADES,
    SKIN,
    View,
    color_bar,
    draw_surface,
    fit,
    mark,
    save,
    subplots,
)

from skinning_tools.core.deform import METHODS
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.rotation_centers import bake_rotation_centers

SIGMAS = (0.02, 0.1, 0.5)
NAMES = {"LBS": "linear blend", "DQS": "dual quaternions", "CRS": "centers of rotation"}
STYLES = {
    "LBS": {"color": RED, "linestyle": ":"},
    "DQS": {"color": BLUE, "linestyle": "--", "zorder": 3},
    "CRS": {"color": GREEN},
}
# On the outside of the bar, where the second bone has a tenth of the weight.
CHOSEN = np.array([poses.TWISTED[0] - 0.6, -0.5, 0.5])
KNEE = "hind lower.R"


def draw_all(folder: Path, quick: bool) -> None:
    print(draw_similarity(folder / "rotation_centers_similarity.png"))
    print(draw_centers(folder / "rotation_centers_points.png", 0.09 if quick else 0.045))
    print(draw_angles(folder / "rotation_centers_angles.png", 4 if quick else 25), flush=True)


def similarity(own: np.ndarray, others: np.ndarray, sigma: float) -> np.ndarray:
    """(N,) s(p, v) of weights ``own`` (P,) to ``others`` (N, P): equation 6 of the evaluation of 2019."""
    result = np.zeros(len(others))
    for j in np.flatnonzero(own):
        for k in np.flatnonzero(own):
            if j != k:
                gap = own[j] * others[:, k] - own[k] * others[:, j]
                result += own[j] * own[k] * others[:, j] * others[:, k] * np.exp(-((gap / sigma) ** 2))
    return result


def draw_similarity(path: Path) -> Path:
    """One vertex of the bar, the similarity of the others' weights, and the resulting center, by σ."""
    pose = poses.bar()
    vertex = int(np.argmin(np.linalg.norm(pose.rest - CHOSEN, axis=1)))
    weights = weight_matrix(pose.bones, pose.weights, pose.bones.max() + 1).toarray()
    view = View.of((0.2, -1.0, 0.45))
    figure, row = subplots(1, len(SIGMAS), 2.3)
    for axes, sigma in zip(row, SIGMAS, strict=True):
        alike = similarity(weights[vertex], weights, sigma)
        center = bake_rotation_centers(pose.rest, pose.triangles, pose.bones, pose.weights, sigma=sigma)[0][vertex]
        draw_surface(axes, view, pose.rest, pose.triangles, SHADES(alike / alike.max())[:, :3])
        mark(axes, view, pose.rest[vertex], s=45, color="white", edgecolors="black", linewidths=1.2)
        mark(axes, view, center, s=130, color=ORANGE, marker="*", edgecolors="black", linewidths=0.8)
        fit(axes, view, pose.rest)
        axes.set_title(f"σ = {sigma:g}", loc="center")
    color_bar(figure, row, SHADES, 0, 1, "similarity s, of its largest")
    return save(figure, path)


def draw_centers(path: Path, resolution: float) -> Path:
    """The centers of the creature's vertices, inside of it."""
    skin = creature.bound_flesh(resolution)
    rest, triangles = skin.body.rest, skin.body.triangles
    centers, valid = bake_rotation_centers(rest, triangles, skin.bones, skin.weights)
    weights = weight_matrix(skin.bones, skin.weights, len(skin.skeleton)).toarray()
    knee = skin.skeleton.names.index(KNEE)
    upper = skin.skeleton.parents[knee]
    view = View.of((0.35, -1.0, 0.2))
    # On the near side, where both bones of the knee have about half of the weight each.
    shared = np.flatnonzero(weights[:, knee] * weights[:, upper] > 0.2)
    vertex = shared[np.argmax(view.seen(rest[shared])[:, 2])]
    alike = similarity(weights[vertex], weights, 0.1)
    figure, (left, right) = subplots(1, 2, 3.6, width_ratios=(1, 1.6))
    draw_surface(left, view, rest, triangles, SHADES(alike / alike.max())[:, :3])
    mark(left, view, rest[vertex], s=30, color="white", edgecolors="black", linewidths=1.0)
    left.set_title("Similarity to one vertex of a knee", loc="center")
    fit(left, view, rest[np.linalg.norm(rest - rest[vertex], axis=1) < 0.35], margin=0.2)
    draw_surface(right, view, rest, triangles, SKIN)
    mark(right, view, centers[valid], s=3, color=BLUE)
    right.set_title(f"Centers of {valid.sum():,} of {len(rest):,} vertices", loc="center")
    fit(right, view, rest)
    depth = np.median(np.linalg.norm(centers - rest, axis=1)[valid]) / skin.body.diagonal
    print(f"centers lie {100 * depth:.1f} % of the diagonal below their vertices, as a median")
    return save(figure, path)


def draw_angles(path: Path, steps: int) -> Path:
    """The remaining volume of the bar as a joint twists and bends, and the bulge of the bend."""
    angles = np.linspace(0, 180, steps + 1)[1:]
    figure, row = subplots(1, 3, 3.4)
    curves = {
        ("Volume kept by a twist", "% of the rest pose"): [poses.bar(twist=angle) for angle in angles],
        ("Volume kept by a bend", "% of the rest pose"): [poses.bar(bend=angle) for angle in angles * 2 / 3],
        ("Bulge of a bend", "% of the width"): None,
    }
    bent = curves["Volume kept by a bend", "% of the rest pose"]
    for axes, ((title, unit), bars) in zip(row, curves.items(), strict=True):
        for method in METHODS:
            if bars is None:
                values = [poses.bulge(bar, method, angle) for bar, angle in zip(bent, angles * 2 / 3, strict=True)]
            else:
                values = [bar.kept_volume(method) for bar in bars]
            axes.plot(angles if "twist" in title else angles * 2 / 3, values, label=NAMES[method], **STYLES[method])
            print(f"{title}, {method}: {values[-1]:.1f}")
        axes.set_title(title)
        axes.set_ylabel(unit)
        axes.set_xlabel(f"{'twist' if 'twist' in title else 'bend'}, degrees")
        axes.set_xlim(0, 180 if "twist" in title else 120)
        axes.set_xticks(range(0, 181 if "twist" in title else 121, 30))
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return save(figure, path)
