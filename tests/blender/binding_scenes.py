# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes and armatures that are not bound yet, the operator that binds them, and its results."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.control_points import SKIN_TYPES
from skinning_tools.blender.vertex_groups import read_weights
from skinning_tools.core.deform.influences import weight_matrix
from tests.blender import moving_meshes, refusals, scenes, skinned_meshes

METHODS = ("AUTOMATIC", "CONTAINMENT", "POINT_TO_LINE", "DELAUNAY", "RIGID")
every_method = pytest.mark.parametrize("method", METHODS)


def tube(bone_count=5, **given) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The tube of ``rigged_tube`` next to its animated armature: no groups, no modifier. Only the tube is selected."""
    ob, rig = skinned_meshes.rigged_tube(bone_count, **given)
    ob.vertex_groups.clear()
    ob.modifiers.clear()
    rig.select_set(False)
    return ob, rig


def armature_of_segments(segments, name="Rig", parents=()) -> bpy.types.Object:
    """An armature object with a bone "Bone 0" … from head to tail of each of ``segments`` (P, 2, 3).

    parents: of each bone the parent's index, -1 for none; none at all where not given.
    """
    rig = scenes.link(bpy.data.objects.new(name, bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    for index, (head, tail) in enumerate(np.asarray(segments, dtype=float).tolist()):
        bone = rig.data.edit_bones.new(f"Bone {index}")
        bone.head, bone.tail = head, tail
    for index, parent in enumerate(parents):
        if parent >= 0:
            rig.data.edit_bones[index].parent = rig.data.edit_bones[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.select_set(False)
    return rig


def cube(name: str, middle, size=0.4) -> bpy.types.Object:
    """A cube whose vertices are around the origin of its object, which is at ``middle``; active."""
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    ob = scenes.mesh_object(np.array(corners) * size / 2, faces, name=name)
    ob.location = middle
    bpy.context.view_layer.update()
    return ob


def activate(object, *others) -> None:
    """Make the object active, and select it and ``others`` alone."""
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob == object or ob in others)
    bpy.context.view_layer.objects.active = object


def dense(object, names) -> np.ndarray:
    """(N, P) the weights of the groups ``names``."""
    return weight_matrix(*read_weights(object, names), len(names)).toarray()


def weights_of(object, rig) -> np.ndarray:
    """(N, P) the weights of all bones of an armature."""
    return dense(object, [bone.name for bone in rig.data.bones])


def check_bound(object, rig, influences=4) -> np.ndarray:
    """Every vertex is bound by weights that sum to 1, of few enough bones; returns them, (N, P)."""
    weights = weights_of(object, rig)
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-6)
    assert (weights > 0).sum(axis=1).max() <= influences
    return weights


def bound(**settings) -> None:
    """The operator binds."""
    assert bpy.ops.skinning.bind(**settings) == {"FINISHED"}
    bpy.context.view_layer.update()


def refused(*parts: str, **settings) -> None:
    """The operator fails with a text that has ``parts``, and changes nothing of any object."""
    refusals.refused(
        "bind",
        *parts,
        state=lambda: (moving_meshes.state(), [binding_of(ob) for ob in bpy.data.objects]),
        **settings,
    )


def binding_of(object) -> tuple:
    """Everything that binding sets on an object: parent, groups, weights, modifiers, properties."""
    groups = [group.name for group in object.vertex_groups] if object.type in SKIN_TYPES else []
    weights = dense(object, groups).tolist() if groups and not object.data.is_editmode else []
    modifiers = [(m.name, m.show_viewport) for m in object.modifiers]
    parent = object.parent and object.parent.name
    return object.name, parent, object.parent_type, groups, weights, modifiers, list(object.keys())
