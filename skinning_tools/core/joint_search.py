# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones that turn about each other: a tree found from their motion and their place on the body."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from .body_surface import BodySurface
from .grouping import members
from .joint_hierarchy import JointHierarchy, moments, rigid_motion
from .joints_in_body import into_body, with_image
from .pair_motion import pair_motion
from .skeleton_symmetry import mirror_plane, mirrored_bones, symmetric_joints
from .strongest import strongest_bones

# Radians (root mean square) of relative rotation below which the place where two bones meet decides the joint: hinges
# leave it undetermined along their axis, and bones that hardly turn in all directions.
_FAINT_TURN = 0.06
# The cost of a link besides the slip of its joint: shares of the joint's distance from its bones, of their relative
# motion, since neighbors in a body move alike, and of the detour from one to the other over its surface, since limbs
# that swing in step move alike, too. These limbs may touch, as thighs do, but either touches the trunk more: the last
# is the share of how much less two bones touch than either touches the neighbor that it touches most. Measured on
# bodies with known joints.
_DISTANCE_SHARE, _MOTION_SHARE, _DETOUR_SHARE, _CONTACT_SHARE = 0.1, 0.2, 1.0, 0.03
# Shares of the mesh's diagonal. A link holds if its joint is near its bones and slips little: hardly at all, or, for
# bones that touch, much less than their relative motion.
_FARTHEST = 0.08
_SLIP = 0.002
_LARGEST_SLIP = 0.06
_SLIP_SHARE = 0.2
_TOUCHING = 0.05
# What hangs together on the surface has one root: bones that touch there may be linked where no joint holds, at this
# cost. Loose pieces are linked to the body as well, as a last resort (more costly than any other link), if they slip by
# no more than this share.
_WEAK, _LAST_RESORT = 0.02, 10.0
_LOOSE_SLIP = 0.03
# More than any link on one surface costs.
_OFF_MIDDLE = 2.0
# Sum of the products of weights, as a share of the lesser bone's weight or of one vertex, up to which two bones have no
# vertex in common: stray weights are not where bones meet.
_SHARED = 1e-3
# Vertices of a bone by which the gap to another one is found, and the share of them that is nearest to it.
_SAMPLES, _NEAREST = 48, 0.2
# With very many bones, only this many near bones are candidates for the parent of each.
_NEAR_BONES = 64


def find_joint_hierarchy(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    transforms: np.ndarray,
    triangles: np.ndarray | None = None,
) -> JointHierarchy:
    """The tree of joints that explains how bones move against each other.

    rest (N, 3); bones, weights (N, K); transforms (F, P, 3, 4): a decomposition's; triangles (T, 3): its surface, if it
    has one. Of all trees the one with the least sum of costs; a link is as costly as its joint slips, and more where
    the joint is far from either bone, where the bones move much against each other, where the way from one to the
    other over the surface is a detour, or where they touch less than either touches another bone. Links whose joint
    does not hold are left out between parts that do not touch, so that an independent part has its own root. A tree's
    root is its bone of the least mean distance, in links, from the surface. Joints lie inside the body where the motion
    allows it.
    """
    bone_count = transforms.shape[1]
    center = rest.mean(axis=0)
    size = float(np.linalg.norm(np.ptp(rest, axis=0))) or 1.0
    points = (rest - center) / size
    regions = _Regions(points, bones, weights, bone_count)
    first, second = _candidates(regions)
    meeting, shared = _meeting_places(points, bones, weights, bone_count, regions, first, second)
    motion = pair_motion(rigid_motion(transforms, rest, bones, weights), center, size, first, second)
    joints = motion.joints(meeting, _FAINT_TURN)
    distance, apart = _distances(regions, first, second, joints, meeting, shared)
    moving = motion.apart(0.5 * (regions.moments[first] + regions.moments[second]))
    far = apart >= _FARTHEST
    joints[far] = meeting[far]
    slips = motion.slips(joints)
    holds = (slips < _SLIP) | (slips < np.minimum(_SLIP_SHARE * moving, _LARGEST_SLIP))
    holds &= ~far
    costs = slips + _DISTANCE_SHARE * distance + _MOTION_SHARE * moving
    mass = regions.mass
    surface = BodySurface(points, triangles) if triangles is not None and len(triangles) else None
    if surface is not None:
        detours = surface.detours(regions.vertices)[first, second]
        costs += _DETOUR_SHARE * np.minimum(np.where(shared, 0.0, detours), 1.0)
        touching, direct = (contacts[first, second] for contacts in surface.contacts(bones, weights, bone_count))
        share = _shares_of_most(first, second, touching, bone_count)
        costs += _CONTACT_SHARE * (1.0 - share)
        holds &= (share > _TOUCHING) | (slips < _SLIP)
        weak = ~holds & (direct > 0)
        loose = ~holds & ~weak & (touching > 0) & (slips < _LOOSE_SLIP)
        # A joint that does not hold may lie anywhere inside a thick body, so that its depth says nothing against it.
        costs += (_WEAK + _DISTANCE_SHARE * (np.maximum(apart, 0.0) - distance)) * weak + _LAST_RESORT * loose
        holds |= weak | loose
        mass = np.bincount(bones.ravel(), (weights * surface.areas()[:, None]).ravel(), bone_count)
    partners, plane = mirrored_bones(points, bones, weights, bone_count), mirror_plane(points)
    rows = _rows(first, second, bone_count)
    image = np.full(len(first), -1)
    if partners is not None:
        image = np.where((partners[first] >= 0) & (partners[second] >= 0), rows[partners[first], partners[second]], -1)
        joints, costs, holds = _mirrored(joints, costs, holds, image, plane)
        slips = motion.slips(joints)
        # What is in the middle hangs from the middle, as a tail does: from a leg on one side, it would on the other.
        middle = partners == np.arange(bone_count)
        costs += _OFF_MIDDLE * ~(middle[first] & middle[second])
    # A cost of zero would remove the link.
    ends = first[holds].astype(np.int32), second[holds].astype(np.int32)
    graph = csr_matrix((costs[holds] + 1e-9, ends), shape=(bone_count, bone_count))
    parents = _rooted(minimum_spanning_tree(graph), mass)
    if surface is not None:
        children = np.flatnonzero(parents >= 0)
        used = rows[children, parents[children]]
        place = np.full(len(first), -1)
        place[used] = np.arange(len(used))
        kept = np.where(image[used] >= 0, place[image[used]], -1)
        joints[used] = into_body(motion.of(used), joints[used], meeting[used], kept, plane, surface)
        slips = motion.slips(joints)
    hierarchy = _assembled(parents, first, second, joints, slips, regions.means, center, size)
    return replace(hierarchy, partners=partners, plane=plane * size + center[0])


