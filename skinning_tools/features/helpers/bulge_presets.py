# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets for bulging muscles, fat and breathing, sized relative to the character's bones."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class BulgePreset:
    """motion: 'MOVE' or 'SCALE'. measure: the angle of the driver bone, from angle_start to angle_end, in radians.

    driven: True to use the bone's child as the default driver, False to use a slider. side: of the bone, 'INSIDE' of
    the driver bone's bend, 'FRONT' or 'BACK' of the character. place: along the bone, 0 … 1. toward: from there to the
    driver bone's head, 0 … 1. radius: relative to the bone's length or, if toward is above 0, to the distance of the
    driver bone. amount: relative to the radius.
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
        "On the chest, when the arm is raised or drawn in: set the upper arm as the driver bone",
        angle_start=math.radians(25),
        angle_end=math.radians(100),
        side="FRONT",
        toward=0.5,
        radius=0.6,
        amount=0.2,
    ),
    "BELLY": BulgePreset(
        "Belly",
        "On the belly, driven by a slider that you can key, for breathing",
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
    "BREATHING": BulgePreset(
        "Breathing Chest",
        "On the chest, which grows with a slider that you can key, for breathing",
        motion="SCALE",
        driven=False,
        side="FRONT",
        radius=1.5,
        amount=0.08,
    ),
    "FAT": BulgePreset(
        "Fat",
        "On the back of the thigh, where flesh is pressed out when the knee bends",
        angle_start=math.radians(60),
        angle_end=math.radians(140),
        side="BACK",
        place=0.7,
        radius=0.5,
        amount=0.12,
    ),
    "CUSTOM": BulgePreset("Custom", "Anywhere, driven by any bone or by a slider", driven=False),
}
