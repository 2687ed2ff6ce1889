# SPDX-License-Identifier: GPL-3.0-or-later
"""What a partial solve works on: a mesh, its armature, the motion wanted, and Blender's own figure of what is left."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import bpy
import numpy as np

from ...blender.animation.animation_reader import read_animation
from ...blender.animation.frame_range import frame_range
from ...blender.bodies import check_deforming
from ...blender.center_records import native_modifier
from ...blender.character import chosen_mesh
from ...blender.conversions import result_of
from ...blender.data_blocks import clear_shape_keys, is_alive
from ...blender.fit_poses import bare_skin
from ...blender.job_checks import reason_not_to_work
from ...blender.look_ups import selected_in
from ...blender.measure import measure_rig
from ...blender.object_checks import check_object
from ...blender.object_transform import set_parent_type, world_matrices
from ...blender.preconditions import (
    check_armature_mode,
    check_has_vertices,
    check_mode,
    check_own_mesh,
    check_visible,
    object_label,
    unmet,
)
from ...blender.skin_reader import (
    armature_modifier,
    armature_of,
    bone_matrices,
    check_rig,
    mesh_triangles,
    meshes_of,
    rest_positions,
    uses_envelopes,
)
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.wording import names_text
from ...core.animation import Animation, ErrorMeter
from ...core.errors import BadAnimation, BadMesh, BadScene

# Of the animation's size: a vertex that moves by less stands still, in single precision.
_STILL = 1e-6


@dataclass(frozen=True, eq=False)
class Parts:
    """mesh: the object whose weights are meant; armature: whose bones move it; target: the object that moves as it
    should, ``mesh`` itself where its own animation is meant."""

    mesh: bpy.types.Object
    armature: bpy.types.Object
    target: bpy.types.Object

    @property
    def own(self) -> bool:
        """Whether the mesh's own animation is the target."""
        return self.target == self.mesh


def parts_of(
    context, object, armature_name: str = "", target_name: str = "", *, weighted: bool, writes_weights: bool = True
) -> Parts:
    """What is meant where ``object`` is active: a mesh, or an armature with the mesh of the panel's field, one that is
    selected or that it deforms.

    The armature: that of the name, else the active or the one selected, else the mesh's own. The target: that of the
    name, else the other selected mesh, else the source of a conversion that made the mesh, else the mesh's own
    animation. weighted: the mesh must have weights already; writes_weights: they are what is solved for, so that the
    mesh must be of this file. Cheap enough for a panel. Raises BadScene.
    """
    if object is None:
        raise BadScene("There is no active object. Select the mesh that bones are to move")
    target = _named(context, target_name, "MESH") if target_name else None
    mesh = _mesh(context, object, target) if object.type == "ARMATURE" else object
    if mesh.type != "MESH":
        kind = mesh.bl_rna.properties["type"].enum_items[mesh.type].name
        raise BadScene(f"The {object_label(mesh)} is not a mesh, its type is {kind}. Select the mesh that bones move")
    armature = armature_meant(context, object, armature_name)
    target = target or _target(context, mesh)
    if writes_weights:
        check_own_mesh(mesh, "its weights cannot be changed")
    _check_mesh(context, mesh, armature, weighted)
    _check_armature(armature)
    check_object(context, target)
    return Parts(mesh, armature, target)


def reason_not_to_solve(context, *, weighted: bool, writes_weights: bool = True) -> str:
    """Text for the panel, or "": why a partial solve with the scene's settings cannot start."""
    settings = context.scene.skinning_partial
    return reason_not_to_work(
        context,
        lambda context, object: parts_of(
            context, object, settings.armature, settings.target, weighted=weighted, writes_weights=writes_weights
        ),
    )


def _named(context, name: str, kind: str):
    found = context.scene.objects.get(name)
    if found is None:
        raise BadScene(f'There is no object "{name}" in the scene "{context.scene.name}"')
    if found.type != kind:
        what = {"MESH": "a mesh", "ARMATURE": "an armature"}[kind]
        raise BadScene(f"The {object_label(found)} is not {what}. Choose another object")
    return found


