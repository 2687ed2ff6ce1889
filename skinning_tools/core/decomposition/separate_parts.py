# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a body that move as one though they are far from each other, such as feet that all stand on the ground, or
its two sides.

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
from ..skeleton_symmetry import mirror_symmetry
from ..strongest import strongest_bones
from .types import Decomposition

# A patch of the surface is a part if it has at least this share of what the bone leads, and so many vertices.
_LEAST, _FEWEST = 0.2, 6
# Parts are separate if the way between them over the surface, or the straight one between loose pieces, is at least
# this multiple of the size of the smaller one.
_GAP = 1.0
# Or if so much of either mirrors the other.
_MIRRORED = 0.8
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
    patches, areas, images = surface.patches(leading), surface.areas(), mirror_symmetry(found.rest)[1]
    bones, carriers = found.bones.copy(), list(range(found.bone_count))
    for bone in range(found.bone_count):
        mine = np.flatnonzero(leading == bone)
        parts = _parts(surface, found.rest, mine, patches, areas, images)[: most - len(carriers) + 1]
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
    surface: BodySurface,
    rest: np.ndarray,
    mine: np.ndarray,
    patches: np.ndarray,
    areas: np.ndarray,
    images: np.ndarray | None,
) -> list[np.ndarray]:
    """The vertices of each separate part among ``mine`` (n,), the largest part first; patches, areas (N,); images (N,):
    the vertex that mirrors each one, −1 without one, on a symmetric body."""
    numbers, shares = patches[mine], np.bincount(patches[mine], areas[mine])
    large = np.flatnonzero((shares >= _LEAST * shares.sum()) & (np.bincount(numbers) >= _FEWEST))
    members = [mine[numbers == patch] for patch in large]
    if len(members) < 2:
        return members
    sizes = np.array([diagonal(rest[part]) for part in members])
    pieces = surface.pieces()[[part[0] for part in members]]
    straight = [
        [tree.query(rest[part])[0].min() for part in members] for tree in (cKDTree(rest[part]) for part in members)
    ]
    ways = np.where(pieces == pieces[:, None], surface.ways(members), straight)
    gaps = ways / np.maximum(np.minimum(sizes, sizes[:, None]), _POINT * diagonal(rest))
    np.fill_diagonal(gaps, 0.0)
    # What no way leads to is separate, too.
    gaps = np.minimum(0.5 * (gaps + gaps.T), _FAR)
    groups = fcluster(linkage(squareform(gaps), "single"), _GAP, "distance")
    keys = np.stack([groups, _sides(rest, members, images)], axis=1)
    parts = [
        np.concatenate([members[i] for i in np.flatnonzero((keys == key).all(axis=1))])
        for key in np.unique(keys, axis=0)
    ]
    return sorted(parts, key=lambda part: -areas[part].sum())


def _sides(rest: np.ndarray, members: list[np.ndarray], images: np.ndarray | None) -> np.ndarray:
    """(m,) of the parts ``members``, 1 and −1 for two that mirror each other, 0 for others; images (N,)."""
    sides = np.zeros(len(members), int)
    if images is None:
        return sides
    for i, one in enumerate(members):
        for j, other in enumerate(members):
            both = (one, other), (other, one)
            if i != j and all(np.isin(images[part], image).mean() >= _MIRRORED for part, image in both):
                sides[i] = 1 if rest[one, 0].mean() > rest[other, 0].mean() else -1
    return sides
