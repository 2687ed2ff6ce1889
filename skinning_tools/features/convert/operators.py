# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning, its presets, and operators on a finished conversion: show its error, convert again,
compare with the source, reuse its settings, delete it."""

from collections.abc import Callable
from typing import ClassVar

import bpy
import numpy as np
from bpy.props import EnumProperty
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

from ...blender import dependencies, error_display
from ...blender.areas import redraw_views
from ...blender.clip_tracks import play_clip
from ...blender.conversions import Result, result_of
from ...blender.data_blocks import object_again
from ...blender.job_checks import still_running
from ...blender.lengths import length_text
from ...blender.look_ups import shares
from ...blender.preconditions import unmet
from ...blender.translation import translated
from ...blender.visibility import hide_for, leave_mode, make_active, set_hidden, show_again
from ...blender.wording import counted
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.compare import SHOWN, show_only
from ...ui.jobs import AtOnce, SkinningJob
from ...ui.presets import AddsPreset, AppliesPreset
from . import worst_mark
from .chosen_sources import check_chosen, chosen_sources, convert_active, convert_again, reason_not_to_convert
from .conversion import Conversion
from .result import delete_result, in_its_place, notes_on_deleting, objects_made, other_results, worst_clip, worst_frame
from .settings import CONVERT, KEEP, PRESETS, ConvertAgainSettings, ConvertSettings, take_settings
from .suggestion import suggest_bones

PARTS = (
    ("SOURCE", "Source", "The mesh that was converted"),
    ("MESH", "Skinned Mesh", "The mesh that the bones deform"),
    ("RIG", "Rig", "The armature"),
)


class _Converting(SkinningJob):
    """Mix-in for operators that return a Conversion."""

    def finish(self, context: bpy.types.Context, result: Conversion) -> str:
        for note in result.notes:
            self.report({"INFO"}, translated(note))
        self.leave_notes(result)
        return result.line()


class SKINNING_OT_convert_animation(_Converting, bpy.types.Operator):
    """Turn the active mesh's animation into a skinned copy with an armature, weights and keyframes. On the result of \
an earlier conversion: convert its source"""

    bl_idname = "skinning.convert_animation"
    bl_label = "Convert Animation to Skinning"

    settings = ConvertSettings
    work = staticmethod(convert_active)

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        # Whether source or result is converted depends on the caller's settings.
        reasons = [reason_not_to_convert(context, ConvertSettings(on_result=meant)) for meant in (KEEP, CONVERT)]
        if all(reasons):
            cls.poll_message_set(translated(reasons[0]))
            return False
        return True


class SKINNING_OT_suggest_bones(Checked, AtOnce, bpy.types.Operator):
    """Set the number of bones from the independent motions in a few frames, \
for an E_RMS of about 2"""

    bl_idname = "skinning.suggest_bones"
    bl_label = "Suggest Bones"

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        chosen = context.scene.skinning_conversion
        check_chosen(context, chosen_sources(context, active, chosen))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        dependencies.require_dependencies()
        chosen, scene = context.scene.skinning_conversion, context.scene
        sources = chosen_sources(context, active, chosen).sources
        frames = scene if chosen.use_scene_range else chosen
        groups = [(ob,) for ob in sources] if chosen.as_clips else [sources]
        found = suggest_bones(context, groups, chosen.bone_kind, frames.frame_start, frames.frame_end)
        chosen.bone_count = found.bone_count
        return f"{sources[0].name}: {counted(found.bone_count, 'bone')}, from {found.reason}"


class SKINNING_OT_add_conversion_preset(AddsPreset, bpy.types.Operator):
    """Save the settings of Convert Animation as a preset, or remove one"""

    bl_idname = "skinning.add_conversion_preset"
    bl_label = "Add Conversion Preset"
    presets = PRESETS


class SKINNING_OT_apply_conversion_preset(AppliesPreset, bpy.types.Operator):
    """Copy the settings of this preset to the panel"""

    bl_idname = "skinning.apply_conversion_preset"
    bl_label = "Apply Conversion Preset"
    presets = PRESETS


class _OnResult(AtOnce):
    """Mix-in for operators on the active object's conversion: ``act_on`` does the work. SciPy is not needed for it."""

    act_on: ClassVar[Callable[..., str | None]]
    poll_message_set: ClassVar[Callable[[str], None]]

    @classmethod
    @shares
    def poll(cls, context: bpy.types.Context) -> bool:
        reason = cls.reason(context, result_of(context.view_layer.objects.active))
        if reason:
            cls.poll_message_set(translated(reason))
        return not reason

    @classmethod
    def reason(cls, context: bpy.types.Context, result: Result | None) -> str:
        """Why the operator cannot run now, or ""."""
        if still_running():
            return still_running()
        if context.mode not in {"OBJECT", "POSE"}:
            return str(unmet("NOT_IN_OBJECT_MODE"))
        return "" if result is not None else str(unmet("NOT_A_RESULT", that=""))

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str | None:
        return self.act_on(context, result_of(active))


