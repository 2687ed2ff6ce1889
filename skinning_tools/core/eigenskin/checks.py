# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses rigs, examples and painted supports that do not belong together, before anything is computed."""

import numpy as np

from ..errors import BadSettings
from .types import BadExamples, Examples, Rig

# How far a quaternion's length may be from 1: single precision, and curves that were not normalized.
_UNIT = 1e-3


def check_examples(rig: Rig, examples: Examples) -> None:
    """Raises BadExamples, naming the example, where counts do not fit the rig, or values are not finite or rotations
    not of unit length."""
    count = len(examples.names)
    if not count:
        raise BadExamples("There are no examples. Add poses with their correct shapes first")
    parts = {"rotations": examples.rotations, "bone matrices": examples.matrices, "shapes": examples.shapes}
    if examples.normals is not None:
        parts["normals"] = examples.normals
    for what, part in parts.items():
        if len(part) != count:
            raise BadExamples(f"There are {count} examples, but {len(part)} {what}")
    for index, name in enumerate(examples.names):
        _check_example(rig, f'The example "{name}"', {what: np.asarray(part[index]) for what, part in parts.items()})


def _check_example(rig: Rig, label: str, parts: dict[str, np.ndarray]) -> None:
    for what in ("shapes", "normals"):
        if what in parts and parts[what].shape != np.shape(rig.rest):
            raise BadExamples(
                f"{label} has {len(parts[what]):,} vertices, but the mesh has {len(rig.rest):,}. Disable or remove the "
                "example, or undo the change of the mesh"
            )
    if parts["rotations"].shape != (len(rig.joint_names), 4) or parts["bone matrices"].shape != (
        len(rig.joint_of_bone),
        3,
        4,
    ):
        raise BadExamples(
            f"{label} is of an armature with other bones. Add the example again with the armature as it is now"
        )
    for what in parts:
        finite = np.isfinite(parts[what])
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
            place = {"shapes": f"vertex {row}", "normals": f"the normal of vertex {row}"}
            place |= {"rotations": f'joint "{rig.joint_names[row]}"'} if what == "rotations" else {}
            raise BadExamples(
                f"{label} has a value that is not a number (NaN or infinite) at {place.get(what, f'bone {row}')}. "
                "Repair its shape or pose, and add the example again"
            )
    lengths = np.linalg.norm(parts["rotations"], axis=-1)
    wrong = np.abs(lengths - 1) > _UNIT
    if wrong.any():
        joint = rig.joint_names[int(np.argmax(wrong))]
        raise BadExamples(f'{label} has a rotation of the joint "{joint}" that is not a unit quaternion')


def checked_painting(rig: Rig, painted: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The masks (N,) float64 from 0 to 1. Raises BadSettings where one does not fit the mesh."""
    result = {}
    for name, mask in painted.items():
        mask = np.asarray(mask, dtype=np.float64)
        if mask.shape != (len(rig.rest),) or not np.isfinite(mask).all():
            raise BadSettings(
                f'The painted support "{name}" has {mask.size:,} weights that do not fit the mesh\'s '
                f"{len(rig.rest):,} vertices. Remove its vertex group, and build again"
            )
        result[name] = np.clip(mask, 0.0, 1.0)
    return result
