# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear blend, dual quaternion and center-of-rotation skinning of points.

Every method gives each vertex an affine transform of its own (``vertex_transforms``), which moves the vertex and,
through its linear part, normals and tangents. With one bone for each vertex (rigid parts, simple skin), all three
methods agree.

Bones may scale and shear: M_b = [A_b | t_b], A_b = R_b S_b by polar decomposition. Dual quaternions and centers of
rotation blend the rotations R_b as quaternions and the stretches S_b linearly; the vertex's linear part is their
product. So a vertex with one bone follows that bone exactly.

Weights are convex (see ``convex_influences``); a vertex whose weights are all zero stays where it is.
Source: "CRS" below is Le & Hodgins 2016 in the notation of its evaluation of 2019, equations 1–8, algorithms 1 and 2.
"""

from collections.abc import Iterator

import numpy as np

from .. import quaternions
from ..errors import BadSettings, BadWeights
from ..progress import Progress, checkpoint, ignore
from ..rotations import polar_decomposition
from .influences import weight_matrix

METHODS = ("LBS", "DQS", "CRS")

# Two bones turned apart by half a turn have quaternions at right angles. Rounding must not choose the
# side for each vertex, so within this cosine the second one keeps the side that ``quaternions.canonical`` gives it: the
# same in double precision, in the modifier and in the shaders. Blender's Preserve Volume may take the other way around,
# which is equally short.
_HALF_TURN = quaternions.NEARLY_ZERO

# Vertices in a block: its data fits the cache, and memory does not grow with the mesh.
_BLOCK = 8192


def skin_frame(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    method: str = "LBS",
    centers: np.ndarray | None = None,
) -> np.ndarray:
    """Positions (N, 3) float64 of one frame.

    rest (N, 3), bones and weights (N, K), matrices (P, 3, 4) from rest pose to frame; centers (N, 3) for CRS, the
    rest position where a vertex has none (it then moves as with LBS).
    Raises BadSettings on an unknown method, BadWeights where CRS has no centers or a matrix is not a number.
    """
    result = np.empty((len(rest), 3))
    for part, transforms in _blocks(rest, bones, weights, matrices, method, centers):
        result[part] = transformed(transforms, rest[part])
    return result


def skin_frames(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    method: str = "LBS",
    centers: np.ndarray | None = None,
    progress: Progress = ignore,
) -> np.ndarray:
    """``frames`` (F, N, 3) float32 by ``matrices`` (F, P, 3, 4); else as ``skin_frame``. Raises Cancelled too."""
    frames = np.empty((len(matrices), len(rest), 3), np.float32)
    for row, frame_matrices in enumerate(matrices):
        frames[row] = skin_frame(rest, bones, weights, frame_matrices, method, centers)
        checkpoint(progress, (row + 1) / len(matrices), "Deforming")
    return frames


def vertex_transforms(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    method: str = "LBS",
    centers: np.ndarray | None = None,
) -> np.ndarray:
    """(N, 3, 4) the affine transform of each vertex in one frame; arguments and errors as ``skin_frame``."""
    result = np.empty((len(rest), 3, 4))
    for part, transforms in _blocks(rest, bones, weights, matrices, method, centers):
        result[part] = transforms
    return result


def _blocks(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    method: str,
    centers: np.ndarray | None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of the vertices with their transforms (n, 3, 4)."""
    if method not in METHODS:
        raise BadSettings(f"The skinning method must be one of {', '.join(METHODS)}, not {method}")
    if method == "CRS" and (centers is None or np.shape(centers) != np.shape(rest)):
        raise BadWeights("Centers of rotation are missing or do not fit the mesh. Bake them first")
    matrices = np.asarray(matrices, dtype=np.float64)
    usable = np.isfinite(matrices).all(axis=(1, 2))
    if not usable.all():
        raise BadWeights(f"The matrix of bone {np.argmin(usable)} is not a number (NaN or infinite)")
    turning = None if method == "LBS" else _TurningBones(matrices)
    for start in range(0, len(rest), _BLOCK):
        part = slice(start, start + _BLOCK)
        if turning is not None and method == "DQS":
            transforms = turning.about_the_joints(rest[part], bones[part], weights[part])
        else:
            transforms = _linear(bones[part], weights[part], matrices)
            if turning is not None:
                assert centers is not None
                transforms = turning.about_centers(centers[part], bones[part], weights[part], transforms)
        still = ~weights[part].any(axis=1)
        transforms[still] = np.eye(3, 4)
        yield part, transforms


