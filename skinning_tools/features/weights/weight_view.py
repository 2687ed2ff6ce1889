# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of all bones at once, or the number of influences of each vertex, as colors with a legend.

While it is on, the mesh has the color attribute WEIGHT_COLORS and the numbers of influences as INFLUENCES_ATTRIBUTE.
"""

from typing import Any

import bpy
import numpy as np
from bpy.props import (
    CollectionProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    StringProperty,
)

from ...blender.attributes import write_attribute
from ...blender.bodies import named_parents
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.error_display import INFLUENCES_ATTRIBUTE, WEIGHT_COLORS, add_colors, remove_error_colors
from ...blender.preconditions import check_mode, check_own_mesh, check_visible
from ...blender.records import checksum, has_checksum
from ...blender.skin_reader import armature_of, check_rig, mesh_edges
from ...ui.settings import HARD
from .settings import WeightViewSettings


def _swatch(description: str) -> Any:
    """A read-only color of the property ``rgb``. Its setter does nothing, but without one Blender draws it pale."""
    return FloatVectorProperty(
        name="Color",
        description=description,
        size=3,
        subtype="COLOR",
        get=lambda self: self.rgb,
        set=lambda self, value: None,
    )


def _recolor(group: "SkinningWeightView", context: bpy.types.Context) -> None:
    """Tag the mesh as edited, which refreshes its colors."""
    group.id_data.update_tag()


class SkinningShownBone(bpy.types.PropertyGroup):
    """A bone in the legend; ``name`` is the bone's name."""

    __annotations__ = {
        "rgb": FloatVectorProperty(size=3, subtype="COLOR"),
        "color": _swatch("Color of the bone"),
        "share": FloatProperty(name="Share", description="Share of the weights of the whole mesh"),
        "vertices": IntProperty(name="Vertices", description="Number of vertices that the bone moves"),
    }


class SkinningShownCount(bpy.types.PropertyGroup):
    """A number of influences in the legend."""

    __annotations__ = {
        "rgb": FloatVectorProperty(size=3, subtype="COLOR"),
        "color": _swatch("Color of this number of influences"),
        "influences": IntProperty(name="Influences", description="Number of bones that move a vertex"),
        "vertices": IntProperty(name="Vertices", description="Number of vertices with this number of influences"),
    }


class SkinningWeightView(bpy.types.PropertyGroup):
    """The weight colors that a mesh shows, and the legend."""

    __annotations__ = {
        "mode": WeightViewSettings.declared["mode"].as_property(HARD, default="OFF"),
        "most": WeightViewSettings.declared["most"].as_property(HARD, name="Limit", update=_recolor),
        "palette": WeightViewSettings.declared["palette"].as_property(HARD, update=_recolor),
        "bones": CollectionProperty(type=SkinningShownBone),
        "counts": CollectionProperty(type=SkinningShownCount),
        "active_index": IntProperty(name="Active Bone", description="Active bone in the list"),
        "fingerprint": StringProperty(name="Fingerprint", description="Identifies the weights that are shown"),
    }


def check_showable(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene with the reason if the weights of a mesh object cannot be shown. Cheap enough for a panel."""
    check_mode(mesh_object)
    check_visible(context.scene, context.view_layer, mesh_object)
    check_rig(mesh_object)
    check_own_mesh(mesh_object, "no colors can be added to it")


def shows_weights(mesh_object: bpy.types.Object | None) -> bool:
    """Whether the mesh object has the colors of its weights."""
    return mesh_object is not None and mesh_object.type == "MESH" and WEIGHT_COLORS in mesh_object.data.color_attributes


def show_weights(mesh_object: bpy.types.Object, mode: str, most: int = 4, palette: str = "DISTINCT") -> None:
    """Color the mesh by "BONES", or by "COUNT" with more than ``most`` influences in red, and fill in the legend."""
    from ...core.binding.weight_view import bone_colors, count_colors, shown_together, weight_colors

    mesh, armature = mesh_object.data, armature_of(mesh_object)
    read = read_bone_weights(mesh_object, armature)
    counts = np.count_nonzero(read.weights, axis=1).astype(np.int32)
    together = shown_together(read.bones, read.weights, mesh_edges(mesh), named_parents(armature, read.names))
    colors = bone_colors(read.names, together, palette)
    if mode == "BONES":
        add_colors(mesh_object, WEIGHT_COLORS, weight_colors(read.bones, read.weights, colors))
    else:
        add_colors(mesh_object, WEIGHT_COLORS, count_colors(counts, most))
    write_attribute(mesh, INFLUENCES_ATTRIBUTE, "INT", counts)
    group = mesh.skinning_weight_view
    group.mode, group.most, group.palette = mode, most, palette
    group.fingerprint = checksum(*_shown(group, read))
    _fill_bones(group, read, colors)
    _fill_counts(group, counts, count_colors(np.arange(counts.max(initial=0) + 1), most))


def hide_weights(mesh_object: bpy.types.Object) -> None:
    """Remove colors, numbers and legend."""
    if shows_weights(mesh_object):
        remove_error_colors(mesh_object)
    mesh_object.data.property_unset("skinning_weight_view")


def is_stale(mesh_object: bpy.types.Object) -> bool:
    """Whether the colors are out of date. Reads all weights."""
    group = mesh_object.data.skinning_weight_view
    return not has_checksum(group.fingerprint, *_shown(group, read_bone_weights(mesh_object, armature_of(mesh_object))))


def _shown(group: SkinningWeightView, read: BoneWeights) -> tuple[str, np.ndarray, np.ndarray]:
    """The inputs of the colors: equal for the same weights of the same bones with the same display settings."""
    return (
        "\n".join((group.mode, str(group.most), group.palette, *read.names)),
        read.bones,
        read.weights.astype(np.float32),
    )


def _fill_bones(group: SkinningWeightView, read: BoneWeights, colors: np.ndarray) -> None:
    """List the bones with weights, the largest share first."""
    totals = np.bincount(read.bones.ravel(), read.weights.ravel(), minlength=len(read.names))
    numbers = np.bincount(read.bones[read.weights > 0], minlength=len(read.names))
    whole = max(totals.sum(), 1e-30)
    group.bones.clear()
    for bone in np.argsort(-totals, kind="stable"):
        if not numbers[bone]:
            continue
        item = group.bones.add()
        item.name, item.rgb = read.names[bone], colors[bone]
        item.share, item.vertices = totals[bone] / whole, int(numbers[bone])


def _fill_counts(group: SkinningWeightView, counts: np.ndarray, colors: np.ndarray) -> None:
    group.counts.clear()
    for number, vertices in enumerate(np.bincount(counts)):
        if vertices:
            item = group.counts.add()
            item.influences, item.vertices, item.rgb = number, int(vertices), colors[number, :3]


registry = [SkinningShownBone, SkinningShownCount, SkinningWeightView]
pointers = {"Mesh.skinning_weight_view": SkinningWeightView}
