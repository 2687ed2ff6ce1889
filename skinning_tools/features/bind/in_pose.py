# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding in the current pose: how the meshes stand in it, and their new shapes at rest.

The pose counts as the user sees it. What already follows the armature counts where the armature has taken it; whatever
the binding makes of the weights, every vertex stays where it is seen.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.bone_weights import read_bone_weights
from ...blender.control_points import read_positions, stored_shapes
from ...blender.data_blocks import is_alive, temporary_copy
from ...blender.fit_poses import bare_skin, check_blended_linearly
from ...blender.look_ups import users_of
from ...blender.object_transform import set_parent_type
from ...blender.preconditions import check_posed, check_visible, object_label, unmet
from ...blender.skin_reader import bone_matrices, check_single, mesh_edges, rest_positions
from ...blender.skinnable import deforming_modifiers, deforming_parent, modifiers_above
from ...blender.wording import listed, vertices_text
from ...core.errors import BadScene
from ...core.geometry import diagonal, transform_points

if TYPE_CHECKING:
    from .targets import Targets

logger = logging.getLogger(__name__)

# Modifiers that move no vertex and change no weight.
_HARMLESS = {"DATA_TRANSFER", "NORMAL_EDIT", "WEIGHTED_NORMAL", "UV_PROJECT", "UV_WARP", "COLLISION"}

# A shape at rest is torn if more than a hundredth of its edges is stretched or shortened by such a factor.
_OF_EDGES, _STRETCHED = 0.99, 2.0

# Of the diagonal: where more than weights moves a vertex.
_OTHERWISE = 1e-4


@dataclass(frozen=True, eq=False)
class Stand:
    """How a mesh stands in the pose. matrices (P, 3, 4): of the deforming bones, from the rest pose, in the object's
    space; before (N, 3, 4): from the stored shape of each vertex to where it is seen; points (N, 3): seen, without
    shape keys."""

    matrices: np.ndarray
    before: np.ndarray
    points: np.ndarray


def check_in_pose(context: bpy.types.Context, targets: "Targets") -> None:
    """Raise BadScene if the meshes cannot be bound in the current pose. Cheap enough for a panel."""
    armature = targets.armature
    check_posed(armature)
    check_visible(context.scene, context.view_layer, armature)
    for found, remedy in (
        ([b.name for b in armature.data.bones if b.use_deform and b.bbone_segments > 1], "their Segments to 1"),
        ([b.name for b in armature.data.bones if b.use_deform and b.use_envelope_multiply], "Envelope Multiply off"),
    ):
        if found:
            raise BadScene(
                f'Bones of "{armature.name}" move vertices by more than weights: {listed(found)}. Set {remedy} in the '
                "bones' properties (Bendy Bones, Deform), or bind in the rest pose"
            )
    for ob in targets.meshes:
        _check_shape(ob, armature)


