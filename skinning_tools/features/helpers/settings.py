# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of adding and removing bone links and bulge bones, kept with the armature."""

import math
from typing import Any

import bpy

from ...core.errors import BadSettings
from ...ui.settings import HARD, Settings, angle, choice, count, name, number, switch
from .bulge_presets import PRESETS

KINDS = (
    ("LINKS", "Links", "Bones at a joint that share its turn. Select the joint's child bone", "BONE_DATA", 0),
    ("TWIST", "Twist", "Bones along a forearm that share the hand's twist. Select the forearm", "MOD_SCREW", 1),
)
_PRESETS = tuple((each, one.label, one.description, "NONE", one.number) for each, one in PRESETS.items())
_MOTIONS = (
    ("MOVE", "Move", "The bone moves outward, away from the bone that carries it"),
    ("SCALE", "Scale", "The bone grows from the middle of the limb"),
    ("TURN", "Turn", "The bone turns by a share of the driver bone's angle, about its joint, toward the skin"),
)
_MEASURES = (
    ("BEND", "Bend", "How far the bone swings from its rest direction, regardless of twist"),
    ("TWIST", "Twist", "How far the bone turns about its own length"),
    ("X", "X", "How far the bone turns about its own X axis"),
    ("Z", "Z", "How far the bone turns about its own Z axis"),
    ("RAISE", "Raise", "How far the bone is raised from hanging down, as the character stands at rest"),
    ("ACROSS", "Across", "How far the bone points across the body to its front, from -90° to 90°"),
    ("OUT", "Toward Skin", "How far the bone swings toward the skin of the bulge"),
)
_CENTERS = (
    ("BONE", "Bone", "On the skin beside the bone, at the preset's muscle"),
    ("CURSOR", "3D Cursor", "On the skin next to the 3D cursor"),
)

# Far above what a joint can use; each one is a bone, a constraint and a vertex group.
_MOST_AT_A_JOINT = 100

# Of the shares of a turn: at 1, some bones would take none of it, or all.
_MOST_UNEVEN = 0.9

_joints = name(
    "Joints",
    tip="Child bones of the joints, or bones that twist, separated by commas. If empty, the selected bones",
    flag="--joints",
    metavar="BONE,BONE",
    help="child bones of the joints; for twist bones, the bones that twist",
    optional=True,
    kept=False,
)
_mirror = switch("Mirror", False, tip="Also add bones on the other side, by the bones' names", flag="--mirror")
_mirror_removal = switch("Mirror", False, tip="Also remove the bones on the other side", flag="--mirror")


class LinkSettings(Settings, stored="skinning_joint_helpers", kept_by="armature", one_of=("joints", "all_joints")):
    joints = _joints
    kind = choice("Kind", KINDS, "LINKS", tip="Kind of bones to add", flag="--kind")
    threshold = angle(
        "Threshold",
        math.pi / 3,
        least=math.radians(1),
        most=math.pi,
        tip="Largest turn of a bone without links. Joints whose range is no larger need none",
        flag="--threshold",
    )
    most = count(
        "Most Bones", 3, least=1, most=_MOST_AT_A_JOINT, soft_most=8, tip="Most bones at one joint", flag="--most"
    )
    count = count(
        "Count",
        0,
        least=0,
        most=_MOST_AT_A_JOINT,
        soft_most=8,
        tip="Number of bones at each joint. 0 chooses it by the joint's range: the difference of its limits, or "
        "what it moves through in the animation",
        flag="--count",
        help="number of bones at each joint (default: by its range)",
    )
    reach = number(
        "Reach",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="Blend the weights again up to this distance from the joint. 0 keeps the present blend",
        flag="--reach",
        metavar="DISTANCE",
        help="blend the weights again up to this distance from the joint (default: keep the present blend)",
    )
    spread = number(
        "Spread",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="Distance of the first and the last link from the joint, along parent and child, for a softer bend. "
        "0 places all at the joint",
        flag="--spread",
        metavar="DISTANCE",
        help="distance of the first and the last link from the joint along the limb (default: all at the joint)",
    )
    across = number(
        "Across",
        0.0,
        subtype="DISTANCE",
        tip="Move the links across the limb, toward the inside of the bend: its outside is pushed out, as an elbow or "
        "a knee. Below 0 flattens it",
        flag="--across",
        metavar="DISTANCE",
        help="move the links toward the inside of the bend, so that its outside is pushed out (default: at the joint)",
    )
    bias = number(
        "Bias",
        0.0,
        least=-_MOST_UNEVEN,
        most=_MOST_UNEVEN,
        subtype="FACTOR",
        tip="How the turn is shared: above 0 the links follow the child more, below 0 less, 0 evenly",
        flag="--bias",
        metavar="SHARE",
        help="how the turn is shared: above 0 the bones follow the child more, below 0 less (default: evenly)",
    )
    ease = number(
        "Ease",
        0.0,
        least=0.0,
        most=_MOST_UNEVEN,
        subtype="FACTOR",
        tip="Gather the turn in the middle of the links, and begin and end it softly",
        flag="--ease",
        metavar="SHARE",
        help="gather the turn in the middle of the bones (default: evenly)",
    )
    all_joints = switch(
        "All Joints",
        False,
        tip="Use all joints whose range is larger than the threshold instead of the selected joints",
        flag="--all-joints",
        help="all joints whose range is larger than the threshold",
    )
    mirror = _mirror


