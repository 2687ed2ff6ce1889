# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of EigenSkin: linear blending, the corrected mesh and the target (Cycles on the CPU).

Run by `python3 build.py docs`. Leaves eigenskin_limb.png, a limb with simulated soft tissue at a pose between its
examples, eigenskin_components.png, what components capture and what error they leave, and, where the human rig is
next to the checkout, eigenskin_shoulder.png.
"""

import sys
from dataclasses import dataclass, field
from math import radians
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import eigenskin_human as human
from eigenskin_tissue import LARGEST, SoftLimb
from human_rig import HUMAN
from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter
from program import leave, parse_options
from rendering import (
    BACKGROUND,
    IN_THE_SUN,
    MUTED,
    TEXT,
    colored_by_error,
    compose,
    dark,
    plain,
    render,
    shape,
    turned_up,
)

import skinning_tools
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, example_errors
from skinning_tools.features.eigenskin.record import eigenskin_record

COMPONENTS, MOST = 3, 6

# Degrees, none of which is an example's; the first is the picture's.
LIMB_POSES = (56, -56, -33, -11, 11, 33)
SHOULDER, SHOULDER_POSE, SHOULDER_COMPONENTS = human.BALLS["shoulder"], -83, 6

TARGET_COLOR = (0.62, 0.42, 0.30)
CURVES = ("#53b1fd", "#fbd14b", "#f97066")


@dataclass
class Curve:
    """The part of the displacements' sum of squares in 0, 1, … MOST components, and the remaining error at the examples
    and at poses between them."""

    name: str
    captured: np.ndarray | None = None
    seen: list[float] = field(default_factory=lambda: [1.0])
    unseen: list[float] = field(default_factory=lambda: [1.0])


@dataclass
class Look:
    """components, target and pose: for the captions. scale: from the points' unit to ``unit``. label: of the colors."""

    components: int
    target: str
    pose: str
    unit: str
    scale: float
    label: str
    height: float
    direction: tuple[float, float, float]


def main() -> int:
    options = parse_options(__doc__)
    skinning_tools.register()
    picture = options.output / "eigenskin_limb.png"
    curves = [draw_limb(picture, options.samples, options.percent)]
    print(picture, flush=True)
    if HUMAN.is_file():
        picture = options.output / "eigenskin_shoulder.png"
        body = human.Character.read()
        draw_shoulder(picture, body, options.samples, options.percent)
        print(picture, flush=True)
        curves += [curve_of(body, "elbow", 1), curve_of(body, "shoulder", 3)]
    else:
        print("eigenskin_shoulder.png left out: the human rig is not next to the checkout (../shared/data)")
    picture = options.output / "eigenskin_components.png"
    plot_components(picture, curves)
    print(picture, flush=True)
    return 0


def draw_limb(path: Path, samples: int, percent: int) -> Curve:
    limb = SoftLimb.build(rings=80, segments=48)
    limb.pose_joint((True, False, False), -LARGEST, LARGEST, 3)
    turns = [(radians(angle), 0.0, 0.0) for angle in LIMB_POSES]
    frames = limb.key_turns(turns)
    limb.add_examples()
    wanted = limb.simulated(frames)
    items = limb.rig.skinning_eigenskin.examples
    curve = Curve("limb of soft tissue, bent")
    for components in range(1, MOST + 1):
        limb.correct(components)
        shown, plain = limb.shown(turns), limb.shown(turns, corrected=False)
        if components == COMPONENTS:
            points = plain[0], shown[0], wanted[0]
        before, after = (
            np.linalg.norm([getattr(item, name) for item in items]) for name in ("error_before", "error_after")
        )
        curve.seen.append(after / before)
        curve.unseen.append(np.linalg.norm(shown - wanted) / np.linalg.norm(plain - wanted))
    curve.captured = shares(eigenskin_record(limb.body).supports[0].singular_values)
    draw(
        path,
        points,
        limb.triangles,
        Look(
            COMPONENTS,
            "Soft body simulation",
            f"bent by {LIMB_POSES[0]}°, between two examples",
            "%",
            100 / limb.thickness,
            "% of the joint's thickness from the simulation",
            height=5.0,
            direction=(0.15, -1.0, 0.25),
        ),
        samples,
        percent,
    )
    return curve


