# SPDX-License-Identifier: GPL-3.0-or-later
"""What the panel of the tools on weights remembers: settings in the scene, the list of rogue weights on each mesh.

An operator takes its settings from here where its caller did not give them, when it is invoked from the interface; from
Python only the arguments and the defaults below count.
"""

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

from ...ui.common_settings import frame_annotations, influences_property, scene_range_property

BITS = (
    ("8", "8 Bits", "Steps of 1/255: 7 bytes a vertex for four bones"),
    ("16", "16 Bits", "Steps of 1/65535: 10 bytes a vertex for four bones"),
)
OUTPUTS = (
    (
        "ATTRIBUTE",
        "Face Attribute",
        "Number of the rigid part of each face, -1 for skin, in the attribute skinning_rigid_part. "
        "The mesh's property of that name lists the parts' bones",
    ),
    ("FACE_SETS", "Face Sets", "A face set for each rigid part, and one for the skin, in place of those of the mesh"),
    (
        "OBJECTS",
        "Objects",
        "An object for each rigid part, parented to its bone, and a skinned one for the rest. "
        "The mesh itself is hidden and stays as it is",
    ),
    ("NONE", "Table Only", "Count, and change nothing"),
)


def smooth_annotations(limit: str) -> dict:
    """Properties of Smooth. limit: "min" for the panel, "soft_min" for the operator, which refuses with a message."""
    return {
        "strength": FloatProperty(
            name="Strength",
            description="How far a vertex goes to the mean of its neighbors in each iteration",
            default=0.5,
            soft_max=1.0,
            subtype="FACTOR",
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "iterations": IntProperty(
            name="Iterations",
            description="How often. More reach farther",
            default=5,
            soft_max=50,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "max_influences": influences_property(
            limit,
            "Most bones that may move one vertex. 0 stands for 4, or for as many as the mesh has",
            default=0,
            least=0,
        ),
        "vertex_group": StringProperty(
            name="Vertex Group",
            description="Smooth by as much of the strength as the group has weight. Empty smooths everywhere",
            options={"SKIP_SAVE"},
        ),
        "invert_vertex_group": BoolProperty(
            name="Invert",
            description="Smooth where the group has no weight",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "use_selection": BoolProperty(
            name="Only Selected",
            description="Smooth the vertices that are selected in Edit Mode. Weight Paint's selection masks always "
            "count",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "keep_creases": BoolProperty(
            name="Keep Creases",
            description="Let nothing pass over edges that are marked sharp or have a crease of 0.5 or more. "
            "Borders of the mesh are kept anyway",
            default=True,
            options={"SKIP_SAVE"},
        ),
    }


def compress_annotations(limit: str) -> dict:
    """Properties of Compress, beside the frames that it measures; limit as above."""
    return {
        "bits": EnumProperty(
            name="Precision", description="Size of a stored weight", items=BITS, default="8", options={"SKIP_SAVE"}
        ),
        "max_influences": influences_property(limit, "Most bones that may move one vertex. The strongest stay"),
        "threshold": FloatProperty(
            name="Threshold",
            description="Drop weights below this, but never the strongest of a vertex",
            default=0.0,
            soft_max=0.2,
            precision=3,
            step=1,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
    }


def partition_annotations(limit: str) -> dict:
    """Properties of Partition; limit as above."""
    return {
        "output": EnumProperty(
            name="Output", description="What to make", items=OUTPUTS, default="ATTRIBUTE", options={"SKIP_SAVE"}
        ),
        "tolerance": FloatProperty(
            name="Tolerance",
            description="How much weight a vertex of a rigid part may have on other bones",
            default=0.0,
            soft_max=0.2,
            precision=3,
            step=1,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "least_faces": IntProperty(
            name="Least Faces",
            description="Smaller rigid parts stay with the skin, as each part costs a draw call",
            default=1,
            soft_max=1000,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
    }


SMOOTH_NAMES, COMPRESS_NAMES, PARTITION_NAMES = (
    tuple(make("min")) for make in (smooth_annotations, compress_annotations, partition_annotations)
)


class SkinningSmoothSettings(bpy.types.PropertyGroup):
    __annotations__ = smooth_annotations("min")


class SkinningCompressSettings(bpy.types.PropertyGroup):
    __annotations__ = (
        compress_annotations("min")
        | frame_annotations("measure", "min")
        | {"use_scene_range": scene_range_property("measure")}
    )


class SkinningPartitionSettings(bpy.types.PropertyGroup):
    __annotations__ = partition_annotations("min")


class SkinningWeightTools(bpy.types.PropertyGroup):
    """What the scene remembers."""

    __annotations__ = {
        "smooth": PointerProperty(type=SkinningSmoothSettings),
        "compress": PointerProperty(type=SkinningCompressSettings),
        "partition": PointerProperty(type=SkinningPartitionSettings),
    }


class SkinningRogueIsland(bpy.types.PropertyGroup):
    """Vertices that follow a bone apart from its others, see features.weights.rogue_weights."""

    __annotations__ = {
        "bone": StringProperty(name="Bone", description="The bone that the vertices follow"),
        "vertex_count": IntProperty(name="Vertices", description="How many vertices there are"),
        "strength": FloatProperty(name="Strength", description="The largest of their weights for the bone"),
        "checked": BoolProperty(
            name="Checked", description="Remove these weights with those of the other checked rows", default=True
        ),
        "vertices": StringProperty(name="Indices", description="The vertices"),
    }


class SkinningRogueWeights(bpy.types.PropertyGroup):
    """The list of a mesh object. fingerprint: of the mesh and weights that it was found in."""

    __annotations__ = {
        "islands": CollectionProperty(type=SkinningRogueIsland),
        "active_index": IntProperty(name="Active Row"),
        "fingerprint": StringProperty(name="Fingerprint", description="What mesh and weights the list is of"),
    }


registry = [
    SkinningSmoothSettings,
    SkinningCompressSettings,
    SkinningPartitionSettings,
    SkinningWeightTools,
    SkinningRogueIsland,
    SkinningRogueWeights,
]


def register() -> None:
    bpy.types.Scene.skinning_weight_tools = PointerProperty(type=SkinningWeightTools)
    bpy.types.Object.skinning_rogue_weights = PointerProperty(type=SkinningRogueWeights)


def unregister() -> None:
    del bpy.types.Object.skinning_rogue_weights
    del bpy.types.Scene.skinning_weight_tools
