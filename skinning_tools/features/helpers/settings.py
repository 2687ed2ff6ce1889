# SPDX-License-Identifier: GPL-3.0-or-later
"""How bone links and bulge bones are added to an armature, which keeps it, and removed."""

import math

import bpy
from bpy.props import PointerProperty

from ...core.errors import BadSettings
from ...ui.settings import HARD, Settings, angle, choice, count, name, number, switch
from .bulge_presets import PRESETS

KINDS = (
    ("LINKS", "Links", "Bones at a joint that share its turn. Select the joint's child bone", "BONE_DATA", 0),
    ("TWIST", "Twist", "Bones along a forearm that share the hand's twist. Select the forearm", "MOD_SCREW", 1),
)
_PRESETS = tuple((each, preset.label, preset.description) for each, preset in PRESETS.items())
_MOTIONS = (
    ("MOVE", "Move", "The bone moves outward, away from the bone that carries it"),
    ("SCALE", "Scale", "The bone grows from the middle of the limb"),
)
_MEASURES = (
    ("BEND", "Bend", "How far the bone is swung out of its rest direction, whatever its twist"),
    ("TWIST", "Twist", "How far it is turned about itself"),
    ("X", "X", "How far it is turned about its own X axis"),
    ("Z", "Z", "How far it is turned about its own Z axis"),
)
_CENTERS = (
    ("BONE", "Bone", "On the skin beside the bone, where the preset has the muscle"),
    ("CURSOR", "3D Cursor", "On the skin next to the 3D cursor"),
)

# Far above what a joint can use; each one is a bone, a constraint and a vertex group.
_MOST_AT_A_JOINT = 100

_joints = name(
    "Joints",
    tip="Child bones of the joints, or bones that twist, separated by commas. Empty stands for the selected ones",
    flag="--joints",
    metavar="BONE,BONE",
    help="child bones of the joints; of twist bones, the bones that twist",
    optional=True,
    kept=False,
)
_mirror = switch("Mirror", False, tip="Do the same on the other side, by the bones' names", flag="--mirror")
_mirror_removal = switch("Mirror", False, tip="Remove those of the other side, too", flag="--mirror")


class LinkSettings(Settings, stored="skinning_joint_helpers", one_of=("joints", "all_joints")):
    joints = _joints
    kind = choice("Kind", KINDS, "LINKS", tip="What to add", flag="--kind")
    threshold = angle(
        "Threshold",
        math.pi / 3,
        least=math.radians(1),
        soft_max=math.pi,
        tip="Joints that turn by no more than this need no links",
        flag="--threshold",
    )
    most = count("Most Bones", 3, least=1, soft_most=8, tip="Most bones at one joint", flag="--most")
    count = count(
        "Count",
        0,
        least=0,
        soft_most=8,
        tip="Bones at each joint. 0 takes as many as the joint's limits, or the animation, ask for",
        flag="--count",
        help="so many at each joint (default: as its range asks for)",
    )
    reach = number(
        "Reach",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="Blend the weights anew up to this distance from the joint. 0 keeps the blend that is there",
        flag="--reach",
        metavar="DISTANCE",
        help="blend the weights anew up to here from the joint (default: keep the blend that is there)",
    )
    all_joints = switch(
        "All Joints",
        False,
        tip="Not the selected joints, but all that turn by more than the threshold",
        flag="--all-joints",
        help="all joints that turn by more than the threshold",
    )
    mirror = _mirror

    def check(self) -> None:
        """Raises BadSettings."""
        if not 0 < self.threshold <= math.pi:
            raise BadSettings(f"The threshold must be above 0° and at most 180°, not {math.degrees(self.threshold):g}°")
        for label, value, least in (("Most Bones", self.most, 1), ("Count", self.count, 0)):
            if not least <= value <= _MOST_AT_A_JOINT:
                raise BadSettings(f"{label} must be from {least} to {_MOST_AT_A_JOINT}, not {value}")
        if not (self.reach >= 0 and math.isfinite(self.reach)):
            raise BadSettings(f"The reach must not be negative, not {self.reach:g}")


class LinkRemovalSettings(Settings, one_of=("joints", "all_joints")):
    joints = _joints
    all_joints = switch(
        "All Joints", False, tip="Remove all that there are", flag="--all-joints", help="all that there are"
    )
    mirror = _mirror_removal


