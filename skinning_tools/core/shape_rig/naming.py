# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of a face's bones: by the sliders that move them, and by the side on which they are."""

import re
from collections.abc import Collection, Sequence

import numpy as np
from scipy.spatial import cKDTree

from .mirror import POLAR, SYMMETRIC, VERTEX_TOLERANCE
from .motion import motions
from .types import ShapeRig

# Words of sliders that tell a direction or a side, not a place.
_LEFT, _RIGHT = {"l", "left"}, {"r", "right"}
_DIRECTIONS = {"up", "down", "in", "out", "forward", "forwards", "back", "backward", "backwards"} | {
    "open", "close", "closed", "wide", "narrow"
}  # fmt: skip
# A word, also within camelCase, or a number.
_WORD = re.compile(r"[^\W\d_]?[^\WA-Z\d_]+|[A-Z]+(?![a-z])|\d+")
_NAMELESS = "face"
_TINY = np.finfo(float).tiny
# Of the face's diagonal: how far mirrored bones may be from each other; and how far their weights may differ, as a
# share of both.
_BONE_TOLERANCE, _WEIGHT_TOLERANCE = 0.02, 0.2


def bone_names(
    rig: ShapeRig, rest: np.ndarray, slider_names: Sequence[str], taken: Collection[str] = ()
) -> tuple[str, ...]:
    """A name for each bone of ``rig``, such as "jaw" or "brow_inner.L"; none of them is in ``taken``.

    rest (N, 3). A bone has the name of the slider that it does the largest share of, without its direction. Bones that
    mirror each other in x, in what they move as well, have the same name with .L and .R: left is where x is larger,
    unless the sliders' names say otherwise. All others have no side, since Blender's tools take such names for mirror
    images.
    """
    words = [_place_of(name) for name in slider_names]
    places = list(dict.fromkeys(words))
    energy = _energy(rig, rest)
    # The shares of what each slider does, and of what each bone does. The first name a bone after the slider that needs
    # it most; the second prevent names of sliders that do next to nothing.
    shares, portions = (energy / np.maximum(energy.sum(axis, keepdims=True), _TINY) for axis in (1, 0))
    scores = shares * np.sqrt(portions)
    scores = np.stack([scores[[each == place for each in words]].max(axis=0) for place in places])
    sides, partners = _sides(rig, rest, slider_names, shares)
    used, names = {name.casefold() for name in taken}, [""] * rig.bone_count
    for bone in range(rig.bone_count):
        if names[bone]:
            continue
        pair = sorted({bone, int(partners[bone])})
        place = places[int(np.argmax(scores[:, pair].sum(axis=1)))]
        number = 1
        while True:
            stem = place if number == 1 else f"{place}_{number}"
            found = {each: stem + sides[each] for each in pair}
            if not used & {name.casefold() for name in (stem, *found.values())}:
                break
            number += 1
        for each, name in found.items():
            names[each] = name
            used.add(name.casefold())
    return tuple(names)


def _place_of(slider_name: str) -> str:
    """The place that a slider's name tells, such as "brow_inner" for "browInnerUp_L"."""
    words = [word.casefold() for word in _WORD.findall(slider_name)]
    kept = [word for word in words if word not in _LEFT | _RIGHT | _DIRECTIONS]
    return "_".join(kept).encode()[:40].decode(errors="ignore") or _NAMELESS


def _energy(rig: ShapeRig, rest: np.ndarray) -> np.ndarray:
    """(S, P): approximately the squared motion of a bone's vertices by each slider at 1."""
    squared = np.zeros((len(rest), rig.bone_count))
    np.add.at(squared, (np.arange(len(rest))[:, None], rig.bones), rig.weights**2)
    spread = [
        weights @ np.square(rest - pivot).sum(axis=1) for weights, pivot in zip(squared.T, rig.pivots, strict=True)
    ]
    linear = motions(rig.turns, rig.moves)[..., :3]
    return squared.sum(axis=0) * np.square(rig.moves).sum(axis=2) + spread * np.square(linear).sum(axis=(2, 3)) / 3.0


def _sides(
    rig: ShapeRig, rest: np.ndarray, slider_names: Sequence[str], shares: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """The ending of each bone's name, and the bone that mirrors it (P,), itself if none does."""
    everyone = np.arange(rig.bone_count)
    partners = rig.partners if rig.partners is not None else _partners(rig, rest)
    across = 0.5 * (rig.pivots - rig.pivots[partners])[:, 0]
    # Two bones in the middle that mirror each other have a side each, too.
    across = np.where(across == 0, _TINY * (partners - everyone), across)
    # Sliders of the left move bones of the left.
    toward = shares @ across
    told = [set(map(str.casefold, _WORD.findall(name))) for name in slider_names]
    signs = np.array([bool(words & _LEFT) - bool(words & _RIGHT) for words in told], dtype=float)
    left = -1.0 if signs @ toward < 0 else 1.0
    endings = [
        "" if partner == bone else ".L" if left * place > 0 else ".R"
        for bone, (partner, place) in enumerate(zip(partners, across, strict=True))
    ]
    return endings, partners


def _partners(rig: ShapeRig, rest: np.ndarray) -> np.ndarray:
    """(P,) the bone that mirrors each, in its place and in what it moves; itself if none does."""
    everyone = np.arange(rig.bone_count)
    low, high = rest.min(axis=0), rest.max(axis=0)
    size, middle = float(np.linalg.norm(high - low)), 0.5 * float(low[0] + high[0])
    offset = np.array([2.0 * middle, 0.0, 0.0])
    distances, images = cKDTree(rest).query(rest * POLAR + offset)
    if size <= 0 or np.mean(distances <= VERTEX_TOLERANCE * size) < SYMMETRIC:
        return everyone
    away, nearest = cKDTree(rig.pivots).query(rig.pivots * POLAR + offset)
    weights = np.zeros((len(rest), rig.bone_count))
    np.add.at(weights, (np.arange(len(rest))[:, None], rig.bones), rig.weights)
    mirrored = weights[images][:, nearest]
    differing = np.abs(weights - mirrored).sum(axis=0) / np.maximum((weights + mirrored).sum(axis=0), _TINY)
    mutual = (nearest[nearest] == everyone) & (away <= _BONE_TOLERANCE * size) & (differing <= _WEIGHT_TOLERANCE)
    return np.where(mutual & mutual[nearest], nearest, everyone)
