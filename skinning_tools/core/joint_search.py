# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones that turn about each other: a tree found from their motion and their place on the body."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree, shortest_path

from .body_surface import BodySurface
from .bone_order import subtrees
from .bone_regions import BoneRegions
from .geometry import diagonal
from .joint_hierarchy import JointHierarchy, rigid_motion
from .joints_in_body import into_body, with_image
from .pair_motion import pair_motion
from .skeleton_symmetry import mirror_symmetry, mirrored_bones, symmetric_joints
from .strongest import strongest_bones

# Radians (root mean square) of relative rotation below which the place where two bones meet decides the joint: hinges
# leave it undetermined along their axis, and bones that hardly turn in all directions.
_FAINT_TURN = 0.06
# The cost of a link: a share of its joint's distance from its bones and, on a surface, of how uncertain the motion of
# one bone is where the other's is known, its entropy: of all trees, that of least entropies explains most of the motion
# (Chow and Liu 1968). It is the logarithm of slips and turns: fingers that bend in step slip little about each other,
# but many times more than about their knuckles. Slips of less than this share of the diagonal are noise, as turns below
# _FAINT_TURN are.
_DISTANCE_SHARE, _ENTROPY_SHARE, _FAINT_SLIP = 0.1, 0.01, 1e-4
# Without a surface, where a bone slips about another as little as about all that is stiff against this one, the slip
# itself, and a share of the relative motion, since neighbors in a body move alike.
_MOTION_SHARE = 0.2
# Shares of the detour from one to the other over the surface, since limbs that swing in step move alike, too. These
# limbs may touch, as thighs do, but either touches the trunk more: the last is the share of how much less two bones
# touch than either touches the neighbor that it touches most. Measured on bodies with known joints, as those above.
_DETOUR_SHARE, _CONTACT_SHARE = 1.0, 0.03
# Of two bones that are about as good, a limb hangs from the one with more of the surface: the share of the logarithm of
# both bones' parts of it, no less than the least part.
_AREA_SHARE, _LEAST_AREA = 0.004, 1e-4
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
# More than the rest of any link on one surface costs.
_OFF_MIDDLE = 2.0
# Bones whose farthest end is at most this multiple of the least distance away are about as central as any.
_CENTRAL = 1.5


def find_joint_hierarchy(
    rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, transforms: np.ndarray, triangles: np.ndarray
) -> JointHierarchy:
    """The tree of joints that explains how bones move against each other.

    rest (N, 3); bones, weights (N, K); transforms (F, P, 3, 4): a decomposition's; triangles (T, 3): its surface, which
    may have none. Of all trees the one with the least sum of costs; a link is more costly the more its joint slips and
    the more the bones move against each other, where the joint is far from either bone, where the way from one to the
    other over the surface is a detour, or where they touch less than either touches another bone. Links whose joint
    does not hold are left out between parts that do not touch, so that an independent part has its own root. A tree's
    root is in the middle between its ends, where limbs hang from on both sides. Joints lie inside the body where the
    motion allows it.
    """
    bone_count = transforms.shape[1]
    center = rest.mean(axis=0)
    size = diagonal(rest) or 1.0
    regions = BoneRegions((rest - center) / size, bones, weights, bone_count)
    links = _Links(regions, rigid_motion(transforms, rest, bones, weights), center, size)
    surface = None
    if len(triangles):
        surface = BodySurface(regions.points, triangles)
        links.weigh_body(regions, surface)
    plane, pairs = mirror_symmetry(regions.points)
    partners = None
    if pairs is not None:
        partners = mirrored_bones(regions.points, pairs, bones, weights, bone_count, triangles)
        links.mirror(partners, plane)
    middle = np.zeros(bone_count, bool) if partners is None else partners == np.arange(bone_count)
    # Seen from the side of a symmetric body: arms that reach out do not draw its center from hip to chest.
    seen = np.array([1.0, 1.0, 1.0] if partners is None else [0.0, 1.0, 1.0])
    parents = _rooted(links.lengths(links.tree(), regions.means, seen), regions.extents(seen), middle)
    if surface is not None:
        links.draw_in(parents, regions.means, surface, plane)
    children = np.flatnonzero(parents >= 0)
    used = links.rows[children, parents[children]]
    joints, slips = regions.means * size + center, np.zeros(bone_count)
    joints[children] = links.joints[used] * size + center
    slips[children] = links.motion.of(used).slips(links.joints[used]) * size
    return JointHierarchy(parents, joints, slips, partners, plane * size + center[0])


def stray_roots(
    hierarchy: JointHierarchy, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, triangles: np.ndarray
) -> np.ndarray:
    """(n,) the roots of trees whose vertices are on one surface with those of a larger tree, which has more.

    rest (N, 3); bones, weights (N, K); triangles (T, 3).
    """
    parents = hierarchy.parents
    roots = np.flatnonzero(parents < 0)
    if len(roots) < 2 or not len(triangles):
        return roots[:0]
    # The root that each bone hangs from.
    tree = roots[subtrees(parents)[roots].argmax(axis=0)]
    labels = tree[strongest_bones(bones, weights)]
    touching = BodySurface(rest, triangles).contacts(labels[:, None], np.ones((len(labels), 1)), len(parents))[1] > 0
    sizes = np.bincount(labels, minlength=len(parents))
    return roots[(touching & (sizes > sizes[:, None]))[roots].any(axis=1)]