class LinkRemovalSettings(Settings, one_of=("joints", "all_joints")):
    joints = _joints
    all_joints = switch("All Joints", False, tip="Remove all of them", flag="--all-joints")
    mirror = _mirror_removal


class BulgeSettings(Settings, stored="skinning_joint_helpers", kept_by="armature"):
    """Settings in ``OF_PRESET`` that are not given come from the preset."""

    bone = name(
        "Bone",
        tip="The bone that carries the bulge, such as the upper arm. If empty, the active bone",
        flag="--bone",
        help="the bone that carries the bulge",
        required=True,
        kept=False,
    )
    preset = choice("Preset", _PRESETS, "BICEPS", tip="Kind of bone to start from", flag="--preset")
    driver_bone = name(
        "Driver Bone",
        tip="The bone whose angle drives the bulge. If empty, the child at the bone's end if the preset is "
        "driven by a joint, otherwise a slider",
        flag="--driver-bone",
        help="the bone whose angle drives the bulge (default: the preset's)",
    )
    motion = choice(
        "Motion",
        _MOTIONS,
        "MOVE",
        tip="How the bulge changes",
        flag="--motion",
        help="how the bulge changes (default: the preset's)",
        optional=True,
    )
    measure = choice(
        "Angle",
        _MEASURES,
        "BEND",
        tip="Angle of the driver bone to measure",
        flag="--measure",
        help="angle of the driver bone to measure (default: the preset's)",
        optional=True,
    )
    angle_start = angle(
        "From",
        PRESETS["BICEPS"].angle_start,
        tip="Angle at which the bulge begins",
        flag="--from",
        dest="angle_start",
        help="angle at which the bulge begins (default: the preset's)",
        optional=True,
    )
    angle_end = angle(
        "To",
        PRESETS["BICEPS"].angle_end,
        tip="Angle at which the bulge is complete",
        flag="--to",
        dest="angle_end",
        help="angle at which the bulge is complete (default: the preset's)",
        optional=True,
    )
    amount = number(
        "Amount",
        0.0,
        soft_min=-1.0,
        soft_max=1.0,
        tip="How far the skin moves, relative to the radius; of Turn, the share of the angle. 0 uses the preset's "
        "value",
        flag="--amount",
        metavar="SHARE",
        help="how far the skin moves, relative to the radius; of turn, the share of the angle (default: the preset's)",
    )
    radius = number(
        "Radius",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="How far the bulge reaches from its center. 0 chooses it by the bone's length",
        flag="--radius",
        metavar="DISTANCE",
        help="how far the bulge reaches from its center (default: by the bone's length)",
    )
    center = choice("Center", _CENTERS, "BONE", tip="Where the bulge is")
    around = angle("Around", 0.0, tip="Turn the center about the bone by this angle", flag="--around")
    along_surface = switch(
        "Along Surface",
        True,
        tip="Measure the radius along the skin, so that the other side of a limb is excluded",
        flag="--through-space",
        help="measure the radius in a straight line, not along the skin",
    )
    mesh = name(
        "Mesh",
        tip="The only mesh that gets weights, such as a skirt. If empty, all that the armature deforms",
        flag="--mesh",
        help="the only mesh that gets weights, such as a skirt (default: all that the armature deforms)",
    )
    mirror = _mirror

    def __init__(self, **given: Any) -> None:
        preset = PRESETS[given.get("preset", self.declared["preset"].default)]
        super().__init__(**{each: getattr(preset, each) for each in OF_PRESET} | given)

    def check(self) -> None:
        """Raise BadSettings if a setting is invalid."""
        if abs(self.angle_end - self.angle_start) < 1e-4:
            raise BadSettings("The bulge begins and ends at the same angle. Set From and To apart")
        if self.motion == "TURN" and self.angle_start > self.angle_end:
            raise BadSettings("The turn ends before it begins. Set To above From, and Amount below 0 to turn back")


class BulgeRemovalSettings(Settings, one_of=("bones", "all_bones")):
    bones = name(
        "Bones",
        tip="Bulge bones, or bones that carry them, separated by commas. If empty, the selected bones",
        flag="--bones",
        metavar="BONE,BONE",
        help="bulge bones, or the bones that carry them",
        optional=True,
    )
    all_bones = switch("All Bones", False, tip="Remove all of them", flag="--all-bones")
    mirror = _mirror_removal


# Settings that the preset decides unless the caller does.
OF_PRESET = tuple(each for each, setting in BulgeSettings.declared.items() if setting.optional)


def _use_preset(self: "SkinningJointHelpers", context: bpy.types.Context) -> None:
    """Show the preset's values; amount and radius stay automatic."""
    for each in OF_PRESET:
        setattr(self, each, getattr(PRESETS[self.preset], each))
    self.amount = self.radius = 0.0


class SkinningJointHelpers(bpy.types.PropertyGroup):
    """Settings of the panel's buttons for an armature."""

    __annotations__ = (
        LinkSettings.group_annotations()
        | BulgeSettings.group_annotations()
        | {"preset": BulgeSettings.declared["preset"].as_property(HARD, update=_use_preset)}
    )


registry = [SkinningJointHelpers]
pointers = {"Object.skinning_joint_helpers": SkinningJointHelpers}
