# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature keeps of how its bone links and bulge bones are added.

An operator takes from here what its caller did not give when it is invoked from the interface; from Python only the
arguments and the defaults below count.
"""

import math

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty, StringProperty

from .bulge_presets import PRESETS

LINK_NAMES = ("kind", "threshold", "most", "count", "reach", "mirror", "all_joints")
BULGE_NAMES = (
    "preset",
    "driver_bone",
    "motion",
    "measure",
    "angle_start",
    "angle_end",
    "amount",
    "radius",
    "center",
    "around",
    "along_surface",
    "mirror",
)

KIND_ITEMS = (
    ("LINKS", "Links", "Bones at a joint that share its turn. Select the joint's child bone", "BONE_DATA", 0),
    ("TWIST", "Twist", "Bones along a forearm that share the hand's twist. Select the forearm", "MOD_SCREW", 1),
)
PRESET_ITEMS = tuple((name, preset.label, preset.description) for name, preset in PRESETS.items())
MOTION_ITEMS = (
    ("MOVE", "Move", "The bone moves outward, away from the bone that carries it"),
    ("SCALE", "Scale", "The bone grows from the middle of the limb"),
)
MEASURE_ITEMS = (
    ("BEND", "Bend", "How far the bone is swung out of its rest direction, whatever its twist"),
    ("TWIST", "Twist", "How far it is turned about itself"),
    ("X", "X", "How far it is turned about its own X axis"),
    ("Z", "Z", "How far it is turned about its own Z axis"),
)
CENTER_ITEMS = (
    ("BONE", "Bone", "On the skin beside the bone, where the preset has the muscle"),
    ("CURSOR", "3D Cursor", "On the skin next to the 3D cursor"),
)


def link_annotations(limit: str) -> dict:
    """The properties of links. limit: "min" for the panel, "soft_min" for the operator, which refuses with a text."""
    return {
        "kind": EnumProperty(name="Kind", description="What to add", items=KIND_ITEMS, options={"SKIP_SAVE"}),
        "threshold": FloatProperty(
            name="Threshold",
            description="Joints that turn by no more than this need no links",
            default=math.pi / 3,
            soft_max=math.pi,
            subtype="ANGLE",
            options={"SKIP_SAVE"},
            **{limit: math.radians(1)},
        ),
        "most": IntProperty(
            name="Most Bones",
            description="Most bones at one joint",
            default=3,
            soft_max=8,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "count": IntProperty(
            name="Count",
            description="Bones at each joint. 0 takes as many as the joint's limits, or the animation, ask for",
            default=0,
            soft_max=8,
            options={"SKIP_SAVE"},
            **{limit: 0},
        ),
        "reach": FloatProperty(
            name="Reach",
            description="Blend the weights anew up to this distance from the joint. 0 keeps the blend that is there",
            default=0.0,
            subtype="DISTANCE",
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "all_joints": BoolProperty(
            name="All Joints",
            description="Not the selected joints, but all that turn by more than the threshold",
            default=False,
            options={"SKIP_SAVE"},
        ),
    }


def mirror_annotations() -> dict:
    return {
        "mirror": BoolProperty(
            name="Mirror",
            description="Do the same on the other side, by the bones' names",
            default=False,
            options={"SKIP_SAVE"},
        )
    }


def bulge_annotations(limit: str) -> dict:
    """The properties of a bulge bone; what is not set comes from the preset. limit: as in ``link_annotations``."""
    biceps = PRESETS["BICEPS"]
    return {
        "preset": EnumProperty(
            name="Preset", description="Which muscle", items=PRESET_ITEMS, default="BICEPS", options={"SKIP_SAVE"}
        ),
        "driver_bone": StringProperty(
            name="Driver Bone",
            description="The bone whose angle makes the bulge. Empty stands for the child at the bone's end where the "
            "preset is driven by a joint, and otherwise for a slider",
            options={"SKIP_SAVE"},
        ),
        "motion": EnumProperty(
            name="Motion", description="What the bulge does", items=MOTION_ITEMS, options={"SKIP_SAVE"}
        ),
        "measure": EnumProperty(
            name="Angle", description="What is measured", items=MEASURE_ITEMS, options={"SKIP_SAVE"}
        ),
        "angle_start": FloatProperty(
            name="From",
            description="Angle at which the bulge begins",
            default=biceps.angle_start,
            subtype="ANGLE",
            options={"SKIP_SAVE"},
        ),
        "angle_end": FloatProperty(
            name="To",
            description="Angle at which it is full",
            default=biceps.angle_end,
            subtype="ANGLE",
            options={"SKIP_SAVE"},
        ),
        "amount": FloatProperty(
            name="Amount",
            description="How far the skin moves, as a share of the radius. 0 takes the preset's",
            default=0.0,
            soft_min=-1.0,
            soft_max=1.0,
            options={"SKIP_SAVE"},
        ),
        "radius": FloatProperty(
            name="Radius",
            description="How far from its center the bulge reaches. 0 takes it from the bone's length",
            default=0.0,
            subtype="DISTANCE",
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "center": EnumProperty(
            name="Center", description="Where the bulge is", items=CENTER_ITEMS, options={"SKIP_SAVE"}
        ),
        "around": FloatProperty(
            name="Around",
            description="Turn the center about the bone by this angle",
            default=0.0,
            subtype="ANGLE",
            options={"SKIP_SAVE"},
        ),
        "along_surface": BoolProperty(
            name="Along Surface",
            description="Measure the radius over the skin, so that the other side of a limb stays out",
            default=True,
            options={"SKIP_SAVE"},
        ),
    }


def _use_preset(self, context) -> None:
    """Show what the preset stands for; amount and radius stay automatic."""
    preset = PRESETS[self.preset]
    self.motion, self.measure = preset.motion, preset.measure
    self.angle_start, self.angle_end = preset.angle_start, preset.angle_end
    self.amount = self.radius = 0.0


class SkinningJointHelpers(bpy.types.PropertyGroup):
    """How links and bulge bones of an armature are added from the panel."""

    __annotations__ = (
        link_annotations("min")
        | mirror_annotations()
        | bulge_annotations("min")
        | {
            "preset": EnumProperty(
                name="Preset", description="Which muscle", items=PRESET_ITEMS, default="BICEPS", update=_use_preset
            )
        }
    )


registry = [SkinningJointHelpers]


def register() -> None:
    bpy.types.Object.skinning_joint_helpers = PointerProperty(type=SkinningJointHelpers)


def unregister() -> None:
    del bpy.types.Object.skinning_joint_helpers
