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

QUALITIES = ("DRAFT", "STANDARD", "BEST")
# The least smoothness of bones that are to be posed: where the motion hardly tells the weights, sharp ones tear beyond
# it.
POSABLE_SMOOTHNESS = 0.2

# A sample has this share of the vertices up to so many, and beyond that the smaller share; at least this many for each
# bone, and at least this many in all; and at most the last share: the last sweeps have to be paid for.
_SHARE, _MANY, _SHARE_OF_MANY, _PER_BONE, _LEAST, _MOST_SHARE = 0.1, 6000, 0.02, 100, 3000, 0.7
# Meshes with no more vertices have none, by bone kind: stiff bones are often those of machines, and of characters of
# many small parts, which a small sample would miss.
SMALL_MESHES = {"AFFINE": 2000, "SCALED": 4000, "RIGID": 4000}
# The same where bones that are not needed go: which are, and where their joints lie, a sample says less well, and the
# solve of all vertices takes hardly longer.
SMALL_PRUNED = 20_000
# A sample of stiff bones with fewer vertices for each of them would miss small parts, too, and is hardly less work.
_FEWEST_PER_BONE = 20
# Sweeps over the sample for each requested iteration. A sweep of stiff bones costs more, however many vertices there
# are.
_MORE_SWEEPS, _MORE_SWEEPS_STIFF = 2.4, 1.6
# Sweeps over all vertices after it.
_LAST_SWEEPS = 3
# The number of last sweeps in the unreduced animation, where affine bones are held (see bone_kinds.HeldAffineBones). On
# cloth, one such sweep loses what a deeper solve gains; in the second sweep the weights adapt.
_HELD, _HELD_AFTER_SAMPLE = 1, 2
# A draft has this share of the sweeps, on a sample of half the size.
_DRAFT, _DRAFT_SAMPLE, _DRAFT_LAST = 0.5, 0.5, 2
# The best quality has as many times the sweeps, tries as many moves of bones, and ends with more sweeps over all.
_BEST, _BEST_MOVES, _BEST_LAST, _BEST_HELD = 8.0, 40, 14, 4
# The sweeps after which moves of bones are compared.
SWEEPS_OF_MOVE = 16


@dataclass(frozen=True)
class Effort:
    """sweeps: over all vertices, of which the last ``held`` are in the unreduced animation. sample: the number of
    vertices that are solved first, by ``sample_sweeps``; or 0. moves: how often bones try to move (see search.py)."""

    sweeps: int
    held: int = _HELD
    sample: int = 0
    sample_sweeps: int = 0
    moves: int = 0

    @property
    def first_sweeps(self) -> int:
        """Those that follow the segmentation."""
        return self.sample_sweeps if self.sample else self.sweeps

    def vertices(self, vertex_count: int) -> int:
        """The vertices of all sweeps together."""
        return self.sweeps * vertex_count + self.sample_sweeps * self.sample

    def searched(self, vertex_count: int) -> int:
        """The vertices of the sweeps with which moves of bones are tried, and of the standard solve beside them."""
        return self.moves * SWEEPS_OF_MOVE * (self.sample or vertex_count) + (15 * vertex_count if self.moves else 0)

    def sample_share(self, vertex_count: int) -> float:
        """How much of all that the sample is."""
        return self.sample_sweeps * self.sample / self.vertices(vertex_count)


def effort_of(vertex_count: int, wanted: "Settings") -> Effort:
    """What a solve does: with a sample where that is less work. wanted: or what is like it.

    The published method has none, nor has a solve with residual shapes: bones that leave less error can leave one that
    few shapes correct less well.
    """
    iterations, quality = wanted.iterations, wanted.quality
    if wanted.method == "KAVAN2010":
        return Effort(iterations)
    share = {"DRAFT": _DRAFT, "STANDARD": 1.0, "BEST": _BEST}[quality]
    every = Effort(max(1, round(share * iterations)))
    if quality == "BEST":
        every = Effort(every.sweeps, _BEST_HELD, moves=_BEST_MOVES)
    small = SMALL_PRUNED if wanted.prune else SMALL_MESHES[wanted.bone_kind]
    if vertex_count <= small or wanted.residual_shapes:
        return every
    spread = max(min(_SHARE * vertex_count, _MANY), _SHARE_OF_MANY * vertex_count)
    sample = max(round(spread), _PER_BONE * wanted.bone_count, _LEAST)
    sample = min(round((_DRAFT_SAMPLE if quality == "DRAFT" else 1.0) * sample), round(_MOST_SHARE * vertex_count))
    if wanted.bone_kind != "AFFINE" and sample < _FEWEST_PER_BONE * wanted.bone_count:
        return every
    last = {"DRAFT": _DRAFT_LAST, "STANDARD": _LAST_SWEEPS, "BEST": _BEST_LAST}[quality]
    more = _MORE_SWEEPS if wanted.bone_kind == "AFFINE" else _MORE_SWEEPS_STIFF
    sweeps = round(share * more * iterations)
    if quality != "BEST":
        # No more work than without a sample.
        sweeps = min(sweeps, (every.sweeps - last) * vertex_count // sample)
    if sweeps < 1:
        return every
    held = _BEST_HELD if every.moves else min(_HELD_AFTER_SAMPLE, last - 1)
    return Effort(last, held, sample, sweeps, every.moves)
