# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned mesh as arrays: rest positions, triangles, influences, and what its armature does at present."""

from collections.abc import Generator
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadScene
from . import look_ups
from .background import drain
from .center_records import modifier_input, modifier_record, native_modifier
from .preconditions import (
    UNREADABLE_MODES,
    check_armature_mode,
    check_has_vertices,
    check_mode,
    check_visible,
    object_label,
    unmet,
)
from .vertex_groups import read_weights_in_parts

# Scales along the axes that differ by less than this share are taken as equal: matrices are in single precision.
_EVEN_SCALE = 1e-4


@dataclass(frozen=True, eq=False)
class Skin:
    """A skinned mesh.

    bone_names: the armature's deforming bones that have a vertex group, in the armature's order. rest (N, 3) float64 in
    the mesh object's space, triangles (T, 3) int32, bones (N, K) int32 indices into ``bone_names``, weights (N, K)
    float64 whose rows sum to 1, or are zero at vertices that the armature leaves alone.
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
        """What messages call the mesh."""
        return object_label(self.object)


def check_skinned(context: bpy.types.Context, object: bpy.types.Object | None) -> None:
    """Raises BadScene with the reason why ``object`` cannot be read as a skinned mesh. Cheap enough for a panel."""
    if object is None:
        raise BadScene("There is no active object. Select a mesh that an armature deforms")
    label = object_label(object)
    if object.type != "MESH":
        kind = object.bl_rna.properties["type"].enum_items[object.type].name
        raise BadScene(f"The {label} is not a mesh, its type is {kind}. Select a mesh that an armature deforms")
    check_mode(object)
    check_visible(context.scene, context.view_layer, object)
    check_rig(object)


def check_turning(context: bpy.types.Context, object: bpy.types.Object | None) -> None:
    """``check_skinned`` and ``check_even_scale``: for what blends rotations. Cheap enough for a panel."""
    check_skinned(context, object)
    check_even_scale(object)


def check_even_scale(object: bpy.types.Object) -> None:
    """Raises BadScene where the scale of a mesh object that passes ``check_rig``, or its armature's, differs by axes.

    A bone that turns then shears what it moves, in the space of the one or the other: there is no rotation to speak of.
    Linear blending does not mind.
    """
    armature = armature_of(object)
    assert armature is not None
    to_world = np.array(armature.matrix_world, dtype=np.float64)
    scale = np.array(armature.matrix_world.to_scale())
    if np.ptp(np.abs(scale)) > _EVEN_SCALE * np.abs(scale).max() or not scale.any():
        raise BadScene(
            f'The armature "{armature.name}" is scaled unevenly ({_text(scale)}), so that its bones shear what they '
            "turn. Apply its scale (Object > Apply > Scale)"
        )
    relative = np.linalg.solve(to_world, np.array(object.matrix_world, dtype=np.float64))[:3, :3]
    sizes = np.linalg.svd(relative, compute_uv=False)
    if sizes[0] - sizes[2] > _EVEN_SCALE * sizes[0] or sizes[0] == 0:
        raise BadScene(
            f"The {object_label(object)} is scaled unevenly ({_text(object.matrix_world.to_scale())}), so that the "
            f'bones of "{armature.name}" shear what they turn. Apply its scale (Object > Apply > Scale)'
        )


def _text(scale) -> str:
    return ", ".join(f"{value:.3g}" for value in scale)


def check_rig(object: bpy.types.Object) -> None:
    """Raises BadScene where a mesh object has no armature and vertex groups that fit each other.

    So it does where Blender deforms by more than the weights say: by another armature, or a part of the mesh only.
    """
    label = object_label(object)
    check_has_vertices(object)
    armature = armature_of(object)
    if armature is None:
        raise BadScene(
            f"No armature deforms the {label}. Bind it to one (panel Bind), or add an Armature modifier"
            " and choose its armature"
        )
    check_armature_mode(armature)
    modifier = armature_modifier(object)
    if modifier is not None and not modifier.use_vertex_groups:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} does not use vertex groups. Enable Bind To > Vertex Groups'
        )
    _check_single(object, modifier)
    if not object.vertex_groups:
        raise BadScene(
            f"The {label} has no vertex groups, so no bone moves it. Parent it to the armature with Automatic Weights, "
            "or assign weights"
        )
    if not bone_names(object, armature):
        raise BadScene(
            f'None of the {len(object.vertex_groups)} vertex groups of {label} is named as a deforming bone of "'
            f'{armature.name}". Rename the groups as the bones, or enable Deform on the bones'
        )


def armature_modifier(object: bpy.types.Object) -> bpy.types.ArmatureModifier | None:
    """The Armature modifier that skins the object, an enabled one rather than a disabled one; None without any.

    The one whose place the Center of Rotation modifier has taken comes before all others: it is off, and has the same
    armature; by its name alone it cannot be told, as it may have another by now.
    """
    found = [modifier for modifier in object.modifiers if modifier.type == "ARMATURE" and modifier.object]
    if not found:
        # Panels ask this of all objects of a scene.
        return None
    native = native_modifier(object)
    if native is not None:
        armature, record = modifier_input(native, "Armature"), modifier_record(native)
        name = record.armature_modifier if record is not None else ""
        found.sort(key=lambda modifier: (modifier.show_viewport or modifier.object != armature, modifier.name != name))
        return found[0]
    return next((modifier for modifier in found if modifier.show_viewport), found[0])


def armature_of(object: bpy.types.Object) -> bpy.types.Object | None:
    """The armature object that skins a mesh object, by its modifier or as its parent of type Armature; or None."""
    modifier = armature_modifier(object)
    if modifier is not None:
        return modifier.object
    parent = object.parent
    return parent if parent is not None and object.parent_type == "ARMATURE" and parent.type == "ARMATURE" else None


def uses_envelopes(object: bpy.types.Object) -> bool:
    """Whether Blender moves those vertices that have no weights by the envelopes of the bones."""
    modifier = armature_modifier(object)
    # A parent of type Armature cannot do without.
    return modifier.use_bone_envelopes if modifier is not None else armature_of(object) is not None


def _armature_number(object) -> int | None:
    # Asked of all objects of a file, most of which have neither.
    if not object.modifiers and object.parent_type != "ARMATURE":
        return None
    armature = armature_of(object)
    return armature.session_uid if armature is not None else None


_by_armature = look_ups.Index(_armature_number, "MESH")


def meshes_of(armature: bpy.types.Object, view_layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    """The mesh objects of the view layer that the armature deforms, shown or not. Cheap enough for a panel."""
    return _by_armature.at(armature.session_uid, within=view_layer)


def bone_names(object: bpy.types.Object, armature: bpy.types.Object) -> tuple[str, ...]:
    """The deforming bones of ``armature`` that have a vertex group in ``object``."""
    groups = set(object.vertex_groups.keys())
    return tuple(bone.name for bone in armature.data.bones if bone.use_deform and bone.name in groups)


def read_skin(context: bpy.types.Context, object: bpy.types.Object | None) -> Skin:
    """Read the mesh as it is before its modifiers: the first shape key (Basis) where it has any, not their mix.

    Raises BadScene as ``check_skinned``, BadWeights. Bendy bones count as one segment, envelopes do not count.
    """
    check_skinned(context, object)
    return read_arrays(object)


def read_arrays(object: bpy.types.Object) -> Skin:
    """``read_skin`` whether visible or not, outside of Edit Mode. Raises BadScene as ``check_rig``, BadWeights."""
    return drain(read_in_parts(object))


def read_in_parts(object: bpy.types.Object) -> Generator[None, None, Skin]:
    """Generator: ``read_arrays``, that gives the caller time in between. The mesh must stay as it is meanwhile."""
    from ..core.deform import convex_influences

    if object.data.is_editmode:
        raise unmet("MODE", object=object_label(object), mode=UNREADABLE_MODES["EDIT"])
    check_rig(object)
    armature = armature_of(object)
    names = bone_names(object, armature)
    rest, triangles = rest_positions(object.data), mesh_triangles(object.data)
    yield
    bones, weights = yield from read_weights_in_parts(object, names)
    yield
    bones, weights = convex_influences(bones, weights, len(rest), len(names), object_label(object))
    return Skin(object, armature, names, rest, triangles, bones, weights)


def rest_positions(mesh: bpy.types.Mesh) -> np.ndarray:
    """(N, 3) float64 of a mesh, of its first shape key where it has any."""
    positions = np.empty((len(mesh.vertices), 3), np.float32)
    if mesh.shape_keys is not None:
        mesh.shape_keys.reference_key.points.foreach_get("co", positions.ravel())
    else:
        mesh.attributes["position"].data.foreach_get("vector", positions.ravel())
    return positions.astype(np.float64)


def mesh_triangles(mesh: bpy.types.Mesh) -> np.ndarray:
    """(T, 3) int32."""
    mesh.calc_loop_triangles()
    triangles = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", triangles.ravel())
    return triangles


def face_corners(mesh: bpy.types.Mesh) -> tuple[np.ndarray, np.ndarray]:
    """int32: the vertex at each corner of the faces, and where the corners of each face begin among them."""
    corners, starts = np.empty(len(mesh.loops), np.int32), np.empty(len(mesh.polygons), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    mesh.polygons.foreach_get("loop_start", starts)
    return corners, starts


def bone_matrices(skin: Skin, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(P, 3, 4) float64: what each bone does to rest positions, in the mesh object's space, as the depsgraph is now.

    As the armature modifier has it: the pose relative to the rest pose in the armature's space, brought to the mesh's.
    Raises BadScene where a bone is gone, or has no matrix that can be used.
    """
    armature = skin.armature.evaluated_get(depsgraph)
    order = {name: index for index, name in enumerate(armature.pose.bones.keys())}
    missing = [name for name in skin.bone_names if name not in order]
    if missing:
        raise BadScene(f'The armature "{skin.armature.name}" has no bone "{missing[0]}" any more. Start again')
    chosen = [order[name] for name in skin.bone_names]
    pose = _matrices(armature.pose.bones, "matrix")[chosen]
    order = {name: index for index, name in enumerate(armature.data.bones.keys())}
    rest = _matrices(armature.data.bones, "matrix_local")[[order[name] for name in skin.bone_names]]
    mesh_world = np.array(skin.object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    usable = np.isfinite(pose).all(axis=(1, 2))
    if not usable.all():
        raise BadScene(
            f'The bone "{skin.bone_names[np.argmin(usable)]}" of "{skin.armature.name}" has a transform that is not a '
            "number (NaN or infinite). Clear its transform, and look at its constraints and drivers"
        )
    try:
        to_armature = np.linalg.solve(np.array(armature.matrix_world, dtype=np.float64), mesh_world)
        matrices = np.linalg.inv(to_armature) @ pose @ np.linalg.inv(rest) @ to_armature
    except np.linalg.LinAlgError:
        raise BadScene(
            f'The {skin.label} or its armature "{skin.armature.name}" has a scale of zero. Set it to another value'
        ) from None
    return matrices[:, :3]


def _matrices(bones, name: str) -> np.ndarray:
    """(P, 4, 4) float64 of all bones of a collection."""
    values = np.empty((len(bones), 4, 4), np.float32)
    bones.foreach_get(name, values.ravel())
    # Blender keeps matrices column by column.
    return values.swapaxes(1, 2).astype(np.float64)


def _check_single(object, modifier) -> None:
    """Raises BadScene where more than ``modifier`` (None: the parent) moves the object by bones, or less."""
    label = object_label(object)
    if modifier is None:
        return
    # A group that does not exist limits nothing.
    if modifier.vertex_group in object.vertex_groups:
        raise BadScene(
            f'The modifier "{modifier.name}" of {label} only deforms its vertex group "{modifier.vertex_group}". '
            "Clear Vertex Group in the modifier: the weights of the bones are enough"
        )
    if object.parent is not None and object.parent_type == object.parent.type == "ARMATURE":
        raise BadScene(
            f'The {label} is deformed twice: by its parent "{object.parent.name}" and by the modifier '
            f'"{modifier.name}". Set its parent type to Object, or remove the modifier'
        )
    for other in object.modifiers:
        if other.type == "ARMATURE" and other.object and other.show_viewport and other != modifier:
            raise BadScene(
                f'The {label} is deformed twice: by the modifiers "{modifier.name}" and "{other.name}". '
                "Disable one of them in the viewport, or remove it"
            )
