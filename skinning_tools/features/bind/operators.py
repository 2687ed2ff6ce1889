# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind meshes to an armature, and the volumes that containment binding uses."""

import bpy

from ...blender import dependencies
from ...blender.wording import counted
from ...core.errors import BadScene
from ...ui.boundary import Checked, reported
from ...ui.jobs import SkinningJob
from . import bind, bind_settings, bind_volumes, rigid_objects
from .bind_targets import check_active, find_armature, find_targets


class _Binds(Checked, SkinningJob):
    """Mix-in of what works on the meshes and the armature that the user means."""

    require = staticmethod(check_active)

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        if not self.properties.is_property_set("armature"):
            self.armature = bind_settings.chosen_armature(context.scene)


class SKINNING_OT_bind(_Binds, bpy.types.Operator):
    """Give the mesh weights of the armature's deforming bones, in their rest pose, and let the armature deform it.
    With the armature active, all selected meshes, or else all that it deforms"""

    bl_idname = "skinning.bind"
    bl_label = "Bind"

    __annotations__ = bind_settings.setting_annotations("soft_min") | {
        "armature": bind_settings.armature_name_property()
    }

    def prepare(self, context):
        super().prepare(context)
        self.fill(bind_settings.SETTING_NAMES, context.scene.skinning_bind)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in bind_settings.SETTING_NAMES}
        as_objects = given.pop("as_objects") and self.method == "RIGID"
        targets = find_targets(context, self.armature, as_objects)
        if as_objects:
            return (yield from rigid_objects.parent_to_bones(context, targets))
        return (yield from bind.bind(context, targets, bind.BindSettings(**given)))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_generate_volumes(_Binds, bpy.types.Operator):
    """Make a volume around each deforming bone, as wide as the mesh is there, to edit before binding by containment.
    They stand around the rest pose. Those of the armature that there are go"""

    bl_idname = "skinning.generate_volumes"
    bl_label = "Generate Volumes"

    kind: bind_settings.volume_kind_property()
    armature: bind_settings.armature_name_property()

    def prepare(self, context):
        super().prepare(context)
        if not self.properties.is_property_set("kind"):
            self.kind = context.scene.skinning_bind.volume_kind

    def steps(self, context):
        dependencies.require_dependencies()
        targets = find_targets(context, self.armature)
        count = yield from bind.generate_volumes(context, targets, self.kind)
        return targets.armature.name, count

    def finish(self, context, result):
        name, count = result
        return f"{name}: {counted(count, 'volume')}. Move, rotate and scale them, then bind with Containment"


class _OnVolumes(Checked):
    """Mix-in of what works on the volumes of the armature that the user means."""

    bl_options = {"REGISTER", "UNDO"}

    __annotations__ = {"armature": bind_settings.armature_name_property()}

    require = staticmethod(check_active)

    def invoke(self, context, event):
        if not self.properties.is_property_set("armature"):
            self.armature = bind_settings.chosen_armature(context.scene)
        return self.execute(context)

    def armature_with_volumes(self, context):
        """The armature and its volumes. Raises BadScene where it has none."""
        armature = find_armature(context, self.armature)
        volumes = bind_volumes.volumes_of(armature)
        if not volumes:
            raise BadScene(f'The armature "{armature.name}" has no volumes. Generate them first')
        return armature, volumes


class SKINNING_OT_remove_volumes(_OnVolumes, bpy.types.Operator):
    """Delete the volumes around the armature's bones"""

    bl_idname = "skinning.remove_volumes"
    bl_label = "Remove Volumes"

    def execute(self, context):
        with reported(self):
            armature, _ = self.armature_with_volumes(context)
            count = bind_volumes.remove_volumes(armature)
            self.report({"INFO"}, f"{armature.name}: {counted(count, 'volume')} removed")
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_mirror_volumes(_OnVolumes, bpy.types.Operator):
    """Give the bones on the other side the mirror images of the selected volumes, across the armature's X"""

    bl_idname = "skinning.mirror_volumes"
    bl_label = "Mirror Volumes"

    def execute(self, context):
        with reported(self):
            armature, volumes = self.armature_with_volumes(context)
            selected = [ob for ob in volumes if ob.select_get(view_layer=context.view_layer)]
            if not selected:
                raise BadScene("No volume is selected. Select the volumes of one side that are to be mirrored")
            count, bones = bind_volumes.mirror_volumes(armature, selected)
            self.report({"INFO"}, f"{counted(count, 'volume')} mirrored to {counted(bones, 'bone')}")
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [
    SKINNING_OT_bind,
    SKINNING_OT_generate_volumes,
    SKINNING_OT_remove_volumes,
    SKINNING_OT_mirror_volumes,
]
