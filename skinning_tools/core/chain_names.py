# SPDX-License-Identifier: GPL-3.0-or-later
"""Names for the bones of a skeleton that was found in motion: by chain and by side. Needs numpy only.

What a chain is for, an arm or a leg, motion does not tell: names say where a bone belongs in the skeleton, no more.
"""

import numpy as np

from .bone_order import subtrees
from .joint_hierarchy import JointHierarchy

TRUNK, MIDDLE, LIMB, PART = "trunk", "middle", "limb", "part"
# A bone carries more than another only from this ratio of their weights on: equal ones differ by rounding.
_MORE = 1.01


def chain_names(hierarchy: JointHierarchy, places: np.ndarray, carried: np.ndarray | None = None) -> tuple[str, ...]:
    """A name for each bone, such as "trunk.001", "limb_2.L.003" or "part_1".

    places (P, 3): the middle of what each bone moves; carried (P,): how much it moves, such as its weights added up; by
    default, all move as much. Each chain is of bones that continue each other:

    - It ends where a bone beside the next one has more than half as many below it, or carries more.
    - Even there, it goes on to a bone in the middle, and to one that alone bears limbs: a trunk goes on.
    - It ends where a limb leaves the middle, or a bone that only its side has.
    - It goes on where its mirror image does.

    The largest tree begins with the trunk, unless another tree is its mirror image; other chains in the middle are
    called so. Chains in pairs and chains of several bones are limbs, all others parts, as are bones inside a limb that
    its mirror image does not have. On a symmetric body, limbs that mirror each other have one number and .L or .R, left
    being where x is larger. On a posed one, nothing tells which is the left one: their numbers follow each other.
    Chains with more bones below their first bone have lower numbers; so do bones nearer to the root.
    """
    partners = _partners(hierarchy)
    carried = np.ones(len(partners)) if carried is None else carried
    chains, numbers = _chains(hierarchy, carried), {MIDDLE: 0, LIMB: 0, PART: 0}
    stems: dict[int, str] = {}
    for first, chain in chains.items():
        partner = int(partners[first])
        paired = partner in chains and partner != first
        if not stems and not paired:
            stems[first] = TRUNK
        elif first not in stems:
            kind = MIDDLE if partner == first else LIMB if paired or len(chain) > 1 else PART
            sides = (first, partner) if paired else (first,)
            for side in sides:
                if side == first or hierarchy.posed:
                    numbers[kind] += 1
                stems[side] = f"{kind}_{numbers[kind]}"
            if paired and not hierarchy.posed:
                left = max(sides, key=lambda side: places[side, 0])
                for side in sides:
                    stems[side] += ".L" if side == left else ".R"
    names = [""] * len(partners)
    for first, chain in chains.items():
        extra = [] if hierarchy.posed else _extra(chain, partners)
        for bone in extra:
            numbers[PART] += 1
            names[bone] = f"{PART}_{numbers[PART]}"
        others = [bone for bone in chain if bone not in extra]
        for number, bone in enumerate(others, start=1):
            names[bone] = stems[first] + (f".{number:03}" if len(others) > 1 else "")
    return tuple(names)


def _partners(hierarchy: JointHierarchy) -> np.ndarray:
    return np.full(len(hierarchy.parents), -1) if hierarchy.partners is None else hierarchy.partners


def _extra(chain: list[int], partners: np.ndarray) -> list[int]:
    """The bones of a chain that its mirror image does not have, before others that it has: these keep its numbers."""
    paired = np.flatnonzero(partners[chain] >= 0)
    return [bone for bone in chain[: paired.max(initial=0)] if partners[bone] < 0]


def _chains(hierarchy: JointHierarchy, carried: np.ndarray) -> dict[int, list[int]]:
    """The bones of each chain, by its first; the chain of the largest tree's root first, then by bones below."""
    parents, heirs, counts = hierarchy.parents, _continued(hierarchy, carried), hierarchy.descendant_counts()
    firsts = np.flatnonzero(~_continues(heirs, parents))
    firsts = firsts[np.argsort(-counts[firsts] - len(parents) * (parents[firsts] < 0), kind="stable")]
    chains = {first: [first] for first in firsts.tolist()}
    for chain in chains.values():
        while heirs[chain[-1]] >= 0:
            chain.append(int(heirs[chain[-1]]))
    return chains


def _continued(hierarchy: JointHierarchy, carried: np.ndarray) -> np.ndarray:
    """(P,) the bone that continues each bone's chain, −1 at its end."""
    heirs, counts, middle = hierarchy.heirs(), hierarchy.descendant_counts() + 1, hierarchy.middle
    parents, partners = hierarchy.parents, _partners(hierarchy)
    # A limb begins where its mirror image does, not between bones that only its side has.
    begins = (partners >= 0) & (hierarchy.posed | ~_continues(heirs, parents)[partners])
    bearing, loads = _bearing(hierarchy), subtrees(parents) @ carried
    for bone in np.flatnonzero(heirs >= 0):
        heir = heirs[bone]
        others = np.flatnonzero(parents == bone)
        others = others[others != heir]
        rival = counts[others].max(initial=0)
        rivaled = 2 * rival > counts[heir] or loads[others].max(initial=0.0) > _MORE * loads[heir]
        apart = middle[bone] != middle[heir] or (partners[bone] < 0 and begins[heir])
        # Limbs hang from a trunk, which goes on however large they are.
        trunk = middle[heir] or (bearing[heir] and not bearing[others].any())
        if apart or (rivaled and not trunk):
            heirs[bone] = -1
    # A limb that has one bone more than its mirror image goes on as that does.
    images = np.where(heirs >= 0, partners[heirs], -1)[partners]
    mirrored = (heirs < 0) & (partners >= 0) & (images >= 0) & (parents[images] == np.arange(len(heirs)))
    return np.where(mirrored, images, heirs)


def _continues(heirs: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """(P,) bool: whether each bone continues the one that it hangs from."""
    return (parents >= 0) & (heirs[parents] == np.arange(len(parents)))


def _bearing(hierarchy: JointHierarchy) -> np.ndarray:
    """(P,) bool: whether two chains of several bones leave each bone, or one below it."""
    parents, counts = hierarchy.parents, hierarchy.descendant_counts()
    several = (parents >= 0) & (counts > 0)
    bearing = np.bincount(parents[several], minlength=len(parents)) > 1
    return np.asarray((subtrees(parents) & bearing).any(axis=1))
