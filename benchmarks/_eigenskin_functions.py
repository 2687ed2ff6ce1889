# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of EigenSkins with fewer basis functions than examples."""

from dataclasses import replace

import eigenskin_human as human
import numpy as np
from _eigenskin_poses import REACH, ratios, trained_axes
from _tables import Tables

from skinning_tools.core.eigenskin import (
    EigenSkinSettings,
    build_eigenskin,
    example_errors,
    left_out_errors,
    shell_turns,
)
from skinning_tools.features.eigenskin import drivers

LIMITS = (0, 12, 30)
HINGE_EXAMPLES, BALL_EXAMPLES = (6, 24), (24, 60)
NOISES = (0.0, 0.05)


def show_functions(tables: Tables) -> None:
    body = human.Character.read()
    tables.begin(
        "Fewer basis functions",
        "Joints with a basis function for each example, and with at most so many of the examples that are worth most "
        f"(*Basis Functions*). Examples over ±{REACH:.0f}° about an axis, or over the ball; the second rows of each "
        "with noise of 5 % of the displacements, as simulations that do not settle have it. Left out: each example "
        "predicted from the others, among which the functions are chosen anew. Unseen: 25 other poses without noise, "
        "with all components, in the pose.",
        *("joint and examples", "at most", "functions", "drivers", "left out", "unseen"),
    )
    reach = np.full(3, np.radians(REACH))
    for label, name in (("elbow", human.HINGES["elbow"]), ("shoulder", human.BALLS["shoulder"])):
        axes, hinge = trained_axes(body, label, name), label in human.HINGES
        unseen = body.examples(human.unseen_turns(name, axes if hinge else human.random_directions()))
        for count in HINGE_EXAMPLES if hinge else BALL_EXAMPLES:
            steps = np.delete(np.linspace(-REACH, REACH, count + 1), count // 2)
            around = [(name, turn) for turn in shell_turns(count, -reach, reach)]
            clean = body.examples(human.turns_about(name, axes, steps) if hinge else around)
            for noise in NOISES:
                examples = replace(clean, shapes=disturbed(body, clean, noise))
                what = f"{label}, {count}" + (", noise" if noise else "")
                for most in LIMITS:
                    model = build_eigenskin(
                        body.rig, examples, EigenSkinSettings(components=10, basis_functions=most, max_per_vertex=1000)
                    )
                    left_out = left_out_errors(body.rig, examples, basis_functions=most).relative
                    error = example_errors(body.rig, unseen, model).relative
                    functions = len(model.supports[0].basis_weights) - 1
                    cells = str(functions), str(drivers.plan(model).driver_count), *ratios((left_out, error))
                    tables.row(what, str(most) if most else "all", *cells)


def disturbed(body: human.Character, examples, noise: float) -> np.ndarray:
    """(E, N, 3) the shapes with random offsets where the joint displaces them, ``noise`` times as large in all."""
    offsets = examples.shapes - body.plain_shapes(examples)
    random = np.random.default_rng(0).normal(size=offsets.shape)
    random *= np.linalg.norm(offsets, axis=2, keepdims=True) > 1e-3 * np.abs(offsets).max()
    return examples.shapes + noise * random * np.linalg.norm(offsets) / np.linalg.norm(random)
