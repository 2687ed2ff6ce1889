# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit weights to a pose: posed copies whose vertices the user moves, the fit, and its error."""

import bpy
from bpy.props import BoolProperty, StringProperty

from ...blender import dependencies, error_display
from ...blender.preconditions import check_mode
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import fit, posed_copies, reachable_view
from .posed_copies import copies_of, fit_target, is_copy
from .settings import FitSettings


class SKINNING_OT_start_weight_fit(Checked, AtOnce, bpy.types.Operator):
    """Make a copy of the posed mesh in the same place, whose vertices you move to where the weights should bring them.
    You can make a copy for each of several poses: all have equal weight"""

    bl_idname = "skinning.start_weight_fit"
    bl_label = "Start Weight Fit"

    needs_scipy = True
    require = staticmethod(posed_copies.check_startable)

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        copy = posed_copies.start(context, active)
        return f'Move vertices of "{copy.name}" in Edit or Sculpt Mode, then press Fit Weights'


class SKINNING_OT_show_fit_copy(Checked, AtOnce, bpy.types.Operator):
    """Make this posed copy active and hide the others"""

    bl_idname = "skinning.show_fit_copy"
    bl_label = "Show Posed Copy"

    name: StringProperty(name="Name", description="Name of the copy", options={"SKIP_SAVE"})

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        if not copies_of(fit_target(context, active), context.scene):
            raise BadScene("There is no posed copy of this mesh")

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        original = fit_target(context, active)
        copy = context.view_layer.objects.get(self.name)
        if copy not in copies_of(original, context.scene):
            raise BadScene(f'"{original.name}" has no posed copy "{self.name}" in this view layer')
        if active is not None and active.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        posed_copies.show(context, original, copy)


class SKINNING_OT_cancel_weight_fit(Checked, AtOnce, bpy.types.Operator):
    """Remove the posed copies without changing any weight, and show the mesh again"""

    bl_idname = "skinning.cancel_weight_fit"
    bl_label = "Cancel Weight Fit"

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        if not _copies(context, active):
            raise BadScene("There is no posed copy of this mesh")

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        posed_copies.remove(context, _copies(context, active))
        return "The weights were not changed"


class SKINNING_OT_fit_weights_to_pose(Checked, SkinningJob, bpy.types.Operator):
    """Solve for the weights that bring vertices closest to their targets in a pose (Mohr et al. 2003)"""

    bl_idname = "skinning.fit_weights_to_pose"
    bl_label = "Fit Weights to Pose"

    settings = FitSettings
    require = staticmethod(fit_target)
    work = staticmethod(fit.fit)


class SKINNING_OT_show_fit_error(Checked, AtOnce, bpy.types.Operator):
    """Show in color how far each vertex of the last fit is from its target, from blue for none to red for the most"""

    bl_idname = "skinning.show_fit_error"
    bl_label = "Show Fit Error"

    show: BoolProperty(name="Show", description="Off removes the colors", default=True, options={"SKIP_SAVE"})

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        original = fit_target(context, active)
        check_mode(original)
        if fit.ERROR_ATTRIBUTE not in original.data.attributes:
            raise BadScene(f'The weights of "{original.name}" have not been fitted yet')

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        original = fit_target(context, active)
        line = ""
        if self.show:
            scale = error_display.add_error_colors(original, fit.ERROR_ATTRIBUTE)
            line = f"{original.name}: {scale.meaning(context)}"
        else:
            error_display.remove_error_colors(original)
        error_display.show_colors(context, self.show)
        return line


class SKINNING_OT_show_reachable(AtOnce, bpy.types.Operator):
    """Draw where weights alone can move the selected vertex: where each of its bones would put it, and the \
region in between. Changes nothing in the scene"""

    bl_idname = "skinning.show_reachable"
    bl_label = "Show Reachable Region"
    bl_options = {"REGISTER"}

    show: BoolProperty(name="Show", description="Show or hide the region", default=True, options={"SKIP_SAVE"})

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        if self.show:
            dependencies.require_dependencies()
            reachable_view.display.start()
        else:
            reachable_view.display.stop()


def _copies(context: bpy.types.Context, active: bpy.types.Object | None) -> list:
    """The copies that canceling a fit removes: all of the mesh, or only the active one if its mesh is gone."""
    if is_copy(active) and posed_copies.original_of(active) is None:
        return [active]
    return copies_of(fit_target(context, active), context.scene)


registry = [
    SKINNING_OT_start_weight_fit,
    SKINNING_OT_show_fit_copy,
    SKINNING_OT_cancel_weight_fit,
    SKINNING_OT_fit_weights_to_pose,
    SKINNING_OT_show_fit_error,
    SKINNING_OT_show_reachable,
]
