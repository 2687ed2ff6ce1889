# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of binding.py on rogue weights: what the search names on meshes as they are, and what it finds planted."""

from dataclasses import dataclass, field

import numpy as np
from _process import in_own_process
from _tables import Tables
from binding_human import HumanRig
from human_rig import HUMAN

from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.rogue import rogue_islands
from tests.core.binding import planted_rogues

RIGS = HUMAN.parent / "rigs"
CHOSEN, HELD_OUT = "chosen on: ", "held out: "


def show_rogues(tables: Tables, blender: bool) -> None:
    """What is named where nothing is planted, then what of each kind that is planted is found."""
    artists = in_own_process(artists_rogues) if blender and RIGS.is_dir() else {}
    rig = HumanRig.read()
    own, anew = planted_rogues.human(lambda _: HUMAN), bind(rig.fresh_body(), rig.skeleton, "DELAUNAY")
    counts = {
        "human rig, its own weights": Rogues.of([own]),
        "human rig, rebound by Delaunay": Rogues.of([(rig.body, rig.skeleton, *anew)], ()),
        "tube": Rogues.of([planted_rogues.tube()]),
        "loose parts": Rogues.of([planted_rogues.loose_parts()]),
    }
    tables.begin(
        "Rogue weights",
        "False positives: vertices named on meshes in their original state. Certain: those that the panel checks at "
        "first. Thresholds were chosen on the first seven characters (chosen on) and verified on the others (held "
        "out); one threshold was changed after Stegosaurus.",
        *("mesh", "vertices", "false positives", "share", "certain"),
    )
    counts = artists | counts
    for name, found in counts.items():
        share = f"{100 * found.named / found.vertices:.3f} %"
        tables.row(name, f"{found.vertices:,}", f"{found.named:,}", share, f"{found.certain:,}")
    tables.begin(
        "Rogue weights, planted",
        "Errors planted in the same weights, at a hundredth of the vertices of each mesh, by code independent of the "
        "search. Strays: single vertices with full weight on a bone that moves nothing within two rings. Slight: 5 to "
        "30 % of their "
        "weight; tiny: 1 to 5 %. Islands: a vertex and often its neighbors. Other side: on the mirrored bone. Next "
        "limb: on the nearest bone that is not next in the hierarchy. Patches: areas of so many vertices, at least "
        "three for each mesh with room, with at most ten times their bone's own weights. Visible: moved by a hundredth "
        "of the mesh's size or more when all bones rotate by 60°. Found, certain: of the visible ones. Elsewhere: "
        "other vertices that were not named before.",
        *("kind", "meshes", "planted", "visible", "found", "certain", "elsewhere"),
    )
    groups = {"chosen on": CHOSEN, "held out": HELD_OUT, "human": "human rig, its own weights"}
    for kind in planted_rogues.KINDS:
        for label, start in groups.items():
            parts = [found.planted[kind] for name, found in counts.items() if name.startswith(start) and found.planted]
            if not parts:
                continue
            planted, visible, right, certain, elsewhere = np.sum(parts, axis=0)
            if not planted:
                continue
            shares = (f"{100 * part / max(visible, 1):.1f} %" for part in (right, certain))
            tables.row(kind, label, f"{planted:,}", f"{visible:,}", *shares, str(elsewhere))


@dataclass
class Rogues:
    """vertices, those named of them, and certain ones; planted: for each kind how many are planted, visible, found,
    certain, and named elsewhere."""

    vertices: int = 0
    named: int = 0
    certain: int = 0
    planted: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, meshes, kinds=tuple(planted_rogues.KINDS)) -> "Rogues":
        found = cls(planted={kind: np.zeros(5, int) for kind in kinds})
        for body, skeleton, *rows in meshes:
            islands = rogue_islands(body, skeleton, *rows)
            before = planted_rogues.pairs(islands)
            found.vertices += len(body.rest)
            found.named += len({vertex for _, vertex in before})
            found.certain += len({vertex for island in islands if island.certain for vertex in island.vertices})
            for kind in kinds:
                right, *wrong = planted_rogues.planted(body, skeleton, *rows, kind=kind)
                moved = planted_rogues.seen(body, skeleton, rows, wrong)
                visible = {pair for pair in right if pair[1] in moved}
                islands = rogue_islands(body, skeleton, *wrong)
                named = planted_rogues.pairs(islands)
                certain = planted_rogues.pairs([island for island in islands if island.certain])
                sets = right, visible, visible & named, visible & certain, named - right - before
                found.planted[kind] += [len(each) for each in sets]
        return found


def artists_rogues() -> dict[str, Rogues]:
    from tests.blender import artists_rigs

    names = {CHOSEN: artists_rigs.CHOSEN_ON, HELD_OUT: artists_rigs.HELD_OUT}
    return {
        prefix + name: Rogues.of(artists_rigs.read(RIGS / f"{name}.glb"))
        for prefix, group in names.items()
        for name in group
    }