class SKINNING_OT_select_result(_OnResult, bpy.types.Operator):
    """Select one of the objects of this conversion and make it active"""

    bl_idname = "skinning.select_result"
    bl_label = "Select Result"

    part: EnumProperty(name="Part", description="What to select", items=PARTS, default="RIG")

    @classmethod
    def reason(cls, context: bpy.types.Context, result: Result | None) -> str:
        if context.mode != "OBJECT":
            return str(unmet("NOT_IN_OBJECT_MODE"))
        return "" if result is not None else str(unmet("NOT_A_RESULT", that=""))

    def act_on(self, context: bpy.types.Context, result: Result) -> None:
        part = {"SOURCE": result.source, "MESH": result.mesh, "RIG": result.rig}[self.part]
        label = next(label for part, label, _ in PARTS if part == self.part).lower()
        if part is None or part.name not in context.view_layer.objects:
            raise BadScene(
                f"The {label} of this conversion is not in the view layer: it was renamed, deleted or excluded"
            )
        if not part.visible_get():
            raise BadScene(f'The {label} of this conversion, object "{part.name}", is hidden. Show it first')
        make_active(context, part)


class SKINNING_OT_show_error(_OnResult, bpy.types.Operator):
    """Show the largest error of each vertex in color, from blue for none to red for the worst percent of the vertices \
with an error. The source and its other results, which lie in the same place, are hidden meanwhile"""

    bl_idname = "skinning.show_error"
    bl_label = "Show Error"

    @classmethod
    def reason(cls, context: bpy.types.Context, result: Result | None) -> str:
        if result is None or not _with_error(result):
            return str(unmet("NOT_A_RESULT", that=" that has its error stored"))
        edited = any(mesh.data.is_editmode for mesh in _with_error(result))
        return str(unmet("NOT_IN_OBJECT_MODE")) if edited else ""

    def act_on(self, context: bpy.types.Context, result: Result) -> str | None:
        if any(error_display.shows_error(mesh) for mesh in _with_error(result)):
            self._show_materials(context, result)
            return None
        return self._show_colors(context, result)

    def _show_colors(self, context: bpy.types.Context, result: Result) -> str:
        meshes = _with_error(result)
        # The same color means the same error on all meshes.
        scale = error_display.Scale.of(np.concatenate([error_display.read_errors(mesh.data) for mesh in meshes]))
        for mesh in meshes:
            error_display.add_error_colors(mesh, scale=scale)
        hide_for(context, meshes[0].data, error_display.HIDDEN, in_its_place(result), result.mesh or meshes[0])
        error_display.show_colors(context, True)
        return f"{', '.join(mesh.name for mesh in meshes)}: {scale.meaning(context)}"

    def _show_materials(self, context: bpy.types.Context, result: Result) -> None:
        meshes, others = _with_error(result), in_its_place(result)
        noted = [show_again(context, mesh.data, error_display.HIDDEN, others) for mesh in meshes]
        if not any(noted):
            # Earlier versions hid the sources without recording it.
            for source in result.sources:
                set_hidden(context, source, False)
        for mesh in meshes:
            error_display.remove_error_colors(mesh)
        error_display.show_colors(context, False)


class SKINNING_OT_show_worst_frame(_OnResult, bpy.types.Operator):
    """Go to the frame with the largest error and mark the vertex that has it. Press again to remove the mark"""

    bl_idname = "skinning.show_worst_frame"
    bl_label = "Go to Worst Frame"

    @classmethod
    def reason(cls, context: bpy.types.Context, result: Result | None) -> str:
        if result is None or worst_frame(result.figures) is None:
            return str(unmet("NOT_A_RESULT", that=" that has its errors over time stored"))
        return ""

    def act_on(self, context: bpy.types.Context, result: Result) -> str | None:
        if worst_mark.marked(context, result):
            worst_mark.clear_mark()
            # The scene does not change, so nothing else redraws the views.
            redraw_views()
            return None
        worst = worst_frame(result.figures)
        assert worst is not None
        frame = round(worst)
        for clip in worst_clip(result.figures) if result.rig is not None else ():
            play_clip(result.rig, result.meshes, clip)
        context.scene.frame_set(frame)
        mark = worst_mark.set_mark(result)
        self._show(context, result)
        if mark is None:
            return f"Frame {frame}. The worst vertex is not known any more: use Convert Again"
        distance = length_text(context.scene, result.figures["largest_distance"], 3)
        line = f"Frame {frame}: vertex {mark.vertex} of {mark.name} is farthest off. Largest error: {distance}"
        ob = object_again(mark.name, mark.uid)
        if ob is not None and ob.visible_get(view_layer=context.view_layer):
            return line
        self.report({"INFO"}, translated(line))
        return f"{mark.name} is hidden: the mark appears once you show it, for example with Result in Conversions"

    def _show(self, context: bpy.types.Context, result: Result) -> None:
        """Center the views that do not show the marked vertex on it, except camera views."""
        found = worst_mark.marked(context, result)
        if found is None:
            return
        place = worst_mark.place_of(context, *found)
        for area in context.screen.areas if context.screen is not None else ():
            if area.type == "VIEW_3D":
                bring_into_view(area, place)


