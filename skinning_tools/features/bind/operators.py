# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind meshes to an armature, and the volumes that containment binding uses."""

from collections.abc import Callable, Sequence

import bpy
from bpy.props import BoolProperty

from ...blender import background
from ...blender.wording import counted
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from ...ui.presets import AddsPreset, AppliesPreset
from . import bind, segment_view, tears, volumes
from .settings import PRESETS, ArmatureSettings, BindSettings, SegmentSettings, VolumeSettings
from .targets import check_active, find_armature


class SKINNING_OT_bind(Checked, SkinningJob, bpy.types.Operator):
    """Give the mesh weights of the armature's deforming bones, and let the armature deform it.
    If the armature is active, bind all selected meshes, or else all meshes that it deforms"""

    bl_idname = "skinning.bind"
    bl_label = "Bind"

    settings = BindSettings
    require = staticmethod(check_active)
    work = staticmethod(bind.bind_chosen)


class SKINNING_OT_show_segments(Checked, SkinningJob, bpy.types.Operator):
    """Draw the bones over the armature as a binding takes them: from joint to joint, and without controls.
    They stay as they were found until this is pressed again. Changes nothing in the scene"""

    bl_idname = "skinning.show_segments"
    bl_label = "Show Segments"
    bl_options = {"REGISTER"}

    settings = SegmentSettings
    work = staticmethod(segment_view.find_segments)

    show: BoolProperty(name="Show", description="Show or hide the segments", default=True, options={"SKIP_SAVE"})

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        # What is shown can be hidden, whatever is active.
        if not segment_view.display.shown:
            check_active(context, active)

    def steps(self, context: bpy.types.Context) -> background.Steps[segment_view.ShownSegments | None]:
        return (yield from super().steps(context)) if self.show else None

    def finish(self, context: bpy.types.Context, result: segment_view.ShownSegments | None) -> str:
        if result is None:
            segment_view.display.stop()
            return "The segments are hidden"
        segment_view.display.start(result)
        return super().finish(context, result)


class SKINNING_OT_find_t_intersections(Checked, AtOnce, bpy.types.Operator):
    """Select the vertices that lie on an edge of a face without being part of it, in Edit Mode.
    The surface opens there when it bends, whatever the weights"""

    bl_idname = "skinning.find_t_intersections"
    bl_label = "Find T-Intersections"

    needs_scipy = True
    settings = ArmatureSettings
    require = staticmethod(check_active)
    work = staticmethod(tears.find_tears)


class SKINNING_OT_generate_volumes(Checked, SkinningJob, bpy.types.Operator):
    """Make a volume around each deforming bone, as wide as the mesh is there, to edit before binding by containment.
    The volumes surround the rest pose. Replaces the armature's existing volumes"""

    bl_idname = "skinning.generate_volumes"
    bl_label = "Generate Volumes"

    settings = VolumeSettings
    require = staticmethod(check_active)
    work = staticmethod(bind.generate_volumes)

    def finish(self, context: bpy.types.Context, result: tuple[str, int]) -> str:
        name, count = result
        return f"{name}: {counted(count, 'volume')}. Move, rotate and scale them, then bind with Containment"


class _OnVolumes(Checked, AtOnce):
    """Mix-in for operators on the volumes of the chosen armature."""

    settings = ArmatureSettings
    require = staticmethod(check_active)
    change: Callable[[bpy.types.Context, bpy.types.Object, Sequence[bpy.types.Object]], str]

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        armature = find_armature(context, self.armature)  # type: ignore[attr-defined] # of the settings
        present = volumes.volumes_of(armature)
        if not present:
            raise BadScene(f'The armature "{armature.name}" has no volumes. Generate them first')
        return self.change(context, armature, present)


class SKINNING_OT_remove_volumes(_OnVolumes, bpy.types.Operator):
    """Delete the volumes around the armature's bones"""

    bl_idname = "skinning.remove_volumes"
    bl_label = "Remove Volumes"

    def change(
        self, context: bpy.types.Context, armature: bpy.types.Object, present: Sequence[bpy.types.Object]
    ) -> str:
        return f"{armature.name}: {counted(volumes.remove_volumes(armature), 'volume')} removed"


class SKINNING_OT_mirror_volumes(_OnVolumes, bpy.types.Operator):
    """Give the bones on the other side the mirror images of the selected volumes, across the armature's X"""

    bl_idname = "skinning.mirror_volumes"
    bl_label = "Mirror Volumes"

    def change(
        self, context: bpy.types.Context, armature: bpy.types.Object, present: Sequence[bpy.types.Object]
    ) -> str:
        selected = [ob for ob in present if ob.select_get(view_layer=context.view_layer)]
        if not selected:
            raise BadScene("No volume is selected. Select the volumes of one side to mirror")
        count, bones = volumes.mirror_volumes(armature, selected)
        return f"{counted(count, 'volume')} mirrored to {counted(bones, 'bone')}"


class SKINNING_OT_add_bind_preset(AddsPreset, bpy.types.Operator):
    """Save the settings of Bind as a preset, or remove one"""

    bl_idname = "skinning.add_bind_preset"
    bl_label = "Add Bind Preset"
    presets = PRESETS


class SKINNING_OT_apply_bind_preset(AppliesPreset, bpy.types.Operator):
    """Copy the settings of this preset to the panel"""

    bl_idname = "skinning.apply_bind_preset"
    bl_label = "Apply Bind Preset"
    presets = PRESETS


registry = [
    SKINNING_OT_add_bind_preset,
    SKINNING_OT_apply_bind_preset,
    SKINNING_OT_bind,
    SKINNING_OT_show_segments,
    SKINNING_OT_find_t_intersections,
    SKINNING_OT_generate_volumes,
    SKINNING_OT_remove_volumes,
    SKINNING_OT_mirror_volumes,
]