def _linear(bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """(n, 3, 4) blended matrices, CRS equation 2."""
    return (weight_matrix(bones, weights, len(matrices)) @ matrices.reshape(-1, 12)).reshape(-1, 3, 4)


def transformed(transforms: np.ndarray, points: np.ndarray) -> np.ndarray:
    """``points`` (N, 3), each moved by its own of ``transforms`` (N, 3, 4)."""
    return np.einsum("nij,nj->ni", transforms[..., :3], points) + transforms[..., 3]


class _TurningBones:
    """The bones of one frame as rotations (quaternions), stretches and translations."""

    def __init__(self, matrices: np.ndarray):
        rotations, self._stretches = polar_decomposition(matrices[..., :3])
        self._quaternions = quaternions.canonical(quaternions.from_matrices(rotations))
        self._duals = quaternions.product(0.5 * _pure(matrices[..., 3]), self._quaternions)
        difference = matrices[..., :3] - rotations
        # Bones that only rotate, up to rounding, need no term for their scale.
        self._scalings = difference if np.abs(difference).max(initial=0.0) > 1e-9 else None

    def about_the_joints(self, rest: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(n, 3, 4) dual quaternion blending, CRS algorithm 1.

        The motion that a bone's scale adds to a vertex goes into the translation of the bone's dual quaternion for that
        vertex, as in Blender's armature modifier with Preserve Volume. Where bones are sheared or
        mirrored, Blender keeps two of their own axes instead of the nearest rotation, and the results differ.
        """
        blended, signed = self._aligned_sum(bones, weights)
        dual = np.zeros_like(blended)
        for slot in range(bones.shape[1]):
            bone = bones[:, slot]
            dual += signed[:, slot, None] * self._duals[bone]
            if self._scalings is not None:
                offset = np.einsum("nij,nj->ni", self._scalings[bone], rest)
                turned = quaternions.product(_pure(offset), self._quaternions[bone])
                dual += 0.5 * signed[:, slot, None] * turned
        length_squared = _length_squared(blended)
        translation = 2 * quaternions.product(dual, quaternions.conjugate(blended))[:, 1:] / length_squared[:, None]
        rotation = quaternions.to_matrices(blended / np.sqrt(length_squared)[:, None])
        position = np.einsum("nij,nj->ni", rotation, rest) + translation
        return self._stretched(rotation, bones, weights, rest, position)

    def about_centers(
        self, centers: np.ndarray, bones: np.ndarray, weights: np.ndarray, linear: np.ndarray
    ) -> np.ndarray:
        """(n, 3, 4) of CRS algorithm 2; ``linear`` (n, 3, 4) are the blended matrices."""
        blended, _ = self._aligned_sum(bones, weights)
        rotation = quaternions.to_matrices(blended / np.sqrt(_length_squared(blended))[:, None])
        return self._stretched(rotation, bones, weights, centers, transformed(linear, centers))

    def _aligned_sum(self, bones: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the weighted quaternions (n, 4), each on the side of the sum before it (CRS equation 5), and the
        weights with the signs of this alignment (n, K).

        The sum does not shrink, so it is not zero where a weight is positive. Its order is that of the slots: it
        matters for three and more bones that are turned far apart.
        """
        total = np.zeros((len(bones), 4))
        signed = np.array(weights, dtype=np.float64)
        for slot in range(bones.shape[1]):
            turn = self._quaternions[bones[:, slot]]
            # Compared with the length of the sum, which is tiny if the weights so far are.
            scaled = np.einsum("ni,ni->n", total, turn)
            signed[scaled < -_HALF_TURN * np.sqrt(np.einsum("ni,ni->n", total, total)), slot] *= -1
            total += signed[:, slot, None] * turn
        return total, signed

    def _stretched(
        self, rotation: np.ndarray, bones: np.ndarray, weights: np.ndarray, points: np.ndarray, targets: np.ndarray
    ) -> np.ndarray:
        """(n, 3, 4) with the linear part rotation · blended stretch, which takes ``points`` to ``targets`` (n, 3)."""
        linear = rotation
        if self._scalings is not None:
            stretch = weight_matrix(bones, weights, len(self._stretches)) @ self._stretches.reshape(-1, 9)
            linear = rotation @ stretch.reshape(-1, 3, 3)
        translation = targets - np.einsum("nij,nj->ni", linear, points)
        return np.concatenate([linear, translation[..., None]], axis=-1)


def _pure(vectors: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) with no real part."""
    return np.concatenate([np.zeros((*vectors.shape[:-1], 1)), vectors], axis=-1)


def _length_squared(blended: np.ndarray) -> np.ndarray:
    """(n,), 1 for vertices without weights, which do not move."""
    squared = np.einsum("ni,ni->n", blended, blended)
    return np.where(squared > 0, squared, 1.0)
