# SPDX-License-Identifier: GPL-3.0-or-later
"""What the examples say, each pose once: displacements of the rest pose, and the poses in which they were seen."""

from dataclasses import dataclass

import numpy as np

from ..progress import Progress
from .displacements import RestDisplacements, rest_displacements
from .pose_space import REST, SAME_ROTATION, is_turned, rotation_distances
from .types import BadExamples, Examples, Rig


@dataclass(eq=False)
class Observations:
    """rotations (E, J, 4); moving (E, J) bool: joints that are posed; matrices (E, P, 3, 4) of the bones; signals
    (E, N, C) float32: displacements of the rest pose, and the normals' corrections where there are any."""

    rotations: np.ndarray
    moving: np.ndarray
    matrices: np.ndarray
    signals: np.ndarray

    @property
    def several(self) -> np.ndarray:
        """(E,) bool: which pose more than one joint."""
        return self.moving.sum(axis=1) > 1


def observations_of(
    rig: Rig, examples: Examples, surface_normals: np.ndarray | None, progress: Progress
) -> tuple[Observations, list[str]]:
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
    observed = Observations(examples.rotations[chosen], moving[chosen], examples.matrices[chosen], mapped.values)
    return _merged(observed, names, notes), notes


def _note_damped(mapped: RestDisplacements, names: list[str], notes: list[str]) -> None:
    counts = mapped.damped.sum(axis=1)
    parts = [f"{name} ({count:,} vertices)" for name, count in zip(names, counts, strict=True) if count]
    if parts:
        notes.append(
            f"Blending nearly flattens the skin, so it is corrected only in part: {_listed(parts)}. "
            "Such twists need bones in between"
        )


def _merged(observations: Observations, names: list[str], notes: list[str]) -> Observations:
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
    return Observations(rotations[kept], moving[kept], observations.matrices[kept], means)


def _listed(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
