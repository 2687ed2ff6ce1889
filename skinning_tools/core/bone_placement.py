# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone placement: heads, directions and lengths that show a rigger what each bone moves."""

from dataclasses import dataclass

import numpy as np

from .geometry import diagonal, mirrored
from .joint_hierarchy import JointHierarchy, means_and_spreads
from .strongest import strongest_bones

_LEAST_LENGTH, _MOST_LENGTH = 0.01, 0.15  # of the mesh's diagonal
_IDLE_LENGTH = 0.03
_ROD = np.sqrt(3.0)  # half the length of an even rod by its standard deviation
_FLOAT32_STEPS = 256 * np.finfo(np.float32).eps
# Of the extent of its vertices: a bone between joints needs this length to point to the next one.
_SHORT = 0.1
# Cosine between two children of a bone that are on both sides of it.
_OPPOSITE = -0.5
# Of the length: how far bones that mirror each other begin from each other's mirror images.
_APART = 0.1
# A root in the middle whose vertices extend in x farther than this, as a multiple of y and z, may lie across the plane.
_WIDE = 1.2
# The x of the direction of a bone that lies across the mirror plane.
_ACROSS = 0.7
# The x of an x axis from which it counts as pointing to a side.
_SIDEWARD = 0.3
# The sine of the angle between two bones of a chain from which it counts as bent.
_BENT = 0.17
_SHORTEST = 1e-5  # an armature drops bones shorter than 1e-6 units


@dataclass(frozen=True)
class Placement:
    """P bones at rest.

    heads (P, 3); axes (P, 3, 3): columns x, y, z, right-handed, the bone pointing along y; lengths (P,) > 0.
    """

    heads: np.ndarray
    axes: np.ndarray
    lengths: np.ndarray


def place_bones(
    rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int, own_axes: np.ndarray | None = None
) -> Placement:
    """A placement for bones that move the vertices ``rest`` (N, 3) by ``weights`` (N, K) of ``bones`` (N, K).

    A head is the mean of the bone's vertices, weighted by the squares of its weights so that shared vertices count
    less. The bone points along the greatest extent of its vertices, away from the mesh's center: along the best of its
    own axes where ``own_axes`` (P, 3, 3), columns, says which these are. A bone without vertices is short and
    lies in the middle of the mesh.
    """
    center = rest.mean(axis=0)
    size = diagonal(rest)
    squared = np.square(weights)
    mean, covariance = means_and_spreads(rest - center, bones, squared, bone_count)
    idle = np.bincount(bones[squared > 0], minlength=bone_count) == 0
    directions = np.linalg.eigh(covariance)[1] if own_axes is None else _by_extent(own_axes, covariance)
    if own_axes is None:
        directions[idle] = np.eye(3)[:, [2, 0, 1]]
    axes = _pointing_along_the_last(directions, mean)
    along = np.einsum("pi,pij,pj->p", axes[:, :, 1], covariance, axes[:, :, 1])
    lengths = np.clip(_ROD * np.sqrt(np.maximum(along, 0.0)), _LEAST_LENGTH * size, _MOST_LENGTH * size)
    lengths[idle] = _IDLE_LENGTH * size
    # Far from the origin, head and tail must still differ in single precision.
    heads = mean + center
    lengths = np.maximum(lengths, np.maximum(_FLOAT32_STEPS * np.abs(heads).max(axis=1), _SHORTEST))
    return Placement(heads, axes, lengths)


def place_at_joints(
    placement: Placement,
    hierarchy: JointHierarchy,
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    hinges: np.ndarray | None = None,
) -> Placement:
    """The bones with their heads at the joints of a core.joint_hierarchy.JointHierarchy, like a skeleton.

    placement: from ``place_bones`` with the other arguments. A bone points to the joint of the bone that continues it
    (``JointHierarchy.heirs``), or, without one or where that is too near, to the far end of its vertices; one that
    would still be too short keeps its direction, and is short. A bone without a parent reaches from child to child
    where these are on both sides of it; in the middle of a symmetric body, it stays there unless it is a rod from side
    to side. hinges (P, 3): the axis about which each bone turns most, 0 where it has none: its x axis, as far as the
    direction of the bone allows. Without one, the x axis is that about which the chain is bent there. Bones that mirror
    each other, and begin at joints that do, have the same lengths and mirrored axes.
    """
    rooted = hierarchy.parents < 0
    heads = np.where(rooted[:, None], placement.heads, hierarchy.joints)
    partners = None if hierarchy.posed else hierarchy.partners
    if partners is not None:
        heads[hierarchy.middle & rooted, 0] = hierarchy.plane
    outward, heirs = _outward(heads, rest, bones, weights), hierarchy.heirs()
    if partners is not None:
        outward = _shorter(outward, partners)
    tips, short = heads + outward, np.maximum(_SHORT * placement.lengths, _SHORTEST)
    tips[heirs >= 0] = heads[heirs[heirs >= 0]]
    extents = extents_along(np.tile(np.eye(3), (len(heads), 1, 1)), rest, bones, weights, len(heads))
    _place_roots(heads, tips, outward, hierarchy, extents)
    along = tips - heads
    along = np.where((np.linalg.norm(along, axis=1) > short)[:, None], along, outward)
    lengths = np.linalg.norm(along, axis=1)
    turned = lengths > short
    y = np.where(turned[:, None], along / np.where(turned, lengths, 1.0)[:, None], placement.axes[:, :, 1])
    bends = _bends(y, heirs, hierarchy.parents)
    axes = _rolled(y, placement.axes, bends if hinges is None else np.where(_across(hinges, y), hinges, bends))
    lengths = np.where(turned, lengths, short)
    if partners is not None:
        _mirror_pairs(heads, axes, lengths, hierarchy)
    return Placement(heads, axes, lengths)


