# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned mesh as arrays: rest positions, triangles, influences, and the current pose of its armature."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadScene
from . import look_ups
from .background import drain
from .center_records import modifier_input, modifier_record, native_modifier
from .control_points import SKIN_TYPES, lattice_triangles, read_positions, stored_shapes
from .preconditions import (
    armature_label,
    check_armature_mode,
    check_has_vertices,
    check_mode,
    check_not_edited,
    check_type,
    check_visible,
    object_label,
    unmet,
)
from .vertex_groups import read_weights_in_parts

# Scales along the axes count as equal below this relative difference: matrices are in single precision.
_EVEN_SCALE = 1e-4


@dataclass(frozen=True, eq=False)
class Skin:
    """A skinned mesh.

    bone_names: the armature's deforming bones that have a vertex group, in the armature's order. rest (N, 3) float64 in
    the mesh object's space, triangles (T, 3) int32, bones (N, K) int32 indices into ``bone_names``, weights (N, K)
    float64 whose rows sum to 1, or are zero at vertices that no bone moves.
    """

    object: bpy.types.Object
    armature: bpy.types.Object
    bone_names: tuple[str, ...]
    rest: np.ndarray
    triangles: np.ndarray
    bones: np.ndarray
    weights: np.ndarray

    @property
    def label(self) -> str:
        """The mesh's name in messages."""
        return object_label(self.object)


def check_skinned(
    context: bpy.types.Context, mesh_object: bpy.types.Object | None, kinds: tuple[str, ...] = ("MESH",)
) -> None:
    """Raises BadScene if ``mesh_object`` cannot be read as a skinned mesh, with the reason. Cheap enough for a panel.

    kinds: SKIN_TYPES for tools that work on lattices as well.
    """
    check_type(mesh_object, "Select a mesh that an armature deforms", kinds)
    check_mode(mesh_object)
    check_visible(context.scene, context.view_layer, mesh_object)
    check_rig(mesh_object)


def check_turning(context: bpy.types.Context, mesh_object: bpy.types.Object | None) -> None:
    """``check_skinned`` and ``check_even_scale``, for methods that blend rotations. Cheap enough for a panel."""
    check_skinned(context, mesh_object)
    check_even_scale(mesh_object)


def check_even_scale(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if the scale of a mesh object that passes ``check_rig``, or of its armature, is uneven.

    A rotating bone then shears vertices in the space of one of the two, so its transform is no rotation there. Linear
    blending is not affected.
    """
    armature = armature_of(mesh_object)
    assert armature is not None
    to_world = np.array(armature.matrix_world, dtype=np.float64)
    scale = np.array(armature.matrix_world.to_scale())
    if np.ptp(np.abs(scale)) > _EVEN_SCALE * np.abs(scale).max() or not scale.any():
        raise unmet("UNEVEN_SCALE", object=armature_label(armature), scale=_text(scale))
    relative = np.linalg.solve(to_world, np.array(mesh_object.matrix_world, dtype=np.float64))[:3, :3]
    sizes = np.linalg.svd(relative, compute_uv=False)
    if sizes[0] - sizes[2] > _EVEN_SCALE * sizes[0] or sizes[0] == 0:
        raise unmet("UNEVEN_SCALE", object=mesh_object, scale=_text(mesh_object.matrix_world.to_scale()))


def _text(scale: Iterable[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in scale)


def check_rig(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if a mesh object has no armature with matching vertex groups.

    Also if the weights do not describe the whole deformation: with a second armature, or on a part of the mesh only.
    """
    label = object_label(mesh_object)
    check_has_vertices(mesh_object)
    armature = armature_of(mesh_object)
    if armature is None:
        raise unmet("NOT_SKINNED", object=mesh_object)
    check_armature_mode(armature)
    modifier = armature_modifier(mesh_object)
    if modifier is not None and not modifier.use_vertex_groups:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} does not use vertex groups. Enable Bind To > Vertex Groups'
        )
    check_single(mesh_object, modifier)
    if not mesh_object.vertex_groups:
        raise unmet("NO_VERTEX_GROUPS", object=mesh_object)
    if not bone_names(mesh_object, armature):
        raise unmet("NO_GROUP_OF_A_BONE", object=mesh_object, armature=armature)


