# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pairs of joints act together: those that explain most of what single joints leave, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..progress import Progress, checkpoint
from .coupling import coupling_mask
from .drafts import Draft, JointDraft, PairDraft
from .observations import Observations
from .pairs import candidate_pairs, pair_trial
from .pose_space import PoseSpace
from .supports import normals_mask, strengths, support_mask
from .types import EigenSkinSettings

# A pair of joints is worth its shape keys where it explains this share of what single joints leave.
_WORTH = 0.02


@dataclass(eq=False)
class PairSearch:
    """noticeable: shorter displacements need no correction. fitted: what brings drafts within the settings' limits, and
    leaves out those without components."""

    joint_names: tuple[str, ...]
    observations: Observations
    settings: EigenSkinSettings
    painted: dict[str, np.ndarray]
    spaces: dict[int, PoseSpace]
    noticeable: float
    fitted: Callable[[list[Draft]], list[Draft]]

    def with_pairs(self, drafts: list[Draft], progress: Progress) -> list[Draft]:
        """``drafts``, and drafts of the pairs of joints that explain most of the remaining residuals."""
        most = self.settings.joint_pairs
        candidates = candidate_pairs(self.observations.moving)
        if not candidates:
            return drafts
        residuals, found = self._residuals(drafts), 0
        worth = _WORTH * float(np.vdot(residuals[..., :3], residuals[..., :3]))
        while candidates and found < most:
            energies = np.einsum("eni,eni->en", residuals[..., :3], residuals[..., :3])
            whole = float(energies.sum())
            if energies.max() <= self.noticeable**2:
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
            self.noticeable,
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
        name = " + ".join(self.joint_names[joint] for joint in pair)
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
