# SPDX-License-Identifier: GPL-3.0-or-later
"""From examples to an EigenSkin: displacements, supports, components, interpolation (section 2 of the paper)."""

from dataclasses import dataclass

import numpy as np

from .. import quaternions
from ..progress import Progress, checkpoint, ignore, span
from .attribution import chosen_centers, joint_displacements, joint_regions
from .basis import Basis, component_counts, eigendisplacements
from .displacements import RestDisplacements, rest_displacements, rest_normals
from .interpolation import automatic_radius, basis_weights
from .model import EigenSkin, Support
from .pairs import candidate_pairs, explained_energy, nearest_centers, pair_features, regression
from .pose_space import REST, SAME_ROTATION, PoseSpace, hinge_axis, rotation_angles, rotation_distances
from .supports import limited_masks, room_left, strengths, support_mask
from .types import LARGEST_SLIDER, BadExamples, EigenSkinSettings, Examples, Rig

# Of the mesh's extent: joints that displace no vertex by more need no correction.
_NOTICEABLE = 1e-5

# Radians; of the kernel by which joints are told apart, before the displacements that choose a radius are known.
_ATTRIBUTION_RADIUS = np.pi / 2

# Poses at which the largest value of a component is looked for, and how far beyond what is found a slider goes.
_SAMPLES = 4000
_MARGIN = 1.2

# A pair of joints is worth its shape keys where it explains this share of what single joints leave.
_PAIR_WORTH = 0.05


def build_eigenskin(
    rig: Rig,
    examples: Examples,
    settings: EigenSkinSettings,
    *,
    painted: dict[str, np.ndarray] | None = None,
    rest_surface_normals: np.ndarray | None = None,
    progress: Progress = ignore,
) -> EigenSkin:
    """The corrections that bring linear blending to the examples, driven by the joints' rotations.

    painted: masks (N,) by the support's name, in place of those found from the displacements. rest_surface_normals
    (N, 3): of the rest pose, needed where the examples have normals.
    Raises BadExamples, BadSettings, Cancelled.
    """
    settings.check()
    moving = rotation_angles(examples.rotations) > SAME_ROTATION
    notes: list[str] = []
    chosen = _usable(examples, moving, notes)
    mapped = rest_displacements(
        rig.rest,
        rig.bones,
        rig.weights,
        examples.matrices[chosen],
        examples.shapes[chosen],
        span(progress, 0.0, 0.3),
    )
    _note_damped(mapped, [examples.names[index] for index in chosen], notes)
    signals = mapped.values
    if examples.normals is not None:
        corrections = [
            rest_normals(linear, normals) - rest_surface_normals
            for linear, normals in zip(mapped.linear, examples.normals[chosen], strict=True)
        ]
        signals = np.concatenate([signals, np.array(corrections, np.float32)], axis=-1)
    rotations, moving, signals = _merged(
        examples.rotations[chosen], moving[chosen], signals, [examples.names[index] for index in chosen], notes
    )
    spaces, found = _joint_signals(rig, rotations, moving, signals, settings, span(progress, 0.3, 0.8))
    size = np.linalg.norm(np.ptp(rig.rest, axis=0))
    found = {joint: part for joint, part in found.items() if strengths(part[..., :3]).max() > _NOTICEABLE * size}
    if not found:
        raise BadExamples(
            "Linear blending already gives the shape of every example, so there is nothing to correct. Check that the "
            "examples hold the shapes that you want, not those of the plain Armature modifier"
        )
    drafts = _single_supports(rig, spaces, found, settings, painted or {}, notes)
    checkpoint(progress, 0.85, "Finding Components")
    if settings.joint_pairs:
        drafts += _pair_supports(rig, drafts, rotations, moving, signals, settings, painted or {})
    checkpoint(progress, 0.95, "Finding Components")
    spaces = {draft.joints[0]: draft.space for draft in drafts if draft.space is not None}
    return EigenSkin(
        rig.joint_names,
        len(rig.rest),
        spaces,
        tuple(draft.finished(_sampled_features(draft, spaces)) for draft in drafts),
        tuple(notes),
    )


