# SPDX-License-Identifier: GPL-3.0-or-later
"""Muscles and such that bulge, as starting points: sizes go with the character's bones."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class BulgePreset:
    """motion 'MOVE' or 'SCALE'; measure: what angle of the driver bone counts, from angle_start to angle_end, radians.

    driven: by a joint, if none is named that of the bone's child; else, where no driver is named, by a slider.
    side: where beside the bone it is, 'INSIDE' of the driver bone's bend, 'FRONT' or 'BACK' of the character. place:
    along the bone, 0 … 1. toward: how far from there to the driver bone's head, 0 … 1. radius: as a share of the bone's
    length, of the distance to the driver bone where toward is above 0. amount: as a share of the radius.
    """

    label: str
    description: str
    motion: str = "MOVE"
    measure: str = "BEND"
    angle_start: float = math.radians(20)
    angle_end: float = math.radians(130)
    driven: bool = True
    side: str = "INSIDE"
    place: float = 0.5
    toward: float = 0.0
    radius: float = 0.45
    amount: float = 0.25


PRESETS = {
    "BICEPS": BulgePreset("Biceps", "On the upper arm, when the elbow bends"),
    "CHEST": BulgePreset(
        "Chest",
        "On the chest, when the arm is raised or drawn in: name the upper arm as the driver",
        angle_start=math.radians(25),
        angle_end=math.radians(100),
        side="FRONT",
        toward=0.5,
        radius=0.6,
        amount=0.2,
    ),
    "BELLY": BulgePreset(
        "Belly",
        "On the belly, by a slider that can be keyed: breathing",
        driven=False,
        side="FRONT",
        radius=1.2,
        amount=0.15,
    ),
    "CALF": BulgePreset(
        "Calf",
        "On the shin, when the foot is stretched",
        angle_start=math.radians(5),
        angle_end=math.radians(50),
        side="BACK",
        place=0.3,
        radius=0.4,
        amount=0.15,
    ),
    "CUSTOM": BulgePreset("Custom", "Anywhere, driven by any bone or by a slider", driven=False),
}
