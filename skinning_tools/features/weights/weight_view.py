# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of all bones at once, or how many bones move each vertex, as colors, with their legend on the mesh.

While it is on, the mesh has the color attribute WEIGHT_COLORS and the numbers of influences as INFLUENCES_ATTRIBUTE.
"""

import zlib

import bpy
import numpy as np
from bpy.props import (
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...blender.bodies import colors_of_bones
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.error_display import INFLUENCES_ATTRIBUTE, WEIGHT_COLORS, add_colors, remove_error_colors
from ...blender.preconditions import check_mode, check_own_mesh, check_visible
from ...blender.skin_reader import armature_of, check_rig

MODE_ITEMS = (
    ("BONES", "Bones", "Each vertex has the colors of the bones that move it, mixed by their weights"),
    ("COUNT", "Influences", "The color tells how many bones move the vertex"),
    ("OFF", "Off", "Show the mesh's materials again"),
)


def _swatch(description: str):
    """A color to look at, of the property ``rgb``. With a setter, though it does nothing, it is not drawn pale."""
    return FloatVectorProperty(
        name="Color",
        description=description,
        size=3,
        subtype="COLOR",
        get=lambda self: self.rgb,
        set=lambda self, value: None,
    )


def _recolor(group, context) -> None:
    """Have the mesh reported as edited, which refreshes its colors."""
    group.id_data.update_tag()


class SkinningShownBone(bpy.types.PropertyGroup):
    """A bone in the legend; ``name`` is its own."""

    __annotations__ = {
        "rgb": FloatVectorProperty(size=3, subtype="COLOR"),
        "color": _swatch("Of the bone"),
        "share": FloatProperty(name="Share", description="Of the weights of the whole mesh"),
        "vertices": IntProperty(name="Vertices", description="That the bone moves"),
    }


class SkinningShownCount(bpy.types.PropertyGroup):
    """A number of influences in the legend."""

    __annotations__ = {
        "rgb": FloatVectorProperty(size=3, subtype="COLOR"),
        "color": _swatch("Of the number"),
        "influences": IntProperty(name="Influences", description="Bones that move a vertex"),
        "vertices": IntProperty(name="Vertices", description="With this number of influences"),
    }


class SkinningWeightView(bpy.types.PropertyGroup):
    """What a mesh shows of its weights, and the legend."""

    __annotations__ = {
        "mode": EnumProperty(name="Mode", description="What of the weights is shown", items=MODE_ITEMS, default="OFF"),
        "most": IntProperty(
            name="Limit", description="Vertices with more influences are red", default=4, min=1, update=_recolor
        ),
        "bones": CollectionProperty(type=SkinningShownBone),
        "counts": CollectionProperty(type=SkinningShownCount),
        "active_index": IntProperty(name="Active Bone", description="In the list"),
        "fingerprint": StringProperty(name="Fingerprint", description="Of the weights that are shown"),
    }


def check_showable(context, object) -> None:
    """Raises BadScene with the reason why the weights of a mesh object cannot be shown. Cheap enough for a panel."""
    check_mode(object)
    check_visible(context.scene, context.view_layer, object)
    check_rig(object)
    check_own_mesh(object, "no colors can be added to it")


def shows_weights(object) -> bool:
    """Whether the mesh object has the colors of its weights."""
    return object is not None and object.type == "MESH" and WEIGHT_COLORS in object.data.color_attributes


def show_weights(object, mode: str, most: int = 4) -> None:
    """Color the mesh by "BONES" or "COUNT", where more than ``most`` influences are red, and fill in the legend."""
    from ...core.binding.weight_view import count_colors, weight_colors

    mesh, armature = object.data, armature_of(object)
    read = read_bone_weights(object, armature)
    counts = np.count_nonzero(read.weights, axis=1).astype(np.int32)
    palette = colors_of_bones(armature, read.names)
    if mode == "BONES":
        add_colors(object, WEIGHT_COLORS, weight_colors(read.bones, read.weights, palette))
    else:
        add_colors(object, WEIGHT_COLORS, count_colors(counts, most))
    attribute = mesh.attributes.get(INFLUENCES_ATTRIBUTE) or mesh.attributes.new(INFLUENCES_ATTRIBUTE, "INT", "POINT")
    attribute.data.foreach_set("value", counts)
    group = mesh.skinning_weight_view
    group.mode, group.most = mode, most
    group.fingerprint = _fingerprint(group, read)
    _fill_bones(group, read, palette)
    _fill_counts(group, counts, count_colors(np.arange(counts.max(initial=0) + 1), most))


def hide_weights(object) -> None:
    """Take colors, numbers and legend away."""
    if shows_weights(object):
        remove_error_colors(object)
    object.data.property_unset("skinning_weight_view")


def is_stale(object) -> bool:
    """Whether the colors are no longer what they should be. Reads all weights."""
    group = object.data.skinning_weight_view
    return _fingerprint(group, read_bone_weights(object, armature_of(object))) != group.fingerprint


def _fingerprint(group, read: BoneWeights) -> str:
    """The same for the same weights of the same bones, shown alike."""
    value = zlib.crc32("\n".join((group.mode, str(group.most), *read.names)).encode())
    for array in (read.bones, read.weights.astype(np.float32)):
        value = zlib.crc32(np.ascontiguousarray(array).tobytes(), value)
    return f"{value:08x}"


def _fill_bones(group, read: BoneWeights, palette: np.ndarray) -> None:
    """Those that move anything, the one with the largest share first."""
    totals = np.bincount(read.bones.ravel(), read.weights.ravel(), minlength=len(read.names))
    numbers = np.bincount(read.bones[read.weights > 0], minlength=len(read.names))
    whole = max(totals.sum(), 1e-30)
    group.bones.clear()
    for bone in np.argsort(-totals, kind="stable"):
        if not numbers[bone]:
            continue
        item = group.bones.add()
        item.name, item.rgb = read.names[bone], palette[bone]
        item.share, item.vertices = totals[bone] / whole, int(numbers[bone])


def _fill_counts(group, counts: np.ndarray, colors: np.ndarray) -> None:
    group.counts.clear()
    for number, vertices in enumerate(np.bincount(counts)):
        if vertices:
            item = group.counts.add()
            item.influences, item.vertices, item.rgb = number, int(vertices), colors[number, :3]


registry = [SkinningShownBone, SkinningShownCount, SkinningWeightView]


def register() -> None:
    bpy.types.Mesh.skinning_weight_view = PointerProperty(type=SkinningWeightView)


def unregister() -> None:
    del bpy.types.Mesh.skinning_weight_view
