# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tables of EigenSkin share: the axes of the joints that are taught, and how ratios are written."""

import eigenskin_human as human
import numpy as np

# Degrees: the range of the joints.
REACH = 100.0


def trained_axes(body: human.Character, label: str, name: str) -> np.ndarray:
    return body.axes(name)[: 1 if label in human.HINGES else 3]


def ratios(values) -> list[str]:
    return [f"{value:.3f}" for value in values]
