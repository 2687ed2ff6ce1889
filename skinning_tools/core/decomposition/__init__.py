# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning decomposition: a vertex animation becomes bones, weights and a rest pose (Kavan et al. 2010)."""

from ..solve_memory import memory_estimate
from .partial import solve_weights
from .solver import decompose, skin_frame
from .types import BONE_KINDS, Decomposition, Settings

__all__ = ["BONE_KINDS", "Decomposition", "Settings", "decompose", "memory_estimate", "skin_frame", "solve_weights"]