class _Links:
    """All C links that a skeleton may have: ``joints`` (C, 3), ``costs`` (C,), and which are ``allowed`` (C,).

    ``rows`` (P, P): the link of each two bones, −1 without one. All in shares of the mesh's diagonal.
    """

    def __init__(self, regions: BoneRegions, motion: np.ndarray, center: np.ndarray, size: float):
        """motion (F, P, 3, 4): rigid."""
        self.first, self.second = first, second = regions.pairs()
        self.rows = np.full((regions.count, regions.count), -1)
        self.rows[first, second] = self.rows[second, first] = np.arange(len(first))
        self._image = np.full(len(first), -1)
        self.meeting, self._shared = regions.meeting(first, second)
        self.motion = pair_motion(motion, center, size, first, second)
        self.joints = self.motion.joints(self.meeting, _FAINT_TURN)
        distances = np.array([regions.distance(bones, self.joints) for bones in (first, second)])
        # How much farther than the place where they meet, since a thick body has its joint inside.
        depths = [np.where(self._shared, regions.distance(bones, self.meeting), 0.0) for bones in (first, second)]
        self._apart, self._distance = (distances - depths).max(axis=0), distances.max(axis=0)
        far = self._apart >= _FARTHEST
        self.joints[far] = self.meeting[far]
        self._slips = slips = self.motion.slips(self.joints)
        moving = self.motion.apart(0.5 * (regions.moments[first] + regions.moments[second]))
        self.costs = slips + _DISTANCE_SHARE * self._distance + _MOTION_SHARE * moving
        most = np.maximum(_SLIP, np.minimum(_SLIP_SHARE * moving, _LARGEST_SLIP))
        self.allowed = (slips < most) & ~far
        # What slips little more than a joint that holds is hardly weak.
        self._weakness = np.where(far, 1.0, np.clip(slips / most - 1.0, 0.0, 1.0))
        self._weak = np.zeros(len(first), bool)
        self._share = self._led_share = np.zeros(len(first))

    def weigh_body(self, regions: BoneRegions, surface: BodySurface) -> None:
        """Make costs those on a surface, and add what it says to what is allowed."""
        pairs = self.first, self.second
        entropy = 3.0 * _log_over(self._slips, _FAINT_SLIP) + _log_over(self.motion.turns(), _FAINT_TURN).sum(axis=1)
        self.costs = _ENTROPY_SHARE * entropy + _DISTANCE_SHARE * self._distance
        detours = surface.detours(regions.vertices)[pairs]
        self.costs += _DETOUR_SHARE * np.minimum(np.where(self._shared, 0.0, detours), 1.0)
        contacts = surface.contacts(regions.bones, regions.weights, regions.count)
        touching, direct = (each[pairs] for each in contacts)
        self._share = share = _shares_of_most(*pairs, touching, regions.count)
        # Limbs that move alike share weights as if they touched.
        strongest = strongest_bones(regions.bones, regions.weights)[:, None]
        led = surface.contacts(strongest, np.ones(strongest.shape), regions.count)[0][pairs]
        self._led_share = _shares_of_most(*pairs, led, regions.count)
        self.costs += _CONTACT_SHARE * (1.0 - share)
        carried = regions.weights * surface.areas()[:, None]
        areas = np.bincount(regions.bones.ravel(), carried.ravel(), regions.count)
        if areas.any():
            parts = np.log(np.maximum(areas / areas.sum(), _LEAST_AREA))
            self.costs -= _AREA_SHARE * (parts[self.first] + parts[self.second])
        self.allowed &= (share > _TOUCHING) | (self._slips < _SLIP)
        self._weak = weak = ~self.allowed & (direct > 0)
        loose = ~self.allowed & ~weak & (touching > 0) & (self._slips < _LOOSE_SLIP)
        # A joint that does not hold may lie anywhere inside a thick body, so that its depth says nothing against it.
        deeper = _DISTANCE_SHARE * (np.maximum(self._apart, 0.0) - self._distance)
        self.costs += (_WEAK * self._weakness + deeper) * weak + _LAST_RESORT * loose
        self.allowed |= weak | loose

    def mirror(self, partners: np.ndarray, plane: float) -> None:
        """Make links of ``partners`` (P,) the same as those that mirror them in x = ``plane``."""
        ends = partners[self.first], partners[self.second]
        self._image = image = np.where((ends[0] >= 0) & (ends[1] >= 0), self.rows[ends], -1)
        self.joints = symmetric_joints(self.joints, image, plane, 1.0)
        self.costs = with_image(self.costs, image)
        self.allowed &= self.allowed[image] | (image < 0)
        # What is in the middle hangs from the middle, as a tail does: from one leg, it would from the other, too. All
        # else on the two sides hangs from the body and not from each other, as legs do, even where one has the hip.
        middle = partners == np.arange(len(partners))
        across, halves = partners[self.first] == self.second, self._halves(partners, middle)
        inside = middle[self.first] & middle[self.second] & ~self._through_halves(halves)
        self.costs += _OFF_MIDDLE * ~inside + _OFF_MIDDLE * across
        self.costs[halves] = 0.0

    def _halves(self, partners: np.ndarray, middle: np.ndarray) -> np.ndarray:
        """(C,) bool: links of two halves of one part. They touch nothing more than each other, and turn less against
        each other than against the ``middle`` (P,)."""
        turns = np.linalg.norm(self.motion.turns(), axis=1)
        least = np.full(len(partners), np.inf)
        for side, other in ((self.first, self.second), (self.second, self.first)):
            central = middle[other] & (self._share > _TOUCHING)
            np.minimum.at(least, side[central], turns[central])
        stiff = turns <= np.minimum(least[self.first], least[self.second])
        return (partners[self.first] == self.second) & (self._led_share == 1.0) & stiff

    def _through_halves(self, halves: np.ndarray) -> np.ndarray:
        """(C,) bool: weak links of two bones that a half is linked to firmly: it lies between them."""
        firm, linked = self.allowed & ~self._weak, np.zeros(self.rows.shape, bool)
        linked[self.first[firm], self.second[firm]] = linked[self.second[firm], self.first[firm]] = True
        between = np.unique([self.first[halves], self.second[halves]])
        return self._weak & (linked[self.first][:, between] & linked[self.second][:, between]).any(axis=1)

    def tree(self) -> csr_matrix:
        """(P, P) the allowed links of least sum of costs that connect what can be connected."""
        ends = self.first[self.allowed].astype(np.int32), self.second[self.allowed].astype(np.int32)
        # A cost of zero would remove the link.
        costs = self.costs[self.allowed] + 1e-9
        return minimum_spanning_tree(csr_matrix((costs, ends), shape=self.rows.shape))

    def lengths(self, tree: csr_matrix, means: np.ndarray, seen: np.ndarray) -> csr_matrix:
        """(P, P), symmetric: the lengths of the links of a ``tree`` (P, P), from the ``means`` (P, 3) of the bones by
        way of the joints; seen (3,): the share of each axis that counts."""
        ends = tree.nonzero()
        joints = self.joints[self.rows[ends]]
        lengths = sum(np.linalg.norm((means[each] - joints) * seen, axis=1) for each in ends)
        # A length of zero would remove the link.
        half = csr_matrix((lengths + 1e-9, ends), shape=tree.shape)
        return half + half.T

    def draw_in(self, parents: np.ndarray, means: np.ndarray, surface: BodySurface, plane: float) -> None:
        """Move the joints of the tree ``parents`` (P,) into the body; means (P, 3) of the bones' vertices."""
        children = np.flatnonzero(parents >= 0)
        used = self.rows[children, parents[children]]
        place = np.full(len(self.first), -1)
        place[used] = np.arange(len(used))
        image = np.where(self._image[used] >= 0, place[self._image[used]], -1)
        middles = 0.5 * (means[children] + means[parents[children]])
        given = self.motion.of(used), self.joints[used], self.meeting[used]
        self.joints[used] = into_body(*given, middles, image, plane, surface)


