# SPDX-License-Identifier: GPL-3.0-or-later
"""The human rig next to the checkout, for the pictures of the documentation and for benchmarks. Arrays only."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skinning_tools.core.deform import convex_influences

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
HUMAN = DATA / "human_rig.npz"
MOTIONS = ("walk", "shamble")


@dataclass(frozen=True, eq=False)
class HumanArrays:
    """rest (N, 3), quads (Q, 4); names, parents (P,), heads and tails (P, 3) of the bones; bones and weights (N, 9).

    Y points up, in decimeters. matrices: by motion (F, P, 3, 4) from rest pose to frame."""

    rest: np.ndarray
    quads: np.ndarray
    names: tuple[str, ...]
    parents: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    matrices: dict[str, np.ndarray]

    @property
    def triangles(self) -> np.ndarray:
        return halved(self.quads)


def halved(quads: np.ndarray) -> np.ndarray:
    """(2 Q, 3) triangles of ``quads`` (Q, 4): the first halves of all, then the second."""
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def read_human() -> HumanArrays:
    """Raises FileNotFoundError if the rig is not next to the checkout."""
    with np.load(HUMAN) as data:
        rest, names = data["rest"].astype(float), tuple(map(str, data["bone_names"]))
        influences = convex_influences(data["influence_bones"], data["influence_weights"], len(rest), len(names))
        heads, tails = data["heads"].astype(float), data["tails"].astype(float)
        matrices = {motion: data[f"{motion}_matrices"].astype(float) for motion in MOTIONS}
        return HumanArrays(rest, data["quads"], names, data["parents"], heads, tails, *influences, matrices)
