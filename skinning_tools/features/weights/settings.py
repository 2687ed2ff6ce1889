# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the tools on weights, kept with the scene; and the list of rogue weights of each mesh."""

import bpy
from bpy.props import BoolProperty, CollectionProperty, FloatProperty, IntProperty, PointerProperty, StringProperty

from ...ui.settings import Settings, choice, count, factor, influences, name, number, switch

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


class SmoothSettings(Settings, stored="skinning_weight_tools.smooth"):
    strength = factor(
        "Strength",
        0.5,
        tip="How far a vertex goes to the mean of its neighbors in each iteration",
        flag="--strength",
        metavar="S",
        help="how far a vertex goes to its neighbors' mean in an iteration, 0 to 1",
    )
    iterations = count(
        "Iterations",
        5,
        least=1,
        soft_most=50,
        tip="How often. More reach farther",
        flag="--iterations",
        help="how often",
    )
    max_influences = influences(
        0,
        0,
        tip="Most bones that may move one vertex. 0 stands for 4, or for as many as the mesh has",
        help="most bones that may move one vertex (default: 4, or as many as the mesh has)",
    )
    vertex_group = name(
        "Vertex Group",
        tip="Smooth by as much of the strength as the group has weight. Empty smooths everywhere",
        flag="--vertex-group",
        help="smooth as much as this group has weight",
    )
    invert_vertex_group = switch(
        "Invert", False, tip="Smooth where the group has no weight", flag="--invert", help="smooth where it has none"
    )
    use_selection = switch(
        "Only Selected",
        False,
        tip="Smooth the vertices that are selected in Edit Mode. Weight Paint's selection masks always count",
    )
    keep_creases = switch(
        "Keep Creases",
        True,
        tip="Let nothing pass over edges that are marked sharp or have a crease of 0.5 or more. Borders of the mesh "
        "are kept anyway",
        flag="--no-creases",
        help="smooth over sharp and creased edges, too",
    )


class CompressSettings(Settings, stored="skinning_weight_tools.compress", frames="measure"):
    bits = choice("Precision", BITS, "8", tip="Size of a stored weight", flag="--bits", help="of a weight")
    max_influences = influences(tip="Most bones that may move one vertex. The strongest stay")
    threshold = number(
        "Threshold",
        0.0,
        least=0.0,
        soft_max=0.2,
        precision=3,
        step=1,
        tip="Drop weights below this, but never the strongest of a vertex",
        flag="--threshold",
        metavar="W",
        help="drop weights below this",
    )


class PartitionSettings(Settings, stored="skinning_weight_tools.partition"):
    output = choice("Output", OUTPUTS, "ATTRIBUTE", tip="What to make", flag="--to")
    tolerance = number(
        "Tolerance",
        0.0,
        least=0.0,
        soft_max=0.2,
        precision=3,
        step=1,
        tip="How much weight a vertex of a rigid part may have on other bones",
        flag="--tolerance",
        metavar="W",
        help="weight that a vertex of a rigid part may have on other bones",
    )
    least_faces = count(
        "Least Faces",
        1,
        least=1,
        tip="Smaller rigid parts stay with the skin, as each part costs a draw call",
        flag="--least-faces",
        help="smaller parts stay with the skin",
    )


class RemoveRogueSettings(Settings):
    only_checked = switch(
        "Only Checked",
        False,
        tip="Correct the entries checked in the list, including doubtful ones. When off, search again and correct only "
        "the certain ones",
    )
    include_doubtful = switch(
        "Include Doubtful",
        False,
        tip="Also correct weights that may be intentional: those that barely tear the surface, and those of whole "
        "loose parts",
        flag="--include-doubtful",
    )


class SkinningSmoothSettings(bpy.types.PropertyGroup):
    __annotations__ = SmoothSettings.group_annotations()


class SkinningCompressSettings(bpy.types.PropertyGroup):
    __annotations__ = CompressSettings.group_annotations()


class SkinningPartitionSettings(bpy.types.PropertyGroup):
    __annotations__ = PartitionSettings.group_annotations()


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
