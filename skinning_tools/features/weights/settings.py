# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the tools on weights, kept with the scene; and the list of rogue weights of each mesh."""

import bpy
from bpy.props import BoolProperty, CollectionProperty, FloatProperty, IntProperty, PointerProperty, StringProperty

from ...ui.presets import Presets
from ...ui.settings import Settings, choice, count, factor, influences, name, number, switch

BITS = (
    ("8", "8 Bits", "Steps of 1/255: 7 bytes a vertex for four bones"),
    ("16", "16 Bits", "Steps of 1/65535: 10 bytes a vertex for four bones"),
)
GLTF_WEIGHTS = (
    ("FLOAT", "Float", "As the exporter writes them: 16 bytes a vertex for four bones"),
    ("8", "8 Bits", "Normalized bytes: 4 bytes a vertex for four bones"),
    ("16", "16 Bits", "Normalized shorts: 8 bytes a vertex for four bones"),
)
OUTPUTS = (
    (
        "ATTRIBUTE",
        "Face Attribute",
        "Number of the rigid part of each face, -1 for skin, in the attribute skinning_rigid_part. "
        "The mesh's property of that name lists the parts' bones",
    ),
    ("FACE_SETS", "Face Sets", "A face set for each rigid part and one for the skin, replacing the mesh's face sets"),
    (
        "OBJECTS",
        "Objects",
        "An object for each rigid part, parented to its bone, and a skinned one for the rest. "
        "The mesh itself is hidden and does not change",
    ),
    ("NONE", "Table Only", "Count without changing anything"),
)
PALETTES = (
    ("DISTINCT", "Distinct", "16 colors; neighboring bones never look alike"),
    ("COLOR_BLIND", "Color Blind", "10 colors that also differ for eyes that confuse red, green or blue"),
)

VIEW_MODES = (
    ("BONES", "Bones", "Each vertex has the colors of the bones that move it, mixed by their weights"),
    ("COUNT", "Influences", "The color shows how many bones move the vertex"),
    ("OFF", "Off", "Show the mesh's materials again"),
)


class SmoothSettings(Settings, stored="skinning_weight_tools.smooth"):
    strength = factor(
        "Strength",
        0.5,
        tip="How far each weight moves toward the mean of the neighboring vertices in each iteration",
        flag="--strength",
        metavar="S",
        help="how far a weight moves toward the neighbors' mean in each iteration, 0 to 1",
    )
    iterations = count(
        "Iterations",
        5,
        least=1,
        soft_most=50,
        tip="Number of iterations. More iterations reach farther",
        flag="--iterations",
    )
    max_influences = influences(
        0,
        0,
        tip="Most bones that may move one vertex. 0 means 4, or the mesh's present maximum if it is larger",
        help="most bones that may move one vertex (default: 4, or the mesh's present maximum if it is larger)",
    )
    vertex_group = name(
        "Vertex Group",
        tip="Multiply the strength by the weights of this group. If empty, smooth everywhere",
        flag="--vertex-group",
    )
    invert_vertex_group = switch(
        "Invert",
        False,
        tip="Smooth where the group has no weight",
        flag="--invert",
    )
    use_selection = switch(
        "Only Selected",
        False,
        tip="Smooth only the vertices selected in Edit Mode. Weight Paint's selection masks always apply",
    )
    keep_creases = switch(
        "Keep Creases",
        True,
        tip="Do not smooth across edges that are marked sharp or have a crease of 0.5 or more. Borders of the mesh "
        "are always kept",
        flag="--no-creases",
        help="also smooth across sharp and creased edges",
    )


class SmoothPresetSettings(Settings):
    """What a preset stores: all but the vertices."""

    strength = SmoothSettings.strength
    iterations = SmoothSettings.iterations
    max_influences = SmoothSettings.max_influences
    keep_creases = SmoothSettings.keep_creases


PRESETS = Presets(
    "smooth",
    "smooth_weights",
    SmoothPresetSettings,
    lambda context: context.scene.skinning_weight_tools.smooth,
    "bpy.context.scene.skinning_weight_tools.smooth",
)


class PrecisionSettings(Settings, stored="skinning_weight_tools.compress"):
    bits = choice("Precision", BITS, "8", tip="Size of a stored weight", flag="--bits")
    max_influences = influences(tip="Most bones that may move one vertex. The strongest weights stay")
    threshold = number(
        "Threshold",
        0.0,
        least=0.0,
        soft_max=0.2,
        precision=3,
        step=1,
        tip="Remove weights below this, but never the strongest of a vertex",
        flag="--threshold",
        metavar="W",
    )