class BulgeSettings(Settings, stored="skinning_joint_helpers"):
    """``OF_PRESET``, where they are not given, are the preset's."""

    bone = name(
        "Bone",
        tip="The bone that carries the bulge, such as the upper arm. Empty stands for the active one",
        flag="--bone",
        help="the bone that carries the bulge",
        required=True,
        kept=False,
    )
    preset = choice("Preset", _PRESETS, "BICEPS", tip="Which muscle", flag="--preset")
    driver_bone = name(
        "Driver Bone",
        tip="The bone whose angle makes the bulge. Empty stands for the child at the bone's end where the preset is "
        "driven by a joint, and otherwise for a slider",
        flag="--driver-bone",
        help="the bone whose angle counts (default: the preset's)",
    )
    motion = choice(
        "Motion",
        _MOTIONS,
        "MOVE",
        tip="What the bulge does",
        flag="--motion",
        help="what the bulge does (default: the preset's)",
        optional=True,
    )
    measure = choice(
        "Angle",
        _MEASURES,
        "BEND",
        tip="What is measured",
        flag="--measure",
        help="what angle of the driver bone counts (default: the preset's)",
        optional=True,
    )
    angle_start = angle(
        "From",
        PRESETS["BICEPS"].angle_start,
        tip="Angle at which the bulge begins",
        flag="--from",
        dest="angle_start",
        help="where it begins (default: the preset's)",
        optional=True,
    )
    angle_end = angle(
        "To",
        PRESETS["BICEPS"].angle_end,
        tip="Angle at which it is full",
        flag="--to",
        dest="angle_end",
        help="where it is full (default: the preset's)",
        optional=True,
    )
    amount = number(
        "Amount",
        0.0,
        soft_min=-1.0,
        soft_max=1.0,
        tip="How far the skin moves, as a share of the radius. 0 takes the preset's",
        flag="--amount",
        metavar="SHARE",
        help="how far the skin moves, as a share of the radius (default: the preset's)",
    )
    radius = number(
        "Radius",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="How far from its center the bulge reaches. 0 takes it from the bone's length",
        flag="--radius",
        metavar="DISTANCE",
        help="how far it reaches (default: by the bone's length)",
    )
    center = choice("Center", _CENTERS, "BONE", tip="Where the bulge is")
    around = angle("Around", 0.0, tip="Turn the center about the bone by this angle", flag="--around")
    along_surface = switch(
        "Along Surface",
        True,
        tip="Measure the radius over the skin, so that the other side of a limb stays out",
        flag="--through-space",
        help="measure the radius straight, not over the skin",
    )
    mirror = _mirror

    def __init__(self, **given):
        preset = PRESETS[given.get("preset", self.declared["preset"].default)]
        super().__init__(**{each: getattr(preset, each) for each in OF_PRESET} | given)

    def check(self) -> None:
        """Raises BadSettings."""
        if abs(self.angle_end - self.angle_start) < 1e-4:
            raise BadSettings("The bulge begins and ends at the same angle. Set From and To apart")
        if not (self.radius >= 0 and math.isfinite(self.radius)):
            raise BadSettings(f"The radius must not be negative, not {self.radius:g}")


class BulgeRemovalSettings(Settings, one_of=("bones", "all_bones")):
    bones = name(
        "Bones",
        tip="Bulge bones, or bones that carry them, separated by commas. Empty stands for the selected ones",
        flag="--bones",
        metavar="BONE,BONE",
        help="bulge bones, or the bones that carry them",
        optional=True,
    )
    all_bones = switch(
        "All Bones", False, tip="Remove all that there are", flag="--all-bones", help="all that there are"
    )
    mirror = _mirror_removal


# What a preset decides where the caller does not.
OF_PRESET = tuple(each for each, setting in BulgeSettings.declared.items() if setting.optional)


def _use_preset(self, context) -> None:
    """Show what the preset stands for; amount and radius stay automatic."""
    for each in OF_PRESET:
        setattr(self, each, getattr(PRESETS[self.preset], each))
    self.amount = self.radius = 0.0


class SkinningJointHelpers(bpy.types.PropertyGroup):
    """How links and bulge bones of an armature are added from the panel."""

    __annotations__ = (
        LinkSettings.group_annotations()
        | BulgeSettings.group_annotations()
        | {"preset": BulgeSettings.declared["preset"].as_property(HARD, update=_use_preset)}
    )


registry = [SkinningJointHelpers]


def register() -> None:
    bpy.types.Object.skinning_joint_helpers = PointerProperty(type=SkinningJointHelpers)


def unregister() -> None:
    del bpy.types.Object.skinning_joint_helpers
