# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake centers of rotation, play them by a modifier, shape keys or a point cache, and prepare their export."""

import bpy

from ...blender.center_records import modifier_record, native_modifier
from ...blender.character import mesh_meant, on_mesh_meant, on_meshes_meant
from ...blender.translation import translated
from ...blender.wording import counted
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import baking, export, modifier, playback
from .settings import BakeSettings, ExportSettings, PlaybackSettings, PointCacheSettings


class SKINNING_OT_bake_rotation_centers(Checked, SkinningJob, bpy.types.Operator):
    """Find the center of rotation of each vertex where bones blend, and store it in the mesh.
    Selected meshes of one armature are one body"""

    bl_idname = "skinning.bake_rotation_centers"
    bl_label = "Bake Centers of Rotation"

    settings = BakeSettings
    require = staticmethod(on_meshes_meant(modifier.check_bakeable))
    work = staticmethod(on_meshes_meant(modifier.bake))


class SKINNING_OT_add_center_of_rotation_modifier(Checked, AtOnce, bpy.types.Operator):
    """Deform about the baked centers of rotation by Geometry Nodes. Turns off the Armature modifier"""

    bl_idname = "skinning.add_center_of_rotation_modifier"
    bl_label = "Add Center of Rotation Modifier"

    require = staticmethod(on_mesh_meant(modifier.check_addable))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        added = modifier.add(context, mesh_meant(context, active))
        record = modifier_record(added)
        assert record is not None
        return (
            f'{added.id_data.name}: modifier "{added.name}" deforms by {counted(len(record.bones), "bone")}, '
            f'modifier "{record.armature_modifier}" is turned off'
        )


class SKINNING_OT_remove_center_of_rotation_modifier(Checked, AtOnce, bpy.types.Operator):
    """Remove the modifier and turn the Armature modifier on again"""

    bl_idname = "skinning.remove_center_of_rotation_modifier"
    bl_label = "Remove Center of Rotation Modifier"

    require = staticmethod(on_mesh_meant(modifier.check_removable))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        mesh_object = mesh_meant(context, active)
        assert mesh_object is not None
        armature = modifier.remove(mesh_object)
        left = f'modifier "{armature.name}" restored' if armature is not None else "there is no Armature modifier"
        return f"{mesh_object.name}: {modifier.LABEL} modifier removed, {left}"


class SKINNING_OT_crs_to_shape_keys(Checked, SkinningJob, bpy.types.Operator):
    """Make a copy of the mesh with a shape key per frame, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_shape_keys"
    bl_label = "Apply as Shape Keys"

    settings = PlaybackSettings
    require = staticmethod(on_mesh_meant(baking.check_baked))
    work = staticmethod(on_mesh_meant(playback.to_shape_keys))


class SKINNING_OT_crs_to_pc2(Checked, SkinningJob, bpy.types.Operator):
    """Make a copy of the mesh that plays a PC2 point cache, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_pc2"
    bl_label = "Bake to PC2"

    settings = PointCacheSettings
    require = staticmethod(on_mesh_meant(baking.check_baked))
    work = staticmethod(on_mesh_meant(playback.to_point_cache))


class SKINNING_OT_prepare_centers_for_export(Checked, AtOnce, bpy.types.Operator):
    """Copy the baked centers to the attribute _COR, which the glTF exporter writes if its option Attributes is on"""

    bl_idname = "skinning.prepare_centers_for_export"
    bl_label = "Prepare Centers for Export"

    settings = ExportSettings
    require = staticmethod(on_mesh_meant(baking.check_baked))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        mesh_object = mesh_meant(context, active)
        assert mesh_object is not None
        count = export.write_export_attribute(mesh_object, self.y_up)
        self.report(
            {"INFO"},
            translated(
                f"{mesh_object.name}: {count:,} centers in attribute {export.GLTF_ATTRIBUTE}. "
                "Enable Data > Mesh > Attributes in the glTF exporter"
            ),
        )
        if native_modifier(mesh_object) is not None:
            self.report(
                {"WARNING"},
                translated(
                    f"{mesh_object.name}: remove the Center of Rotation modifier before the export, or export without "
                    "Apply Modifiers: otherwise the pose is written into the mesh"
                ),
            )


registry = [
    SKINNING_OT_bake_rotation_centers,
    SKINNING_OT_add_center_of_rotation_modifier,
    SKINNING_OT_remove_center_of_rotation_modifier,
    SKINNING_OT_crs_to_shape_keys,
    SKINNING_OT_crs_to_pc2,
    SKINNING_OT_prepare_centers_for_export,
]
