# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit weights to a pose: posed copies to move vertices of, the fit itself, and what it has left."""

import bpy
from bpy.props import BoolProperty, StringProperty

from ...blender import dependencies, error_display
from ...blender.preconditions import check_mode
from ...core.errors import BadScene
from ...ui.boundary import Checked, Immediate, reported
from ...ui.jobs import SkinningJob
from . import fit, posed_copies
from .posed_copies import copies_of, fit_target, is_copy
from .settings import FitSettings


class SKINNING_OT_start_weight_fit(Immediate, bpy.types.Operator):
    """Make a copy of the mesh as it is posed, in its place, to move vertices of to where weights shall bring them.
    Another pose may get another copy: all count alike"""

    bl_idname = "skinning.start_weight_fit"
    bl_label = "Start Weight Fit"

    require = staticmethod(posed_copies.check_startable)

    def act(self, context, object):
        dependencies.require_dependencies()
        copy = posed_copies.start(context, object)
        return f'Move vertices of "{copy.name}" in Edit or Sculpt Mode, then press Fit Weights'


class SKINNING_OT_show_fit_copy(Immediate, bpy.types.Operator):
    """Go to this posed copy and hide the others"""

    bl_idname = "skinning.show_fit_copy"
    bl_label = "Show Posed Copy"

    name: StringProperty(name="Name", description="Of the copy", options={"SKIP_SAVE"})

    @staticmethod
    def require(context, object):
        if not copies_of(fit_target(context, object), context.scene):
            raise BadScene("There is no posed copy of this mesh")

    def act(self, context, object):
        original = fit_target(context, object)
        copy = context.view_layer.objects.get(self.name)
        if copy not in copies_of(original, context.scene):
            raise BadScene(f'"{original.name}" has no posed copy "{self.name}" in this view layer')
        if object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        posed_copies.show(context, original, copy)


class SKINNING_OT_cancel_weight_fit(Immediate, bpy.types.Operator):
    """Remove the posed copies without changing any weight, and show the mesh again"""

    bl_idname = "skinning.cancel_weight_fit"
    bl_label = "Cancel Weight Fit"

    @staticmethod
    def require(context, object):
        if not _copies(context, object):
            raise BadScene("There is no posed copy of this mesh")

    def act(self, context, object):
        posed_copies.remove(context, _copies(context, object))
        return "Weights left as they were"


class SKINNING_OT_fit_weights_to_pose(Checked, SkinningJob, bpy.types.Operator):
    """Solve for the weights that bring vertices closest to where they are wanted in a pose (Mohr et al. 2003)"""

    bl_idname = "skinning.fit_weights_to_pose"
    bl_label = "Fit Weights to Pose"

    settings = FitSettings
    require = staticmethod(fit_target)
    work = staticmethod(fit.fit)

    def finish(self, context, result):
        return result.summary(context.scene)


class SKINNING_OT_show_fit_error(Immediate, bpy.types.Operator):
    """Show in color how far each vertex of the last fit is from its place: blue for none, red for most"""

    bl_idname = "skinning.show_fit_error"
    bl_label = "Show Fit Error"

    show: BoolProperty(name="Show", description="Off removes the colors", default=True, options={"SKIP_SAVE"})

    @staticmethod
    def require(context, object):
        original = fit_target(context, object)
        check_mode(original)
        if fit.ERROR_ATTRIBUTE not in original.data.attributes:
            raise BadScene(f'No weights of "{original.name}" were fitted yet')

    def act(self, context, object):
        original = fit_target(context, object)
        line = ""
        if self.show:
            scale = error_display.add_error_colors(original, fit.ERROR_ATTRIBUTE)
            line = f"{original.name}: {scale.meaning(context)}"
        else:
            error_display.remove_error_colors(original)
        error_display.show_colors(context, self.show)
        return line


class SKINNING_OT_show_reachable(bpy.types.Operator):
    """Draw where the selected vertex can get to by weights alone: where each of its bones would put it, and the \
region in between. Changes nothing in the scene"""

    bl_idname = "skinning.show_reachable"
    bl_label = "Show Reachable Region"
    bl_options = {"REGISTER"}

    show: BoolProperty(name="Show", description="Draw it, or not any more", default=True, options={"SKIP_SAVE"})

    def execute(self, context):
        with reported(self):
            reachable = context.window_manager.skinning_reachable
            if self.show:
                dependencies.require_dependencies()
                reachable.start()
            else:
                reachable.stop()
            return {"FINISHED"}
        return {"CANCELLED"}


def _copies(context, object) -> list:
    """Those that a cancelled fit removes: all of the mesh that is meant, or the active one, whose mesh is gone."""
    if is_copy(object) and posed_copies.original_of(object) is None:
        return [object]
    return copies_of(fit_target(context, object), context.scene)


registry = [
    SKINNING_OT_start_weight_fit,
    SKINNING_OT_show_fit_copy,
    SKINNING_OT_cancel_weight_fit,
    SKINNING_OT_fit_weights_to_pose,
    SKINNING_OT_show_fit_error,
    SKINNING_OT_show_reachable,
]