def armature_modifier(mesh_object: bpy.types.Object) -> bpy.types.ArmatureModifier | None:
    """The Armature modifier that skins the object, an enabled one rather than a disabled one; None without any.

    A modifier replaced by the Center of Rotation modifier takes precedence: it is disabled, and has the same armature;
    its name does not identify it, as it may have been renamed.
    """
    found = [modifier for modifier in mesh_object.modifiers if modifier.type == "ARMATURE" and modifier.object]
    if not found:
        # Panels call this for all objects of a scene.
        return None
    native = native_modifier(mesh_object)
    if native is not None:
        armature, record = modifier_input(native, "Armature"), modifier_record(native)
        name = record.armature_modifier if record is not None else ""
        found.sort(key=lambda modifier: (modifier.show_viewport or modifier.object != armature, modifier.name != name))
        return found[0]
    return next((modifier for modifier in found if modifier.show_viewport), found[0])


def armature_of(mesh_object: bpy.types.Object) -> bpy.types.Object | None:
    """The armature object that skins a mesh object, by its modifier or as its parent of type Armature; or None."""
    modifier = armature_modifier(mesh_object)
    if modifier is not None:
        return modifier.object
    parent = mesh_object.parent
    return (
        parent if parent is not None and mesh_object.parent_type == "ARMATURE" and parent.type == "ARMATURE" else None
    )


def uses_envelopes(mesh_object: bpy.types.Object) -> bool:
    """Whether Blender moves vertices without weights by the bones' envelopes."""
    modifier = armature_modifier(mesh_object)
    # A parent of type Armature always uses envelopes.
    return modifier.use_bone_envelopes if modifier is not None else armature_of(mesh_object) is not None


def _armature_number(mesh_object: bpy.types.Object) -> int | None:
    # Called for all objects of a file, most of which have neither.
    if not mesh_object.modifiers and mesh_object.parent_type != "ARMATURE":
        return None
    armature = armature_of(mesh_object)
    return armature.session_uid if armature is not None else None


_by_armature = look_ups.Index(_armature_number, *SKIN_TYPES)


