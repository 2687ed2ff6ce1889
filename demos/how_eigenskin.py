# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of docs/how_eigenskin_works.md: supports, eigendisplacements and pose space, as in Kry, James, Pai 2002.

The examples are the creature's joints turned one at a time, with the shapes of dual quaternion skinning.
"""

from pathlib import Path

import creature
import numpy as np
from eigenskin_human import STEPS, Character, mapped_to_rest, turns_about
from figure_drawing import (
    BLUE,
    GRAY,
    ORANGE,
    PALETTE,
    PINK,
    TWO_SIDED,
    View,
    color_bar,
    draw_surface,
    fit,
    mixed,
    save,
    subplots,
)
from matplotlib.colors import to_rgb

from skinning_tools.core.deform.surface import vertex_normals
from skinning_tools.core.eigenskin import EigenSkin, EigenSkinSettings, Rig, build_eigenskin
from skinning_tools.core.eigenskin.interpolation import radial
from skinning_tools.core.eigenskin.model import Support

JOINTS = ("neck", "chest", "front upper.R", "front lower.R", "hind upper.R", "tail 2")
SHOWN, HINGE = "front upper.R", "front lower.R"
COMPONENTS, DISPLAYED = 3, 4
VIEW = View.of((0.35, -1.0, 0.2))


def draw_all(folder: Path, quick: bool) -> None:
    body = character(0.09 if quick else 0.045)
    turns = [turn for joint in JOINTS for turn in turns_about(joint, body.axes(joint))]
    model = build_eigenskin(body.rig, body.examples(turns), EigenSkinSettings(components=COMPONENTS))
    print(draw_supports(folder / "eigenskin_supports.png", body, model))
    print(draw_displacements(folder / "eigenskin_displacements.png", body))
    print(draw_pose_space(folder / "eigenskin_pose_space.png", body, 30 if quick else 181), flush=True)


def character(resolution: float) -> Character:
    skin = creature.bound_flesh(resolution)
    skeleton = skin.skeleton
    rig = Rig(
        skin.body.rest, skin.bones, skin.weights, skeleton.names, skeleton.parents, np.arange(len(skeleton.names))
    )
    return Character(rig, skin.body.triangles, skeleton.heads, skeleton.tails)


def draw_supports(path: Path, body: Character, model) -> Path:
    """The part of the skin that each joint corrects (the paper's figure 3)."""
    figure, grid = subplots(2, 3, 4.9)
    by_name = {support.name: support for support in model.supports}
    for axes, joint, color in zip(grid.flat, JOINTS, PALETTE, strict=False):
        support = by_name[joint]
        colors = mixed([to_rgb(color)], support.mask[:, None])
        draw_surface(axes, VIEW, body.rig.rest, body.triangles, colors)
        fit(axes, VIEW, body.rig.rest)
        axes.set_title(f"{joint}: {100 * len(support.vertices) / model.vertex_count:.0f} % of the skin", loc="center")
    most = int(sum(len(support.components) * (support.mask > 0) for support in model.supports).max())
    print(f"{len(model.supports)} supports, at most {most} components a vertex")
    return save(figure, path)


def draw_displacements(path: Path, body: Character) -> Path:
    """The first components of one joint, as how far they push the skin out and in (the paper's figure 5)."""
    examples = body.examples(turns_about(SHOWN, body.axes(SHOWN)))
    support = build_eigenskin(body.rig, examples, EigenSkinSettings(components=DISPLAYED)).supports[0]
    normals = vertex_normals(body.rig.rest, body.triangles)
    pushed = np.zeros((DISPLAYED, len(body.rig.rest)))
    pushed[:, support.vertices] = np.einsum("kni,ni->kn", support.components, normals[support.vertices])
    # In front of the leg, and as far as the support goes.
    shown = body.rig.rest[support.vertices][support.mask[support.vertices] > 0.5]
    shares = np.diff(support.captured[:DISPLAYED], prepend=0.0)
    figure, row = subplots(1, DISPLAYED, 2.9)
    for axes, values, share in zip(row, pushed, shares, strict=True):
        largest = np.abs(values).max()
        colors = TWO_SIDED(0.5 + 0.5 * values / largest)[:, :3]
        draw_surface(axes, VIEW, body.rig.rest, body.triangles, colors)
        fit(axes, VIEW, shown, margin=0.15)
        axes.set_title(f"{100 * share:.0f} %", loc="center")
    bar = color_bar(figure, row, TWO_SIDED, -1, 1)
    bar.set_ticks([-1, 0, 1], labels=["in", "along the skin", "out"])
    return save(figure, path)


def draw_pose_space(path: Path, body: Character, steps: int) -> Path:
    """The radial functions of a hinge, the components' values that they interpolate, and what the radius does."""
    axis = body.axes(HINGE)[0]
    examples = body.examples(turns_about(HINGE, [axis]))
    model = hinge_model(body, examples)
    support, radius = model.supports[0], model.spaces[model.supports[0].joints[0]].radius
    angles = np.linspace(STEPS[0], STEPS[-1], steps)
    between = body.examples(turns_about(HINGE, [axis], angles))
    right = coordinates(support, mapped_to_rest(body.rig, between))
    right_there = np.vstack([coordinates(support, mapped_to_rest(body.rig, examples)), [[0, 0]]])
    sizes = np.abs(right_there).max(axis=0)
    figure, (functions, values, radii) = subplots(1, 3, 3.6)

    for center, color in zip((0, *STEPS), (GRAY, *PALETTE), strict=False):
        functions.plot(angles, radial(np.radians(angles - center), radius), color=color, linewidth=1.6)
    functions.set_title("Radial functions")
    functions.set_ylabel(f"exp(−(r / {np.degrees(radius):.0f}°)²)")

    found = model.values(between.rotations)
    for number, color in ((0, BLUE), (1, ORANGE)):
        values.plot(angles, found[:, number] / sizes[number], color=color, label=f"component {number + 1}")
        values.plot(angles, right[:, number] / sizes[number], ":", color="black", linewidth=1.2)
        values.plot((*STEPS, 0), right_there[:, number] / sizes[number], "o", color=color, markersize=5)
    values.plot([], [], ":", color="black", linewidth=1.2, label="what it should be")
    values.set_title("Values of the components")
    values.set_ylabel("share of the largest")

    for factor, color in ((0.1, PINK), (1.0, BLUE)):
        other = hinge_model(body, examples, factor * radius)
        curve = other.values(between.rotations)[:, 0] / sizes[0]
        radii.plot(angles, curve, color=color, label=f"r₀ = {np.degrees(factor * radius):.0f}°")
        off = np.abs(curve - right[:, 0] / sizes[0]).max()
        print(f"radius {np.degrees(factor * radius):.0f}°: component 1 is off by {100 * off:.1f} % at most")
    radii.plot(angles, right[:, 0] / sizes[0], ":", color="black", linewidth=1.2, label="what it should be")
    radii.set_title("Component 1 by radius")
    for axes in (functions, values, radii):
        axes.set_xlabel("angle of the knee, degrees")
        axes.set_xticks([-100, -50, 0, 50, 100])
    for axes in (values, radii):
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.55 * (high - low))
        axes.legend(loc="upper center", fontsize=10)
    return save(figure, path)


def hinge_model(body: Character, examples, radius: float = 0.0) -> EigenSkin:
    return build_eigenskin(body.rig, examples, EigenSkinSettings(components=2, radius=radius))


def coordinates(support: Support, displacements: np.ndarray) -> np.ndarray:
    """(E, k) how much of each component ``displacements`` (E, N, 3) of the rest pose hold."""
    masked = (displacements * support.mask[:, None])[:, support.vertices].reshape(len(displacements), -1)
    components = support.components.reshape(len(support.components), -1)
    return masked @ components.T / np.square(components).sum(axis=1)
