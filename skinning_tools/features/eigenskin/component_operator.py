# SPDX-License-Identifier: GPL-3.0-or-later
"""Show Components: what a build would make, before anything is built."""

import bpy
from bpy.props import BoolProperty

from ...blender import background
from ...ui.boundary import Checked
from ...ui.jobs import SkinningJob
from ...ui.settings import Settings
from . import component_view
from .build import check_buildable
from .components import Components, find_components
from .settings import BuildSettings


class ComponentsSettings(Settings, stored="skinning_eigenskin", kept_by="armature"):
    """The settings of the build that the components depend on."""

    components = BuildSettings.components
    support_threshold = BuildSettings.support_threshold
    max_per_vertex = BuildSettings.max_per_vertex
    budget = BuildSettings.budget
    radius = BuildSettings.radius
    basis_functions = BuildSettings.basis_functions
    joint_pairs = BuildSettings.joint_pairs
    half_rotation = BuildSettings.half_rotation


class SKINNING_OT_show_eigenskin_components(Checked, SkinningJob, bpy.types.Operator):
    """Find the components that a build would make of the examples, and draw them over the mesh in color, moved by a \
slider. Changes nothing in the scene"""

    bl_idname = "skinning.show_eigenskin_components"
    bl_label = "Show Components"
    bl_options = {"REGISTER"}

    settings = ComponentsSettings
    work = staticmethod(find_components)

    show: BoolProperty(name="Show", description="Show or hide the components", default=True, options={"SKIP_SAVE"})

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        # What is shown can be hidden, whatever is active.
        if not component_view.display.shown:
            check_buildable(context, active)

    def steps(self, context: bpy.types.Context) -> background.Steps[Components | None]:
        return (yield from super().steps(context)) if self.show else None

    def finish(self, context: bpy.types.Context, result: Components | None) -> str:
        if result is None:
            component_view.display.stop()
            return "The components are hidden"
        component_view.start(context, result)
        return super().finish(context, result)


registry = [SKINNING_OT_show_eigenskin_components]
