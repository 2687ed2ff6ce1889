# SPDX-License-Identifier: GPL-3.0-or-later
"""From examples to an EigenSkin: displacements, supports, components, interpolation (section 2 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .. import dense
from ..progress import Progress, checkpoint, ignore, span
from .attribution import chosen_centers, joint_displacements, joint_regions
from .basis import component_counts
from .checks import check_examples, checked_painting
from .coupling import coupling_mask
from .displacements import RestDisplacements, rest_displacements
from .drafts import Draft, JointDraft, PairDraft
from .fewer import fewer_functions
from .interpolation import RADIUS
from .model import EigenSkin
from .pairs import candidate_pairs, pair_trial
from .pose_space import REST, SAME_ROTATION, PoseSpace, hinge_axis, is_turned, rotation_distances
from .supports import limited_masks, normals_mask, strengths, support_mask
from .types import BadExamples, EigenSkinSettings, Examples, Rig

# Shares of the mesh's extent and of its largest coordinate: smaller displacements are rounding. Joints that displace
# nothing ten times as far need no correction.
_ROUNDING = 1e-6
_ROUNDING_AWAY = 4 * float(np.finfo(np.float32).eps)
_NOTICEABLE = 10.0

# Radians: smaller corrections of normals are no reason to correct a vertex.
_NOTICEABLE_TURN = 1e-3

# How likely a joint is to displace vertices of which it turns the normals alone, beside those that it displaces most.
_BESIDE = 1e-3

# A pair of joints is worth its shape keys where it explains this share of what single joints leave.
_PAIR_WORTH = 0.02


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
    check_examples(rig, examples)
    observations, notes = _observations(rig, examples, rest_surface_normals, span(progress, 0.0, 0.4))
    builder = _Builder(rig, observations, settings, checked_painting(rig, painted or {}), notes)
    drafts = builder.singles(span(progress, 0.4, 0.7))
    if not drafts:
        raise BadExamples(
            "Linear blending already gives the shape of every example, so there is nothing to correct. Check that the "
            "examples hold the shapes that you want, not those of the plain Armature modifier"
        )
    drafts = builder.fitted(drafts)
    if not drafts:
        raise BadExamples(
            "No vertex is left to correct: the painted supports are empty where the joints displace the skin. Paint "
            "some weight, or remove these vertex groups"
        )
    drafts = builder.with_pairs(drafts, span(progress, 0.7, 0.95))
    spaces = {joint: builder.spaces[joint] for draft in drafts for joint in draft.joints}
    supports = []
    for draft in drafts:
        supports.append(draft.support(len(rig.rest), spaces))
        checkpoint(progress, 0.95 + 0.05 * len(supports) / len(drafts), "Finding Components")
    return EigenSkin(rig.joint_names, len(rig.rest), spaces, tuple(supports), tuple(notes))


@dataclass(eq=False)
class _Observations:
    """rotations (E, J, 4); moving (E, J) bool: joints that are posed; signals (E, N, C) float32: displacements of the
    rest pose, and the normals' corrections where there are any."""

    rotations: np.ndarray
    moving: np.ndarray
    signals: np.ndarray

    @property
    def several(self) -> np.ndarray:
        """(E,) bool: which pose more than one joint."""
        return self.moving.sum(axis=1) > 1


def _observations(
    rig: Rig, examples: Examples, surface_normals: np.ndarray | None, progress: Progress
) -> tuple[_Observations, list[str]]:
    """What the examples say, each pose once, and notes on them for the user."""
    notes: list[str] = []
    moving = is_turned(examples.rotations)
    chosen = np.flatnonzero(moving.any(axis=1)).tolist()
    if not chosen:
        raise BadExamples(
            "No example poses a joint: all are in the rest pose. Pose the armature before you add an example"
        )
    idle = [name for name, posed in zip(examples.names, np.any(moving, axis=1), strict=True) if not posed]
    if idle:
        notes.append(f"{_listed(idle)}: no joint is posed; ignored")
    mapped = rest_displacements(
        rig.rest,
        rig.bones,
        rig.weights,
        [examples.matrices[index] for index in chosen],
        [examples.shapes[index] for index in chosen],
        None if examples.normals is None else [examples.normals[index] for index in chosen],
        surface_normals,
        progress,
    )
    names = [examples.names[index] for index in chosen]
    _note_damped(mapped, names, notes)
    return _merged(_Observations(examples.rotations[chosen], moving[chosen], mapped.values), names, notes), notes


