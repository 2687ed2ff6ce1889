# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets for muscles, fat, breathing, the shoulder girdle and cloth, sized relative to the character's bones."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class GirdlePart:
    """Where a bone of the shoulder girdle is: from the inner end of the clavicle, 0, to the arm's joint, 1, it turns
    about ``pivot``; its skin is met from ``place``, raised by ``lift`` × that distance, in a direction that has the
    components ``up`` and ``front``."""

    pivot: float
    place: float
    lift: float
    up: float
    front: float


@dataclass(frozen=True)
class BulgePreset:
    """number: stored in files, so it never changes. A new preset takes the next one.

    motion: 'MOVE', 'SCALE' or 'TURN'. measure: the angle of the driver bone, from angle_start to angle_end, in
    radians.

    driven: True to use the bone's child as the default driver, False to use a slider. side: of the bone, 'INSIDE' of
    the driver bone's bend, 'FRONT' or 'BACK' of the character. place: along the bone, 0 … 1. toward: from there to the
    driver bone's head, 0 … 1. radius: relative to the bone's length or, if toward is above 0, to the distance of the
    driver bone. amount: relative to the radius, or the share of a turn.

    beside_driver: place and radius are relative to the limb of the driver bone, which cloth drapes. girdle: of a bone
    of the shoulder girdle, whose radius is relative to the distance there; reach: the share of the arm's reach across
    the body by which such a bone turns forward. word: in the helper's name.
    """

    number: int
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
    beside_driver: bool = False
    girdle: GirdlePart | None = None
    reach: float = 0.0
    word: str = "bulge"

    @property
    def child_drives(self) -> bool:
        """Whether the child at the bone's end is the driver unless another is named."""
        return self.driven and self.motion != "TURN" and not self.toward


PRESETS = {
    "BICEPS": BulgePreset(0, "Biceps", "On the upper arm, when the elbow bends"),
    "CHEST": BulgePreset(
        1,
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
        2,
        "Belly",
        "On the belly, driven by a slider that you can key, for breathing",
        driven=False,
        side="FRONT",
        radius=1.2,
        amount=0.15,
    ),
    "CALF": BulgePreset(
        3,
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
        5,
        "Breathing Chest",
        "On the chest, which grows with a slider that you can key, for breathing",
        motion="SCALE",
        driven=False,
        side="FRONT",
        radius=1.5,
        amount=0.08,
    ),
    "FAT": BulgePreset(
        6,
        "Fat",
        "On the back of the thigh, where flesh is pressed out when the knee bends",
        angle_start=math.radians(60),
        angle_end=math.radians(140),
        side="BACK",
        place=0.7,
        radius=0.5,
        amount=0.12,
    ),
    # Of the arm's elevation beyond 30°, the shoulder girdle takes a third (scapulohumeral rhythm: Inman, Saunders and
    # Abbott 1944). The rig's own joint stays where it is, so that both bones follow the girdle as a whole.
    "CLAVICLE": BulgePreset(
        7,
        "Clavicle",
        "On top of the shoulder, which rises as the arm is raised and goes forward as it reaches across the body. "
        "Choose the chest as the bone, and the upper arm as the driver bone",
        motion="TURN",
        measure="RAISE",
        angle_start=math.radians(30),
        angle_end=math.radians(180),
        girdle=GirdlePart(pivot=0.0, place=0.8, lift=0.0, up=1.0, front=1.0),
        radius=1.45,
        amount=1 / 3,
        reach=0.25,
        word="clavicle",
    ),
    "SCAPULA": BulgePreset(
        8,
        "Scapula",
        "On the shoulder blade, whose lower corner swings out as the arm is raised, and whose inner edge lifts off as "
        "it reaches across the body. Choose the chest as the bone, and the upper arm as the driver bone",
        motion="TURN",
        measure="RAISE",
        angle_start=math.radians(30),
        angle_end=math.radians(180),
        girdle=GirdlePart(pivot=1.0, place=0.7, lift=-0.13, up=0.0, front=-1.0),
        radius=1.45,
        amount=1 / 3,
        # More would lift it off too far.
        reach=0.15,
        word="scapula",
    ),
    "CLOTH": BulgePreset(
        9,
        "Cloth",
        "On a skirt or a coat, which a leg pushes out and which hangs otherwise. Choose the hips as the bone, the "
        "thigh as the driver bone, and the garment as the mesh",
        motion="TURN",
        measure="OUT",
        angle_start=math.radians(5),
        angle_end=math.radians(150),
        side="FRONT",
        place=0.9,
        radius=0.7,
        amount=1.0,
        beside_driver=True,
        word="cloth",
    ),
    "CUSTOM": BulgePreset(4, "Custom", "Anywhere, driven by any bone or by a slider", driven=False),
}
