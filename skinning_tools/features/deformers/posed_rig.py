# SPDX-License-Identifier: GPL-3.0-or-later
"""A temporary rig in which the deforming bones stand in any pose, so that Blender evaluates the mesh's modifiers there.

Its armature has only the deforming bones, without parents, constraints and drivers: controls, as on generated rigs, and
blocked scripts have no say. The user's objects are not posed. Objects that the modifiers refer to and that follow the
armature (a lattice, the body that clothes are bound to) are copied along with it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import bpy
import numpy as np
from mathutils import Matrix
from mathutils.bvhtree import BVHTree

from ...blender.animation.animation_reader import POSITION_BYTES
from ...blender.armatures import edit_bones_of, rest_matrices
from ...blender.attributes import read_attribute
from ...blender.before_armature import rest_copy
from ...blender.data_blocks import remove_living
from ...blender.preconditions import object_label, unmet
from ...blender.seams import sew
from ...blender.skin_reader import armature_modifier, rest_positions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.errors import BadMesh
from ...core.geometry import diagonal, transform_points
from ...core.memory import check_available
from ...core.quaternions import from_matrices
from .teacher import Teacher

# Rays to find self-intersections start at this many vertices, and end at this share of the mesh's diagonal.
_RAYS, _REACH = 400, 0.25


class PosedRig:
    """mesh: the copy with the modifiers; to_armature (4, 4): from its space to the armature's."""

    def __init__(self, scene: bpy.types.Scene, mesh: bpy.types.Object, bare: bpy.types.Object, names: Sequence[str]):
        self._scene, self.mesh, self._bare = scene, mesh, bare
        self._count = len(mesh.data.vertices)
        self._rest = rest_matrices(bare, names)
        self._inverse = np.linalg.inv(self._rest)
        places = {bone.name: index for index, bone in enumerate(bare.pose.bones)}
        self._order = np.array([places[name] for name in names])
        for bone in bare.pose.bones:
            bone.rotation_mode = "QUATERNION"
        depsgraph = self._scene.view_layers[0].depsgraph
        worlds = [np.array(ob.evaluated_get(depsgraph).matrix_world, dtype=np.float64) for ob in (bare, mesh)]
        try:
            self.to_armature = np.linalg.solve(*worlds)
        except np.linalg.LinAlgError:
            raise unmet("NO_SCALE", object=mesh) from None
        size = diagonal(self.in_armature(rest_positions(mesh.data)))
        self.size = float(size) or 1.0

    def in_armature(self, positions: np.ndarray) -> np.ndarray:
        """Positions (..., 3) of the mesh in the armature's space."""
        return transform_points(positions, self.to_armature)

    def shape(self, motion: np.ndarray) -> np.ndarray:
        """(N, 3) in the armature's space: the mesh with its bones moved from rest by ``motion`` (P, 3, 4), rotations
        and shifts. Raises BadMesh if the vertices are others."""
        full = np.tile(np.eye(4), (len(motion), 1, 1))
        full[:, :3] = motion
        basis = self._inverse @ full @ self._rest
        location, rotation = np.zeros((len(self._bare.pose.bones), 3)), np.zeros((len(self._bare.pose.bones), 4))
        rotation[:, 0] = 1.0
        location[self._order], rotation[self._order] = basis[:, :3, 3], from_matrices(basis[:, :3, :3])
        self._bare.pose.bones.foreach_set("location", location.ravel())
        self._bare.pose.bones.foreach_set("rotation_quaternion", rotation.ravel())
        self._bare.update_tag()
        self._scene.view_layers[0].update()
        evaluated = self._evaluated()
        if len(evaluated.data.vertices) != self._count:
            raise BadMesh(
                f"The modifiers to bake change the vertices of {object_label(self.mesh)} from {self._count:,} to "
                f"{len(evaluated.data.vertices):,}. Disable in the viewport those that add or remove vertices"
            )
        return self.in_armature(read_attribute(evaluated.data, "position").astype(np.float64))

    def _evaluated(self) -> bpy.types.Object:
        return self.mesh.evaluated_get(self._scene.view_layers[0].depsgraph)

    def depths(self) -> tuple[np.ndarray, np.ndarray]:
        """(R,): how deep vertices of a sample lie inside another part of the surface, as it is now, in units of the
        mesh's diagonal; 0 outside. (R, 2): each vertex, and one of that part.

        A ray from a vertex along its normal that first meets a face from behind leaves a part that it was inside of.
        """
        evaluated = self._evaluated()
        mesh = evaluated.data
        tree = BVHTree.FromObject(evaluated, self._scene.view_layers[0].depsgraph)
        step = max(self._count // _RAYS, 1)
        size = self.size / max(float(np.linalg.norm(self.to_armature[:3, :3], 2)), 1e-12)
        found, pairs = [], []
        for index in range(0, self._count, step):
            vertex = mesh.vertices[index]
            normal = vertex.normal
            _, across, face, distance = tree.ray_cast(vertex.co + normal * (1e-4 * size), normal, _REACH * size)
            inside = distance is not None and across.dot(normal) > 0
            found.append(distance / size if inside else 0.0)
            pairs.append((index, mesh.polygons[face].vertices[0] if inside else index))
        return np.array(found), np.array(pairs)


def check_memory(mesh_object: bpy.types.Object, pose_count: int) -> None:
    """Raises NotEnoughMemory before the machine runs out of it."""
    count = len(mesh_object.data.vertices)
    # Float64, and one copy of it in another order.
    check_available(4 * pose_count * count * POSITION_BYTES, f"{pose_count} poses of {object_label(mesh_object)}")


@contextmanager
def posed_rig(
    context: bpy.types.Context,
    teacher: Teacher,
    names: Sequence[str],
    added: Sequence[tuple[str, np.ndarray]] = (),
    seams: tuple[np.ndarray, np.ndarray] | None = None,
) -> Iterator[PosedRig]:
    """A PosedRig with the bones ``names`` of the armature, and others ``added`` (name, rest matrix (4, 4)). With
    ``seams``, as of ``sewn_places``, its mesh has one vertex for each place.

    With ``added``, which may be empty, the mesh has no modifier but a plain Armature modifier.
    """
    with ExitStack() as undo:
        bare = _bare_armature(context, teacher.armature, names, added, undo)
        mesh = _mesh_copy(teacher, bare, undo)
        if seams is not None:
            sew(mesh.data, *seams)
        copies = {teacher.armature: bare, teacher.mesh: mesh}
        _copy_followers(copies, teacher.armature, undo)
        scene = undo.enter_context(temporary_scene(context.scene, list(copies.values())))
        evaluate_frame(scene, context.scene.frame_current_final)
        yield PosedRig(scene, mesh, bare, [*names, *(name for name, _ in added)])


@contextmanager
def plain(rig: PosedRig) -> Iterator[bpy.types.Object]:
    """The mesh of the rig with only linear blending by its weights."""
    mesh = rig.mesh
    for modifier in list(mesh.modifiers):
        if modifier.type != "ARMATURE":
            mesh.modifiers.remove(modifier)
    for modifier in mesh.modifiers:
        modifier.use_deform_preserve_volume = False
        modifier.show_viewport = True
    yield mesh


def _bare_armature(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    names: Sequence[str],
    added: Sequence[tuple[str, np.ndarray]],
    undo: ExitStack,
) -> bpy.types.Object:
    data = bpy.data.armatures.new("skinning_tools")
    undo.callback(remove_living, [data])
    bare = bpy.data.objects.new("skinning_tools", data)
    undo.callback(remove_living, [bare])
    bare.matrix_world = armature.matrix_world
    bones = [(name, armature.data.bones[name].matrix_local, armature.data.bones[name].length) for name in names]
    bones += [(name, Matrix(matrix.tolist()), 1.0) for name, matrix in added]
    with edit_bones_of(context, bare) as edit_bones:
        for name, matrix, length in bones:
            bone = edit_bones.new(name)
            bone.head, bone.tail = (0, 0, 0), (0, length, 0)
            bone.matrix = matrix
    return bare


def _mesh_copy(teacher: Teacher, bare: bpy.types.Object, undo: ExitStack) -> bpy.types.Object:
    """The mesh at rest with its Armature modifier and those to bake."""
    copy = undo.enter_context(rest_copy(teacher.mesh))
    # Present values, whatever curves and drivers have elsewhere.
    copy.animation_data_clear()
    own = armature_modifier(teacher.mesh)
    kept = {*teacher.names, *([own.name] if own is not None else [])}
    for modifier in list(copy.modifiers):
        if modifier.name not in kept:
            copy.modifiers.remove(modifier)
    if own is None:
        made = copy.modifiers.new("Armature", "ARMATURE")
        made.object = bare
        copy.modifiers.move(len(copy.modifiers) - 1, 0)
    return copy


def _copy_followers(copies: dict, armature: bpy.types.Object, undo: ExitStack) -> None:
    """Add copies of the objects that follow the armature and on which the copied ones depend, and let all copies refer
    to copies."""
    followers: dict[bpy.types.Object, bool] = {armature: True}
    for ob in list(copies):
        if ob != armature:
            _follows(ob, followers)
    for ob, follows in followers.items():
        if follows and ob not in copies and ob.type != "ARMATURE":
            copies[ob] = copy = ob.copy()
            undo.callback(remove_living, [copy])
    for original, copy in copies.items():
        if original == armature:
            continue
        if copy.parent in copies and copy.parent_type != "BONE":
            inverse = copy.matrix_parent_inverse.copy()
            copy.parent = copies[copy.parent]
            copy.matrix_parent_inverse = inverse
        elif copy.parent == armature and copy.parent_bone in copies[armature].data.bones:
            copy.parent = copies[armature]
        for holder in (*copy.modifiers, *copy.constraints):
            for target in _pointers(holder):
                if getattr(holder, target, None) in copies:
                    setattr(holder, target, copies[getattr(holder, target)])
            _redirect_inputs(holder, copies)


def _redirect_inputs(holder: bpy.types.bpy_struct, copies: dict) -> None:
    """Objects among the inputs of a Geometry Nodes modifier."""
    if getattr(holder, "type", "") != "NODES" or holder.node_group is None:
        return
    from ...blender.center_records import modifier_input, set_input

    for item in holder.node_group.interface.items_tree:
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.socket_type == "NodeSocketObject":
            value = modifier_input(holder, item.name)
            if value in copies:
                set_input(holder, item.name, copies[value])


def _follows(ob: bpy.types.Object, known: dict[bpy.types.Object, bool]) -> bool:
    """Whether an object moves with the armature, by its modifiers, constraints or parents; fills ``known``."""
    if ob in known:
        return known[ob]
    known[ob] = False
    others = [ob.parent]
    for holder in (*ob.modifiers, *ob.constraints):
        others += [getattr(holder, name, None) for name in _pointers(holder)]
    # All of them, not up to the first: what they refer to is copied, too.
    following = [_follows(other, known) for other in others if other is not None]
    known[ob] = any(following)
    return known[ob]


def _pointers(holder: bpy.types.bpy_struct) -> list[str]:
    return [
        prop.identifier
        for prop in holder.bl_rna.properties
        if prop.type == "POINTER" and prop.fixed_type.identifier == "Object" and not prop.is_readonly
    ]