def draw_shoulder(path: Path, body: human.Character, samples: int, percent: int) -> None:
    examples = body.examples(human.turns_about(SHOULDER, body.axes(SHOULDER)))
    model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=SHOULDER_COMPONENTS))
    turned = body.examples([(SHOULDER, np.radians(SHOULDER_POSE) * body.axes(SHOULDER)[0])])
    rig, matrices = body.rig, turned.matrices[0]
    corrected = rig.rest + model.displacements(model.values(turned.rotations)[0])
    plain, ours = (skin_frame(rest, rig.bones, rig.weights, matrices) for rest in (rig.rest, corrected))
    used, triangles = np.unique(body.triangles[bust(body)], return_inverse=True)
    points = [turned_up(place[used]) for place in (plain, ours, turned.shapes[0])]
    look = Look(
        SHOULDER_COMPONENTS,
        "Dual quaternions",
        f"arm turned by {abs(SHOULDER_POSE)}°, between two examples",
        "mm",
        # The rig is measured in decimeters.
        100.0,
        "distance from dual quaternion skinning in mm",
        height=12.0,
        direction=(0.5, -1.0, 0.15),
    )
    draw(path, points, triangles.reshape(-1, 3), look, samples, percent)


def bust(body: human.Character) -> np.ndarray:
    """(T,) the triangles of head, chest and left arm."""
    x, y, _ = body.rig.rest.T
    other = body.rig.joint_names.index("upperarm02.R")
    along = body.tails[other] - body.heads[other]
    beyond = (body.rig.rest - body.heads[other]) @ along > 0.15 * along @ along
    kept = np.where(x > 2.0, y > 0.0, (y > 2.3) & ~((x < -1.5) & beyond))
    return kept[body.triangles].all(axis=1)


def curve_of(body: human.Character, label: str, axis_count: int) -> Curve:
    name = (human.HINGES | human.BALLS)[label]
    axes = body.axes(name)[:axis_count]
    examples = body.examples(human.turns_about(name, axes))
    unseen = body.examples(human.unseen_turns(name, axes))
    curve = Curve(f"human {label}, {'one axis' if axis_count == 1 else 'three axes'}")
    for components in range(1, MOST + 1):
        model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=components))
        curve.seen.append(example_errors(body.rig, examples, model).relative)
        curve.unseen.append(example_errors(body.rig, unseen, model).relative)
    curve.captured = shares(model.supports[0].singular_values)
    return curve


def shares(singular_values) -> np.ndarray:
    """(MOST + 1,) of their squares' sum, of the first 0, 1, … MOST."""
    squares = np.square(singular_values)
    return np.append(0.0, np.cumsum(squares) / squares.sum())[: MOST + 1]


def draw(path: Path, points, triangles: np.ndarray, look: Look, samples: int, percent: int) -> None:
    """Linear blending, correction and target beside each other, (N, 3) each, the former two colored by their distance
    from the latter."""
    errors = [look.scale * np.linalg.norm(place - points[2], axis=1) for place in points[:2]]
    largest = errors[0].max()
    middle = 0.5 * (points[2].min(axis=0) + points[2].max(axis=0))
    meshes = [shape(place - middle, triangles) for place in points]
    for mesh, error in zip(meshes[:2], errors, strict=True):
        colored_by_error(mesh, error, largest, IN_THE_SUN)
    meshes[2].materials.append(plain("Target", TARGET_COLOR, roughness=0.7))
    render(path, dict(enumerate(meshes)), samples, percent, height=look.height, direction=look.direction)
    left = np.linalg.norm(errors[1]) / np.linalg.norm(errors[0])
    away = [f"up to {error.max():.1f} {look.unit} away" for error in errors]
    captions = [
        ("Linear blending", away[0]),
        (f"EigenSkin, {look.components} shape keys", f"{away[1]}, {100 * left:.0f} % of the error left"),
        (look.target, look.pose),
    ]
    compose(str(path), captions, largest, look.label)


def plot_components(path: Path, curves: list[Curve]) -> None:
    """What components capture, and the error that they leave."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 4.8), dpi=100, facecolor=BACKGROUND)
    for curve, color in zip(curves, CURVES, strict=False):
        left.plot(range(len(curve.captured)), curve.captured, color=color, linewidth=2.2, marker="o", label=curve.name)
        right.plot(range(MOST + 1), curve.seen, color=color, linewidth=2.2, marker="o")
        right.plot(
            range(MOST + 1), curve.unseen, color=color, linewidth=1.6, linestyle="--", marker="o", fillstyle="none"
        )
    right.plot([], [], color=MUTED, linewidth=2.2, label="at the examples")
    right.plot([], [], color=MUTED, linewidth=1.6, linestyle="--", label="between them, at unseen poses")
    right.set_yscale("log")
    right.set_ylim(0.008, 1.2)
    for axes, title, place in (
        (left, "Captured by components", "lower right"),
        (right, "Error left, linear blending's being 100 %", "upper right"),
    ):
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        dark(axes, title, "components (shape keys)")
        axes.legend(frameon=False, labelcolor=TEXT, loc=place)
    figure.tight_layout()
    figure.savefig(path, facecolor=BACKGROUND)
    plt.close(figure)


if __name__ == "__main__":
    leave(main())
