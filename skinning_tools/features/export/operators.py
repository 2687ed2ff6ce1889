# SPDX-License-Identifier: GPL-3.0-or-later
"""Exporting a character, and selecting it for Blender's own exporters."""

import os
from dataclasses import replace
from typing import Any

import bpy
from bpy_extras.io_utils import ExportHelper

from ...blender import background
from ...blender.character import armature_at
from ...blender.job_checks import active_object
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile
from . import export
from .engines import ENGINES, FORMATS, with_ending
from .settings import OF_ENGINE, ExportSettings


class SKINNING_OT_select_for_export(Checked, AtOnce, bpy.types.Operator):
    """Select the armature and all visible meshes that it deforms, and nothing else, for Blender's exporters"""

    bl_idname = "skinning.select_for_export"
    bl_label = "Select Result for Export"

    require = staticmethod(export.check_exportable)
    work = staticmethod(export.select_character)


class SKINNING_OT_export_character(Checked, SavesFile, bpy.types.Operator):
    """Export the armature and all visible meshes that it deforms with settings that play, over the scene's frames, \
and compare the file with the scene"""

    bl_idname = "skinning.export_character"
    bl_label = "Export Character"

    needs_scipy = True
    settings = ExportSettings
    require = staticmethod(export.check_exportable)

    @staticmethod
    def work(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> export.Exported:
        return background.drain(export.export(context, active, **given))

    def leave_notes(self, result: export.Exported) -> None:
        """The whole line, too: the status bar cuts off how closely the file plays."""
        super().leave_notes(replace(result, notes=(result.line(), *result.notes)))

    @property
    def filename_ext(self) -> str:
        """The ending of the chosen format's files, for ExportHelper."""
        chosen = ENGINES[self.engine].format if self.file_format == OF_ENGINE else self.file_format
        return FORMATS[chosen].ending

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self.prepare(context)
        path = self.filepath  # type: ignore[has-type] # of ExportHelper
        # A remembered path does not count as set: its folder fits the next character, its name does not.
        if not path or not self.properties.is_property_set("filepath"):
            folder = os.path.dirname(path or bpy.data.filepath)
            armature = armature_at(export.first_mesh(context, active_object(context)))
            path = os.path.join(folder, bpy.path.clean_name(armature.name if armature is not None else "character"))
        self.filepath = with_ending(path, self.filename_ext)
        return ExportHelper.invoke(self, context, event)


registry = [SKINNING_OT_select_for_export, SKINNING_OT_export_character]