def _log_over(spread: np.ndarray, noise: float) -> np.ndarray:
    """By how much the logarithm of ``spread`` and ``noise`` together exceeds that of the noise."""
    return np.log(np.hypot(spread, noise) / noise)


def _shares_of_most(first: np.ndarray, second: np.ndarray, touching: np.ndarray, bone_count: int) -> np.ndarray:
    """(C,) how much bones touch, ``touching`` (C,), of the least of what either touches at most."""
    most = np.zeros(bone_count)
    np.maximum.at(most, first, touching)
    np.maximum.at(most, second, touching)
    least = np.minimum(most[first], most[second])
    return touching / np.where(least > 0, least, 1.0)


def _rooted(links: csr_matrix, extents: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """(P,) parents of a forest. Each tree hangs from a bone that is near to all its ends: of those about as near, from
    one that others hang from on both sides, as the hip does.

    links (P, P), symmetric: lengths. extents (P,): how far each bone reaches. middle (P,) bool: the bones in the middle
    of a symmetric body.
    """
    parents = np.full(len(extents), -1, dtype=np.int32)
    ways = shortest_path(links, directed=False) + extents
    farthest = np.where(np.isfinite(ways), ways, 0.0).max(axis=1)
    count, labels = connected_components(links, directed=False)
    ends, limbs = np.diff(links.indptr), np.diff(links[:, ~middle].indptr)
    least = 2 if middle.any() else 3
    for label in range(count):
        members = np.flatnonzero(labels == label)
        central = members[farthest[members] <= _CENTRAL * farthest[members].min()]
        root = min(central, key=lambda bone: (ends[bone] < 2, not middle[bone], limbs[bone] < least, farthest[bone]))
        order, predecessors = breadth_first_order(links, root, directed=False)
        parents[order[1:]] = predecessors[order[1:]]
    return parents