def _selected(context, kind: str) -> list:
    return [ob for ob in selected_in(context.view_layer) if ob.type == kind]


def _mesh(context, armature, target):
    chosen = chosen_mesh(context, armature)
    if chosen is not None:
        return chosen
    selected = [ob for ob in _selected(context, "MESH") if ob != target]
    deformed = meshes_of(armature, context.view_layer)
    for choice in ([ob for ob in selected if ob in deformed], selected, deformed):
        if len(choice) == 1:
            return choice[0]
    if not selected and not deformed:
        raise BadScene(f'The armature "{armature.name}" deforms no mesh of the view layer. Select the mesh, too')
    names = names_text(selected or deformed)
    raise BadScene(
        f"It is not clear which mesh is meant: {names}. Choose the one that bones are to move as Mesh in the panel, "
        "or make it active"
    )


def armature_meant(context, object, name: str = ""):
    """The armature of that name, else ``object`` itself or the one selected, else the one that deforms it.

    Cheap enough for a panel. Raises BadScene.
    """
    if name:
        return _named(context, name, "ARMATURE")
    if object is None:
        raise BadScene("There is no active object. Select the armature, or a mesh that it deforms")
    if object.type == "ARMATURE":
        return object
    selected = _selected(context, "ARMATURE")
    if len(selected) == 1:
        return selected[0]
    own = armature_of(object)
    if own is not None:
        return own
    if selected:
        names = names_text(selected)
        raise BadScene(f"Several armatures are selected: {names}. Select only the one that is to move the mesh")
    raise BadScene(
        f"No armature is chosen that is to move {object_label(object)}. Select it together with the mesh, or choose it "
        "as Armature"
    )


def _target(context, mesh):
    others = [ob for ob in _selected(context, "MESH") if ob != mesh]
    if len(others) > 1:
        count = len(mesh.data.vertices)
        others = [ob for ob in others if len(ob.data.vertices) == count]
        if len(others) != 1:
            raise BadScene(
                f"Several other meshes are selected. Select only the one that moves as {object_label(mesh)} should, or "
                "choose it as Target"
            )
    if others:
        return others[0]
    result = result_of(mesh)
    if result is not None and result.mesh == mesh and result.source is not None:
        return result.source
    return mesh


def _check_mesh(context, mesh, armature, weighted: bool) -> None:
    check_mode(mesh)
    check_visible(context.scene, context.view_layer, mesh)
    label = object_label(mesh)
    check_has_vertices(mesh)
    native = native_modifier(mesh)
    if native is not None and native.show_viewport:
        raise BadScene(
            f'The modifier "{native.name}" of {label} deforms about centers of rotation, and partial solves are for '
            "plain linear blending. Remove the modifier first, solve, and add it again"
        )
    modifier = armature_modifier(mesh)
    if modifier is not None and modifier.object == armature and modifier.use_deform_preserve_volume:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} preserves volume, and partial solves are for plain linear '
            "blending. Disable Preserve Volume in the modifier"
        )
    if not weighted:
        return
    if armature_of(mesh) == armature:
        check_rig(mesh)
    elif not any(bone.use_deform and bone.name in mesh.vertex_groups for bone in armature.data.bones):
        raise BadScene(
            f'No vertex group of {label} is named as a deforming bone of "{armature.name}". Assign weights, or solve '
            "for them"
        )


def _check_armature(armature) -> None:
    # It may be hidden by the eye or with its collection, as rigs often are.
    if armature.hide_viewport:
        raise BadScene(
            f'The armature "{armature.name}" is disabled in viewports, so Blender does not always evaluate its '
            "animation. Enable it in the outliner (the screen)"
        )
    check_armature_mode(armature)
    if armature.data.pose_position == "REST":
        raise BadScene(
            f'The armature "{armature.name}" shows its rest position. Choose Pose Position in its data properties'
        )
    check_deforming(armature)
    multiplied = next(
        (bone.name for bone in armature.data.bones if bone.use_deform and bone.use_envelope_multiply), None
    )
    if multiplied is not None:
        raise BadScene(
            f'The bone "{multiplied}" of "{armature.name}" multiplies its weights with its envelope, and partial '
            "solves are for weights alone. Disable Envelope Multiply in the properties of the bone"
        )