def _place_roots(
    heads: np.ndarray, tips: np.ndarray, outward: np.ndarray, hierarchy: JointHierarchy, extents: np.ndarray
) -> None:
    """Let bones without a parent reach from child to child where these are on both sides of them; in place.

    heads, tips (P, 3); outward (P, 3) of ``_outward``; extents (P, 3): of each bone's vertices along x, y and z.
    """
    middle = hierarchy.middle
    upright = middle & (extents[:, 0] <= _WIDE * extents[:, 1:].max(axis=1))
    for bone in np.flatnonzero(hierarchy.parents < 0):
        children = hierarchy.parents == bone
        # The other end of a bone in the middle is in the middle, too, where something goes on there.
        inner = children & middle & middle[bone]
        ends = heads[inner if inner.any() else children]
        if upright[bone] and not inner.any():
            tips[bone] = _between_sides(tips[bone], heads[bone], outward[bone])
            ends[:, 0] = hierarchy.plane
        heads[bone] = _other_end(heads[bone], tips[bone], ends)


def _mirror_pairs(heads: np.ndarray, axes: np.ndarray, lengths: np.ndarray, hierarchy: JointHierarchy) -> None:
    """Give bones that mirror each other, and begin at joints that do, mirrored ``axes`` (P, 3, 3) and the same
    ``lengths`` (P,); in place. heads (P, 3)."""
    partners = hierarchy.partners
    assert partners is not None
    # A bone in the middle may lie across it, such as that of a rod.
    paired = (partners >= 0) & ~(hierarchy.middle & (np.abs(axes[:, 0, 1]) > _ACROSS))
    paired = np.flatnonzero(paired & ((hierarchy.parents < 0) | _opposite(heads, lengths, hierarchy)))
    place = np.zeros(len(axes), int)
    place[paired] = np.arange(len(paired))
    # It loads scipy: the window would stand still when the extension is enabled.
    from .shape_rig import mirrored_axes

    axes[paired], lengths[paired] = mirrored_axes(axes[paired], lengths[paired], place[partners[paired]])


def _opposite(heads: np.ndarray, lengths: np.ndarray, hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) bool: the bones whose ``heads`` (P, 3) are where the mirror images of their partners' are.

    lengths (P,) of the bones. Others may hang from different bones: mirrored, they would miss the next joint.
    """
    partners = hierarchy.partners
    images = mirrored(heads[partners], hierarchy.plane)
    return np.linalg.norm(images - heads, axis=1) <= _APART * np.maximum(lengths, lengths[partners])


def _across(axes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(P, 1) bool: whether unit axes (P, 3), or 0, are across the directions y (P, 3)."""
    return np.linalg.norm(np.cross(axes, y), axis=1, keepdims=True) > 0.5