def bring_into_view(area: bpy.types.Area, place: Vector) -> None:
    """Center the area's view on ``place`` unless it is visible already."""
    region = next(region for region in area.regions if region.type == "WINDOW")
    view = area.spaces.active.region_3d
    if view.view_perspective == "CAMERA":
        return
    at = location_3d_to_region_2d(region, view, place)
    covered = sum(other.width for other in area.regions if other.type == "UI")
    if at is None or not (0 < at.x < region.width - covered and 0 < at.y < region.height):
        view.view_location = place


def _with_error(result: Result) -> list:
    return [mesh for mesh in result.meshes if error_display.has_error(mesh)]


class SKINNING_OT_convert_again(_Converting, _OnResult, bpy.types.Operator):
    """Convert the source of this conversion again, with its present animation and the same settings"""

    bl_idname = "skinning.convert_again"
    bl_label = "Convert Again"

    settings = ConvertAgainSettings
    work = staticmethod(convert_again)

    @classmethod
    def reason(cls, context: bpy.types.Context, result: Result | None) -> str:
        return dependencies.missing_dependency() or super().reason(context, result)


class SKINNING_OT_use_result_settings(_OnResult, bpy.types.Operator):
    """Copy the settings of this conversion to the panel, to change them and convert again"""

    bl_idname = "skinning.use_result_settings"
    bl_label = "Use Settings"

    def act_on(self, context: bpy.types.Context, result: Result) -> None:
        take_settings(context.scene, result.figures)


class SKINNING_OT_compare_result(_OnResult, bpy.types.Operator):
    """Show only the source or only the result, to see what differs; other results of the source are \
hidden. From a shortcut: alternate between the two"""

    bl_idname = "skinning.compare_result"
    bl_label = "Compare with Source"

    show: EnumProperty(name="Show", description="What to show", items=SHOWN, default="OTHER")

    def act_on(self, context: bpy.types.Context, result: Result) -> None:
        if not result.sources or not result.meshes:
            gone = "source" if not result.sources else "skinned mesh"
            raise BadScene(
                f"The {gone} of this conversion was renamed or deleted, or is in another file, so there is nothing to "
                "compare"
            )
        pairs = [(part.source, part.mesh) for part in result.parts]
        show_only(context, pairs, self.show, [mesh for other in other_results(result) for mesh in other.meshes])


class SKINNING_OT_delete_result(_OnResult, bpy.types.Operator):
    """Delete the skinned meshes, armature and action of this conversion. The source stays and is shown again"""

    bl_idname = "skinning.delete_result"
    bl_label = "Delete Result"

    def act_on(self, context: bpy.types.Context, result: Result) -> str:
        objects = context.view_layer.objects
        active = objects.active
        stand_in = next((part.source for part in result.parts if part.mesh == active), None)
        goes, selected = active in objects_made(result), active.select_get()
        if goes:
            leave_mode(context)
        notes = notes_on_deleting([result])
        names = delete_result(context, result)
        for source in result.sources:
            set_hidden(context, source, False)
        # Replaces the deleted active object; the rest of the selection stays.
        stand_in = stand_in or next(iter(result.sources), None)
        if goes and stand_in is not None and stand_in in objects.values():
            stand_in.select_set(selected or stand_in.select_get())
            objects.active = stand_in
        for note in notes:
            self.report({"INFO"}, translated(note))
        return f"Deleted {', '.join(names)}"


registry = [
    SKINNING_OT_convert_animation,
    SKINNING_OT_suggest_bones,
    SKINNING_OT_add_conversion_preset,
    SKINNING_OT_apply_conversion_preset,
    SKINNING_OT_select_result,
    SKINNING_OT_show_error,
    SKINNING_OT_show_worst_frame,
    SKINNING_OT_convert_again,
    SKINNING_OT_use_result_settings,
    SKINNING_OT_compare_result,
    SKINNING_OT_delete_result,
]
