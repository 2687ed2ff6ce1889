# SPDX-License-Identifier: GPL-3.0-or-later
"""The build of an EigenSkin, and operators on the finished corrections."""

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from ...blender import error_display
from ...blender.character import character_of, on_mesh_meant, target_mesh
from ...blender.preconditions import check_mode
from ...blender.wording import counted
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from ...ui.presets import AddsPreset, AppliesPreset
from . import bake, build, engine_table, writer
from .record import check_present
from .settings import PRESETS, BakeSettings, BuildSettings, TableSettings

HEAT_MAPS = (
    ("BEFORE", "Before", "Largest distance of each vertex from the examples with plain linear blending"),
    ("AFTER", "After", "Largest distance of each vertex from the examples with the corrections"),
    ("OFF", "Off", "Show the mesh's materials again"),
)


class SKINNING_OT_build_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Make shape keys, driven by the pose, that correct the mesh to match the examples. Replaces the previous build"""

    bl_idname = "skinning.build_eigenskin"
    bl_label = "Build EigenSkin"

    settings = BuildSettings
    require = staticmethod(build.check_buildable)
    work = staticmethod(build.build)


class _OnCorrectedMesh(Checked, AtOnce):
    """Mix-in for operators on a mesh with corrections. Subclasses define ``change(context, mesh_object)``, which
    returns a message or None."""

    @staticmethod
    def require(context: bpy.types.Context, mesh_object: bpy.types.Object | None) -> None:
        if mesh_object is not None and mesh_object.type == "ARMATURE":
            mesh_object = character_of(context, mesh_object)
        check_present(mesh_object)
        check_mode(mesh_object)

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        mesh_object = target_mesh(context)
        assert mesh_object is not None
        text = self.change(context, mesh_object)  # type: ignore[attr-defined] # of the subclass
        return f"{mesh_object.name}: {text}" if text else ""


class SKINNING_OT_remove_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the corrections with everything that they added to the mesh and its armature. The examples stay"""

    bl_idname = "skinning.remove_eigenskin"
    bl_label = "Remove EigenSkin"

    def change(self, context: bpy.types.Context, mesh_object: bpy.types.Object) -> str:
        if error_display.shows_colors(mesh_object):
            error_display.show_colors(context, False)
        bones = build.remove(context, mesh_object)
        more = f", {counted(bones, 'half-rotation bone')} removed" if bones else ""
        return f"corrections removed{more}, examples kept"


class SKINNING_OT_mute_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Turn the corrections off without removing them, or on again"""

    bl_idname = "skinning.mute_eigenskin"
    bl_label = "Mute EigenSkin"

    mute: BoolProperty(name="Mute", description="Turn the corrections off", default=True, options={"SKIP_SAVE"})

    def change(self, context: bpy.types.Context, mesh_object: bpy.types.Object) -> str:
        writer.mute_eigenskin(mesh_object, self.mute)
        return f"corrections {'muted' if self.mute else 'on'}"


class SKINNING_OT_bake_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Key the corrections' values at each frame and mute the drivers, for exporters and engines without drivers.
    glTF: Animation Mode Active Actions puts the keyframes into one clip with the bones"""

    bl_idname = "skinning.bake_eigenskin"
    bl_label = "Bake EigenSkin to Keyframes"

    settings = BakeSettings
    require = staticmethod(bake.check_bakeable)
    work = staticmethod(bake.bake_to_keyframes)


class SKINNING_OT_unbake_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the keyframes of the corrections and let the drivers play again"""

    bl_idname = "skinning.unbake_eigenskin"
    bl_label = "Remove EigenSkin Keyframes"

    def change(self, context: bpy.types.Context, mesh_object: bpy.types.Object) -> str:
        bake.unbake(mesh_object)
        return "the drivers control the corrections again"


class SKINNING_OT_save_eigenskin_table(Checked, SavesFile, bpy.types.Operator):
    """Save the corrections as tables for an engine's shaders, and prepare the mesh for the glTF exporter"""

    bl_idname = "skinning.save_eigenskin_table"
    bl_label = "Save EigenSkin Table"
    # The mesh gets an attribute for the exporter.
    bl_options = {"REGISTER", "UNDO"}

    filename_ext = ".bin"
    filter_glob: StringProperty(default="*.bin", options={"HIDDEN"})

    settings = TableSettings
    require = staticmethod(_OnCorrectedMesh.require)
    work = staticmethod(on_mesh_meant(engine_table.save_table))


class SKINNING_OT_show_eigenskin_error(_OnCorrectedMesh, bpy.types.Operator):
    """Show in color how far each vertex is from the examples, from blue for none to red for the most before \
correction"""

    bl_idname = "skinning.show_eigenskin_error"
    bl_label = "Show EigenSkin Error"

    shown: EnumProperty(
        name="Shown", description="What the colors show", items=HEAT_MAPS, default="AFTER", options={"SKIP_SAVE"}
    )

    def change(self, context: bpy.types.Context, mesh_object: bpy.types.Object) -> str:
        if self.shown == "OFF":
            error_display.remove_error_colors(mesh_object)
            error_display.show_colors(context, False)
            return ""
        scale = build.show_heat_map(mesh_object, self.shown)
        error_display.show_colors(context, True)
        return scale.meaning(context)


class SKINNING_OT_add_eigenskin_preset(AddsPreset, bpy.types.Operator):
    """Save the settings of Build EigenSkin as a preset, or remove one"""

    bl_idname = "skinning.add_eigenskin_preset"
    bl_label = "Add EigenSkin Preset"
    presets = PRESETS


class SKINNING_OT_apply_eigenskin_preset(AppliesPreset, bpy.types.Operator):
    """Copy the settings of this preset to the panel"""

    bl_idname = "skinning.apply_eigenskin_preset"
    bl_label = "Apply EigenSkin Preset"
    presets = PRESETS


registry = [
    SKINNING_OT_add_eigenskin_preset,
    SKINNING_OT_apply_eigenskin_preset,
    SKINNING_OT_build_eigenskin,
    SKINNING_OT_remove_eigenskin,
    SKINNING_OT_mute_eigenskin,
    SKINNING_OT_bake_eigenskin,
    SKINNING_OT_unbake_eigenskin,
    SKINNING_OT_save_eigenskin_table,
    SKINNING_OT_show_eigenskin_error,
]