def _note_damped(mapped: RestDisplacements, names: list[str], notes: list[str]) -> None:
    counts = mapped.damped.sum(axis=1)
    parts = [f"{name} ({count:,} vertices)" for name, count in zip(names, counts, strict=True) if count]
    if parts:
        notes.append(
            f"Blending nearly flattens the skin, so it is corrected only in part: {_listed(parts)}. "
            "Such twists need bones in between"
        )


def _merged(observations: _Observations, names: list[str], notes: list[str]) -> _Observations:
    """Examples with the same pose replaced by their mean."""
    moving = observations.moving
    # A joint that has not moved is at rest, whatever noise it has.
    rotations = np.where(moving[..., None], observations.rotations, REST)
    apart = np.zeros((len(names), len(names)))
    for joint in np.flatnonzero(moving.any(axis=0)):
        np.maximum(apart, rotation_distances(rotations[:, joint], rotations[:, joint]), out=apart)
    first = np.arange(len(names))
    for index in range(1, len(names)):
        # Compared with the first rotation of a group, not with any of it: a slow motion is more than one pose.
        same = np.flatnonzero((apart[index, :index] <= SAME_ROTATION) & (first[:index] == np.arange(index)))
        if len(same):
            first[index] = same[0]
    for shared in np.flatnonzero(np.bincount(first, minlength=len(first)) > 1):
        alike = [names[place] for place in np.flatnonzero(first == shared)]
        notes.append(f"{_listed(alike)} have the same pose: their mean is used")
    kept, groups = np.unique(first, return_inverse=True)
    if len(kept) == len(first):
        return observations
    signals = observations.signals
    means = np.stack([signals[groups == group].mean(axis=0) for group in range(len(kept))])
    return _Observations(rotations[kept], moving[kept], means)