def _rows(first: np.ndarray, second: np.ndarray, bone_count: int) -> np.ndarray:
    """(P, P) the place of each pair of bones in ``first`` and ``second``, −1 without one."""
    rows = np.full((bone_count, bone_count), -1)
    rows[first, second] = rows[second, first] = np.arange(len(first))
    return rows


def _mirrored(
    joints: np.ndarray, costs: np.ndarray, holds: np.ndarray, image: np.ndarray, plane: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joints (C, 3), costs (C,) and which links hold (C,), the same for each link and its ``image`` (C,), −1 without
    one."""
    joints = symmetric_joints(joints, image, plane, 1.0)
    return joints, with_image(costs, image), np.where(image >= 0, holds & holds[image], holds)


def _shares_of_most(first: np.ndarray, second: np.ndarray, touching: np.ndarray, bone_count: int) -> np.ndarray:
    """(C,) how much bones touch, ``touching`` (C,), of the least of what either touches at most."""
    most = np.zeros(bone_count)
    np.maximum.at(most, first, touching)
    np.maximum.at(most, second, touching)
    least = np.minimum(most[first], most[second])
    return touching / np.where(least > 0, least, 1.0)


class _Regions:
    """The vertices of each bone: those that it moves most, or all that it moves where it is never the strongest."""

    def __init__(self, points: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int):
        self.vertices = members(strongest_bones(bones, weights), bone_count)
        for bone in range(bone_count):
            if not len(self.vertices[bone]):
                self.vertices[bone] = np.flatnonzero(np.where(bones == bone, weights, 0.0).max(axis=1) > 0)
        self.points = points
        self.mass = np.bincount(bones.ravel(), weights.ravel(), bone_count)
        self.moments = moments(points, bones, weights, bone_count)
        self.means = self.moments[:, 3, :3]
        self.count = bone_count
        self._trees: dict[int, cKDTree] = {}

    def gap(self, one: int, other: int) -> np.ndarray:
        """(3,) where two bones without vertices in common meet: the middle of those of either that are nearest to the
        other. A smaller end, as a wing's root, says more than a larger one, as the back that it meets."""
        ends = []
        for bone, beside in ((one, other), (other, one)):
            mine = self.samples(bone)
            near = np.argsort(self.tree(beside).query(mine)[0], kind="stable")[: max(1, int(_NEAREST * len(mine)))]
            ends.append(mine[near])
        extents = np.array([np.square(np.ptp(end, axis=0)).sum() for end in ends])
        shares = 1.0 / np.maximum(extents, 1e-12)
        return np.average([end.mean(axis=0) for end in ends], axis=0, weights=shares)

    def tree(self, bone: int) -> cKDTree:
        """Of the vertices of a bone; of its middle where it has none."""
        if bone not in self._trees:
            mine = self.vertices[bone]
            self._trees[bone] = cKDTree(self.points[mine] if len(mine) else self.means[bone : bone + 1])
        return self._trees[bone]

    def samples(self, bone: int) -> np.ndarray:
        """(≤ _SAMPLES, 3) evenly from the list of a bone's vertices; its middle where it has none."""
        mine = self.vertices[bone]
        if len(mine) == 0:
            return self.means[bone : bone + 1]
        return self.points[mine[np.linspace(0, len(mine) - 1, min(len(mine), _SAMPLES)).astype(int)]]

    def distance(self, bones: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(C,) from each of ``places`` (C, 3) to the nearest vertex of the bone beside it in ``bones`` (C,)."""
        result = np.empty(len(bones))
        for bone, asked in enumerate(members(bones, self.count)):
            if len(asked):
                result[asked] = self.tree(bone).query(places[asked])[0]
        return result


def _candidates(regions: _Regions) -> tuple[np.ndarray, np.ndarray]:
    """(C,), (C,): pairs of bones that may be joined, the first the lower."""
    first, second = np.triu_indices(regions.count, 1)
    if regions.count > _NEAR_BONES + 1:
        _, near = cKDTree(regions.means).query(regions.means, _NEAR_BONES + 1)
        allowed = np.zeros((regions.count, regions.count), dtype=bool)
        allowed[np.arange(regions.count)[:, None], near] = True
        kept = (allowed | allowed.T)[first, second]
        first, second = first[kept], second[kept]
    return first, second


def _meeting_places(
    points: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_count: int,
    regions: _Regions,
    first: np.ndarray,
    second: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(C, 3) where the bones of a pair meet: the middle of their shared vertices, or of the gap; (C,) bool: shared."""
    shared = np.zeros(bone_count * bone_count)
    places = np.zeros((bone_count * bone_count, 3))
    influences = bones.shape[1]
    for i in range(influences):
        for j in range(influences):
            low, high = bones[:, i].astype(np.int64), bones[:, j]
            both = weights[:, i] * weights[:, j] * (low < high)
            keys = low * bone_count + high
            shared += np.bincount(keys, both, len(shared))
            for axis in range(3):
                places[:, axis] += np.bincount(keys, both * points[:, axis], len(shared))
    keys = first * bone_count + second
    amount = shared[keys]
    least = _SHARED * np.maximum(1.0, np.minimum(regions.mass[first], regions.mass[second]))
    result = places[keys] / np.where(amount > 0, amount, 1.0)[:, None]
    for pair in np.flatnonzero(amount <= least):
        result[pair] = regions.gap(first[pair], second[pair])
    return result, amount > least


def _distances(
    regions: _Regions,
    first: np.ndarray,
    second: np.ndarray,
    joints: np.ndarray,
    meeting: np.ndarray,
    shared: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(C,) how far each joint is from the farther of its bones' vertices; and (C,) how much farther than the place
    where they meet, since a thick body has its joint inside."""
    distances = np.array([regions.distance(bones, joints) for bones in (first, second)])
    thickness = np.array([np.where(shared, regions.distance(bones, meeting), 0.0) for bones in (first, second)])
    return distances.max(axis=0), (distances - thickness).max(axis=0)


def _rooted(tree: csr_matrix, mass: np.ndarray) -> np.ndarray:
    """(P,) parents of a forest, each tree hanging from the bone nearest to the mass."""
    bone_count = len(mass)
    parents = np.full(bone_count, -1, dtype=np.int32)
    links = (tree + tree.T).tocsr()
    count, labels = connected_components(links, directed=False)
    for label in range(count):
        members = np.flatnonzero(labels == label)
        root = members[0]
        if len(members) > 1:
            root = _center_of_mass(links, members, mass)
        order, predecessors = breadth_first_order(links, root, directed=False)
        parents[order[1:]] = predecessors[order[1:]]
    return parents


def _center_of_mass(links: csr_matrix, members: np.ndarray, mass: np.ndarray) -> int:
    """The bone of a tree with the fewest links to the vertices on average."""
    order, predecessors = breadth_first_order(links, members[0], directed=False)
    below = mass.copy()
    for bone in order[:0:-1]:
        below[predecessors[bone]] += below[bone]
    total = below[members[0]]
    bone = members[0]
    # From a root downward, the heavier side wins, as long as there is one.
    while True:
        children = order[1:][predecessors[order[1:]] == bone]
        heavy = children[2 * below[children] > total] if len(children) else children
        if len(heavy) == 0:
            return int(bone)
        bone = heavy[0]


def _assembled(
    parents: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    joints: np.ndarray,
    slips: np.ndarray,
    means: np.ndarray,
    center: np.ndarray,
    size: float,
) -> JointHierarchy:
    """In the units of the rest pose, by bone."""
    bone_count = len(parents)
    rows = _rows(first, second, bone_count)
    children = np.flatnonzero(parents >= 0)
    pairs = rows[children, parents[children]]
    places, distances = means.copy(), np.zeros(bone_count)
    places[children], distances[children] = joints[pairs], slips[pairs]
    return JointHierarchy(parents, places * size + center, distances * size)