@contextmanager
def plain_copy(parts: Parts, armature=None) -> Iterator[bpy.types.Object]:
    """A copy of the mesh, in no scene and removed at the end, that has its rest shape and weights, and nothing but an
    Armature modifier for ``armature`` (the one of ``parts``): what the bones alone do to it, where it is. Vertices
    without weights follow envelopes where those of the mesh do."""
    copy = parts.mesh.copy()
    mesh = None
    try:
        mesh = parts.mesh.data.copy()
        copy.data = mesh
        rest = rest_positions(mesh)
        if mesh.shape_keys is not None:
            clear_shape_keys(copy)
        mesh.attributes["position"].data.foreach_set("vector", rest.astype(np.float32).ravel())
        copy.modifiers.clear()
        if copy.parent_type == "ARMATURE":
            set_parent_type(copy, "OBJECT")
        copy.hide_viewport = False
        modifier = copy.modifiers.new("Armature", "ARMATURE")
        modifier.object = armature or parts.armature
        modifier.use_vertex_groups = True
        modifier.use_bone_envelopes = armature_of(parts.mesh) == parts.armature and uses_envelopes(parts.mesh)
        yield copy
    finally:
        if is_alive(copy):
            bpy.data.objects.remove(copy)
        if mesh is not None and is_alive(mesh):
            bpy.data.meshes.remove(mesh)


def read_target(context, parts: Parts, span: tuple, omissions) -> Iterator[float]:
    """Generator: where the mesh's vertices should be, in its object's own space; returns an Animation, yields
    fractions.

    The mesh's own animation is what all but the Armature modifiers of the armature make of it.
    Raises SkinningError (see ``read_animation``), BadMesh where the vertices differ in number, BadAnimation where
    nothing moves.
    """
    with _without_armature(parts):
        source = yield from read_animation(context, parts.target, *span, omissions=omissions)
    bpy.data.meshes.remove(source.mesh)
    animation, mesh = source.animation, parts.mesh.data
    if animation.vertex_count != len(mesh.vertices):
        raise BadMesh(_other_count(parts, animation.vertex_count))
    frames = animation.frames
    if not parts.own:
        frames = _in_space_of(context, parts, animation)
    size = np.linalg.norm(np.ptp(frames[0], axis=0))
    if parts.own and np.abs(frames - frames[0]).max() <= _STILL * size:
        raise BadAnimation(
            f"The {object_label(parts.mesh)} does not move from frame {animation.frame_label(0)} to "
            f"{animation.frame_label(len(frames) - 1)} but for its armature. Select the object that moves as it "
            "should, too, or choose it as Target"
        )
    return Animation(frames, mesh_triangles(mesh), animation.frame_numbers, object_label(parts.target))


@contextmanager
def _without_armature(parts: Parts) -> Iterator[None]:
    """While it lasts, the armature does not move the mesh if that is the target itself."""
    mesh = parts.mesh
    disabled = []
    if parts.own:
        disabled = [
            modifier.name
            for modifier in mesh.modifiers
            if modifier.type == "ARMATURE" and modifier.object == parts.armature and modifier.show_viewport
        ]
    deforming_parent = parts.own and mesh.parent == parts.armature and mesh.parent_type == "ARMATURE"
    try:
        for name in disabled:
            mesh.modifiers[name].show_viewport = False
        if deforming_parent:
            set_parent_type(mesh, "OBJECT")
        yield
    finally:
        if is_alive(mesh):
            for name in disabled:
                if name in mesh.modifiers:
                    mesh.modifiers[name].show_viewport = True
            if deforming_parent:
                set_parent_type(mesh, "ARMATURE")


