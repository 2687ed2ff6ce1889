# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators that solve for an existing rig: weights, motion, and helper bones and their removal."""

import bpy
from bpy.props import StringProperty

from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from . import again, helper_removal, helper_table, helpers, motion, new_root, weights
from .settings import AgainSettings, HelperSettings, MotionSettings, RemovalSettings, RootSettings, WeightSettings


class _Named(Checked):
    """Mix-in for operators with named objects: the names are known, and checked, only when the operator runs."""

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        """Nothing."""


class SKINNING_OT_solve_weights(_Named, SkinningJob, bpy.types.Operator):
    """Solve for the weights with which the armature's motion brings the mesh closest to its target's animation"""

    bl_idname = "skinning.solve_weights"
    bl_label = "Solve Weights"

    settings = WeightSettings
    work = staticmethod(weights.solve_weights)


class SKINNING_OT_solve_transforms(_Named, SkinningJob, bpy.types.Operator):
    """Solve for the keyframes with which the mesh, deformed by its weights, comes closest to its target's animation.
    They go into a new action; the old one stays in the file"""

    bl_idname = "skinning.solve_transforms"
    bl_label = "Solve Motion"

    settings = MotionSettings
    work = staticmethod(motion.solve_transforms)


class SKINNING_OT_solve_again(_Named, SkinningJob, bpy.types.Operator):
    """Solve for weights and keyframes of a skeleton whose bones you have merged, split, moved, renamed or reparented \
in Edit Mode. Bones, names, parents and the joints that you have placed stay as they are"""

    bl_idname = "skinning.solve_again"
    bl_label = "Solve Again"

    settings = AgainSettings
    work = staticmethod(again.solve_again)


class SKINNING_OT_make_root(_Named, SkinningJob, bpy.types.Operator):
    """Let the active bone carry all others: from it to the root, each bone hangs from its former child. Everything \
moves as before, in all actions of the armature"""

    bl_idname = "skinning.make_root"
    bl_label = "Make Root"

    settings = RootSettings
    work = staticmethod(new_root.make_root)


class SKINNING_OT_add_helper_bones(_Named, SkinningJob, bpy.types.Operator):
    """Add bones to the armature that bring the mesh closer to its target's animation. Existing bones \
and their keyframes do not change"""

    bl_idname = "skinning.add_helper_bones"
    bl_label = "Add Helper Bones"

    settings = HelperSettings
    work = staticmethod(helpers.add_helper_bones)


class SKINNING_OT_remove_helper_bones(_Named, AtOnce, bpy.types.Operator):
    """Remove the helper bones that were added to the armature, with their keyframes and references to them. Their \
weights go to the other bones of the same vertices"""

    bl_idname = "skinning.remove_helper_bones"
    bl_label = "Remove Helper Bones"

    settings = RemovalSettings
    work = staticmethod(helper_removal.remove_helper_bones)


class SKINNING_OT_save_helper_table(Checked, SavesFile, bpy.types.Operator):
    """Save what each driven helper bone of the armature does as the joints turn, for the pose drivers of engines"""

    bl_idname = "skinning.save_helper_table"
    bl_label = "Save Helper Table"

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={"HIDDEN"})

    require = staticmethod(helper_table.driven_rig)
    work = staticmethod(helper_table.save_table)


registry = [
    SKINNING_OT_solve_weights,
    SKINNING_OT_solve_transforms,
    SKINNING_OT_solve_again,
    SKINNING_OT_make_root,
    SKINNING_OT_add_helper_bones,
    SKINNING_OT_remove_helper_bones,
    SKINNING_OT_save_helper_table,
]