def _rolled(y: np.ndarray, previous: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Axes (P, 3, 3) with the directions y (P, 3), and x near that ``wanted`` (P, 3) where it is across y; elsewhere
    rolled like the axes ``previous`` (P, 3, 3)."""
    # The previous axis that is most perpendicular gives the roll.
    slants = np.abs(np.einsum("pij,pi->pj", previous, y))
    side = np.take_along_axis(previous, np.argmin(slants, axis=1)[:, None, None], axis=2)[:, :, 0]
    side = np.where((slants[:, 2] < 0.7)[:, None], previous[:, :, 2], side)
    side = np.where(_across(wanted, y), np.cross(wanted, y), side)
    z = side - np.einsum("pi,pi->p", side, y)[:, None] * y
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    x = np.cross(y, z)
    # All bones of a limb bend the same way about their x axes, and mirrored bones have x axes with the same x.
    back = np.where(np.abs(x[:, 0]) > _SIDEWARD, x[:, 0], z[:, 2]) < 0
    x[back], z[back] = -x[back], -z[back]
    return np.stack([x, y, z], axis=-1)


def _bends(y: np.ndarray, heirs: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(P, 3) the unit axis about which each bone, with the direction y (P, 3), is bent against its heir, or at the end
    of a chain against its parent; 0 where it is hardly bent."""
    first, second = np.arange(len(y)), heirs.copy()
    last = np.flatnonzero((heirs < 0) & (heirs[parents] == first))
    first[last], second[last] = parents[last], last
    axes = np.where((second >= 0)[:, None], np.cross(y[first], y[second]), 0.0)
    sizes = np.linalg.norm(axes, axis=1, keepdims=True)
    return np.where(sizes > _BENT, axes / np.maximum(sizes, _BENT), 0.0)


def _outward(heads: np.ndarray, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(P, 3) from each bone's head (P, 3) to the far end of the vertices that it moves most; 0 where there are none."""
    strongest = strongest_bones(bones, weights)
    offsets = rest - heads[strongest]
    # Weighted by the squared distance: far vertices show where the end is.
    pull = offsets * np.einsum("ni,ni->n", offsets, offsets)[:, None]
    directions: np.ndarray = np.stack([np.bincount(strongest, pull[:, i], len(heads)) for i in range(3)], axis=1)
    lengths = np.linalg.norm(directions, axis=1)
    directions /= np.where(lengths > 0, lengths, 1.0)[:, None]
    along = np.einsum("ni,ni->n", offsets, directions[strongest])
    farthest, nearest = np.zeros(len(heads)), np.full(len(heads), np.inf)
    np.maximum.at(farthest, strongest, along)
    np.minimum.at(nearest, strongest, along)
    # A bone whose vertices are far from its joint need not be longer than the extent of these vertices.
    extent = farthest - np.clip(nearest, 0.0, farthest)
    return np.where(farthest > 2.0 * extent, extent, farthest)[:, None] * directions


def _shorter(outward: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """(P, 3) of ``outward`` (P, 3) and its partner's mirror image the shorter: what one hand holds makes no bone of a
    hand longer. partners (P,): −1 without one."""
    images = np.where((partners >= 0)[:, None], mirrored(outward[partners], 0.0), 0.0)
    lengths = np.linalg.norm(images, axis=1)
    longer = (lengths > 0) & (np.linalg.norm(outward, axis=1) > lengths)
    return np.where(longer[:, None], images, outward)


def _between_sides(tip: np.ndarray, head: np.ndarray, outward: np.ndarray) -> np.ndarray:
    """The tip (3,) of a root whose ``head`` (3,) is in the mirror plane, so that it does not lie from one side to the
    other: in the plane between ``tip`` and its mirror image, or, where that is near, at the end ``outward`` (3,)."""
    between = np.array([head[0], tip[1], tip[2]])
    far = outward * [0.0, 1.0, 1.0]
    return between if 2.0 * np.linalg.norm(between - head) > np.linalg.norm(far) else head + far


def _other_end(middle: np.ndarray, tip: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """The joint (of (n, 3)) most clearly opposite of ``tip`` as seen from ``middle``; ``middle`` itself without one."""
    sides = (joints - middle) @ (tip - middle)
    if not len(joints):
        return middle
    sides /= np.maximum(np.linalg.norm(joints - middle, axis=1) * np.linalg.norm(tip - middle), np.finfo(float).tiny)
    best = int(np.argmin(sides))
    return joints[best] if sides[best] < _OPPOSITE else middle


def extents_along(
    axes: np.ndarray, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int
) -> np.ndarray:
    """(P, 3) standard deviation of the vertices of each bone along its ``axes`` (P, 3, 3)."""
    covariance = means_and_spreads(rest - rest.mean(axis=0), bones, np.square(weights), bone_count)[1]
    return np.sqrt(np.maximum(np.einsum("pij,pik,pkj->pj", axes, covariance, axes), 0.0))


def _by_extent(axes: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The columns of ``axes`` (P, 3, 3) from the least extent to the greatest."""
    order = np.argsort(np.einsum("pij,pik,pkj->pj", axes, covariance, axes), axis=1, kind="stable")
    return np.take_along_axis(axes, order[:, None, :], axis=2)


def _pointing_along_the_last(directions: np.ndarray, outward: np.ndarray) -> np.ndarray:
    """(P, 3, 3): y is the last of ``directions``, to the side of ``outward`` (P, 3), z the first."""
    y = _towards(directions[:, :, 2], outward)
    z = _towards(directions[:, :, 0], np.broadcast_to([0.01, 0.1, 1.0], outward.shape))
    return np.stack([np.cross(y, z), y, z], axis=-1)


def _towards(directions: np.ndarray, sides: np.ndarray) -> np.ndarray:
    return np.where(np.einsum("pi,pi->p", directions, sides)[:, None] < 0, -directions, directions)
