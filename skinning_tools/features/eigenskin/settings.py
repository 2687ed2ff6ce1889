# SPDX-License-Identifier: GPL-3.0-or-later
"""The EigenSkin data kept with an armature: the list of examples, and the settings of the build."""

import math
from typing import Any

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

from ...blender.character import character_of
from ...blender.job_checks import active_object
from ...blender.skin_reader import armature_of
from ...core.errors import BadSettings
from ...ui.presets import Presets
from ...ui.settings import Setting, Settings, angle, choice, count, name, number, switch

KIND_ITEMS = (
    ("EVALUATED", "This Mesh", "The mesh with all its modifiers", "MOD_ARMATURE", 0),
    ("MESH", "Other Mesh", "Another selected mesh with the same vertices, at its place in the scene", "MESH_DATA", 1),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh, deformed by the present pose", "SHAPEKEY_DATA", 2),
    ("FRAMES", "Frame", "A frame of an animation or a simulation", "TIME", 3),
)
SAMPLINGS = (
    ("AXES", "Axes", "Poses about one axis after the other"),
    ("BALL", "Ball", "Poses about axes in all directions, for a joint that turns in all directions"),
)
DIRECTIONS = (
    ("LEFT_TO_RIGHT", "Left to Right", "Make examples of the right side from those of the left side"),
    ("RIGHT_TO_LEFT", "Right to Left", "Make examples of the left side from those of the right side"),
)


class BuildSettings(Settings, stored="skinning_eigenskin", kept_by="armature"):
    components = count(
        "Components",
        0,
        least=0,
        soft_most=10,
        tip="Number of shape keys for each joint. 0: three for a hinge, ten for a joint that turns in all directions",
        flag="--components",
        help="shape keys for each joint (default: three for a hinge, ten for a joint that turns in all directions)",
    )
    support_threshold = number(
        "Threshold",
        0.04,
        least=0.0,
        soft_max=0.5,
        precision=3,
        step=1,
        tip="A joint corrects the vertices that are displaced by more than this fraction of its largest displacement. "
        "Smaller values correct more of the mesh",
        flag="--support-threshold",
        metavar="S",
        help="fraction of a joint's largest displacement above which vertices are corrected",
    )
    max_per_vertex = count(
        "Max per Vertex",
        30,
        least=1,
        soft_most=50,
        tip="Most shape keys that may move one vertex. Joints with little effect there are left out",
        flag="--max-per-vertex",
        help="most shape keys that may move one vertex",
    )
    radius = angle(
        "Radius",
        0.0,
        least=0.0,
        soft_max=math.pi,
        tip="Angle over which an example's influence fades. 0: 115°, which suits smooth shapes; folds need less",
        flag="--radius",
        help="of the interpolation (default: 115°)",
    )
    budget = count(
        "Budget",
        0,
        least=0,
        soft_most=200,
        tip="Total number of shape keys, given to the joints that need them most. 0 gives each joint Components",
        flag="--budget",
        help="total number of shape keys, given to the joints that need them most (default: --components for each "
        "joint)",
    )
    basis_functions = count(
        "Basis Functions",
        0,
        least=0,
        soft_most=50,
        tip="Most basis functions of a joint, those of the examples that are worth most. Fewer make fewer or shorter "
        "drivers, and do not follow noise in many examples. 0: one for each example",
        flag="--basis-functions",
        help="most basis functions of a joint, those of the examples that are worth most (default: one for each)",
    )
    joint_pairs = count(
        "Joint Pairs",
        0,
        least=0,
        soft_most=20,
        tip="Most pairs of joints, such as shoulder and clavicle or elbow and wrist, that get corrections for their "
        "combined poses, found by what single joints leave over",
        flag="--joint-pairs",
    )
    half_rotation = switch(
        "Half-Rotation Bones",
        False,
        tip="Add a bone under the corrections of each joint that takes half of its rotation, with weights of this mesh "
        "from both sides. Less is left to correct, so that fewer shape keys are enough",
        flag="--half-rotation",
        help="add a bone to each joint that takes half of its rotation, with weights from both sides; fewer shape keys "
        "are enough then",
    )
    normals = switch(
        "Normals",
        False,
        tip="Also correct the normals, with components and values of their own, stored as attributes for engines",
        flag="--normals",
    )
    show_normals = switch(
        "Show Normals",
        False,
        tip="Show the corrected normals in the viewport and in renders, too, by two modifiers. Blender's own normals "
        "follow the corrected surface, and are often closer with few components",
        flag="--show-normals",
        help="show the corrected normals in Blender, too (4.5 and newer)",
    )


def _of_armature(context: bpy.types.Context) -> bpy.types.PropertyGroup:
    armature = armature_of(character_of(context, active_object(context)))
    assert armature is not None, "character_of refuses meshes that no armature deforms"
    return armature.skinning_eigenskin


PRESETS = Presets(
    "eigenskin",
    "eigenskin",
    BuildSettings,
    _of_armature,
    "bpy.context.object.skinning_eigenskin",
)


class AddSettings(Settings):
    source = choice(
        "Shape", [item for item in KIND_ITEMS if item[0] != "FRAMES"], "EVALUATED", tip="Source of the correct shape"
    )
    shape_key = name("Shape Key", tip="The shape key to use. If empty, the active shape key")
    name = name("Name", tip="The example's name. If empty, the name of the posed joint")


