# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a thumb of soft tissue, as figure 7 of Kry, James and Pai 2002 has one."""

from dataclasses import dataclass, replace
from functools import cached_property

import eigenskin_human as human
import numpy as np
from _eigenskin_poses import ratios
from _tables import Tables
from _tissue import Tissue

from skinning_tools.core.eigenskin import EigenSkinSettings, Examples, build_eigenskin, example_errors
from skinning_tools.core.segments import segment_distances

# The thumb's metacarpal, which turns in the carpal-metacarpal joint, and its two phalanges.
THUMB = "finger1-1.L", "finger1-2.L", "finger1-3.L"
_OTHERS = "lowerarm", "wrist", "metacarpal", "finger"

# Degrees about each of two axes, and the number of other poses, as many as the paper's.
STEPS = (-24, -16, -8, 8, 16, 24)
UNSEEN = 25

MOST = 6

# 0 to 5 eigendisplacements of the thumb's carpal-metacarpal joint.
PAPER_THUMB = (1.0, 0.161, 0.160, 0.100, 0.098, 0.065)

# Decimeters: the edge of a cell, the radius of the bones, how far from the thumb's bones there is tissue that moves,
# and from where on the skin does not matter.
CELL, BONE, REACH, SKIN = 0.05, 0.05, 0.45, 1.2


@dataclass(frozen=True, eq=False)
class SoftThumb:
    """The left thumb of a character, whose skin goes along with simulated tissue. cell: the edge of one, decimeters."""

    body: human.Character
    cell: float = CELL

    def examples(self, turns: list[human.Turn]) -> tuple[Examples, np.ndarray]:
        """Each turns the thumb in its first joint; and (E, C) the volumes of the cells as shares of those at rest."""
        examples = self.body.examples(turns)
        joint = self.body.rig.joint_names.index(THUMB[0])
        places = [self.tissue.settled(self.held, self._start(matrices[joint])) for matrices in examples.matrices]
        shapes = np.tile(self.body.rig.rest, (len(turns), 1, 1))
        skin = np.flatnonzero(self._distances(shapes[0], THUMB) < REACH)
        embedding = self.tissue.embedding(shapes[0, skin])
        for shape, moved in zip(shapes, places, strict=True):
            shape[skin] += embedding @ (moved - self.tissue.nodes)
        return replace(examples, shapes=shapes), np.array([self.tissue.volumes(moved) for moved in places])

    @property
    def tissue(self) -> Tissue:
        return self._cut_out[0]

    @cached_property
    def moved(self) -> np.ndarray:
        """(n,) bool: the nodes at the thumb's bones."""
        distances = self._distances(self.tissue.nodes, THUMB)
        return (distances < BONE) & (distances < self._distances(self.tissue.nodes, self._others))

    @cached_property
    def held(self) -> np.ndarray:
        """(n,) bool: the nodes at any bone, or where the tissue was cut from the rest of the hand."""
        return self.moved | self._cut_out[1] | (self._distances(self.tissue.nodes, self._others) < BONE)

    def _start(self, matrix: np.ndarray) -> np.ndarray:
        """(n, 3) places of the nodes with the bones where they are to be: the further from them, the less moved."""
        nodes = self.tissue.nodes
        return nodes + self._shares[:, None] * (nodes @ matrix[:, :3].T + matrix[:, 3] - nodes)

    @cached_property
    def _shares(self) -> np.ndarray:
        return self.tissue.blended(self.moved, self.held)

    @cached_property
    def _cut_out(self) -> tuple[Tissue, np.ndarray]:
        rest = self.body.rig.rest
        near = self._distances(rest, THUMB) < SKIN
        whole = Tissue.filling(rest, self.body.triangles[near[self.body.triangles].all(axis=1)], self.cell)
        return whole.only(self._distances(whole.centers, THUMB) < REACH)

    @property
    def _others(self) -> tuple[str, ...]:
        names = self.body.rig.joint_names
        return tuple(name for name in names if name.startswith(_OTHERS) and name.endswith(".L") and name not in THUMB)

    def _distances(self, points: np.ndarray, bones: tuple[str, ...]) -> np.ndarray:
        """(n,) from the nearest of ``bones``."""
        rows = [self.body.rig.joint_names.index(name) for name in bones]
        heads, tails = self.body.heads[rows], self.body.tails[rows]
        return segment_distances(points[:, None], heads, tails - heads).min(axis=1)


def show_thumb(tables: Tables) -> None:
    thumb = SoftThumb(human.Character.read())
    body = thumb.body
    axes = body.axes(THUMB[0])[:2]
    examples, volumes = thumb.examples(human.turns_about(THUMB[0], axes, STEPS))
    directions = np.random.default_rng(1).uniform(0, 2 * np.pi, UNSEEN)
    between = np.column_stack([np.cos(directions), np.sin(directions)]) @ axes
    unseen, _ = thumb.examples(human.unseen_turns(THUMB[0], between, UNSEEN, max(STEPS)))
    steps = ", ".join(f"±{angle}°" for angle in STEPS if angle > 0)
    tables.begin(
        "Thumb of soft tissue",
        "The left thumb of the human rig in its carpal-metacarpal joint, as in the paper's figure 7. Skin: finite "
        f"elements, static and nonlinear, {len(thumb.tissue.cells):,} cubes held at the bones. Examples: {steps} about "
        f"each of two axes, bending and across ({len(examples.names)} poses). Unseen: {UNSEEN} random poses, up to "
        f"±{max(STEPS)}° about any axis between the two. Rows as in *Error over components*; one example: the one that "
        "plain linear blending misses most; bending or across alone: its six examples, in the pose. The paper: a hand "
        "of 11,171 finite elements of second order, about six poses for each degree of freedom, angles not stated; its "
        "figures are printed below pictures of one pose.",
        *("thumb", *map(str, range(MOST + 1))),
    )
    alone = dict(zip(("bending alone", "across alone"), np.split(np.arange(len(examples.names)), 2), strict=True))
    rows = {name: [1.0] for name in ("rest pose", "in the pose", "one example", "unseen", *alone)}
    for components in range(1, MOST + 1):
        model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=components))
        errors = example_errors(body.rig, examples, model)
        worst = np.argmax(errors.before)
        rows["rest pose"].append(human.rest_error(body.rig, examples, model))
        rows["in the pose"].append(errors.relative)
        rows["one example"].append(errors.after[worst] / errors.before[worst])
        rows["unseen"].append(example_errors(body.rig, unseen, model).relative)
        for name, picked in alone.items():
            some = only(examples, picked)
            model = build_eigenskin(body.rig, some, EigenSkinSettings(components=components))
            rows[name].append(example_errors(body.rig, some, model).relative)
    tables.row("optimum", *ratios(human.optimum(body.rig, examples)[: MOST + 1]))
    for name, row in rows.items():
        tables.row(name, *ratios(row))
    tables.row("of the paper", *ratios(PAPER_THUMB), *["–"] * (MOST + 1 - len(PAPER_THUMB)))
    whole = 100 * np.abs(volumes.mean(axis=1) - 1).max()
    tables.note(
        f"The tissue's volume changes by at most {whole:.1f} % in the examples, that of a cube by "
        f"{100 * np.abs(volumes - 1).max():.0f} %. Contact is not simulated."
    )


def only(examples: Examples, picked: np.ndarray) -> Examples:
    """Those of the ``picked`` rows."""
    names = tuple(examples.names[row] for row in picked)
    return Examples(names, examples.rotations[picked], examples.matrices[picked], examples.shapes[picked])
