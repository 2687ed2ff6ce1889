# SPDX-License-Identifier: GPL-3.0-or-later
"""From the bones that places belong to, to smooth weights: heat that flows over the surface.

Bones hold their places at a temperature, more firmly the nearer they are, and the surface conducts:
(L + H) w = H p (Baran & Popović 2007, section 4). Solved once for all bones; every place gets weights that sum to 1,
since every place belongs to some bone.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ..dense import one_blas_thread
from ..progress import Progress, checkpoint, ignore
from ..strongest import strongest_first
from .assignment import Assignment
from .laplacian import laplacian
from .types import Body

# H = STIFFNESS / distance². Across a joint of a limb weights fall off as exp(−√STIFFNESS · x / radius): from nine
# tenths to one tenth over 1.3 radii. Figures of quality change by 3 % between 4 and 12.
STIFFNESS = 6.0

# A share of what a place conducts.
_LEAST_HOLD = 1e-12

# What a contact conducts: about as much as an edge between two equilateral triangles, 0.58.
_CONTACT = 1.0

# Bones in one solve.
_COLUMNS = 32

# Candidates beyond those that are kept; their weights go to related bones.
SPARE = 12

# Smaller influences are left out: they move nothing visible, and cost as much as any other.
_LEAST = 1e-3

# Links from a bone to itself, when the weights taken from all bones are given back. Nearer to 1, thick bodies tear
# less; nearer to 0, weights come closer to those of an artist's rig.
_TO_ITSELF = 0.5

# Weights that differ by less, as a share, are the same: rounding of positions comes out a few hundred times larger.
_TIE = 1e-3

_STAGE = "Smoothing"


def diffuse(
    body: Body, assignment: Assignment, most: int, progress: Progress = ignore, *, contacts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ``most`` strongest bones (W, M) int32 of each place, strongest first, and their weights (W, M).

    M is at most ``most`` and the number of bones. contacts (n, 2): places between which heat flows beside the surface.
    Raises Cancelled.
    """
    conduction, areas = laplacian(body)
    if contacts is not None and len(contacts):
        conduction = conduction + _through(contacts, len(areas))
    held = STIFFNESS * areas / assignment.distances**2
    # Bones that are very far away for the size of the mesh hold almost nothing: rounding would make the system
    # singular.
    held = np.maximum(held, _LEAST_HOLD * conduction.diagonal())
    checkpoint(progress, 0.0, _STAGE)
    # One thread: with products as small as these, more would only wait for each other.
    matrix = (conduction + sparse.diags(held)).tocsr()
    # In the order of the vertices, finding the order of elimination can take minutes: after a subdivision, 70 times as
    # long.
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    matrix = matrix[order][:, order].tocsc()
    with one_blas_thread():
        # Symmetric and positive definite: no pivoting, and an order that suits both halves.
        factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    used = np.flatnonzero(np.bincount(assignment.shares.indices, minlength=assignment.shares.shape[1]))
    columns = assignment.shares.tocsc()[:, used]
    back = np.argsort(order)
    strong: tuple[np.ndarray, np.ndarray] | None = None
    for start in range(0, len(used), _COLUMNS):
        checkpoint(progress, 0.2 + 0.8 * start / len(used), _STAGE)
        block = slice(start, min(start + _COLUMNS, len(used)))
        with one_blas_thread():
            heat = held[:, None] * columns[:, block].toarray()
            solved = np.maximum(factors.solve(heat[order])[back], 0)
        indices = np.broadcast_to(used[block].astype(np.int32), solved.shape)
        if strong is not None:
            indices, solved = (np.concatenate(pair, axis=1) for pair in zip(strong, (indices, solved), strict=True))
        # Among equal weights the first bone comes first, however the columns are divided into blocks.
        strong = strongest_first(indices, solved, most)
    # Every place belongs to some bone.
    assert strong is not None
    bones, weights = strong
    if len(used) > most:
        # Some bones as strong as the last one may be missing: none of them counts.
        cut = weights <= weights[:, -1:] * (1 + _TIE)
        weights[cut & ~cut[:, :1]] = 0
    return bones, weights


def _through(contacts: np.ndarray, count: int) -> sparse.csr_matrix:
    """What pairs (n, 2) of ``count`` places add to a Laplacian."""
    pairs = np.unique(np.sort(contacts, axis=1), axis=0)
    half = sparse.coo_matrix((np.full(len(pairs), _CONTACT), tuple(pairs.T)), shape=(count, count)).tocsr()
    links = half + half.T
    return sparse.diags(np.asarray(links.sum(axis=1)).ravel()) - links


def limited(bones: np.ndarray, weights: np.ndarray, most: int, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``bones`` and ``weights`` (W, M), strongest first, cut to ``most`` influences that sum to 1.

    steps (P, P): how far bones are apart in the hierarchy. All weights are lowered by the strongest one that has no
    room, so that a bone leaves at weight 0 where another takes its place: a hard cut tears thick bodies, in which many
    bones are about equally strong. What was taken goes to the bones that are left, mostly to the nearest in the
    hierarchy, which moves most like it. Equally strong bones are either all kept or all removed, so that no side of a
    mirror plane is preferred; if they are the strongest ones, the first is kept.
    """
    most = min(most, bones.shape[1])
    excess = weights[:, most] * (1 + _TIE) if most < bones.shape[1] else np.zeros(len(bones))
    kept = weights[:, :most] - excess[:, None]
    kept[kept <= _LEAST] = 0
    kept[~kept.any(axis=1), 0] = 1
    kept_bones = np.where(kept > 0, bones[:, :most], bones[:, :1])
    result = kept.copy()
    for column in range(bones.shape[1]):
        taken = np.minimum(weights[:, column], excess)
        rows = np.flatnonzero(taken)
        apart = np.maximum(steps[bones[rows, column, None], kept_bones[rows]], _TO_ITSELF)
        kinship = kept[rows] / apart**4
        result[rows] += kinship * (taken[rows] / kinship.sum(axis=1))[:, None]
    return kept_bones, result / result.sum(axis=1, keepdims=True)