class EstimateSettings(Settings, stored="skinning_eigenskin", kept_by="armature"):
    radius = BuildSettings.radius
    basis_functions = BuildSettings.basis_functions


class FrameSettings(Settings, stored="skinning_eigenskin", kept_by="armature", frames="read"):
    use_markers = switch(
        "Only Marked Poses",
        True,
        tip="Read only the frames marked by Pose Joints, if there are any",
        flag="--all-frames",
        help="read all frames of the range, not only those marked by Pose Joints",
    )


class CommandSettings(BuildSettings, frames="read"):
    """The settings of the subcommand, which also reads the examples."""

    examples_from = name(
        "Examples From",
        tip="First read examples from this object, frame by frame: another mesh with the same vertices, or the mesh "
        "itself with all its modifiers (default: use the examples in the file)",
        flag="--examples-from",
        optional=True,
    )
    use_markers = FrameSettings.use_markers


class BakeSettings(Settings, frames="key"):
    """The frames to key; by default the scene's range."""


class TableSettings(Settings):
    y_up = switch("+Y Up", True, tip="Convert the corrections to glTF's axes, like the exporter's option of that name")


class ExampleSettings(Settings):
    index = count("Index", -1, soft_most=None, tip="Index in the list, -1 for the active example")


class RemovalSettings(ExampleSettings):
    remove_all = switch("All", False, tip="Remove all examples of the list")


class MirrorSettings(Settings):
    remembered = True

    direction = choice("Direction", DIRECTIONS, "LEFT_TO_RIGHT", tip="Direction of mirroring, by the names of bones")


class PoseRange(Settings):
    """The range and timing of the joints' poses."""

    remembered = True

    axes: Any = Setting(
        "BoolVector",
        "Axes",
        "Local axes of the bone to turn about. Axes with locked rotation are skipped",
        (True, False, False),
        more={"size": 3, "subtype": "XYZ"},
    )
    sampling = choice("Sampling", SAMPLINGS, "AXES", tip="Rotations to pose")
    angle_min = angle("From", -math.pi / 2, tip="Smallest angle")
    angle_max = angle("To", math.pi / 2, tip="Largest angle. With Ball, in each direction")
    use_limits = switch(
        "Use Limits",
        False,
        tip="Use the angles of a bone's Limit Rotation constraint or IK limits instead, if it has them",
    )
    steps = count("Steps", 3, least=1, soft_most=10, tip="Number of poses from rest to each end of the range")
    frames_per_pose = count(
        "Frames per Pose", 10, least=1, soft_most=100, tip="Number of frames from one pose to the next"
    )
    hold_frames = count(
        "Hold", 0, least=0, soft_most=100, tip="Number of frames to hold each pose, so that a simulation settles"
    )
    frame_start = count("Frame Start", 1, soft_most=None, tip="First frame, in the rest pose")
    count = count(
        "Poses",
        24,
        least=2,
        soft_most=60,
        tip="With Ball, number of poses of each joint that turns about more than one axis",
    )

    def check(self) -> None:
        """Raise BadSettings if a setting is invalid."""
        if not any(self.axes):
            raise BadSettings("No axis is chosen. Choose the axes about which the bones turn")
        if self.sampling == "BALL":
            if not 0 < self.angle_max < math.pi:
                raise BadSettings(
                    f"A ball joint can turn by less than 180° from rest, not by {math.degrees(self.angle_max):g}°. "
                    "Choose another largest angle"
                )
        elif self.angle_max < self.angle_min:
            raise BadSettings(
                f"The lowest angle, {math.degrees(self.angle_min):g}°, is above the highest, "
                f"{math.degrees(self.angle_max):g}°. Choose a lower one"
            )


class SkinningEigenskinExample(bpy.types.PropertyGroup):
    """A pose with its correct shape. The arrays are in the mesh ``storage``, see features.eigenskin.examples."""

    __annotations__ = {
        "uid": StringProperty(name="Identifier", description="Identifier of the stored data"),
        "mesh": PointerProperty(name="Mesh", description="The mesh of the shape", type=bpy.types.Object),
        "storage": PointerProperty(name="Storage", description="Data-block that stores the shape", type=bpy.types.Mesh),
        "kind": EnumProperty(name="Kind", description="Source of the shape", items=KIND_ITEMS),
        "frame": IntProperty(name="Frame", description="The frame at which the example was read"),
        "enabled": BoolProperty(
            name="Enabled", description="Use the example for building the corrections", default=True
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
            name="Worst Distance", description="Distance of the worst vertex from the shape", subtype="DISTANCE"
        ),
    }


class SkinningEigenskin(bpy.types.PropertyGroup):
    """The examples of an armature, and the settings of its corrections."""

    __annotations__ = {
        **BuildSettings.group_annotations(),
        "examples": CollectionProperty(type=SkinningEigenskinExample),
        "active_index": IntProperty(name="Active Example"),
        **FrameSettings.group_annotations(),
    }


registry = [SkinningEigenskinExample, SkinningEigenskin]
pointers = {"Object.skinning_eigenskin": SkinningEigenskin}