def skins_of(armature: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    """The meshes and lattices of the view layer that the armature deforms, shown or not. Cheap enough for a panel."""
    return _by_armature.at(armature.session_uid, within=view_layer)


def meshes_of(armature: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    """The meshes among ``skins_of``."""
    return [ob for ob in skins_of(armature, view_layer) if ob.type == "MESH"]


def bone_names(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> tuple[str, ...]:
    """The deforming bones of ``armature`` with a vertex group in ``mesh_object``."""
    groups = set(mesh_object.vertex_groups.keys())
    return tuple(bone.name for bone in armature.data.bones if bone.use_deform and bone.name in groups)


def read_skin(context: bpy.types.Context, mesh_object: bpy.types.Object | None) -> Skin:
    """Read the mesh before its modifiers: the first shape key (Basis) if it has any, not their mix.

    Raises BadScene as ``check_skinned``, BadWeights. Treats bendy bones as one segment, and ignores envelopes.
    """
    check_skinned(context, mesh_object)
    return read_arrays(mesh_object)


def read_arrays(mesh_object: bpy.types.Object) -> Skin:
    """``read_skin`` also for hidden objects, outside of Edit Mode. Raises BadScene as ``check_rig``, BadWeights."""
    return drain(read_in_parts(mesh_object))


def read_in_parts(mesh_object: bpy.types.Object) -> Generator[float, None, Skin]:
    """Generator: ``read_arrays`` in steps; yields fractions. The mesh must not change meanwhile."""
    from ..core.deform import convex_influences

    check_not_edited(mesh_object)
    check_rig(mesh_object)
    armature = armature_of(mesh_object)
    names = bone_names(mesh_object, armature)
    rest, triangles = rest_positions(mesh_object.data), mesh_triangles(mesh_object.data)
    yield 0.0
    bones, weights = yield from read_weights_in_parts(mesh_object, names)
    yield 1.0
    bones, weights = convex_influences(bones, weights, len(rest), len(names), object_label(mesh_object))
    return Skin(mesh_object, armature, names, rest, triangles, bones, weights)


def rest_positions(mesh: bpy.types.Mesh | bpy.types.Lattice) -> np.ndarray:
    """(N, 3) float64 positions of a mesh or lattice, of its first shape key if it has any."""
    if mesh.shape_keys is None:
        return read_positions(*next(stored_shapes(mesh)))
    return read_positions(mesh.shape_keys.reference_key.points, "co")


def mesh_triangles(mesh: bpy.types.Mesh | bpy.types.Lattice) -> np.ndarray:
    """(T, 3) int32 vertices of the triangles, of a lattice those on its outside."""
    if isinstance(mesh, bpy.types.Lattice):
        return lattice_triangles(mesh).astype(np.int32)
    mesh.calc_loop_triangles()
    triangles = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles.ravel())
    return triangles


def mesh_edges(mesh: bpy.types.Mesh) -> np.ndarray:
    """(E, 2) int32 vertices of the edges."""
    edges = np.empty((len(mesh.edges), 2), np.int32)
    mesh.edges.foreach_get("vertices", edges.ravel())
    return edges


def face_corners(mesh: bpy.types.Mesh) -> tuple[np.ndarray, np.ndarray]:
    """int32: the vertex of each face corner, and the index of each face's first corner."""
    corners, starts = np.empty(len(mesh.loops), np.int32), np.empty(len(mesh.polygons), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    mesh.polygons.foreach_get("loop_start", starts)
    return corners, starts


def bone_matrices(skin: Skin, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(P, 3, 4) float64: each bone's transform of rest positions, in the mesh object's space, in the depsgraph's
    current state.

    As in the Armature modifier: the pose relative to the rest pose in the armature's space, converted to the mesh's.
    Raises BadScene if a bone is missing, or has an unusable matrix.
    """
    armature = skin.armature.evaluated_get(depsgraph)
    order = {name: index for index, name in enumerate(armature.pose.bones.keys())}
    missing = [name for name in skin.bone_names if name not in order]
    if missing:
        raise unmet("BONE_GONE", armature=skin.armature, bone=missing[0])
    chosen = [order[name] for name in skin.bone_names]
    pose = _matrices(armature.pose.bones, "matrix")[chosen]
    order = {name: index for index, name in enumerate(armature.data.bones.keys())}
    rest = _matrices(armature.data.bones, "matrix_local")[[order[name] for name in skin.bone_names]]
    mesh_world = np.array(skin.object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    usable = np.isfinite(pose).all(axis=(1, 2))
    if not usable.all():
        raise BadScene(
            f'The bone "{skin.bone_names[np.argmin(usable)]}" of "{skin.armature.name}" has a transform that is not a '
            "number (NaN or infinite). Clear its transform, and check its constraints and drivers"
        )
    try:
        to_armature = np.linalg.solve(np.array(armature.matrix_world, dtype=np.float64), mesh_world)
        matrices = np.linalg.inv(to_armature) @ pose @ np.linalg.inv(rest) @ to_armature
    except np.linalg.LinAlgError:
        raise unmet("NO_SCALE", object=f"{skin.label} or its {armature_label(skin.armature)}") from None
    return matrices[:, :3]


def _matrices(bones: bpy.types.bpy_prop_collection, name: str) -> np.ndarray:
    """(P, 4, 4) float64 of all bones of a collection."""
    values = np.empty((len(bones), 4, 4), np.float32)
    bones.foreach_get(name, values.ravel())
    # Blender stores matrices by columns.
    return values.swapaxes(1, 2).astype(np.float64)


def check_single(mesh_object: bpy.types.Object, modifier: bpy.types.Modifier | None) -> None:
    """Raises BadScene unless ``modifier`` alone (None: the parent) moves the whole object by bones."""
    label = object_label(mesh_object)
    if modifier is None:
        return
    # A group that does not exist limits nothing.
    if modifier.vertex_group in mesh_object.vertex_groups:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} only deforms its vertex group "{modifier.vertex_group}". '
            "Clear Vertex Group in the modifier: the weights of the bones are enough"
        )
    if mesh_object.parent is not None and mesh_object.parent_type == mesh_object.parent.type == "ARMATURE":
        raise unmet(
            "DEFORMED_TWICE",
            object=mesh_object,
            first=f'its parent "{mesh_object.parent.name}"',
            second=f'the modifier "{modifier.name}"',
            remedy="Set its parent type to Object, or remove the modifier",
        )
    for other in mesh_object.modifiers:
        if other.type == "ARMATURE" and other.object and other.show_viewport and other != modifier:
            raise unmet(
                "DEFORMED_TWICE",
                object=mesh_object,
                first=f'the modifier "{modifier.name}"',
                second=f'the modifier "{other.name}"',
                remedy="Disable one of them in the viewport, or remove it",
            )
