# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a decomposition computes: its sweeps, and over how many vertices. The solver and the estimate of its run
time both go by this; a panel asks before scipy is loaded.

A mesh of many vertices is solved on a sample of them first. Which bone goes where shows there as well as on all
vertices, for a fraction of the work, so that the sample gets more sweeps than a solve of all vertices would.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .decomposition import Settings

# Meshes with more vertices have a sample.
LARGE_MESH = 20_000
# The sample has this share of the vertices, but at least this many for each bone, and at least this many in all.
_SHARE, _PER_BONE, _LEAST = 0.1, 100, 1500
# Sweeps over the sample for each requested iteration. A sweep of stiff bones costs more, however many vertices there
# are.
_MORE_SWEEPS, _MORE_SWEEPS_STIFF = 2.5, 2.0
# Sweeps over all vertices after it. Cloth needs as many.
_LAST_SWEEPS = 4
# The number of sweeps with held affine bones, which come last (see bone_kinds.HeldAffineBones). On cloth, one such
# sweep loses what a deeper solve gains; in the second sweep the weights adapt.
_HELD, _HELD_AFTER_SAMPLE = 1, 2


@dataclass(frozen=True)
class Effort:
    """sweeps: over all vertices, of which the last ``held`` hold affine bones. sample: the number of vertices that are
    solved first, by ``sample_sweeps``; or 0."""

    sweeps: int
    held: int = _HELD
    sample: int = 0
    sample_sweeps: int = 0

    @property
    def first_sweeps(self) -> int:
        """Those that follow the segmentation."""
        return self.sample_sweeps if self.sample else self.sweeps

    def vertices(self, vertex_count: int) -> int:
        """The vertices of all sweeps together."""
        return self.sweeps * vertex_count + self.sample_sweeps * self.sample

    def sample_share(self, vertex_count: int) -> float:
        """How much of all that the sample is."""
        return self.sample_sweeps * self.sample / self.vertices(vertex_count)


def effort_of(vertex_count: int, wanted: "Settings") -> Effort:
    """What a solve does: with a sample where the mesh is large and that is less work. wanted: or what is like it.

    The published method has none, nor has a solve with residual shapes: bones that leave less error can leave one that
    few shapes correct less well.
    """
    every = Effort(wanted.iterations)
    if vertex_count <= LARGE_MESH or wanted.method == "KAVAN2010" or wanted.residual_shapes:
        return every
    sample = max(round(_SHARE * vertex_count), _PER_BONE * wanted.bone_count, _LEAST)
    more = _MORE_SWEEPS if wanted.bone_kind == "AFFINE" else _MORE_SWEEPS_STIFF
    first = Effort(_LAST_SWEEPS, _HELD_AFTER_SAMPLE, sample, round(more * wanted.iterations))
    return first if first.vertices(vertex_count) < every.vertices(vertex_count) else every
