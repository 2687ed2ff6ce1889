# SPDX-License-Identifier: GPL-3.0-or-later
"""The correct shape of an EigenSkin's example: of the mesh itself, of another mesh, or of a shape key.

A mesh is read as its modifiers shape it, without shape keys: these stay on top of the corrections that are built from
the examples, so they must not be part of them; and the corrections of an earlier build would teach a rig their own
error.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import bpy
import numpy as np

from ...blender.animation.simulations import short_caches
from ...blender.bodies import stretch_of
from ...blender.center_records import native_modifier
from ...blender.data_blocks import is_alive
from ...blender.lengths import length_text
from ...blender.object_checks import check_cache_files, check_object, check_sequence_file, sequences, visible_modifiers
from ...blender.preconditions import check_mode, check_visible, object_label, unmet
from ...blender.shapes import key_displacements, shape_key_block
from ...blender.skin_reader import Skin, armature_modifier
from ...core.animation import check_finite
from ...core.errors import BadScene
from ...core.geometry import diagonal
from .record import eigenskin_record, own_keys

# A shape key with a smaller value moves nothing visibly.
_OFF = 1e-4

# A share of the mesh's extent. If half the vertices of another mesh are farther from linear blending, that mesh is in
# another place.
_ELSEWHERE = 0.25


def other_mesh(context: bpy.types.Context, skin: Skin, depsgraph: bpy.types.Depsgraph) -> bpy.types.Object:
    """The other selected mesh, which has the correct shape. Raises BadScene if there is none or more than one."""
    others = other_meshes(context.view_layer, skin.object)
    if not others:
        raise BadScene(f"No other mesh is selected. Select the mesh with the correct shape first, then {skin.label}")
    if len(others) == 1:
        return others[0]
    count = len(skin.rest)
    fitting = [ob for ob in others if len(ob.evaluated_get(depsgraph).data.vertices) == count]
    if len(fitting) == 1:
        return fitting[0]
    names = _quoted([ob.name for ob in others])
    how_many = "none" if not fitting else f"{len(fitting)} of them"
    raise BadScene(
        f"Several other meshes are selected, {names}, and {how_many} with the {count:,} vertices of {skin.label}. "
        "Select only the one with the correct shape"
    )


def other_meshes(view_layer: bpy.types.ViewLayer, mesh_object: bpy.types.Object) -> list:
    return [ob for ob in view_layer.objects.selected if ob.type == "MESH" and ob != mesh_object]


def check_source(context: bpy.types.Context, skin: Skin, source: bpy.types.Object) -> None:
    """Raise BadScene if ``source`` cannot be the shape of the skin's mesh in the present pose."""
    if source != skin.object:
        check_object(context, source)
        return
    check_cache_files(source)
    modifier = armature_modifier(source)
    enabled = visible_modifiers(source)
    if modifier is not None and modifier not in enabled and native_modifier(source) not in enabled and not enabled:
        raise unmet("MODIFIER_DISABLED", modifier=modifier.name, object=skin.object)


def check_simulated(source: bpy.types.Object, last: int) -> None:
    """Raise BadScene if a simulation ends before the frame ``last``. Blender would show its last shape from then on."""
    for cache in short_caches(source, last):
        raise BadScene(
            f'The simulation "{cache.name}" of object "{cache.object_name}" ends at frame {cache.end}, but poses up to '
            f"frame {last} are to be read. {cache.advice(last)}, or read fewer frames"
        )


def check_frame(scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, source: bpy.types.Object, number: int) -> None:
    """Raise BadScene if the source has no valid shape at the current frame, ``number``."""
    check_mode(source)
    check_visible(scene, view_layer, source)
    check_cache_files(source)
    for modifier in sequences(source):
        check_sequence_file(source, modifier, number)


