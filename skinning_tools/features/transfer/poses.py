# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether meshes are beside each other: in which pose, and at which scale."""

import bpy
import numpy as np

from ...blender.skin_reader import bone_matrices, read_arrays
from ...core.errors import BadScene
from ...core.geometry import diagonal

# What to say of clothes around the present pose, which get weights and keep their shape.
MOVED_AGAIN = (
    "its shape is that of the present pose, so the pose now moves it once more: to put it on the rest pose, first use "
    "Bind in Current Pose, then transfer with Present Pose off"
)

# Meshes of which less than this share is matched may be in another pose.
_FEW = 0.5

# A pose fits if it halves the usual distance.
_CLOSER = 0.5

# Meshes of which one is more times as large as the other hardly belong together.
_OTHER_SIZE = 10.0


def posed_points(context: bpy.types.Context, source: bpy.types.Object) -> np.ndarray | None:
    """(N, 3) where the bones of a skinned mesh take its vertices now, in its own space; None in the rest pose."""
    from ...core.deform import skin_frame

    skin = read_arrays(source)
    matrices = bone_matrices(skin, context.evaluated_depsgraph_get())
    points = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    return None if np.allclose(points, skin.rest, atol=1e-5 * np.ptp(skin.rest, axis=0).max()) else points


def check_posed(points: np.ndarray | None, source: bpy.types.Object) -> np.ndarray:
    """``points`` of ``posed_points``. Raises BadScene in the rest pose."""
    if points is None:
        raise BadScene(f'The bones of "{source.name}" are in their rest pose. Disable Present Pose')
    return points


def notes_on_fit(
    source: bpy.types.Object,
    target: bpy.types.Object,
    rest: np.ndarray,
    posed: np.ndarray | None,
    points: np.ndarray,
    matched: float,
) -> list[str]:
    """What the user should check. rest, posed (N, 3) of the source, posed None if it is not, and ``points`` (n, 3) of
    the target in one space; matched: the share of the target's vertices."""
    from scipy.spatial import cKDTree

    notes = []
    larger = diagonal(points) / (diagonal(rest) or 1.0)
    if not 1 / _OTHER_SIZE <= larger <= _OTHER_SIZE:
        notes.append(
            f'"{target.name}" is {larger:,.0f} times as large as "{source.name}": check its scale'
            if larger > 1
            else f'"{target.name}" is {1 / larger:,.0f} times as small as "{source.name}": check its scale'
        )
    if matched >= _FEW:
        return notes
    if posed is not None:
        to_rest, to_posed = (np.median(cKDTree(shape).query(points)[0]) for shape in (rest, posed))
        if to_posed < _CLOSER * to_rest:
            notes.append(
                f'"{target.name}" is beside the present pose of "{source.name}", but its rest pose was used: enable '
                "Present Pose, or put the clothes on the rest pose"
            )
    if not matched and not notes:
        notes.append(f'"{target.name}" is not beside "{source.name}": its weights are those of the closest points')
    return notes
