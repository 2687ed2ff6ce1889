# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature keeps of its EigenSkin: the list of examples, and how the corrections are built from them.

As with the settings of a conversion, an operator takes from here what its caller did not give when it is invoked from
the interface; from Python only the arguments and the defaults below count.
"""

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

from ...ui.common_settings import frame_annotations, scene_range_property

SETTING_NAMES = (
    "components",
    "support_threshold",
    "max_per_vertex",
    "radius",
    "budget",
    "joint_pairs",
    "normals",
)

KIND_ITEMS = (
    ("EVALUATED", "This Mesh", "The mesh as all its modifiers show it", "MOD_ARMATURE", 0),
    ("MESH", "Other Mesh", "Another selected mesh with the same vertices, where it is in the scene", "MESH_DATA", 1),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh, moved by the bones as they are", "SHAPEKEY_DATA", 2),
    ("FRAMES", "Frame", "A frame of an animation or a simulation", "TIME", 3),
)


def setting_annotations(limit: str) -> dict:
    """The build's properties. limit: "min" for the panel, "soft_min" for the operator, which refuses with a message."""
    return {
        "components": IntProperty(
            name="Components",
            description="Shape keys for each joint. More come closer to the examples",
            default=3,
            soft_max=10,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "support_threshold": FloatProperty(
            name="Threshold",
            description="A joint corrects the vertices that are displaced by more than this share of its largest "
            "displacement. Smaller corrects more of the mesh",
            default=0.04,
            soft_max=0.5,
            precision=3,
            step=1,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "max_per_vertex": IntProperty(
            name="Max per Vertex",
            description="Most shape keys that may move one vertex. Joints that do little there give way",
            default=10,
            soft_max=50,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "radius": FloatProperty(
            name="Radius",
            description="Angle over which an example's influence fades. 0 chooses it for each joint",
            default=0.0,
            soft_max=math.pi,
            subtype="ANGLE",
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "budget": IntProperty(
            name="Budget",
            description="Shape keys in all, given to the joints that need them most. 0 gives each joint Components",
            default=0,
            soft_max=200,
            options={"SKIP_SAVE"},
            **{limit: 0},
        ),
        "joint_pairs": IntProperty(
            name="Joint Pairs",
            description="Most pairs of joints, such as shoulder and clavicle, that get corrections for acting together",
            default=0,
            soft_max=20,
            options={"SKIP_SAVE"},
            **{limit: 0},
        ),
        "normals": BoolProperty(
            name="Normals",
            description="Store corrections of the normals too, as attributes for engines that play shape keys",
            default=False,
            options={"SKIP_SAVE"},
        ),
    }


class SkinningEigenskinExample(bpy.types.PropertyGroup):
    """A pose with its right shape. The arrays are in the mesh ``storage``, see eigenskin_examples."""

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

    __annotations__ = setting_annotations("min") | {
        "examples": CollectionProperty(type=SkinningEigenskinExample),
        "active_index": IntProperty(name="Active Example"),
        "use_scene_range": scene_range_property("read"),
        **frame_annotations("read", "min"),
        "use_markers": BoolProperty(
            name="Only Marked Poses",
            description="Read only the frames that Pose Joints has marked, where there are any",
            default=True,
        ),
    }


registry = [SkinningEigenskinExample, SkinningEigenskin]


def register() -> None:
    bpy.types.Object.skinning_eigenskin = PointerProperty(type=SkinningEigenskin)


def unregister() -> None:
    del bpy.types.Object.skinning_eigenskin
