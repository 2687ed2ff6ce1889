# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of skin weights that suit EigenSkin's corrections."""

from dataclasses import replace

import eigenskin_human as human
import numpy as np
from _eigenskin_poses import REACH, ratios, trained_axes
from _tables import Tables

from skinning_tools.core.binding.fit import fit_weights
from skinning_tools.core.eigenskin import (
    EigenSkinSettings,
    build_eigenskin,
    corrected_weights,
    example_errors,
    shell_turns,
)

COMPONENTS = (1, 3)


def show_weights(tables: Tables) -> None:
    body = human.Character.read()
    tables.begin(
        "Weights of the skin",
        "Joints at 25 unseen poses, hinges with 6 examples, joints with three axes with 24 over the ball, as a share "
        "of what linear blending with the given weights misses. Nearest: weights that come closest to the examples by "
        "themselves. Fitted: weights of which so many components leave the least (*Fit Weights to Examples*).",
        *("joint and weights", "skin alone", *(f"{count} comp." for count in COMPONENTS)),
    )
    reach = np.full(3, np.radians(REACH))
    for label, name in (human.HINGES | human.BALLS).items():
        axes, hinge = trained_axes(body, label, name), label in human.HINGES
        examples = body.examples(
            human.turns_about(name, axes) if hinge else [(name, turn) for turn in shell_turns(24, -reach, reach)]
        )
        unseen = body.examples(human.unseen_turns(name, axes if hinge else human.random_directions()))
        rigs = {"given": body.rig, "nearest": nearest(body, examples)}
        for count in COMPONENTS:
            weights = corrected_weights(body.rig, examples, count)[0]
            rigs[f"fitted for {count}"] = replace(body.rig, weights=weights)
        plain = 0.0
        for kind, rig in rigs.items():
            errors = [
                example_errors(rig, unseen, build_eigenskin(rig, examples, EigenSkinSettings(components=count)))
                for count in COMPONENTS
            ]
            left = np.linalg.norm([errors[0].before, *(error.after for error in errors)], axis=1)
            plain = plain or left[0]
            tables.row(f"{label}, {kind}", *ratios(left / plain))


def nearest(body: human.Character, examples):
    """The rig with the weights by which linear blending alone comes closest to the examples."""
    rig = body.rig
    moved = np.flatnonzero(np.abs(examples.shapes - body.plain_shapes(examples)).max(axis=(0, 2)) > 1e-5)
    width = rig.weights.shape[1]
    rows = rig.bones[moved], rig.weights[moved]
    fit = fit_weights(rig.rest[moved], *rows, examples.matrices, examples.shapes[:, moved], max_influences=width)
    bones, weights = rig.bones.copy(), rig.weights.copy()
    spare = ((0, 0), (0, width - fit.weights.shape[1]))
    bones[moved], weights[moved] = np.pad(fit.bones, spare), np.pad(fit.weights, spare)
    return replace(rig, bones=bones, weights=weights)
