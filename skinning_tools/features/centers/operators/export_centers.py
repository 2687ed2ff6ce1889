# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare Centers for Export: the operator around features.centers.center_export."""

import bpy
from bpy.props import BoolProperty

from ....blender import dependencies
from ....blender.center_records import native_modifier
from ....blender.character import on_mesh_meant, target_mesh
from ....ui.boundary import Checked, reported
from .. import center_export
from ..rotation_centers import check_baked


class SKINNING_OT_prepare_centers_for_export(Checked, bpy.types.Operator):
    """Copy the baked centers to the attribute _COR, which the glTF exporter writes with its option Attributes"""

    bl_idname = "skinning.prepare_centers_for_export"
    bl_label = "Prepare Centers for Export"
    bl_options = {"REGISTER", "UNDO"}

    y_up: BoolProperty(
        name="+Y Up",
        description="Turn the centers to glTF's axes, as the exporter's option of the same name does with the mesh",
        default=True,
    )

    require = staticmethod(on_mesh_meant(check_baked))

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            object = target_mesh(context)
            count = center_export.write_export_attribute(object, self.y_up)
            self.report(
                {"INFO"},
                f"{object.name}: {count:,} centers in attribute {center_export.GLTF_ATTRIBUTE}. "
                "Enable Data > Mesh > Attributes in the glTF exporter",
            )
            if native_modifier(object) is not None:
                self.report(
                    {"WARNING"},
                    f"{object.name}: remove the Center of Rotation modifier before the export, or export without Apply "
                    "Modifiers: else the pose is written into the mesh",
                )
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_prepare_centers_for_export]
