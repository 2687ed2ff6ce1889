# SPDX-License-Identifier: GPL-3.0-or-later
"""The right shape of an EigenSkin's example: of the mesh itself, of another mesh, or of a shape key."""

import bpy
import numpy as np

from ...blender.animation.simulations import short_caches
from ...blender.bodies import stretch_of
from ...blender.center_records import native_modifier
from ...blender.lengths import length_text
from ...blender.object_checks import (
    check_cache_files,
    check_mode,
    check_object,
    check_sequence_file,
    check_visible,
    object_label,
    sequences,
    visible_modifiers,
)
from ...blender.shapes import key_displacements, shape_key_block
from ...blender.skin_reader import Skin, armature_modifier
from ...core.animation import check_finite
from ...core.errors import BadScene

# Of the mesh's extent: another mesh of which half the vertices are farther from linear blending is somewhere else.
_ELSEWHERE = 0.25


def other_mesh(context, skin: Skin, depsgraph) -> bpy.types.Object:
    """The other selected mesh, which has the right shape. Raises BadScene where there is none, or no single one."""
    others = other_meshes(context.view_layer, skin.object)
    if not others:
        raise BadScene(f"No other mesh is selected. Select the mesh with the right shape too, {skin.label} last")
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
        "Select only the one with the right shape"
    )


def other_meshes(view_layer, object) -> list:
    return [ob for ob in view_layer.objects.selected if ob.type == "MESH" and ob != object]


def check_source(context, skin: Skin, source, depsgraph) -> None:
    """Raises BadScene where the evaluated ``source`` cannot be the shape of the skin's mesh in the present pose."""
    if source != skin.object:
        check_object(context, source)
        return
    check_cache_files(source)
    modifier = armature_modifier(source)
    enabled = visible_modifiers(source)
    if modifier is not None and modifier not in enabled and native_modifier(source) not in enabled and not enabled:
        raise BadScene(
            f'The modifier "{modifier.name}" of {skin.label} is disabled in the viewport and nothing else shapes the '
            "mesh, so it does not follow the pose. Enable the modifier"
        )


def check_simulated(source, last: int) -> None:
    """Raises BadScene where a simulation ends before the frame ``last``: Blender shows its last shape from then on."""
    for cache in short_caches(source, last):
        raise BadScene(
            f'The simulation "{cache.name}" of object "{cache.object_name}" ends at frame {cache.end}, but poses up to '
            f"frame {last} are to be read. {cache.advice(last)}, or read fewer frames"
        )


def check_frame(scene, view_layer, source, number: int) -> None:
    """Raises BadScene where the source has no right shape at the current frame, ``number``."""
    check_mode(source)
    check_visible(scene, view_layer, source)
    check_cache_files(source)
    for modifier in sequences(source):
        check_sequence_file(source, modifier, number)


def check_place(context, skin: Skin, source, matrices: np.ndarray, shape: np.ndarray, frame: int) -> None:
    """Raises BadScene where another mesh is not where the pose puts the skin's."""
    from ...core.deform import skin_frame

    if source == skin.object:
        return
    plain = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    stretch = stretch_of(skin.object)
    distance = float(np.median(np.linalg.norm((shape - plain) @ stretch.T, axis=1)))
    if distance > _ELSEWHERE * np.linalg.norm(np.ptp(skin.rest @ stretch.T, axis=0)):
        shown = length_text(context.scene, distance, 2)
        raise BadScene(
            f"The {object_label(source)} is about {shown} away from where the pose puts {skin.label} at frame {frame}. "
            "Move it there, turned and scaled alike: where it is in the scene counts. Or pose the armature as it is"
        )


def shape_of_key(skin: Skin, matrices: np.ndarray, name: str, frame: int) -> np.ndarray:
    """(N, 3): the rest pose with the shape key at value 1, moved by the bones."""
    from ...core.deform import skin_frame

    displacements = key_displacements(skin.object, shape_key_block(skin.object, name))
    check_finite(displacements, str(frame), skin.label)
    return skin_frame(skin.rest + displacements, skin.bones, skin.weights, matrices)


def _quoted(names, most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f'"{name}"' for name in names[:most]) + more
