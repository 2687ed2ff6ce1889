# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature keeps of its EigenSkin: the list of examples, and how the corrections are built from them."""

import math

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...core.errors import BadSettings
from ...ui.settings import Setting, Settings, angle, choice, count, name, number, switch

KIND_ITEMS = (
    ("EVALUATED", "This Mesh", "The mesh as all its modifiers show it", "MOD_ARMATURE", 0),
    ("MESH", "Other Mesh", "Another selected mesh with the same vertices, where it is in the scene", "MESH_DATA", 1),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh, moved by the bones as they are", "SHAPEKEY_DATA", 2),
    ("FRAMES", "Frame", "A frame of an animation or a simulation", "TIME", 3),
)
DIRECTIONS = (
    ("LEFT_TO_RIGHT", "Left to Right", "Make examples of the right side from those of the left side"),
    ("RIGHT_TO_LEFT", "Right to Left", "Make examples of the left side from those of the right side"),
)


class BuildSettings(Settings, stored="skinning_eigenskin"):
    components = count(
        "Components",
        3,
        least=1,
        soft_most=10,
        tip="Shape keys for each joint. More come closer to the examples",
        flag="--components",
        help="shape keys for each joint",
    )
    support_threshold = number(
        "Threshold",
        0.04,
        least=0.0,
        soft_max=0.5,
        precision=3,
        step=1,
        tip="A joint corrects the vertices that are displaced by more than this share of its largest displacement. "
        "Smaller corrects more of the mesh",
        flag="--support-threshold",
        metavar="S",
        help="share of a joint's largest displacement from which on vertices are corrected",
    )
    max_per_vertex = count(
        "Max per Vertex",
        10,
        least=1,
        soft_most=50,
        tip="Most shape keys that may move one vertex. Joints that do little there give way",
        flag="--max-per-vertex",
        help="most shape keys that may move one vertex",
    )
    radius = angle(
        "Radius",
        0.0,
        least=0.0,
        soft_max=math.pi,
        tip="Angle over which an example's influence fades. 0 chooses it for each joint",
        flag="--radius",
        help="of the interpolation (default: automatic)",
    )
    budget = count(
        "Budget",
        0,
        least=0,
        soft_most=200,
        tip="Shape keys in all, given to the joints that need them most. 0 gives each joint Components",
        flag="--budget",
        help="shape keys in all, to the joints that need them most (default: --components for each joint)",
    )
    joint_pairs = count(
        "Joint Pairs",
        0,
        least=0,
        soft_most=20,
        tip="Most pairs of joints, such as shoulder and clavicle, that get corrections for acting together",
        flag="--joint-pairs",
    )
    normals = switch(
        "Normals",
        False,
        tip="Store corrections of the normals too, as attributes for engines that play shape keys",
        flag="--normals",
    )


class FrameSettings(Settings, stored="skinning_eigenskin", frames="read"):
    use_markers = switch(
        "Only Marked Poses",
        True,
        tip="Read only the frames that Pose Joints has marked, where there are any",
        flag="--all-frames",
        help="read all frames of the range, not only those that Pose Joints has marked, where there are any",
    )


class CommandSettings(BuildSettings, frames="read"):
    """Of the subcommand, which reads the examples as well."""

    examples_from = name(
        "Examples From",
        tip="First read examples from this object, frame by frame: another mesh with the same vertices, or the mesh "
        "itself with all its modifiers (default: use the examples that the file has)",
        flag="--examples-from",
        optional=True,
    )
    use_markers = FrameSettings.use_markers


class BakeSettings(Settings, frames="key"):
    """The scene's range where nothing else is said."""


class ExampleSettings(Settings):
    index = count("Index", -1, soft_most=None, tip="Place in the list, -1 for the active example")


class RemovalSettings(ExampleSettings):
    remove_all = switch("All", False, tip="Remove all examples of the list")


