# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks on the mesh and the armature of a solve, whose bones must blend linearly by weights."""

import bpy

from ...blender.fit_poses import check_blended_linearly
from ...blender.preconditions import (
    check_armature_mode,
    check_deforming,
    check_has_vertices,
    check_mode,
    check_posed,
    check_visible,
    object_label,
    unmet,
)
from ...blender.skin_reader import armature_modifier, armature_of, bone_names, check_rig, check_single
from ...core.errors import BadScene, BadWeights


def check_mesh(context: bpy.types.Context, mesh: bpy.types.Object, armature: bpy.types.Object, weighted: bool) -> None:
    """Raises BadScene if bones cannot be solved for on the mesh. weighted: it must have weights."""
    check_mode(mesh)
    check_visible(context.scene, context.view_layer, mesh)
    check_has_vertices(mesh)
    check_blended_linearly(mesh, armature)
    own = armature_of(mesh) == armature
    if own and weighted:
        check_rig(mesh)
    elif own:
        check_single(mesh, armature_modifier(mesh))
    elif weighted and not bone_names(mesh, armature):
        raise unmet("NO_GROUP_OF_A_BONE", object=mesh, armature=armature)


def all_locked(mesh: bpy.types.Object) -> BadWeights:
    """The error for a mesh whose weights cannot change."""
    return BadWeights(
        f"All weights of {object_label(mesh)} are locked, so there is nothing to solve for. Unlock some vertex groups "
        "(the padlock), or lock fewer vertices"
    )


def check_armature(armature: bpy.types.Object) -> None:
    """Raises BadScene if the motion of the armature cannot be read, or its weights do not decide it alone."""
    # Hidden by the eye or with its collection is fine, as rigs often are.
    if armature.hide_viewport:
        raise BadScene(
            f'The armature "{armature.name}" is disabled in viewports, so Blender does not always evaluate its '
            "animation. Enable it in the outliner (the screen)"
        )
    check_armature_mode(armature)
    check_posed(armature)
    check_deforming(armature)
    multiplied = next(
        (bone.name for bone in armature.data.bones if bone.use_deform and bone.use_envelope_multiply), None
    )
    if multiplied is not None:
        raise BadScene(
            f'The bone "{multiplied}" of "{armature.name}" multiplies its weights with its envelope, but this '
            "solve uses only weights. Disable Envelope Multiply in the properties of the bone"
        )
