# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of one side of a body as examples of the other: mirrored across the mesh's own X axis."""

import numpy as np

from ..deform import skin_frame
from ..geometry import MIRROR_X
from .types import BadExamples, Examples, Rig


def mirrored_examples(
    examples: Examples,
    rig: Rig,
    rest_frames: np.ndarray,
    mirror_joint: np.ndarray,
    mirror_bone: np.ndarray,
    vertex_pairs: np.ndarray,
) -> Examples:
    """The same examples with left and right exchanged, with the same names, but without normals.

    rest_frames (J, 3, 3): the axes of each joint's bone at rest in the mesh's space, as columns; any two may be
    oriented as they like. mirror_joint (J,), mirror_bone (P,), vertex_pairs (N,): the partner of each on the other
    side, itself in the middle, −1 without one; partners are mutual (core.rotation_centers.mirror_pairs). A joint
    without a partner is in its rest pose, its bone follows the next one up the hierarchy that has a partner, and a
    vertex without one is not corrected: it has the shape of linear blending. Raises BadExamples where partners are not
    mutual.
    """
    joint_from, bone_from, vertex_from = (
        _checked(partners, count, what)
        for partners, count, what in (
            (mirror_joint, len(rig.joint_names), "joints"),
            (mirror_bone, len(rig.joint_of_bone), "bones"),
            (vertex_pairs, len(rig.rest), "vertices"),
        )
    )
    matrices = _mirrored_matrices(examples.matrices, rig, bone_from)
    alone = np.flatnonzero(vertex_from < 0)
    shapes = np.asarray(examples.shapes)[:, vertex_from] * MIRROR_X.astype(np.asarray(examples.shapes).dtype)
    for index in range(len(shapes) if len(alone) else 0):
        shapes[index, alone] = skin_frame(rig.rest[alone], rig.bones[alone], rig.weights[alone], matrices[index])
    return Examples(examples.names, _mirrored_rotations(examples.rotations, rest_frames, joint_from), matrices, shapes)


def _mirrored_rotations(rotations: np.ndarray, frames: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """(E, J, 4). In the mesh's space a rotation M becomes S M S; in the bones' own axes F and F', with A = F'ᵀ S F,
    the rotation R so becomes A R Aᵀ: as A is improper, its axis times the sine of its half angle, v, becomes −A v."""
    frames = np.asarray(frames, dtype=np.float64)
    across = -np.einsum("jki,k,jkl->jil", frames, MIRROR_X, frames[partner])
    result = np.array(rotations, dtype=np.float64)[:, partner]
    result[..., 1:] = np.einsum("jil,ejl->eji", across, result[..., 1:])
    result[:, partner < 0] = [1.0, 0.0, 0.0, 0.0]
    return result


def _mirrored_matrices(matrices: np.ndarray, rig: Rig, partner: np.ndarray) -> np.ndarray:
    """(E, P, 3, 4): S M S, S the mirror."""
    result = np.array(matrices, dtype=np.float64)[:, partner] * np.outer(MIRROR_X, [*MIRROR_X, 1.0])
    bone_of_joint = np.full(len(rig.joint_names), -1)
    # If a joint has several bones, the first one: helper bones come after it.
    bone_of_joint[rig.joint_of_bone[::-1]] = np.arange(len(rig.joint_of_bone))[::-1]
    for bone in np.flatnonzero(partner < 0):
        joint = rig.parents[rig.joint_of_bone[bone]]
        while joint >= 0 and (bone_of_joint[joint] < 0 or partner[bone_of_joint[joint]] < 0):
            joint = rig.parents[joint]
        result[:, bone] = np.eye(3, 4) if joint < 0 else result[:, bone_of_joint[joint]]
    return result


def _checked(partners: np.ndarray, count: int, what: str) -> np.ndarray:
    partners = np.asarray(partners, dtype=int)
    if partners.shape != (count,) or partners.max(initial=-1) >= count:
        raise BadExamples(f"The mirrored {what} do not fit the rig's {count}")
    paired = np.flatnonzero(partners >= 0)
    if not np.array_equal(partners[partners[paired]], paired):
        raise BadExamples(f"Two {what} have the same partner on the other side. Give both sides matching names")
    return partners