class MirrorSettings(Settings):
    remembered = True

    direction = choice("Direction", DIRECTIONS, "LEFT_TO_RIGHT", tip="From which side to which, by the names of bones")


class PoseRange(Settings):
    """How far joints turn and how fast."""

    remembered = True

    axes = Setting(
        "BoolVector",
        "Axes",
        "Axes of the bone's own space to turn about. Axes whose rotation is locked are left out",
        (True, False, False),
        more={"size": 3, "subtype": "XYZ"},
    )
    angle_min = angle("From", -math.pi / 2, tip="Smallest angle")
    angle_max = angle("To", math.pi / 2, tip="Largest angle")
    use_limits = switch(
        "Use Limits",
        False,
        tip="Where a bone has a Limit Rotation constraint or limits for IK, turn it so far instead",
    )
    steps = count("Steps", 3, least=1, soft_most=10, tip="Poses from rest to each end of the range")
    frames_per_pose = count("Frames per Pose", 10, least=1, soft_most=100, tip="Frames from one pose to the next")
    hold_frames = count(
        "Hold", 0, least=0, soft_most=100, tip="Frames that each pose is held, so that a simulation settles"
    )
    frame_start = count("Frame Start", 1, soft_most=None, tip="First frame, in the rest pose")

    def check(self) -> None:
        """Raises BadSettings."""
        if not any(self.axes):
            raise BadSettings("No axis is chosen. Choose the axes about which the bones are to turn")
        if self.angle_max < self.angle_min:
            raise BadSettings(
                f"The range is inside out: from {math.degrees(self.angle_min):g}° to {math.degrees(self.angle_max):g}°"
            )
        for label, value in (("Steps", self.steps), ("Frames per Pose", self.frames_per_pose)):
            if value < 1:
                raise BadSettings(f"{label} must be at least 1, not {value}")
        if self.hold_frames < 0:
            raise BadSettings(f"The frames to hold a pose must not be negative, not {self.hold_frames}")


class SkinningEigenskinExample(bpy.types.PropertyGroup):
    """A pose with its right shape. The arrays are in the mesh ``storage``, see features.eigenskin.examples."""

    __annotations__ = {
        "uid": StringProperty(name="Identifier", description="What its data is stored under"),
        "mesh": PointerProperty(name="Mesh", description="The mesh that the shape is of", type=bpy.types.Object),
        "storage": PointerProperty(name="Storage", description="Holds the shape", type=bpy.types.Mesh),
        "kind": EnumProperty(name="Kind", description="Where the shape came from", items=KIND_ITEMS),
        "frame": IntProperty(name="Frame", description="The frame that the example was read at"),
        "enabled": BoolProperty(
            name="Enabled", description="Use the example when the corrections are built", default=True
        ),
        "error_before": FloatProperty(
            name="Error Before",
            description="Root mean square distance of plain linear blending from the shape",
            subtype="DISTANCE",
        ),
        "error_after": FloatProperty(
            name="Error After",
            description="Root mean square distance of the corrected mesh from the shape",
            subtype="DISTANCE",
        ),
        "worst_vertex": IntProperty(
            name="Worst Vertex", description="The vertex that is farthest from the shape", default=-1
        ),
        "worst_distance": FloatProperty(
            name="Worst Distance", description="How far the worst vertex is from the shape", subtype="DISTANCE"
        ),
    }


class SkinningEigenskin(bpy.types.PropertyGroup):
    """The examples of an armature, and how its corrections are built."""

    __annotations__ = {
        **BuildSettings.group_annotations(),
        "examples": CollectionProperty(type=SkinningEigenskinExample),
        "active_index": IntProperty(name="Active Example"),
        **FrameSettings.group_annotations(),
    }


registry = [SkinningEigenskinExample, SkinningEigenskin]


def register() -> None:
    bpy.types.Object.skinning_eigenskin = PointerProperty(type=SkinningEigenskin)


def unregister() -> None:
    del bpy.types.Object.skinning_eigenskin
