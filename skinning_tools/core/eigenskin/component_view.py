# SPDX-License-Identifier: GPL-3.0-or-later
"""One component of an EigenSkin on the whole surface, and its colors (figure 5 of the paper)."""

import numpy as np

from .model import EigenSkin


def component_displacements(model: EigenSkin, support: int, component: int) -> np.ndarray:
    """(N, 3) the displacements of the rest pose by component ``component``, counted from 0, of a support."""
    result = np.zeros((model.vertex_count, 3))
    chosen = model.supports[support]
    result[chosen.vertices] = chosen.components[component]
    return result


def direction_colors(displacements: np.ndarray, largest: float) -> np.ndarray:
    """(N, 3) from 0 to 1: red, green and blue stand for X, Y and Z of ``displacements`` (N, 3), as in the paper. Gray
    is none, and an axis is at its ends at the length ``largest``, against the axis at 0."""
    share = displacements / largest if largest > 0 else np.zeros_like(displacements)
    return 0.5 + 0.5 * np.clip(share, -1.0, 1.0)
