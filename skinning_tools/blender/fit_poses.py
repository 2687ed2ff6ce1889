# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh in the present pose, as weights are fitted to it: where its vertices are before and after the armature."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadMesh, BadScene
from .before_armature import check_vertex_count, unskinned_copy
from .bodies import deforming_bones
from .bone_weights import BoneWeights, read_bone_weights
from .center_records import native_modifier
from .data_blocks import is_alive
from .preconditions import check_mode, check_own_mesh, check_visible, object_label
from .skin_reader import Skin, armature_modifier, armature_of, bone_matrices, check_rig

# Of the mesh's diagonal: by less than this two positions do not differ, as they come in single precision.
SAME_PLACE = 1e-5

# Of the mesh's diagonal: where Blender has a vertex farther from linear blending, more than weights moves it.
_LINEAR = 1e-4


@dataclass(frozen=True, eq=False)
class MeshPose:
    """A pose of a mesh, in its object's space.

    bones: names of the armature's deforming bones; matrices (P, 3, 4) from rest to pose; rest (N, 3) as it reaches the
    armature, shape keys included; shape (N, 3) as it leaves it.
    """

    bones: tuple[str, ...]
    matrices: np.ndarray
    rest: np.ndarray
    shape: np.ndarray


def check_fittable(context: bpy.types.Context, object: bpy.types.Object) -> None:
    """Raises BadScene with the reason why the weights of a mesh object cannot be fitted. Cheap enough for a panel."""
    check_mode(object)
    check_rig(object)
    check_own_mesh(object, "its weights cannot be changed")
    _check_plain(object)


def check_shown(context: bpy.types.Context, object: bpy.types.Object) -> None:
    """Raises BadScene where Blender does not evaluate the object's pose."""
    check_visible(context.scene, context.view_layer, object)
    armature = armature_of(object)
    assert armature is not None
    if armature.data.pose_position == "REST":
        raise BadScene(
            f'The armature "{armature.name}" shows its rest position. Choose Pose Position in its data properties'
        )


def read_pose(context: bpy.types.Context, object: bpy.types.Object) -> MeshPose:
    """The pose as the view layer has it now. The object itself may be hidden.

    Raises BadScene, BadMesh as ``check_fittable``, and where the mesh is not deformed by linear blending alone.
    """
    check_fittable(context, object)
    armature = armature_of(object)
    frame = context.scene.frame_current
    with _parts(context, object) as (before, after):
        depsgraph = context.view_layer.depsgraph
        unskinned, skinned = (part.evaluated_get(depsgraph).data for part in (before, after))
        check_vertex_count(object, unskinned, frame)
        if len(skinned.vertices) != len(unskinned.vertices):
            raise BadMesh(f"The armature's modifier changes the vertices of {object_label(object)}")
        rest, shape = _positions(unskinned), _positions(skinned)
        names = deforming_bones(armature)
        matrices = bone_matrices(bare_skin(after, armature, names), depsgraph)
    pose = MeshPose(names, matrices, rest, shape)
    _check_linear(object, pose)
    return pose


def check_bent(object: bpy.types.Object, pose: MeshPose) -> None:
    """Raises BadScene where the pose moves all bones alike, as at rest."""
    armature = armature_of(object)
    assert armature is not None
    moving = [index for index, name in enumerate(pose.bones) if name in object.vertex_groups]
    if not differ(pose.matrices[moving], pose.rest):
        raise BadScene(
            f'The pose of "{armature.name}" moves all bones of {object_label(object)} alike, as at rest: '
            "whatever the weights are, no vertex goes anywhere else. Pose the armature first"
        )


def differ(matrices: np.ndarray, points: np.ndarray) -> bool:
    """Whether some of ``matrices`` (P, 3, 4) move the box around ``points`` (N, 3) to places that are noticeably
    different."""
    low, high = points.min(axis=0), points.max(axis=0)
    corners = np.array([[x, y, z, 1] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    places = np.einsum("pij,cj->pci", matrices, corners)
    return bool(np.ptp(places, axis=0).max(initial=0.0) > SAME_PLACE * max(float(np.linalg.norm(high - low)), 1e-30))


def bare_skin(object: bpy.types.Object, armature: bpy.types.Object, names: Iterable[str]) -> Skin:
    """For what asks a Skin for its object, armature and bones only."""
    nothing = np.empty(0)
    return Skin(object, armature, tuple(names), nothing, nothing, nothing, nothing)


@contextmanager
def _parts(context, object) -> Iterator[tuple[bpy.types.Object, bpy.types.Object]]:
    """Two copies of the object in the scene, evaluated: one ends before the armature, the other with it.

    In the user's own scene, where a pose that is not keyed is as the user sees it.
    """
    view_layer = context.view_layer
    after = object.copy()
    try:
        _end_with_armature(after, object)
        with unskinned_copy(object) as before:
            for part in (before, after):
                # As it is now, whatever its curves say of this frame.
                part.animation_data_clear()
                context.scene.collection.objects.link(part)
            view_layer.update()
            yield before, after
    finally:
        if is_alive(after):
            bpy.data.objects.remove(after)
        if is_alive(view_layer):
            view_layer.update()


def _end_with_armature(copy, object) -> None:
    """Remove the modifiers that follow the armature's, all of them where a parent deforms."""
    armature = armature_modifier(object)
    place = object.modifiers.find(armature.name) if armature is not None else -1
    for modifier in list(copy.modifiers)[:place:-1]:
        copy.modifiers.remove(modifier)
    copy.hide_viewport = False


def _positions(mesh) -> np.ndarray:
    """(N, 3) float64."""
    positions = np.empty((len(mesh.vertices), 3), np.float32)
    mesh.attributes["position"].data.foreach_get("vector", positions.ravel())
    return positions.astype(np.float64)


def _check_plain(object) -> None:
    """Raises BadScene where something else than linear blending by an enabled armature shapes the mesh."""
    label = object_label(object)
    native = native_modifier(object)
    if native is not None and native.show_viewport:
        raise BadScene(
            f'The modifier "{native.name}" of {label} deforms about centers of rotation, and weights are fitted for '
            "plain linear blending. Remove the modifier first, fit, and add it again"
        )
    modifier = armature_modifier(object)
    if modifier is None:
        return
    if not modifier.show_viewport:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} is disabled in the viewport, so the mesh does not follow the '
            "pose. Enable it"
        )
    if modifier.use_deform_preserve_volume:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} preserves volume, and weights are fitted for plain linear '
            "blending. Disable Preserve Volume in the modifier"
        )


def _check_linear(object, pose: MeshPose) -> None:
    """Raises BadScene where Blender's evaluation is not what the weights and the bones say."""
    from ..core.deform import skin_frame

    armature = armature_of(object)
    assert armature is not None
    before: BoneWeights = read_bone_weights(object, armature, pose.bones)
    expected = skin_frame(pose.rest, before.bones, before.weights, pose.matrices)
    distances = np.linalg.norm(expected - pose.shape, axis=1)
    if distances.max() > _LINEAR * np.linalg.norm(np.ptp(pose.rest, axis=0)):
        raise BadScene(
            f'The armature "{armature.name}" moves vertex {int(np.argmax(distances))} of '
            f"{object_label(object)} by more than its weights say. Set the bones' Bendy Bones Segments to 1, and "
            "disable their Envelope Multiply and the modifier's Bone Envelopes"
        )