def _in_space_of(context, parts: Parts, animation: Animation) -> np.ndarray:
    """(F, N, 3) the target's positions, where they are in the world, in the space of the mesh object."""
    numbers = animation.frame_numbers
    own, other = (world_matrices(context, ob, numbers) for ob in (parts.mesh, parts.target))
    try:
        to_mesh = np.linalg.solve(own, other)
    except np.linalg.LinAlgError:
        raise unmet("NO_SCALE", object=object_label(parts.mesh)) from None
    if np.array_equal(to_mesh, np.broadcast_to(np.eye(4), to_mesh.shape)):
        return animation.frames
    frames = np.empty_like(animation.frames)
    for row, (positions, matrix) in enumerate(zip(animation.frames, to_mesh, strict=True)):
        frames[row] = positions @ matrix[:3, :3].T + matrix[:3, 3]
    return frames


def _other_count(parts: Parts, count: int) -> str:
    own = len(parts.mesh.data.vertices)
    if parts.own:
        return (
            f"The modifiers of {object_label(parts.mesh)} change its vertices from {own:,} to {count:,}. Disable in "
            "the viewport what makes or removes vertices"
        )
    return (
        f"The target {object_label(parts.target)} has {count:,} vertices, and {object_label(parts.mesh)} has {own:,}. "
        "Choose a target with the same vertices in the same order"
    )


@dataclass(frozen=True, eq=False)
class RigMotion:
    """How an armature moves over F frames.

    names: the bones that are asked for; matrices (F, P, 3, 4): what they do to the mesh at rest, in its object's space.
    pose, basis (F, B, 4, 4): of all bones ``all_names``, in the armature's space, and their own channels. to_armature
    (F, 4, 4): from the mesh object's space to the armature's.
    """

    names: tuple[str, ...]
    matrices: np.ndarray
    all_names: tuple[str, ...]
    pose: np.ndarray
    basis: np.ndarray
    to_armature: np.ndarray

    @property
    def place(self) -> dict[str, int]:
        """Where in ``all_names`` each bone is."""
        return {name: index for index, name in enumerate(self.all_names)}


def read_motion(context, probe, armature, names, numbers, omissions) -> Iterator[float]:
    """Generator: how ``armature`` moves the bones ``names`` at the frames; returns a RigMotion, yields fractions.

    probe: a mesh object in place of the one that is deformed, of which only the transform counts. omissions: what looks
    for what Blender leaves out.
    """
    matrices, pose, basis, to_armature = [], [], [], []
    skin = bare_skin(probe, armature, names)
    try:
        with temporary_scene(context.scene, [probe, armature]) as scene:
            for row, number in enumerate(numbers):
                depsgraph = evaluate_frame(scene, number)
                matrices.append(bone_matrices(skin, depsgraph))
                evaluated = armature.evaluated_get(depsgraph)
                pose.append(_of_bones(evaluated, "matrix"))
                basis.append(_of_bones(evaluated, "matrix_basis"))
                own = np.array(probe.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
                to_armature.append(np.linalg.solve(np.array(evaluated.matrix_world, dtype=np.float64), own))
                yield (row + 1) / len(numbers)
            omissions.look_at_drivers(depsgraph)
    except ReferenceError as error:
        raise BadScene("The mesh or its armature was removed while its poses were read. Start again") from error
    all_names = tuple(bone.name for bone in armature.pose.bones)
    return RigMotion(
        tuple(names), np.array(matrices), all_names, np.array(pose), np.array(basis), np.array(to_armature)
    )


def _of_bones(armature, name: str) -> np.ndarray:
    values = np.empty((len(armature.pose.bones), 4, 4), np.float32)
    armature.pose.bones.foreach_get(name, values.ravel())
    return values.swapaxes(1, 2).astype(np.float64)


def measured(probe, armature, animation: Animation) -> Iterator[float]:
    """Generator: the error of ``probe`` against the animation as Blender evaluates it; returns an ErrorMeter."""
    meter: ErrorMeter = yield from measure_rig(
        SimpleNamespace(objects=(probe,), armature=armature), SimpleNamespace(animation=animation)
    )
    return meter


def check_range(context, frame_start, frame_end, frame_step, label: str) -> None:
    """Raises BadSettings or BadAnimation on a range that is no good, before anything is read."""
    numbers = frame_range(context.scene, frame_start, frame_end, frame_step, label)
    if len(numbers) < 2:
        raise BadAnimation(
            f"The range has only frame {numbers.start}; at least two frames are needed. Widen the frame range, or "
            "choose a smaller step"
        )
