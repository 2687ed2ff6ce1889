# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools on the weights of a skinned mesh: unweighted vertices, rogue weights, smoothing, compression, rigid parts, and
showing the weights."""

import bpy
from bpy.props import StringProperty

from ...blender import dependencies, error_display
from ...blender.character import character_of, on_meshes_meant, target_mesh
from ...blender.preconditions import check_mode
from ...blender.weight_tools import weighted_mesh, weighted_or_edited_mesh
from ...blender.wording import counted
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from ...ui.presets import AddsPreset, AppliesPreset
from . import compression, rigid_parts, rogue_weights, smoothing, unweighted, weight_table, weight_view
from .settings import (
    PRESETS,
    CheckRogueSettings,
    CompressSettings,
    PartitionSettings,
    PrecisionSettings,
    RemoveRogueSettings,
    SelectRogueSettings,
    SmoothSettings,
    WeightViewSettings,
)


class SKINNING_OT_find_rogue_weights(Checked, SkinningJob, bpy.types.Operator):
    """List the vertices that follow a bone far from its other vertices. Changes nothing"""

    bl_idname = "skinning.find_rogue_weights"
    bl_label = "Find Rogue Weights"

    require = staticmethod(weighted_or_edited_mesh)

    work = staticmethod(rogue_weights.find)


class SKINNING_OT_find_unweighted(Checked, AtOnce, bpy.types.Operator):
    """Select the vertices that no bone moves, in Edit Mode: of all selected meshes, or of all meshes \
that the armature deforms"""

    bl_idname = "skinning.find_unweighted"
    bl_label = "Find Unweighted Vertices"

    needs_scipy = True
    require = staticmethod(unweighted.meshes_to_search)
    work = staticmethod(unweighted.find_unweighted)


class _OnList(Checked):
    """Mix-in for operators on the list of rogue weights."""

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        mesh_object = weighted_or_edited_mesh(context, active)
        if not mesh_object.skinning_rogue_weights.islands:
            raise BadScene(f'The list of rogue weights of "{mesh_object.name}" is empty. Find them first')


class SKINNING_OT_select_rogue_weights(_OnList, AtOnce, bpy.types.Operator):
    """Select the vertices of a row of the list, or of all checked rows, in Edit Mode"""

    bl_idname = "skinning.select_rogue_weights"
    bl_label = "Select Rogue Vertices"

    needs_scipy = True
    settings = SelectRogueSettings
    work = staticmethod(rogue_weights.select)


class SKINNING_OT_check_rogue_weights(_OnList, AtOnce, bpy.types.Operator):
    """Check or uncheck all rows of the list"""

    bl_idname = "skinning.check_rogue_weights"
    bl_label = "Check Rogue Weights"

    settings = CheckRogueSettings
    work = staticmethod(rogue_weights.check_all)


class SKINNING_OT_remove_rogue_weights(Checked, SkinningJob, bpy.types.Operator):
    """Give rogue weights to the bones of the nearest valid vertices. Doubtful weights and locked vertex groups stay"""

    bl_idname = "skinning.remove_rogue_weights"
    bl_label = "Remove Rogue Weights"

    settings = RemoveRogueSettings
    require = staticmethod(weighted_or_edited_mesh)
    work = staticmethod(rogue_weights.remove)


class SKINNING_OT_smooth_weights(Checked, SkinningJob, bpy.types.Operator):
    """Smooth the weights of all bones over the surface. Sums, borders, creases and locked vertex groups stay.
    Selected meshes of one armature are one body"""

    bl_idname = "skinning.smooth_weights"
    bl_label = "Smooth Weights"

    settings = SmoothSettings
    require = staticmethod(on_meshes_meant(smoothing.check_smoothable))
    work = staticmethod(on_meshes_meant(smoothing.smooth))


class SKINNING_OT_compress_weights(Checked, SkinningJob, bpy.types.Operator):
    """Round weights to 8 or 16 bits, with sums of exactly 1, and measure how far that moves vertices"""

    bl_idname = "skinning.compress_weights"
    bl_label = "Compress Weights"

    settings = CompressSettings
    require = staticmethod(weighted_mesh)
    work = staticmethod(compression.compress)


class SKINNING_OT_save_weight_table(Checked, SavesFile, bpy.types.Operator):
    """Save the bones and rounded weights of each vertex as a packed table for custom engines. \
The mesh does not change"""

    bl_idname = "skinning.save_weight_table"
    bl_label = "Save Weight Table"

    filename_ext = ".bin"
    filter_glob: StringProperty(default="*.bin", options={"HIDDEN"})

    needs_scipy = True
    settings = PrecisionSettings
    require = staticmethod(character_of)
    work = staticmethod(weight_table.save_weight_table)


class SKINNING_OT_partition_rigid(Checked, SkinningJob, bpy.types.Operator):
    """Find the faces that only one bone moves, and mark or separate them from the skin that several bones move"""

    bl_idname = "skinning.partition_rigid"
    bl_label = "Partition into Rigid Parts"

    settings = PartitionSettings
    require = staticmethod(rigid_parts.check_partitionable)
    work = staticmethod(rigid_parts.partition)


class SKINNING_OT_show_weights(Checked, AtOnce, bpy.types.Operator):
    """Color the mesh by the weights of all its bones, or by how many bones move each vertex"""

    bl_idname = "skinning.show_weights"
    bl_label = "Show Weights"

    settings = WeightViewSettings

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        if weight_view.shows_weights(active):
            # The colors can be removed whatever happened to the armature.
            check_mode(active)
            return
        weight_view.check_showable(context, character_of(context, active))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str | None:
        if self.mode == "OFF":
            weight_view.hide_weights(target_mesh(context))
            error_display.show_colors(context, False)
            return None
        dependencies.require_dependencies()
        mesh_object = character_of(context, active)
        weight_view.check_showable(context, mesh_object)
        weight_view.show_weights(mesh_object, **self.settings.of_operator(self))
        error_display.show_colors(context, True)
        group = mesh_object.data.skinning_weight_view
        largest = max(item.influences for item in group.counts)
        return f"{mesh_object.name}: {counted(len(group.bones), 'bone')}, at most {largest} at a vertex"


class SKINNING_OT_add_smooth_preset(AddsPreset, bpy.types.Operator):
    """Save the settings of Smooth Weights as a preset, or remove one"""

    bl_idname = "skinning.add_smooth_preset"
    bl_label = "Add Smooth Preset"
    presets = PRESETS


class SKINNING_OT_apply_smooth_preset(AppliesPreset, bpy.types.Operator):
    """Copy the settings of this preset to the panel"""

    bl_idname = "skinning.apply_smooth_preset"
    bl_label = "Apply Smooth Preset"
    presets = PRESETS


registry = [
    SKINNING_OT_add_smooth_preset,
    SKINNING_OT_apply_smooth_preset,
    SKINNING_OT_find_unweighted,
    SKINNING_OT_find_rogue_weights,
    SKINNING_OT_select_rogue_weights,
    SKINNING_OT_check_rogue_weights,
    SKINNING_OT_remove_rogue_weights,
    SKINNING_OT_smooth_weights,
    SKINNING_OT_compress_weights,
    SKINNING_OT_save_weight_table,
    SKINNING_OT_partition_rigid,
    SKINNING_OT_show_weights,
]