def _check_shape(ob: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Raise BadScene if the rest shape of an object cannot be replaced, or does not decide where its vertices are."""
    check_blended_linearly(ob, armature)
    other = next((user for user in users_of(ob.data) if user != ob), None)
    if other is not None:
        raise unmet("MESH_SHARED", object=ob, other=other, meaning="whose shape would change as well")
    for modifier in deforming_modifiers(ob):
        check_single(ob, modifier)
        if not modifier.use_vertex_groups:
            raise BadScene(
                f'The modifier "{modifier.name}" of {object_label(ob)} does not use vertex groups. Enable Bind To > '
                "Vertex Groups, or disable the modifier in the viewport"
            )
    above = [modifier.name for modifier in modifiers_above(ob, armature) if modifier.type not in _HARMLESS]
    if above:
        raise BadScene(
            f"The {object_label(ob)} has modifiers before the armature, which change the shape that is bound: "
            f'{listed(above)}. Apply them, or move them below an Armature modifier of "{armature.name}"'
        )


def read_stand(
    context: bpy.types.Context, ob: bpy.types.Object, armature: bpy.types.Object, names: Sequence[str]
) -> Stand:
    """How an object stands in the current pose; names: of the deforming bones. Raises BadScene, BadWeights."""
    from ...core.deform import vertex_transforms
    from ...core.deform.blend import transformed

    matrices = present_matrices(context, ob, armature, names)
    rest = rest_positions(ob.data)
    before = np.tile(np.eye(3, 4), (len(rest), 1, 1))
    if deforming_parent(ob) == armature or any(m.object == armature for m in deforming_modifiers(ob)):
        stored = read_bone_weights(ob, armature, names)
        before = vertex_transforms(rest, stored.bones, stored.weights, matrices)
    return Stand(matrices, before, transformed(before, rest))


def present_matrices(
    context: bpy.types.Context, ob: bpy.types.Object, armature: bpy.types.Object, names: Sequence[str]
) -> np.ndarray:
    """(P, 3, 4) of the bones ``names`` from the rest pose to the current one, in the object's space. Raises
    BadScene."""
    return bone_matrices(bare_skin(ob, armature, names), context.evaluated_depsgraph_get())


def seen_before(context: bpy.types.Context, stands: dict[bpy.types.Object, Stand]) -> list[np.ndarray]:
    """``seen_positions`` of objects before they are bound. Raises BadScene if an armature already moves vertices
    otherwise than by their weights."""
    from ...core.deform.blend import transformed

    seen = seen_positions(context, list(stands))
    for (ob, stand), there, unskinned in zip(
        stands.items(), seen, seen_positions(context, list(stands), False), strict=True
    ):
        world = np.array(ob.matrix_world, dtype=np.float64)
        shape = np.linalg.solve(world[:3, :3], (unskinned - world[:3, 3]).T).T
        expected = transform_points(transformed(stand.before, shape), world)
        distances = np.linalg.norm(expected - there, axis=1)
        if distances.max() > _OTHERWISE * diagonal(there):
            raise BadScene(
                f"The vertex {int(np.argmax(distances))} of {object_label(ob)} is moved by more than its weights, "
                "such as by envelopes. Disable Bone Envelopes in its Armature modifier, or turn the modifier off in "
                "the viewport"
            )
    return seen


def check_same_pose(
    context: bpy.types.Context, ob: bpy.types.Object, armature: bpy.types.Object, names: Sequence[str], stand: Stand
) -> None:
    """Raise BadScene if the pose has changed since ``stand`` was read."""
    if not np.array_equal(present_matrices(context, ob, armature, names), stand.matrices):
        raise unmet("EDITED", object=armature)


def movements_since(
    context: bpy.types.Context, seen: Sequence[np.ndarray], objects: Sequence[bpy.types.Object]
) -> tuple[list[float], list[str]]:
    """How far any vertex of each object has moved at most since ``seen``, the ``seen_positions`` before; and notes.

    The objects are bound by then, and this is a figure about them: where Blender cannot be asked, such as without
    memory for the copies, there are no distances but a note.
    """
    try:
        pairs = zip(seen, seen_positions(context, objects) if objects else [], strict=True)
        return [float(np.linalg.norm(old - new, axis=1).max()) for old, new in pairs], []
    except Exception as error:
        logger.exception("The movement in the pose could not be measured")
        return [], [f"the largest movement in the pose could not be measured ({type(error).__name__}: {error})"]


def collapsed(ob: bpy.types.Object, vertices: np.ndarray) -> BadScene:
    """The error for vertices (n,) that no rest position leads to."""
    return BadScene(
        f"In this pose the bones of {vertices_text(len(vertices))} of {object_label(ob)} cancel each other out or are "
        f"flat: {_named(vertices)}. Bend or twist the joint less and scale no bone to zero, or let these vertices "
        "follow one bone: enable Replace, and unlock their vertex groups"
    )


def mended_note(vertices: np.ndarray) -> str:
    """What to say of vertices (n,) that follow one bone, as the blend of theirs collapses."""
    count, named = vertices_text(len(vertices)), _named(vertices)
    if len(vertices) == 1:
        return f"{count} follows its strongest bone alone, since blends collapse in this pose: {named}"
    return f"{count} follow their strongest bones alone, since blends collapse in this pose: {named}"


def stretch_notes(ob: bpy.types.Object, stand: Stand | None) -> list[str]:
    """What to say of a new shape at rest that differs much from how the mesh stands in the pose: where weights change
    along a bent joint, the shape at rest may be torn although nothing is to be seen of that in the pose."""
    edges = mesh_edges(ob.data) if isinstance(ob.data, bpy.types.Mesh) else np.zeros((0, 2), int)
    if stand is None or not len(edges):
        return []
    lengths = [
        np.linalg.norm(np.diff(points[edges], axis=1)[:, 0], axis=1)
        for points in (stand.points, rest_positions(ob.data))
    ]
    some = np.flatnonzero(np.minimum(*lengths) > 0)
    if not len(some):
        return []
    changes = np.log(lengths[1][some] / lengths[0][some])
    # Bones that scale the whole mesh are no fault.
    most = float(np.exp(np.quantile(np.abs(changes - np.median(changes)), _OF_EDGES)))
    if most < _STRETCHED:
        return []
    return [
        f"its shape at rest is torn: one edge in a hundred is at least {most:.1f} times as long or as short as in this "
        "pose. Bend the joints less before you bind, or correct the rest shape in Edit Mode"
    ]


def _named(vertices: np.ndarray) -> str:
    return listed(f"vertex {vertex}" for vertex in vertices.tolist())


def write_rest(ob: bpy.types.Object, to_rest: np.ndarray) -> None:
    """Move the stored positions of all vertices by ``to_rest`` (N, 3, 4), in the data and in every shape key.

    The mix of the keys, at whatever values, moves alike: its coefficients sum to 1."""
    from ...core.deform.blend import transformed

    if (to_rest == np.eye(3, 4)).all():
        return
    for points, name in stored_shapes(ob.data):
        moved = transformed(to_rest, read_positions(points, name))
        points.foreach_set(name, moved.astype(np.float32).ravel())
    if isinstance(ob.data, bpy.types.Mesh):
        ob.data.update()
    ob.data.update_tag()


def seen_positions(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], skinned: bool = True
) -> list[np.ndarray]:
    """(N, 3) for each object, in the world: as Blender evaluates it in the current pose, with its shape keys and, if
    ``skinned``, the armature, without any other modifier."""
    view_layer = context.view_layer
    try:
        with ExitStack() as stack:
            copies = [stack.enter_context(temporary_copy(ob)) for ob in objects]
            for copy in copies:
                # At the current values, whatever its curves have at this frame.
                copy.animation_data_clear()
                for modifier in list(copy.modifiers):
                    if not skinned or modifier.type != "ARMATURE":
                        copy.modifiers.remove(modifier)
                if not skinned and copy.parent_type == "ARMATURE":
                    set_parent_type(copy, "OBJECT")
                context.scene.collection.objects.link(copy)
            view_layer.update()
            found = []
            for copy in copies:
                evaluated = copy.evaluated_get(view_layer.depsgraph)
                world = np.array(evaluated.matrix_world, dtype=np.float64)
                found.append(transform_points(read_positions(*next(stored_shapes(evaluated.data))), world))
            return found
    finally:
        if is_alive(view_layer):
            view_layer.update()
