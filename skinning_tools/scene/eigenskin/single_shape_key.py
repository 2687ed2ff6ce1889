# SPDX-License-Identifier: GPL-3.0-or-later
"""One shape key by itself: which is meant, and what it does at its full value."""

import numpy as np

from ...core.errors import BadScene
from ..object_checks import object_label
from ..weights.vertex_groups import read_weights


def shape_key_block(object, name: str = ""):
    """The shape key ``name``, the active one where that is empty. Raises BadScene where it is none beside the first."""
    keys = object.data.shape_keys
    block = None
    if keys is not None:
        block = keys.key_blocks.get(name) if name else object.active_shape_key
    if block is None or block == keys.reference_key:
        which = f'no shape key "{name}"' if name else "no shape key that is active"
        raise BadScene(
            f"The {object_label(object)} has {which} beside the first. Choose one that holds the right shape"
        )
    return block


def key_displacements(object, block) -> np.ndarray:
    """(N, 3) float64: what a shape key adds at value 1, its vertex group included."""
    shaped, relative = (np.empty((len(block.points), 3), np.float32) for _ in range(2))
    block.points.foreach_get("co", shaped.ravel())
    block.relative_key.points.foreach_get("co", relative.ravel())
    displacements = shaped.astype(np.float64) - relative
    if block.vertex_group in object.vertex_groups:
        displacements *= read_weights(object, [block.vertex_group])[1].sum(axis=1)[:, None]
    return displacements
