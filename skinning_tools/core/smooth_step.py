# SPDX-License-Identifier: GPL-3.0-or-later
"""The blend between none and all that masks and weights share."""

import numpy as np


def smooth_step(values: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, and a cubic with level ends between."""
    share = np.clip(values, 0.0, 1.0)
    return share * share * (3 - 2 * share)
