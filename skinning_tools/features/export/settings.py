# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the export, kept with the scene."""

import bpy

from ...ui.settings import Settings, choice, switch
from .engines import ENGINES, FORMATS

OF_ENGINE = "ENGINE"


class ExportSettings(Settings, stored="skinning_export"):
    engine = choice(
        "Engine",
        [(key, engine.label, engine.tip) for key, engine in ENGINES.items()],
        "OTHER",
        tip="The program that will play the file: decides its format and axes, and what is warned about",
        flag="--engine",
    )
    file_format = choice(
        "Format",
        [
            (OF_ENGINE, "As for the Engine", "glTF, or FBX for Unity and Unreal"),
            *((key, each.label, f"A file that ends in {each.ending}") for key, each in FORMATS.items()),
        ],
        OF_ENGINE,
        tip="The format of the file",
        flag="--format",
    )
    all_clips = switch(
        "All Clips",
        True,
        tip="Write the actions on muted NLA tracks, too, as clips named after their tracks. Only in glTF and FBX files",
        flag="--no-clips",
        help="write the present animation alone, without the actions on muted NLA tracks",
    )
    compare = switch(
        "Compare",
        True,
        tip="Read the file again, and measure at every frame how far its mesh is from the one in the scene",
        flag="--no-compare",
        help="do not read the file again to measure how far its mesh is from the one in the scene",
    )
    replace = switch(
        "Replace File",
        False,
        tip="Replace a file that was not exported from here in this session",
        flag="--overwrite",
        help="replace an existing file",
    )


class SkinningExportSettings(bpy.types.PropertyGroup):
    __annotations__ = ExportSettings.group_annotations()


registry = [SkinningExportSettings]
pointers = {"Scene.skinning_export": SkinningExportSettings}
