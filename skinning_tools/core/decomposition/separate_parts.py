# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a body that move as one though they are far from each other, such as feet that all stand on the ground.

One bone explains them all, but nobody can pose it, and what hangs from one part would hang from all. Each part gets a
bone of its own, which moves as the one that they had: what the animation looks like does not change.
"""

from dataclasses import replace

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial import cKDTree
from scipy.spatial.distance import squareform

from ..body_surface import BodySurface
from ..geometry import diagonal
from ..strongest import strongest_bones
from .types import Decomposition

# A patch of the surface is a part if it has at least this share of what the bone leads, and so many vertices.
_LEAST, _FEWEST = 0.2, 6
# Parts are separate if the way between them over the surface is at least this multiple of the size of the smaller one.
_GAP = 1.0
# Instead of an infinite way, in such sizes.
_FAR = 1e6
# The least size of a part, as a share of the body's: its vertices may all be at one place.
_POINT = 1e-6


def with_separate_parts(found: Decomposition, triangles: np.ndarray, most: int) -> Decomposition:
    """``found`` with a bone for each of the separate parts that a bone leads, up to ``most`` bones.

    triangles (T, 3). The same where each bone leads one part.
    """
    if not len(triangles) or found.bone_count >= most:
        return found
    surface, leading = BodySurface(found.rest, triangles), strongest_bones(found.bones, found.weights)
    patches, areas = surface.patches(leading), surface.areas()
    bones, carriers = found.bones.copy(), list(range(found.bone_count))
    for bone in range(found.bone_count):
        parts = _parts(surface, found.rest, np.flatnonzero(leading == bone), patches, areas)[: most - len(carriers) + 1]
        if len(parts) > 1:
            trees = [cKDTree(found.rest[part]) for part in parts]
            used = np.flatnonzero((found.bones == bone).any(axis=1))
            nearest = np.argmin([tree.query(found.rest[used])[0] for tree in trees], axis=0)
            names = np.append(bone, len(carriers) + np.arange(len(parts) - 1))
            bones[used] = np.where(found.bones[used] == bone, names[nearest][:, None], bones[used])
            carriers += [bone] * (len(parts) - 1)
    if len(carriers) == found.bone_count:
        return found
    return replace(found, bones=bones, transforms=found.transforms[:, carriers], bone_axes=found.bone_axes[carriers])


def _parts(
    surface: BodySurface, rest: np.ndarray, mine: np.ndarray, patches: np.ndarray, areas: np.ndarray
) -> list[np.ndarray]:
    """The vertices of each separate part among ``mine`` (n,), the largest part first; patches, areas (N,)."""
    numbers, shares = patches[mine], np.bincount(patches[mine], areas[mine])
    large = np.flatnonzero((shares >= _LEAST * shares.sum()) & (np.bincount(numbers) >= _FEWEST))
    members = [mine[numbers == patch] for patch in large]
    if len(members) < 2:
        return members
    sizes = np.array([diagonal(rest[part]) for part in members])
    gaps = surface.ways(members) / np.maximum(np.minimum(sizes, sizes[:, None]), _POINT * diagonal(rest))
    np.fill_diagonal(gaps, 0.0)
    # What no way leads to is separate, too.
    gaps = np.minimum(0.5 * (gaps + gaps.T), _FAR)
    groups = fcluster(linkage(squareform(gaps), "single"), _GAP, "distance")
    parts = [np.concatenate([members[i] for i in np.flatnonzero(groups == group)]) for group in np.unique(groups)]
    return sorted(parts, key=lambda part: -areas[part].sum())
