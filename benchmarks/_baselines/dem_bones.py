# SPDX-License-Identifier: GPL-3.0-or-later
"""EA's Dem Bones (Le & Deng 2012) through py-dem-bones, which includes its C++ core; rigid bones."""

import importlib.util

import numpy as np

from skinning_tools.core.animation import Animation
from skinning_tools.core.deform import strongest_influences

from .approximations import Skinned

# The package's defaults: 8 influences, 30 iterations, bones softly kept apart by affine blending, smooth weights.
DEFAULTS = {"max_influences": 8, "iterations": 30}
# The settings with the least error on the sequences.
_TUNED = {"iterations": 100, "transAffine": 0.0, "weightsSmooth": 1e-6}
TUNED_4 = {"max_influences": 4, **_TUNED}
TUNED_8 = {"max_influences": 8, **_TUNED}


def available() -> bool:
    return importlib.util.find_spec("py_dem_bones") is not None


def approximate(
    animation: Animation, bone_count: int, *, max_influences: int, iterations: int, **parameters
) -> Skinned:
    """parameters: attributes of the solver. It may end with fewer bones than ``bone_count``."""
    import py_dem_bones

    solver = py_dem_bones.DemBones()
    for name, value in parameters.items():
        setattr(solver, name, value)
    rest = animation.frames[0].astype(float)
    result = py_dem_bones.solve_skinning(
        rest,
        animation.frames,
        bone_count,
        faces=animation.triangles,
        max_influences=max_influences,
        iterations=iterations,
        solver=solver,
    )
    weights = result.weights.T
    bones = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)
    bones, kept = strongest_influences(bones, weights, max_influences)
    # Blending does not normalize weights; the package's sum to one except for rounding.
    return Skinned(rest, bones, kept, result.transforms[:, :, :3])