@dataclass(eq=False)
class _Draft:
    """A support while it is being made. observed (M, N, 3 or 6) displacements, and normals' corrections, at the M
    observations; features (M, B) of the basis there, rest left out of the rows; space of a single joint."""

    name: str
    joints: tuple[int, ...]
    observed: np.ndarray
    strength: np.ndarray
    mask: np.ndarray
    space: PoseSpace | None = None
    centers: np.ndarray | None = None
    pair_features: np.ndarray | None = None
    count: int = 0

    @property
    def vertices(self) -> np.ndarray:
        return np.flatnonzero(self.mask > 0)

    def masked(self) -> np.ndarray:
        """(M, n, 3 or 6) on the support's own vertices."""
        vertices = self.vertices
        return self.observed[:, vertices] * self.mask[vertices, None]

    def basis(self) -> Basis:
        return eigendisplacements(self.masked()[..., :3])

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """(B, k) λ for which the basis gives ``coordinates`` (M, k) at the observations, and nothing at rest."""
        if self.space is None:
            return regression(self.pair_features, coordinates)
        values = np.concatenate([np.zeros((1, coordinates.shape[1])), coordinates])
        return basis_weights(self.space.distances(self.space.centers), values, self.space.radius)

    def finished(self, sampled_features: np.ndarray) -> Support:
        """sampled_features (S, B): the basis at poses all over the joint's, or joints', range."""
        basis = self.basis()
        count = min(self.count, len(basis.singular_values))
        coordinates = basis.coordinates[:, :count]
        weights = self.weights(coordinates)
        bounds = _MARGIN * np.abs(sampled_features @ weights).max(axis=0)
        # The largest value at an observation is 1, unless the values between them would not fit on a slider.
        sizes = np.maximum(np.abs(coordinates).max(axis=0), bounds / LARGEST_SLIDER)
        components = basis.vectors[:count] * sizes[:, None, None]
        normals = None
        if self.observed.shape[-1] == 6:
            corrections = self.masked()[..., 3:].reshape(len(self.observed), -1)
            normals = np.linalg.lstsq(coordinates / sizes, corrections, rcond=None)[0].reshape(components.shape)
        return Support(
            self.name,
            self.joints,
            self.mask.astype(np.float32),
            self.vertices,
            components,
            normals,
            weights / sizes,
            self.centers,
            np.maximum(bounds / sizes, 1.0),
            basis.singular_values,
        )


def _sampled_features(draft: _Draft, spaces: dict[int, PoseSpace]) -> np.ndarray:
    """(S, B) the basis of a draft all over its joints' range: at the centres, and at poses between and beyond."""
    samples = [_sampled_rotations(spaces[joint], seed) for seed, joint in enumerate(draft.joints)]
    if draft.centers is None:
        return draft.space.features(samples[0])
    one, other = (spaces[joint] for joint in draft.joints)
    return pair_features(one, other, draft.centers, *samples)


