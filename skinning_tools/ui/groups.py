# SPDX-License-Identifier: GPL-3.0-or-later
"""The three groups of panels in the sidebar. Each names the object that its panels work on, and the next step.

A panel joins a group by its ``bl_parent_id``.
"""

import bpy

from ..blender.character import armature_at, meshes_of, target_mesh
from ..blender.control_points import SKIN_TYPES
from ..blender.conversions import result_of
from ..blender.job_checks import active_object
from ..blender.records import FACE
from .drawing import SidebarPanel, draw_text, idle_column, works_on_selection

ANIMATION = "SKINNING_PT_group_animation"
WEIGHTS = "SKINNING_PT_group_weights"
DEFORMATION = "SKINNING_PT_group_deformation"


class _Group(SidebarPanel):
    """nothing: shown in place of the panels while nothing is selected that they work on. several: the next step if the
    armature deforms several meshes, of which none is chosen."""

    always = True
    layout: bpy.types.UILayout
    nothing: str
    several: str
    kinds: tuple[str, ...] = ("MESH",)

    def draw(self, context: bpy.types.Context) -> None:
        if not works_on_selection(context):
            draw_text(self.layout, context, self.nothing, "INFO")
            return
        active, mesh_object = active_object(context), target_mesh(context, self.kinds)
        armature = armature_at(active)
        names = dict.fromkeys(ob.name for ob in (mesh_object or active, armature) if ob is not None)
        # Also while a job runs, or the panels below would move under the pointer.
        layout = idle_column(self.layout)
        layout.label(text=", ".join(names), icon="OBJECT_DATA", translate=False)
        none_chosen = mesh_object is None and armature is not None and meshes_of(armature, context.view_layer)
        step = self.several if none_chosen else self.next_step(mesh_object, armature)
        draw_text(layout, context, step, "FORWARD")

    def next_step(self, mesh_object: bpy.types.Object | None, armature: bpy.types.Object | None) -> str:
        raise NotImplementedError


class SKINNING_PT_group_animation(_Group, bpy.types.Panel):
    bl_label = "Animation to Bones"
    bl_idname = ANIMATION
    nothing = "Select a mesh that moves, or one with shape keys"
    several = "Select one of the armature's meshes to solve for it. To clean weights, open Bind and Weights below"

    def next_step(self, mesh_object: bpy.types.Object | None, armature: bpy.types.Object | None) -> str:
        if mesh_object is None:
            return self.nothing if armature is None else "To bind meshes to the armature, open Bind and Weights below"
        result = result_of(mesh_object)
        if result is not None:
            if mesh_object == result.source:
                return "Converted. Compare it with its result below, then Export"
            return "This is a result. Play it, compare it with its source below, then Export"
        if FACE in mesh_object:
            return "This is a face whose sliders move bones. They are below, in Convert Shape Keys"
        keys = mesh_object.data.shape_keys
        if keys is not None and keys.animation_data is None:
            return "Convert Shape Keys, below: one slider for each key"
        if armature is None:
            return "Convert Animation"
        if not mesh_object.vertex_groups:
            return "Bind the mesh below, or Solve for an Existing Rig: weights from an animation"
        return "Solve for an Existing Rig: weights or motion. To clean weights or mend joints, open the groups below"


class SKINNING_PT_group_weights(_Group, bpy.types.Panel):
    bl_label = "Bind and Weights"
    bl_idname = WEIGHTS
    bl_options = {"DEFAULT_CLOSED"}
    nothing = "Select the meshes, then their armature"
    several = "Choose one of the armature's meshes as Mesh below, to clean its weights"
    kinds = SKIN_TYPES

    def next_step(self, mesh_object: bpy.types.Object | None, armature: bpy.types.Object | None) -> str:
        if armature is None:
            # Importers leave an empty active.
            return self.nothing if mesh_object is None else "Bind the mesh to an armature"
        if mesh_object is None or not mesh_object.vertex_groups:
            return "Bind the selected meshes to the armature"
        return "Clean the weights, or transfer them to clothes"


class SKINNING_PT_group_deformation(_Group, bpy.types.Panel):
    bl_label = "Deformation"
    bl_idname = DEFORMATION
    bl_options = {"DEFAULT_CLOSED"}
    nothing = "Select a mesh with an armature"
    several = "Add bone links, which change all meshes of the armature, or choose one of them below"

    def next_step(self, mesh_object: bpy.types.Object | None, armature: bpy.types.Object | None) -> str:
        if armature is None and mesh_object is None:
            return self.nothing
        if armature is None or mesh_object is None:
            return "Bind a mesh to an armature first"
        return "Add bone links where limbs twist, and bones for shoulders and muscles. Preview compares ways to blend"


registry = (SKINNING_PT_group_animation, SKINNING_PT_group_weights, SKINNING_PT_group_deformation)
