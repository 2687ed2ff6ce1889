# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape keys of a mesh as arrays, and why they cannot be turned into bones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.animation.several_sources import other_sources
from ...blender.animation.shape_key_reader import group_weights, key_coordinates
from ...blender.character import mesh_meant
from ...blender.preconditions import check_has_vertices, check_mode, check_type, object_label, unmet
from ...blender.skin_reader import armature_of, mesh_triangles
from ...blender.wording import listed, names_text
from ...core.errors import BadMesh, BadScene
from .faces import face_of


@dataclass(frozen=True)
class Slider:
    """A shape key that is to live on as a slider: its name, and the range of its values."""

    name: str
    least: float
    most: float


@dataclass(frozen=True)
class ShapeKeys:
    """What is read of a mesh object. rest (N, 3) float64, deltas (S, N, 3) float32: what each slider adds at 1."""

    mesh_object: bpy.types.Object
    rest: np.ndarray
    deltas: np.ndarray
    triangles: np.ndarray
    sliders: tuple[Slider, ...]
    notes: tuple[str, ...]


def check_shape_keys(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raises BadScene if the active object stands for no mesh with shape keys that can become sliders. Cheap enough for
    a panel."""
    check_faces(_meant(context, active))


def faces_meant(
    context: bpy.types.Context, active: bpy.types.Object | None, selected: bool
) -> tuple[list[bpy.types.Object | None], tuple[str, ...]]:
    """The meshes to convert together, that of the active object first, and notes.

    selected: also the selected meshes with shape keys; without it, a note names them. Raises BadScene.
    """
    chosen = meshes_for(context, [active])
    if selected:
        others = [ob for ob in other_sources(context, active) if _has_keys(ob) and ob not in chosen]
        return [*chosen, *others], ()
    # Where a caller names another mesh as the active one, the selection does not belong to it.
    if active is None or active not in chosen or active != context.view_layer.objects.active or not active.select_get():
        return chosen, ()
    left = [ob for ob in context.view_layer.objects.selected if ob != active and ob.type == "MESH" and _has_keys(ob)]
    if not left:
        return chosen, ()
    return chosen, (
        f"Only {object_label(chosen[0])} is converted. Others that are selected have shape keys, too: "
        f"{names_text(left)}. Switch on Selected Objects to convert them together",
    )


def meshes_for(context: bpy.types.Context, objects: Iterable[bpy.types.Object | None]) -> list[bpy.types.Object | None]:
    """The meshes that the objects stand for, each once. Raises BadScene."""
    return list(dict.fromkeys(mesh for ob in objects for mesh in _meant(context, ob)))


def _meant(context: bpy.types.Context, active: bpy.types.Object | None) -> list[bpy.types.Object | None]:
    """The mesh that an object stands for; of a face that was made from shape keys and has none of its own, all sources.
    Raises BadScene."""
    face = face_of(active)
    if face is None or active not in (face.mesh, armature_of(face.mesh)) or face.mesh.data.shape_keys is not None:
        return [mesh_meant(context, active)]
    sources = [source for source, _ in face.pairs]
    if None not in sources:
        return sources
    if len(sources) == 1:
        return [mesh_meant(context, active)]
    raise BadScene(
        f'The source of "{face.pairs[sources.index(None)][1].name}" was renamed or deleted, so the face cannot be '
        "converted again as a whole. Restore its name, or select the meshes with the shape keys"
    )


def _has_keys(mesh_object: bpy.types.Object) -> bool:
    keys = mesh_object.data.shape_keys
    return keys is not None and len(keys.key_blocks) > 1


def check_faces(meshes: Sequence[bpy.types.Object | None]) -> list[bpy.types.Object]:
    """The objects. Raises BadScene if one of them is no mesh with shape keys that can become sliders, or if the
    armatures that deform them differ."""
    checked = [_check_keys(mesh_object) for mesh_object in meshes]
    first, armature = checked[0], armature_of(checked[0])
    for other in checked[1:]:
        found = armature_of(other)
        if armature is None and found is not None:
            raise unmet("OTHER_ARMATURE", object=first, other=other, armature=found)
        if armature != found:
            raise unmet("OTHER_ARMATURE", object=other, other=first, armature=armature)
    return checked


def _check_keys(mesh_object: bpy.types.Object | None) -> bpy.types.Object:
    check_type(mesh_object, "Select the mesh with the shape keys")
    assert mesh_object is not None
    label = object_label(mesh_object)
    check_mode(mesh_object)
    check_has_vertices(mesh_object)
    keys = mesh_object.data.shape_keys
    if not _has_keys(mesh_object):
        raise BadScene(f"The {label} has no shape keys beside its basis. Add some, or choose another mesh")
    if not keys.use_relative:
        raise unmet(
            "ABSOLUTE_KEYS",
            object=mesh_object,
            consequence="each is a moment and not a slider",
            otherwise=", or use Convert Animation",
        )
    if not _chosen(keys):
        raise BadScene(f"All shape keys of {label} are muted. Enable those that are to become sliders (the check box)")
    if any(len(block.points) != len(mesh_object.data.vertices) for block in keys.key_blocks):
        raise BadScene(
            f"The shape keys of {label} do not have as many points as the mesh has vertices. Enter and leave Edit "
            "Mode, which mends that"
        )
    return mesh_object


def read_shape_keys(mesh_object: bpy.types.Object) -> ShapeKeys:
    """Read the keys of an object that ``check_faces`` has passed.

    A key is its difference to the key that it is relative to, where its vertex group allows: so that sliders add up as
    shape keys do. Raises BadMesh where a position is no number, BadScene where no key moves anything.
    """
    keys, label = mesh_object.data.shape_keys, object_label(mesh_object)
    blocks = _chosen(keys)
    rest = key_coordinates(keys.reference_key)
    weights = group_weights(mesh_object, {block.vertex_group for block in blocks} - {""})
    deltas = np.empty((len(blocks), len(rest), 3), np.float32)
    _check_finite(rest, keys.reference_key, label)
    for delta, block in zip(deltas, blocks, strict=True):
        delta[:] = key_coordinates(block)
        _check_finite(delta, block, label)
        delta -= rest if block.relative_key == keys.reference_key else key_coordinates(block.relative_key)
        mask = weights.get(block.vertex_group)
        if mask is not None:
            delta *= mask[:, None]
    if not deltas.any():
        raise BadScene(f"No shape key of {label} moves a vertex. Edit the keys, or choose another mesh")
    sliders = tuple(Slider(block.name, block.slider_min, block.slider_max) for block in blocks)
    return ShapeKeys(
        mesh_object,
        rest.astype(np.float64),
        deltas,
        mesh_triangles(mesh_object.data),
        sliders,
        _notes(mesh_object, keys),
    )


def _chosen(keys: bpy.types.Key) -> list[bpy.types.ShapeKey]:
    return [block for block in keys.key_blocks if block != keys.reference_key and not block.mute]


def _check_finite(positions: np.ndarray, block: bpy.types.ShapeKey, label: str) -> None:
    wrong = ~np.isfinite(positions).all(axis=1)
    if wrong.any():
        raise BadMesh(
            f'The shape key "{block.name}" of {label} has a position that is not a number, at vertex '
            f"{int(np.argmax(wrong))}. Correct or delete the key"
        )


def _notes(mesh_object: bpy.types.Object, keys: bpy.types.Key) -> tuple[str, ...]:
    notes = []
    muted = [block.name for block in keys.key_blocks if block.mute and block != keys.reference_key]
    if muted:
        notes.append(f"Muted shape keys of {object_label(mesh_object)} are left out: {listed(muted)}")
    return tuple(notes)