def _sampled_rotations(space: PoseSpace, seed: int) -> np.ndarray:
    """(_SAMPLES, 4) rotations on the ways between centres and a third beyond; all angles of a hinge."""
    random = np.random.default_rng(seed)
    if space.axis is not None:
        half = np.linspace(-np.pi / 2, np.pi / 2, _SAMPLES)
        return random.permutation(np.column_stack([np.cos(half), np.sin(half)[:, None] * space.axis]))
    first, second = space.centers[random.integers(len(space.centers), size=(2, _SAMPLES))]
    second = np.where(np.einsum("si,si->s", first, second)[:, None] < 0, -second, second)
    share = random.uniform(-1 / 3, 4 / 3, _SAMPLES)[:, None]
    share[: _SAMPLES // 4] = 0.0
    return quaternions.normalized((1 - share) * first + share * second)


def _usable(examples: Examples, moving: np.ndarray, notes: list[str]) -> list[int]:
    """The examples that pose something."""
    if not len(examples.shapes):
        raise BadExamples("There are no examples. Add poses with their right shapes first")
    chosen = np.flatnonzero(moving.any(axis=1)).tolist()
    if not chosen:
        raise BadExamples(
            "No example poses a joint: all are in the rest pose. Pose the armature before you add an example"
        )
    idle = [name for index, name in enumerate(examples.names) if index not in set(chosen)]
    if idle:
        notes.append(f"{_listed(idle)}: no joint is posed, left out")
    return chosen


def _note_damped(mapped: RestDisplacements, names: list[str], notes: list[str]) -> None:
    counts = mapped.damped.sum(axis=1)
    parts = [f"{name} ({count:,} vertices)" for name, count in zip(names, counts, strict=True) if count]
    if parts:
        notes.append(f"Blending nearly flattens the skin, so that it is corrected in part only: {_listed(parts)}")


def _merged(rotations, moving, signals, names: list[str], notes: list[str]):
    """Rotations, moving and signals with the mean in place of examples that have one pose."""
    first = np.arange(len(rotations))
    for index in range(1, len(rotations)):
        difference = np.stack(
            [
                rotation_distances(rotations[:index, joint], rotations[index : index + 1, joint])[:, 0]
                for joint in np.flatnonzero(moving.any(axis=0))
            ]
        ).max(axis=0)
        same = np.flatnonzero(difference <= SAME_ROTATION)
        if len(same):
            first[index] = first[same[0]]
            notes.append(f"{names[first[index]]} and {names[index]} have the same pose: their mean is used")
    kept, groups = np.unique(first, return_inverse=True)
    if len(kept) == len(first):
        return rotations, moving, signals
    means = np.stack([signals[groups == group].mean(axis=0) for group in range(len(kept))])
    return rotations[kept], moving[kept], means


def _joint_signals(rig, rotations, moving, signals, settings, progress):
    """The pose space of each joint that moves, its radius not yet chosen, and its signals (M − 1, N, 3 or 6) at the
    centres."""
    alone = moving.sum(axis=1) == 1
    spaces, found = {}, {}
    for joint in np.flatnonzero(moving.any(axis=0)).tolist():
        own = np.concatenate([REST[None], rotations[alone & moving[:, joint], joint]])
        if not alone.all():
            own = chosen_centers(own, rotations[moving[:, joint], joint], max(settings.max_centers, len(own)))
        spaces[joint] = PoseSpace(own, hinge_axis(own[1:]), settings.radius or _ATTRIBUTION_RADIUS)
    if alone.all():
        for joint in spaces:
            found[joint] = signals[moving[:, joint]]
        return spaces, found
    prior = joint_regions(rig.bones, rig.weights, rig.joint_of_bone, rig.parents)
    for joint in spaces:
        own = alone & moving[:, joint]
        if own.any():
            strength = strengths(signals[own][..., :3])
            prior[joint] = strength / max(strength.max(), 1e-30)
    parts = [
        joint_displacements(signals[..., part], rotations, alone, spaces, prior, span(progress, *share))
        for part, share in _signal_parts(signals)
    ]
    return spaces, {joint: np.concatenate([part[joint] for part in parts], axis=-1) for joint in spaces}


def _signal_parts(signals):
    """Displacements, and the normals' corrections where there are any, each with its share of the progress."""
    if signals.shape[-1] == 3:
        return [(slice(0, 3), (0.0, 1.0))]
    return [(slice(0, 3), (0.0, 0.5)), (slice(3, 6), (0.5, 1.0))]


def _single_supports(rig, spaces, found, settings, painted, notes) -> list[_Draft]:
    drafts = []
    for joint, observed in found.items():
        name = rig.joint_names[joint]
        strength = strengths(observed[..., :3])
        mask = painted[name] if name in painted else support_mask(strength, settings.support_threshold)
        drafts.append(_Draft(name, (joint,), observed, strength, np.where(strength > 0, mask, 0.0), spaces[joint]))
    drafts = [draft for draft in drafts if draft.mask.any()]
    bases = [draft.basis() for draft in drafts]
    counts = component_counts([basis.singular_values for basis in bases], settings.components, settings.budget)
    if (counts > settings.max_per_vertex).any():
        notes.append(f"At most {settings.max_per_vertex} components a joint, as no vertex may be in more")
        counts = np.minimum(counts, settings.max_per_vertex)
    drafts = [draft for draft, count in zip(drafts, counts, strict=True) if count]
    counts = counts[counts > 0]
    masks = limited_masks(
        np.array([draft.mask for draft in drafts]),
        np.array([draft.strength for draft in drafts]),
        counts,
        settings.max_per_vertex,
    )
    for draft, mask, count in zip(drafts, masks, counts, strict=True):
        draft.mask, draft.count = mask, int(count)
        space = draft.space
        radius = settings.radius or automatic_radius(space.distances(space.centers))
        draft.space = PoseSpace(space.centers, space.axis, radius)
    return [draft for draft in drafts if draft.mask.any()]


def _pair_supports(rig, singles, rotations, moving, signals, settings, painted) -> list[_Draft]:
    """Supports of the pairs of joints that explain most of what ``singles`` leave of the examples with several."""
    several = moving.sum(axis=1) > 1
    rotations, residuals = rotations[several], signals[several].astype(np.float64)
    by_joint = {draft.joints[0]: draft for draft in singles}
    for joint, draft in by_joint.items():
        features = draft.space.features(rotations[:, joint])
        observed = draft.masked().reshape(len(draft.observed), -1)
        weights = draft.weights(observed)
        residuals[:, draft.vertices] -= (features @ weights).reshape(len(rotations), -1, residuals.shape[-1])
    whole = float(np.einsum("eni,eni->", residuals[..., :3], residuals[..., :3]))
    candidates = [pair for pair in candidate_pairs(moving[several]) if set(pair) <= set(by_joint)]
    found: list[_Draft] = []
    while candidates and len(found) < settings.joint_pairs and whole > 0:
        trials = [_pair_trial(by_joint, pair, rotations, moving[several], residuals) for pair in candidates]
        best = int(np.argmax([trial[0] for trial in trials]))
        energy, centers, features, prior = trials[best]
        if energy <= _PAIR_WORTH * whole:
            break
        pair = candidates.pop(best)
        observed = (features @ regression(features, residuals.reshape(len(residuals), -1))).reshape(residuals.shape)
        strength = strengths(observed[..., :3] * prior[:, None])
        name = f"{rig.joint_names[pair[0]]} + {rig.joint_names[pair[1]]}"
        mask = painted[name] if name in painted else prior * support_mask(strength, settings.support_threshold)
        room = room_left(
            np.array([draft.mask for draft in (*singles, *found)]),
            np.array([draft.count for draft in (*singles, *found)]),
            settings.components,
            settings.max_per_vertex,
        )
        draft = _Draft(name, pair, observed, strength, mask * room, None, centers, features, settings.components)
        if draft.mask.any():
            found.append(draft)
            residuals -= observed * draft.mask[:, None]
    return found


def _pair_trial(by_joint, pair, rotations, moving, residuals):
    """What a pair would explain, its centres, its features at the examples, and where it may act."""
    one, other = (by_joint[joint] for joint in pair)
    both = moving[:, pair[0]] & moving[:, pair[1]]
    centers = nearest_centers(one.space, other.space, rotations[both, pair[0]], rotations[both, pair[1]])
    features = pair_features(one.space, other.space, centers, rotations[:, pair[0]], rotations[:, pair[1]])
    shares = [draft.strength / draft.strength.max() for draft in (one, other)]
    prior = np.sqrt(np.clip(shares[0] * shares[1], 0.0, 1.0))
    return explained_energy(features, residuals[..., :3], prior), centers, features, prior


def _listed(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
