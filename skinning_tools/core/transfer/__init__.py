# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights that travel from one surface to another beside it."""

from .merging import merged_weights
from .transfer import Transferred, transfer_weights

__all__ = ["Transferred", "merged_weights", "transfer_weights"]
