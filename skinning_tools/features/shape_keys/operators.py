# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Shape Keys to Bones, and what engines get of the result."""

from typing import TYPE_CHECKING

import bpy
from bpy.props import EnumProperty, StringProperty

from ...blender.visibility import make_active
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.compare import SHOWN, show_only
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from .conversion import convert_shape_keys
from .faces import Face, active_label, face_of, other_faces
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
        if self.options.is_invoke and not bpy.app.background:
            # In the window, one face is seen, and its sliders are at hand.
            face = face_of(result.rig.armature)
            if face is not None:
                _compare(context, face, "RESULT")
            make_active(context, result.rig.armature)
        return super().finish(context, result)


class SKINNING_OT_compare_face(Checked, AtOnce, bpy.types.Operator):
    """Show only the mesh with the shape keys or only the one with the bones, to see what differs; other results are \
hidden. From a shortcut: alternate between the two"""

    bl_idname = "skinning.compare_face"
    bl_label = "Compare Face with Source"

    show: EnumProperty(name="Show", description="What to show", items=SHOWN, default="OTHER")

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        _compared(active)

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        _compare(context, _compared(active), self.show)


def _compared(active: bpy.types.Object | None) -> Face:
    """Raises BadScene if there is nothing to compare."""
    face = face_of(active)
    if face is None:
        raise BadScene(
            f"The {active_label(active)} is no face that was converted from shape keys, "
            "neither its mesh nor its armature"
        )
    if face.source is None:
        raise BadScene(
            f'The source of "{face.mesh.name}" was renamed or deleted, so there is nothing to compare. Restore its name'
        )
    return face


def _compare(context: bpy.types.Context, face: Face, show: str) -> None:
    show_only(context, face.pairs, show, other_faces(face))


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


registry = [
    SKINNING_OT_convert_shape_keys,
    SKINNING_OT_compare_face,
    SKINNING_OT_add_slider_poses,
    SKINNING_OT_save_slider_table,
]
