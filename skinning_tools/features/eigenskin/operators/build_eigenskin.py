# SPDX-License-Identifier: GPL-3.0-or-later
"""Build EigenSkin, and what is done with the corrections afterwards: mute, bake for export, look at, remove."""

import bpy
from bpy.props import BoolProperty, EnumProperty

from ....blender import dependencies, error_display
from ....blender.character import character_of, target_mesh
from ....blender.object_checks import check_mode
from ....blender.skin_reader import armature_of
from ....ui.boundary import Checked, reported
from ....ui.common_settings import RANGE_NAMES, frame_annotations
from ....ui.jobs import SkinningJob
from .. import eigenskin, eigenskin_bake, eigenskin_settings, eigenskin_writer
from ..eigenskin_record import check_present

HEAT_MAPS = (
    ("BEFORE", "Before", "Largest distance of each vertex from the examples by plain linear blending"),
    ("AFTER", "After", "Largest distance of each vertex from the examples with the corrections"),
    ("OFF", "Off", "Show the mesh's materials again"),
)


class SKINNING_OT_build_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Make shape keys, driven by the pose, that correct the mesh as the examples show. Those of the last build go"""

    bl_idname = "skinning.build_eigenskin"
    bl_label = "Build EigenSkin"

    __annotations__ = eigenskin_settings.setting_annotations("soft_min")

    @staticmethod
    def require(context, object):
        eigenskin.check_buildable(context, character_of(context, object))

    def prepare(self, context):
        """Take what the caller did not give from the armature's settings, as the panel shows them."""
        self.fill(eigenskin_settings.SETTING_NAMES, armature_of(target_mesh(context)).skinning_eigenskin)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in eigenskin_settings.SETTING_NAMES}
        normals = given.pop("normals")
        return (yield from eigenskin.build(context, target_mesh(context), given, normals))

    def finish(self, context, result):
        return result.summary(context.scene)


class _OnCorrectedMesh(Checked):
    """Mix-in of what works on a mesh that has corrections."""

    bl_options = {"REGISTER", "UNDO"}

    @staticmethod
    def require(context, object):
        if object is not None and object.type == "ARMATURE":
            object = character_of(context, object)
        check_present(object)
        check_mode(object)


class SKINNING_OT_remove_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the corrections with all that they added to the mesh. The examples stay"""

    bl_idname = "skinning.remove_eigenskin"
    bl_label = "Remove EigenSkin"

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            if error_display.shows_colors(object):
                error_display.show_colors(context, False)
            eigenskin.remove(object)
            self.report({"INFO"}, f"{object.name}: corrections removed, examples kept")
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_mute_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Switch the corrections off without removing them, and on again"""

    bl_idname = "skinning.mute_eigenskin"
    bl_label = "Mute EigenSkin"

    mute: BoolProperty(name="Mute", description="Off if set, on if not", default=True, options={"SKIP_SAVE"})

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            eigenskin_writer.mute_eigenskin(object, self.mute)
            self.report({"INFO"}, f"{object.name}: corrections {'muted' if self.mute else 'on'}")
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_bake_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Key the corrections' values at each frame, for exporters and engines that know no drivers, which are muted.
    glTF: Animation Mode Active Actions puts them into one clip with the bones"""

    bl_idname = "skinning.bake_eigenskin"
    bl_label = "Bake EigenSkin to Keyframes"

    __annotations__ = frame_annotations("key", "soft_min")

    @staticmethod
    def require(context, object):
        eigenskin_bake.check_bakeable(context, character_of(context, object))

    def prepare(self, context):
        """Fix the range, so that "Adjust Last Operation" shows and keeps it."""
        self.fill(RANGE_NAMES, context.scene)

    def steps(self, context):
        dependencies.require_dependencies()
        frames = self.given(RANGE_NAMES) | {"frame_step": self.frame_step}
        return (yield from eigenskin_bake.bake_to_keyframes(context, target_mesh(context), **frames))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_unbake_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the keyframes of the corrections and let the drivers play again"""

    bl_idname = "skinning.unbake_eigenskin"
    bl_label = "Remove EigenSkin Keyframes"

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            eigenskin_bake.unbake(object)
            self.report({"INFO"}, f"{object.name}: the drivers play the corrections again")
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_show_eigenskin_error(_OnCorrectedMesh, bpy.types.Operator):
    """Show in color how far each vertex is from the examples: blue for none, red for the most before correction"""

    bl_idname = "skinning.show_eigenskin_error"
    bl_label = "Show EigenSkin Error"

    shown: EnumProperty(name="Shown", items=HEAT_MAPS, default="AFTER", options={"SKIP_SAVE"})

    def execute(self, context):
        with reported(self):
            object = target_mesh(context)
            if self.shown == "OFF":
                error_display.remove_error_colors(object)
                error_display.show_colors(context, False)
                return {"FINISHED"}
            scale = eigenskin.show_heat_map(object, self.shown)
            error_display.show_colors(context, True)
            self.report({"INFO"}, f"{object.name}: {scale.meaning(context)}")
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [
    SKINNING_OT_build_eigenskin,
    SKINNING_OT_remove_eigenskin,
    SKINNING_OT_mute_eigenskin,
    SKINNING_OT_bake_eigenskin,
    SKINNING_OT_unbake_eigenskin,
    SKINNING_OT_show_eigenskin_error,
]