@dataclass(eq=False)
class _Builder:
    """spaces: of the joints that move, by index, once their drafts are made."""

    rig: Rig
    observations: _Observations
    settings: EigenSkinSettings
    painted: dict[str, np.ndarray]
    notes: list[str]
    spaces: dict[int, PoseSpace] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        """Displacements up to this length are rounding."""
        size = float(np.linalg.norm(np.ptp(self.rig.rest, axis=0)))
        return max(_ROUNDING * size, _ROUNDING_AWAY * float(np.abs(self.rig.rest).max(initial=0.0)))

    def singles(self, progress: Progress) -> list[Draft]:
        """A draft for each joint that displaces something."""
        drafts: list[Draft] = []
        for joint, (region, observed) in self._joint_signals(self.rounding, progress).items():
            strength = strengths(observed[..., :3])
            if strength.max(initial=0.0) <= _NOTICEABLE * self.rounding:
                continue
            name = self.rig.joint_names[joint]
            wanted = support_mask(strength, self.settings.support_threshold, self.rounding)
            normals = normals_mask(observed[..., 3:], self.settings.support_threshold)
            draft = JointDraft(name, (joint,), region, observed, strength, wanted, normals, self.spaces[joint])
            if name in self.painted:
                draft.wanted = np.where(strength > 0, self.painted[name][region], 0.0)
                draft.wanted_normals = self.painted[name][region]
                if not draft.wanted.any():
                    self.notes.append(f"{name}: the painted support is empty where the joint displaces the skin")
            if self.settings.basis_functions:
                draft.fitted = fewer_functions(draft.known, _gram(observed[..., :3]), self.settings.basis_functions)
                self.spaces[joint] = draft.space
            drafts.append(draft)
        return drafts

    def _joint_signals(self, rounding: float, progress: Progress) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """By joint that moves: vertices (n,) that it may displace, and signals (M − 1, n, C) at its centers but the
        rest pose."""
        rotations, moving, signals = (getattr(self.observations, part) for part in ("rotations", "moving", "signals"))
        several = self.observations.several
        joints = np.flatnonzero(moving.any(axis=0))
        known = {joint: np.flatnonzero(moving[:, joint] & ~several) for joint in joints.tolist()}
        self.spaces = {joint: self._space(joint, rotations[alone, joint]) for joint, alone in known.items()}
        told = np.array([strengths(signals[alone][..., :3]) for alone in known.values()])
        told[told <= rounding] = 0.0
        # Normals change beside the vertices that move.
        turned = np.array([strengths(signals[alone][..., 3:]) for alone in known.values()])
        least = _BESIDE * told.max(axis=1, initial=0.0, keepdims=True)
        told = np.where(turned > _NOTICEABLE_TURN, np.maximum(told, least), told)
        if not several.any():
            regions = [np.flatnonzero(strength) for strength in told]
            return {
                joint: (region, signals[np.ix_(alone, region)])
                for (joint, alone), region in zip(known.items(), regions, strict=True)
            }
        prior = joint_regions(self.rig.bones, self.rig.weights, self.rig.joint_of_bone, self.rig.parents, joints)
        for place, alone in enumerate(known.values()):
            if len(alone):
                prior[place] = told[place] / (float(told[place].max()) or 1.0)
        return joint_displacements(signals, rotations, known, several, self.spaces, prior, progress)

    def _space(self, joint: int, alone: np.ndarray) -> PoseSpace:
        """alone (K, 4): rotations in the examples that pose nothing else, the first centers after the rest pose."""
        rotations = self.observations.rotations[self.observations.moving[:, joint], joint]
        axis = hinge_axis(rotations)
        # An angle needs fewer observations than a rotation.
        most = self.settings.max_centers if axis is None else -(-self.settings.max_centers // 2)
        required = np.concatenate([REST[None], alone])
        centers = required if len(alone) == len(rotations) else chosen_centers(required, rotations, most)
        return PoseSpace(centers, axis, self.settings.radius or RADIUS)

    def fitted(self, drafts: list[Draft]) -> list[Draft]:
        """``drafts`` with component counts and masks within the settings' limits; drafts without components left
        out."""
        for draft in drafts:
            draft.mask = draft.wanted
        drafts = [draft for draft in drafts if draft.wanted.any()]
        most = self.settings.max_per_vertex
        ranks = [draft.basis().singular_values for draft in drafts]
        wanted_counts = [self.settings.components or draft.natural_count for draft in drafts]
        counts = component_counts(ranks, wanted_counts, self.settings.budget)
        note = f"At most {most} components per joint, because no vertex may be in more"
        if (counts > most).any() and note not in self.notes:
            self.notes.append(note)
        for draft, count, wanted_count in zip(drafts, np.minimum(counts, most), wanted_counts, strict=True):
            draft.count = int(count)
            # Where the displacements have a lower rank, normals may not.
            draft.normal_count = draft.count if self.settings.budget else min(wanted_count, most)
        drafts = [draft for draft in drafts if draft.count]
        wanted, strength = np.zeros((2, len(drafts), len(self.rig.rest)), np.float32)
        for row, draft in enumerate(drafts):
            wanted[row, draft.region], strength[row, draft.region] = draft.wanted, draft.strength
        masks = limited_masks(wanted, strength, np.array([draft.count for draft in drafts]), most)
        for draft, mask in zip(drafts, masks, strict=True):
            draft.mask = mask[draft.region]
        return [draft for draft in drafts if draft.mask.any()]

    def with_pairs(self, drafts: list[Draft], progress: Progress) -> list[Draft]:
        """``drafts``, and drafts of the pairs of joints that explain most of the remaining residuals."""
        most = self.settings.joint_pairs
        candidates = candidate_pairs(self.observations.moving) if most else []
        if not candidates:
            return drafts
        residuals, found = self._residuals(drafts), 0
        worth = _PAIR_WORTH * float(np.vdot(residuals[..., :3], residuals[..., :3]))
        while candidates and found < most:
            energies = np.einsum("eni,eni->en", residuals[..., :3], residuals[..., :3])
            whole = float(energies.sum())
            if energies.max() <= (_NOTICEABLE * self.rounding) ** 2:
                break
            best = self._best_pair(drafts, candidates, residuals, energies, worth)
            checkpoint(progress, found / most, "Pairing Joints")
            if best is None:
                break
            candidates.remove(best.joints)
            more = self.fitted([*drafts, best])
            residuals = self._residuals(more)
            # The shape keys that it displaces may be worth more.
            if np.vdot(residuals[..., :3], residuals[..., :3]) < whole - worth:
                drafts, found = more, found + 1
            else:
                drafts = self.fitted(drafts)
                residuals = self._residuals(drafts)
        return drafts

    def _residuals(self, drafts: list[Draft]) -> np.ndarray:
        """(E, N, C) the signals that ``drafts`` do not explain. Each pair is fitted again, to what single joints and
        the pairs before it do not explain."""
        residuals = self.observations.signals.copy()
        for draft in sorted(drafts, key=lambda draft: len(draft.joints)):
            if isinstance(draft, JointDraft):
                examples = np.flatnonzero(self.observations.moving[:, draft.joints[0]])
                places = np.ix_(examples, draft.region)
                features = draft.space.features(self.observations.rotations[examples, draft.joints[0]])
                shares = features @ draft.solved(np.eye(len(draft.observed)))
                predicted = np.tensordot(shares.astype(np.float32), draft.observed, axes=1)
            else:
                assert isinstance(draft, PairDraft)
                places = np.ix_(draft.examples, draft.region)
                draft.residuals = residuals[places]
                draft.observed = predicted = draft.trial.explained(draft.residuals)
            residuals[places] -= predicted * draft.mask[:, None].astype(np.float32)
        return residuals

    def _best_pair(
        self,
        drafts: Sequence[Draft],
        candidates: Sequence[tuple[int, int]],
        residuals: np.ndarray,
        energies: np.ndarray,
        worth: float,
    ) -> PairDraft | None:
        """The one of ``candidates`` that explains most of the residuals (E, N, C), whose squares ``energies`` (E, N)
        are; None where none explains more than ``worth``."""
        singles = {draft.joints[0]: draft for draft in drafts if isinstance(draft, JointDraft)}
        possible: list[tuple[float, tuple[int, int], np.ndarray]] = []
        for pair in candidates:
            examples = np.flatnonzero(self.observations.moving[:, list(pair)].all(axis=1))
            possible.append((float(energies[examples].sum()), pair, examples))
        best: PairDraft | None = None
        for most, pair, examples in sorted(possible, key=lambda entry: -entry[0]):
            if most <= worth:
                break
            region, shared = self._pair_region(singles, residuals, pair, examples)
            if float(energies[np.ix_(examples, region)].sum()) <= worth:
                continue
            draft = self._pair_draft(residuals, pair, examples, region, shared)
            if draft.trial.energy > worth:
                best, worth = draft, draft.trial.energy
        return best

    def _pair_region(
        self, singles: dict[int, JointDraft], residuals: np.ndarray, pair: tuple[int, int], examples: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n,) that two joints may displace together, and a mask (n,) there: where their supports meet, and
        where ``residuals`` (E, N, C) of the ``examples`` that pose both are theirs."""
        moving, rotations = self.observations.moving[examples], self.observations.rotations[examples]
        mask = coupling_mask(
            self.spaces[pair[0]],
            self.spaces[pair[1]],
            rotations[:, pair[0]],
            rotations[:, pair[1]],
            residuals[examples][..., :3],
            moving.sum(axis=1) == 2,
            self.settings.support_threshold,
            _NOTICEABLE * self.rounding,
            2 * self.settings.max_centers,
        )
        if set(pair) <= set(singles):
            region, shared = _shared_region(*(singles[joint] for joint in pair))
            mask[region] = np.maximum(mask[region], shared)
        return np.flatnonzero(mask), mask[mask > 0]

    def _pair_draft(
        self,
        residuals: np.ndarray,
        pair: tuple[int, int],
        examples: np.ndarray,
        region: np.ndarray,
        shared: np.ndarray,
    ) -> PairDraft:
        """The support of two joints for what is left, (E, N, C), of the ``examples`` that pose both; where it may act,
        region and mask ``shared`` (n,)."""
        rotations, left = self.observations.rotations[examples], residuals[np.ix_(examples, region)]
        one, other = pair
        trial = pair_trial(
            self.spaces[one],
            self.spaces[other],
            rotations[:, one],
            rotations[:, other],
            left[..., :3],
            shared,
            2 * self.settings.max_centers,
        )
        observed = trial.explained(left)
        name = " + ".join(self.rig.joint_names[joint] for joint in pair)
        strength = strengths(observed[..., :3] * shared[:, None])
        wanted = shared * support_mask(strength, self.settings.support_threshold)
        normals = shared * normals_mask(observed[..., 3:], self.settings.support_threshold)
        if name in self.painted:
            wanted = normals = self.painted[name][region]
        return PairDraft(name, pair, region, observed, strength, wanted, normals, trial, left, examples)


def _shared_region(first: Draft, second: Draft) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n,) that two joints' supports share, and a mask (n,) there, 1 where both are whole."""
    region, one, other = np.intersect1d(first.region, second.region, assume_unique=True, return_indices=True)
    shared = np.sqrt(first.wanted[one] * second.wanted[other])
    return region[shared > 0], shared[shared > 0]


def _gram(displacements: np.ndarray) -> np.ndarray:
    """(M, M) inner products of ``displacements`` (M, n, 3)."""
    rows = displacements.reshape(len(displacements), -1).astype(np.float64)
    return dense.product(rows, rows.T)


def _listed(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
