# SPDX-License-Identifier: GPL-3.0-or-later
"""From examples to an EigenSkin: displacements, supports, components, interpolation (section 2 of the paper)."""

from dataclasses import dataclass, field

import numpy as np

from ..geometry import diagonal
from ..progress import Progress, checkpoint, ignore, span
from .attribution import chosen_centers, joint_displacements, joint_regions
from .basis import component_counts
from .checks import check_examples, checked_painting
from .drafts import Draft, JointDraft
from .fewer import fewer_functions
from .interpolation import RADIUS
from .model import EigenSkin
from .observations import Observations, observations_of
from .pair_search import PairSearch
from .pairs import inner_products
from .pose_space import REST, PoseSpace, hinge_axis
from .posed_values import PosedRegion
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
    observations, notes = observations_of(rig, examples, rest_surface_normals, span(progress, 0.0, 0.4))
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
    if settings.joint_pairs:
        drafts = builder.pair_search().with_pairs(drafts, span(progress, 0.7, 0.95))
    spaces = {joint: builder.spaces[joint] for draft in drafts for joint in draft.joints}
    supports = []
    for draft in drafts:
        supports.append(draft.support(len(rig.rest), spaces))
        checkpoint(progress, 0.95 + 0.05 * len(supports) / len(drafts), "Finding Components")
    return EigenSkin(rig.joint_names, len(rig.rest), spaces, tuple(supports), tuple(notes))


@dataclass(eq=False)
class _Builder:
    """spaces: of the joints that move, by index, once their drafts are made."""

    rig: Rig
    observations: Observations
    settings: EigenSkinSettings
    painted: dict[str, np.ndarray]
    notes: list[str]
    spaces: dict[int, PoseSpace] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        """Displacements up to this length are rounding."""
        size = diagonal(self.rig.rest)
        return max(_ROUNDING * size, _ROUNDING_AWAY * float(np.abs(self.rig.rest).max(initial=0.0)))

    def singles(self, progress: Progress) -> list[Draft]:
        """A draft for each joint that displaces something."""
        drafts: list[Draft] = []
        for joint, (region, observed) in self._joint_signals(self.rounding, progress).items():
            shapes = observed[..., :3]
            strength = strengths(shapes)
            if strength.max(initial=0.0) <= _NOTICEABLE * self.rounding:
                continue
            name = self.rig.joint_names[joint]
            wanted = support_mask(strength, self.settings.support_threshold, self.rounding)
            normals = normals_mask(observed[..., 3:], self.settings.support_threshold)
            draft = JointDraft(
                name,
                (joint,),
                region,
                observed,
                strength,
                wanted,
                normals,
                self.spaces[joint],
                self._posed(joint, region),
            )
            if name in self.painted:
                draft.wanted = np.where(strength > 0, self.painted[name][region], 0.0)
                draft.wanted_normals = self.painted[name][region]
                if not draft.wanted.any():
                    self.notes.append(f"{name}: the painted support is empty where the joint displaces the skin")
            if self.settings.basis_functions:
                draft.fitted = fewer_functions(
                    draft.known, inner_products(shapes, shapes), self.settings.basis_functions
                )
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

    def _posed(self, joint: int, region: np.ndarray) -> PosedRegion | None:
        """The vertices ``region`` (n,) in the examples of a joint; None where other joints pose them too."""
        if self.observations.several.any():
            return None
        matrices = self.observations.matrices[self.observations.moving[:, joint]]
        return PosedRegion(self.rig.rest[region], self.rig.bones[region], self.rig.weights[region], matrices)

    def pair_search(self) -> PairSearch:
        return PairSearch(
            self.rig.joint_names,
            self.observations,
            self.settings,
            self.painted,
            self.spaces,
            _NOTICEABLE * self.rounding,
            self.fitted,
        )

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
