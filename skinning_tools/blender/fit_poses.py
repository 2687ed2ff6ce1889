# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh in the current pose, for fitting weights: its vertices before and after the armature."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadMesh, BadScene
from ..core.geometry import diagonal
from .attributes import read_attribute
from .before_armature import check_vertex_count, unskinned_copy
from .bodies import deforming_bones
from .bone_weights import BoneWeights, read_bone_weights
from .center_records import native_modifier
from .data_blocks import is_alive, temporary_copy
from .normal_modifiers import is_normals_modifier
from .preconditions import check_mode, check_own_mesh, check_posed, check_visible, object_label, unmet
from .skin_reader import Skin, armature_modifier, armature_of, bone_matrices, check_rig

# Relative to the mesh's diagonal: positions that differ by less are equal, as they have single precision.
SAME_PLACE = 1e-5

# Relative to the mesh's diagonal: a vertex farther from linear blending is moved by more than weights.
_LINEAR = 1e-4


@dataclass(frozen=True, eq=False)
class MeshPose:
    """A pose of a mesh, in its object's space.

    bones: names of the armature's deforming bones; matrices (P, 3, 4) from rest to pose; rest (N, 3) before the
    armature, shape keys included; shape (N, 3) after it.
    """

    bones: tuple[str, ...]
    matrices: np.ndarray
    rest: np.ndarray
    shape: np.ndarray


def check_fittable(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if the weights of a mesh object cannot be fitted, with the reason. Cheap enough for a panel."""
    check_mode(mesh_object)
    check_rig(mesh_object)
    check_own_mesh(mesh_object, "its weights cannot be changed")
    check_blended_linearly(mesh_object, armature_of(mesh_object))
    modifier = armature_modifier(mesh_object)
    if modifier is not None and not modifier.show_viewport:
        raise unmet("MODIFIER_DISABLED", modifier=modifier.name, object=mesh_object)


def check_shown(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if Blender does not evaluate the object's pose."""
    check_visible(context.scene, context.view_layer, mesh_object)
    armature = armature_of(mesh_object)
    assert armature is not None
    check_posed(armature)


def read_pose(context: bpy.types.Context, mesh_object: bpy.types.Object) -> MeshPose:
    """The current pose in the view layer. The object itself may be hidden.

    Raises BadScene, BadMesh as ``check_fittable``, and if more than linear blending deforms the mesh.
    """
    check_fittable(context, mesh_object)
    armature = armature_of(mesh_object)
    frame = context.scene.frame_current
    with _parts(context, mesh_object) as (before, after):
        depsgraph = context.view_layer.depsgraph
        unskinned, skinned = (part.evaluated_get(depsgraph).data for part in (before, after))
        check_vertex_count(mesh_object, unskinned, frame)
        if len(skinned.vertices) != len(unskinned.vertices):
            raise BadMesh(f"The armature's modifier changes the vertices of {object_label(mesh_object)}")
        rest, shape = _positions(unskinned), _positions(skinned)
        names = deforming_bones(armature)
        matrices = bone_matrices(bare_skin(after, armature, names), depsgraph)
    pose = MeshPose(names, matrices, rest, shape)
    _check_linear(mesh_object, pose)
    return pose


def check_bent(mesh_object: bpy.types.Object, pose: MeshPose) -> None:
    """Raises BadScene if the pose moves all bones alike, as at rest."""
    armature = armature_of(mesh_object)
    assert armature is not None
    moving = [index for index, name in enumerate(pose.bones) if name in mesh_object.vertex_groups]
    if not differ(pose.matrices[moving], pose.rest):
        raise BadScene(
            f'The pose of "{armature.name}" moves all bones of {object_label(mesh_object)} alike, as at rest: '
            "weights make no difference. Pose the armature first"
        )


def differ(matrices: np.ndarray, points: np.ndarray) -> bool:
    """Whether ``matrices`` (P, 3, 4) move the bounding box of ``points`` (N, 3) to noticeably different places."""
    low, high = points.min(axis=0), points.max(axis=0)
    corners = np.array([[x, y, z, 1] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    places = np.einsum("pij,cj->pci", matrices, corners)
    return bool(np.ptp(places, axis=0).max(initial=0.0) > SAME_PLACE * max(float(np.linalg.norm(high - low)), 1e-30))


def bare_skin(mesh_object: bpy.types.Object, armature: bpy.types.Object, names: Iterable[str]) -> Skin:
    """A Skin with only its object, armature and bones."""
    nothing = np.empty(0)
    return Skin(mesh_object, armature, tuple(names), nothing, nothing, nothing, nothing)


@contextmanager
def _parts(
    context: bpy.types.Context, mesh_object: bpy.types.Object
) -> Iterator[tuple[bpy.types.Object, bpy.types.Object]]:
    """Two evaluated copies of the object: one ends before the armature, the other with it.

    They are in the user's own scene, which has the poses that are not keyed.
    """
    view_layer = context.view_layer
    try:
        with temporary_copy(mesh_object) as after, unskinned_copy(mesh_object) as before:
            _end_with_armature(after, mesh_object)
            for part in (before, after):
                # At the current value, whatever its curves have at this frame.
                part.animation_data_clear()
                context.scene.collection.objects.link(part)
            view_layer.update()
            yield before, after
    finally:
        if is_alive(view_layer):
            view_layer.update()


def _end_with_armature(copy: bpy.types.Object, mesh_object: bpy.types.Object) -> None:
    """Remove the modifiers after the armature's, or all if a parent deforms, and those that show normals."""
    armature = armature_modifier(mesh_object)
    place = mesh_object.modifiers.find(armature.name) if armature is not None else -1
    for index, modifier in reversed(list(enumerate(copy.modifiers))):
        if index > place or is_normals_modifier(modifier):
            copy.modifiers.remove(modifier)


def _positions(mesh: bpy.types.Mesh) -> np.ndarray:
    """(N, 3) float64 vertices."""
    return read_attribute(mesh, "position").astype(np.float64)


def check_blended_linearly(mesh_object: bpy.types.Object, armature: bpy.types.Object | None) -> None:
    """Raises BadScene where modifiers for the armature deform the mesh by anything but linear blending."""
    native, modifier = native_modifier(mesh_object), armature_modifier(mesh_object)
    if native is not None and native.show_viewport:
        remedy = f'Remove the modifier "{native.name}", and add it again afterwards'
        raise unmet("ROTATES_ABOUT_CENTERS", object=mesh_object, remedy=remedy)
    if modifier is not None and modifier.object == armature and modifier.use_deform_preserve_volume:
        raise unmet("PRESERVES_VOLUME", modifier=modifier.name, object=mesh_object)


def _check_linear(mesh_object: bpy.types.Object, pose: MeshPose) -> None:
    """Raises BadScene if Blender's evaluation does not match the weights and bones."""
    from ..core.deform import skin_frame

    armature = armature_of(mesh_object)
    assert armature is not None
    before: BoneWeights = read_bone_weights(mesh_object, armature, pose.bones)
    expected = skin_frame(pose.rest, before.bones, before.weights, pose.matrices)
    distances = np.linalg.norm(expected - pose.shape, axis=1)
    if distances.max() > _LINEAR * diagonal(pose.rest):
        raise BadScene(
            f'The armature "{armature.name}" moves vertex {int(np.argmax(distances))} of '
            f"{object_label(mesh_object)} in a way that its weights do not explain. Set the bones' Bendy "
            "Bones Segments to 1, and disable their Envelope Multiply and the modifier's Bone Envelopes"
        )