class CompressSettings(PrecisionSettings, frames="measure"):
    """The settings of *Compress*, which also measures how far vertices move."""


class GltfSettings(Settings, stored="skinning_weight_tools.gltf"):
    weights = choice(
        "glTF Weights",
        GLTF_WEIGHTS,
        "FLOAT",
        tip="How Blender's glTF exporter stores weights, rounded with sums of exactly 1. The meshes do not change",
    )


class PartitionSettings(Settings, stored="skinning_weight_tools.partition"):
    output = choice("Output", OUTPUTS, "ATTRIBUTE", tip="How to write the rigid parts", flag="--to")
    tolerance = number(
        "Tolerance",
        0.0,
        least=0.0,
        soft_max=0.2,
        precision=3,
        step=1,
        tip="Most weight that a vertex of a rigid part may have on other bones",
        flag="--tolerance",
        metavar="W",
    )
    least_faces = count(
        "Least Faces",
        1,
        least=1,
        tip="Smaller rigid parts stay with the skin, since each part costs a draw call",
        flag="--least-faces",
    )


class SelectRogueSettings(Settings):
    index = count("Row", -1, soft_most=None, tip="Row in the list, -1 for all checked rows")


class CheckRogueSettings(Settings):
    checked = switch("Checked", True, tip="Check all rows. When off, uncheck all")


class RemoveRogueSettings(Settings):
    only_checked = switch(
        "Only Checked",
        False,
        tip="Correct the entries checked in the list, including doubtful ones. When off, search again and correct only "
        "certain ones",
    )
    include_doubtful = switch(
        "Include Doubtful",
        False,
        tip="Also correct weights that may be intentional: weights that barely tear the surface, and weights of whole "
        "loose parts",
        flag="--include-doubtful",
    )


class WeightViewSettings(Settings):
    mode = choice("Mode", VIEW_MODES, "BONES", tip="What the colors show")
    most = count("Influences", 4, least=1, soft_most=12, tip="Vertices with more influences are red")
    palette = choice("Palette", PALETTES, "DISTINCT", tip="The colors of the bones")


class SkinningSmoothSettings(bpy.types.PropertyGroup):
    __annotations__ = SmoothSettings.group_annotations()


class SkinningCompressSettings(bpy.types.PropertyGroup):
    __annotations__ = CompressSettings.group_annotations()


class SkinningGltfSettings(bpy.types.PropertyGroup):
    __annotations__ = GltfSettings.group_annotations()


class SkinningPartitionSettings(bpy.types.PropertyGroup):
    __annotations__ = PartitionSettings.group_annotations()


class SkinningWeightTools(bpy.types.PropertyGroup):
    """The settings kept with the scene."""

    __annotations__ = {
        "smooth": PointerProperty(type=SkinningSmoothSettings),
        "compress": PointerProperty(type=SkinningCompressSettings),
        "gltf": PointerProperty(type=SkinningGltfSettings),
        "partition": PointerProperty(type=SkinningPartitionSettings),
    }


class SkinningRogueIsland(bpy.types.PropertyGroup):
    """Vertices that follow a bone far from its other vertices, see features.weights.rogue_weights."""

    __annotations__ = {
        "bone": StringProperty(name="Bone", description="The bone that the vertices follow"),
        "vertex_count": IntProperty(name="Vertices", description="Number of vertices"),
        "strength": FloatProperty(name="Strength", description="Largest of their weights on the bone"),
        "checked": BoolProperty(
            name="Checked", description="Remove these weights together with the other checked rows", default=True
        ),
        "vertices": StringProperty(name="Indices", description="The vertices"),
    }


class SkinningRogueWeights(bpy.types.PropertyGroup):
    """The list of a mesh object. fingerprint: of the mesh and weights when the list was made."""

    __annotations__ = {
        "islands": CollectionProperty(type=SkinningRogueIsland),
        "active_index": IntProperty(name="Active Row"),
        "fingerprint": StringProperty(name="Fingerprint", description="Identifies the mesh and weights of the list"),
    }


registry = [
    SkinningSmoothSettings,
    SkinningCompressSettings,
    SkinningGltfSettings,
    SkinningPartitionSettings,
    SkinningWeightTools,
    SkinningRogueIsland,
    SkinningRogueWeights,
]
pointers = {"Scene.skinning_weight_tools": SkinningWeightTools, "Object.skinning_rogue_weights": SkinningRogueWeights}