def check_place(
    context: bpy.types.Context,
    skin: Skin,
    source: bpy.types.Object,
    matrices: np.ndarray,
    shape: np.ndarray,
    frame: int,
) -> None:
    """Raise BadScene if another mesh is not at the place of the skin's mesh in this pose."""
    from ...core.deform import skin_frame

    if source == skin.object:
        return
    plain = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    stretch = stretch_of(skin.object)
    distance = float(np.median(np.linalg.norm((shape - plain) @ stretch.T, axis=1)))
    if distance > _ELSEWHERE * diagonal(skin.rest @ stretch.T):
        shown = length_text(context.scene, distance, 2)
        raise BadScene(
            f"The {object_label(source)} is about {shown} away from where the pose puts {skin.label} at frame {frame}. "
            "Move it there, with the same rotation and scale, or give the armature its pose"
        )


def shape_of_key(skin: Skin, matrices: np.ndarray, name: str, frame: int) -> np.ndarray:
    """(N, 3): the rest pose with the shape key at value 1, moved by the bones."""
    from ...core.deform import skin_frame

    displacements = key_displacements(skin.object, shape_key_block(skin.object, name))
    check_finite(displacements, str(frame), skin.label)
    return skin_frame(skin.rest + displacements, skin.bones, skin.weights, matrices)


@dataclass
class Uncorrected:
    """What ``uncorrected`` turns off. corrected: the mesh has an EigenSkin. preserved: names of the Armature modifiers
    whose Preserve Volume is on again, as before the build. keys: names of other shape keys that were on."""

    corrected: bool = False
    preserved: tuple[str, ...] = ()
    keys: dict[str, None] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """For the user."""
        found = []
        if self.corrected:
            with_volume = f', with Preserve Volume in "{self.preserved[0]}" as before' if self.preserved else ""
            found.append(f"read without the corrections{with_volume}")
        if self.keys:
            found.append(
                f"read without the shape keys {_quoted(list(self.keys))}, which add to the corrections; "
                "to correct the mesh by one of them, choose Shape Key as the source of the shape"
            )
        return tuple(found)


@contextmanager
def uncorrected(
    context: bpy.types.Context, mesh_object: bpy.types.Object, source: bpy.types.Object
) -> Iterator[Uncorrected]:
    """Context in which ``source`` has no shape keys, and Preserve Volume as before the build of an EigenSkin.

    Only a source with the mesh of ``mesh_object`` changes. At the end everything is restored and evaluated.
    """
    result = Uncorrected()
    if source.data != mesh_object.data:
        yield result
        return
    record = eigenskin_record(source)
    view_layer = context.view_layer
    pinned, active = source.show_only_shape_key, source.active_shape_key_index
    turned = []
    if record is not None:
        result.corrected = True
        turned = [
            modifier
            for modifier in source.modifiers
            if modifier.type == "ARMATURE"
            and (source.name, modifier.name) in record.turned_off
            and not modifier.use_deform_preserve_volume
        ]
        result.preserved = tuple(modifier.name for modifier in turned)
    names = [modifier.name for modifier in turned]
    try:
        note_keys(result, source, view_layer.depsgraph)
        if source.data.shape_keys is not None:
            # Animation, drivers and muted shape keys do not affect this property.
            source.show_only_shape_key, source.active_shape_key_index = True, 0
        for modifier in turned:
            modifier.use_deform_preserve_volume = True
        view_layer.update()
        yield result
    finally:
        if is_alive(source):
            for name in names:
                if name in source.modifiers:
                    source.modifiers[name].use_deform_preserve_volume = False
            if source.data.shape_keys is not None:
                source.show_only_shape_key, source.active_shape_key_index = pinned, active
            if is_alive(view_layer):
                view_layer.update()


def note_keys(result: Uncorrected, source: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Add the shape keys of ``source`` that are on in the depsgraph, except those of an EigenSkin."""
    key = source.data.shape_keys
    if key is None:
        return
    record = eigenskin_record(source)
    own = {block.name for block in own_keys(source.data, record)} if record is not None else set()
    for block in key.evaluated_get(depsgraph).key_blocks[1:]:
        if block.name not in own and not block.mute and abs(block.value) > _OFF:
            result.keys[block.name] = None


def _quoted(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f'"{name}"' for name in names[:most]) + more
