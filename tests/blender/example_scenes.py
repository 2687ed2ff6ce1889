# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin as the operators store them and as they are read again, and rigs that hold a pose."""

from functools import partial

import bpy
import numpy as np

from skinning_tools.features.eigenskin.examples import read_examples, read_rig
from tests.blender import moving_meshes, refusals
from tests.blender.skinned_meshes import diagonal


def add(**given):
    assert bpy.ops.skinning.eigenskin_add_example(**given) == {"FINISHED"}


def read(ob):
    return read_examples(ob, read_rig(bpy.context, ob)[1])


def examples_of(rig) -> list:
    return [(item.name, item.kind, item.mesh, item.frame) for item in rig.skinning_eigenskin.examples]


def state() -> tuple:
    """All data that an operator must not change when it refuses its input."""
    lists = [examples_of(ob) for ob in bpy.data.objects if ob.type == "ARMATURE"]
    shapes = [[a.name for a in mesh.attributes] for mesh in bpy.data.meshes]
    bases = [[tuple(map(tuple, b.matrix_basis)) for b in ob.pose.bones] for ob in bpy.data.objects if ob.pose]
    return moving_meshes.state(), lists, shapes, bases


refused = partial(refusals.refused, state=state)


def near(ob, shape, wanted, tolerance=1e-6) -> None:
    assert np.abs(shape - wanted).max() < tolerance * diagonal(ob)


def limit(rig):
    constraint = rig.pose.bones["lower"].constraints.new("LIMIT_ROTATION")
    constraint.use_limit_x, constraint.min_x, constraint.max_x = True, -0.5, 0.5
    constraint.owner_space = "LOCAL"


def copy_rotation(rig):
    constraint = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget, constraint.influence = rig, "upper", 0.6


def add_bone(rig, name, parent):
    """Add another bone beyond the end of the limb."""
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new(name)
    bone.head, bone.tail, bone.parent = (2, 0, 0), (3, 0, 0), rig.data.edit_bones[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]
