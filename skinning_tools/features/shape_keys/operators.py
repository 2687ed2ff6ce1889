# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Shape Keys to Bones, and what engines get of the result."""

from typing import TYPE_CHECKING

import bpy
from bpy.props import StringProperty

from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from .conversion import convert_shape_keys
from .poses import add_poses
from .reading import check_shape_keys
from .settings import PoseSettings, ShapeKeySettings
from .slider_table import save_table
from .sliders import face_rig

if TYPE_CHECKING:
    from .conversion import FaceConversion


class SKINNING_OT_convert_shape_keys(Checked, SkinningJob, bpy.types.Operator):
    """Make a skinned copy of the active mesh whose bones do what its shape keys do, with a slider for each of them. \
The mesh itself stays as it is"""

    bl_idname = "skinning.convert_shape_keys"
    bl_label = "Convert Shape Keys to Bones"

    settings = ShapeKeySettings
    require = staticmethod(check_shape_keys)
    work = staticmethod(convert_shape_keys)

    def finish(self, context: bpy.types.Context, result: "FaceConversion") -> str:
        for note in result.notes:
            self.report({"INFO"}, note)
        return result.summary()


class SKINNING_OT_add_slider_poses(Checked, AtOnce, bpy.types.Operator):
    """Make actions of the sliders of a face, each at 1 in one pose, for engines or the asset library. Earlier ones \
are replaced"""

    bl_idname = "skinning.add_slider_poses"
    bl_label = "Add Slider Poses"

    settings = PoseSettings
    require = staticmethod(face_rig)
    work = staticmethod(add_poses)


class SKINNING_OT_save_slider_table(Checked, SavesFile, bpy.types.Operator):
    """Save which bones each slider of a face moves, and by how much, for engines that sum poses themselves"""

    bl_idname = "skinning.save_slider_table"
    bl_label = "Save Slider Table"

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={"HIDDEN"})

    require = staticmethod(face_rig)
    work = staticmethod(save_table)


registry = [SKINNING_OT_convert_shape_keys, SKINNING_OT_add_slider_poses, SKINNING_OT_save_slider_table]
