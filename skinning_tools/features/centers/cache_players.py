# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that play point caches: a new one, or those of an earlier bake, which play the cache that replaces it."""

from contextlib import suppress
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions
from ...blender.attributes import read_attribute, write_attribute
from ...blender.data_blocks import is_alive
from ...blender.point_cache import cache_owner
from ...blender.skin_reader import face_corners
from ...blender.written_files import identity

# The name of a copy's modifier, which distinguishes it from the artist's own.
_NAME = "Point Cache"


def earlier_copies(mesh_object: bpy.types.Object, owner: dict[str, str]) -> dict[tuple, list[bpy.types.Object]]:
    """The copies of ``mesh_object`` that play its earlier bakes, by the ``identity`` of the file.

    A file is left out, and so stays, if anything else or a copy that cannot be changed also plays it. owner: of the
    files in the folder, in the form of ``cache_owner``.
    """
    players: dict[tuple, list] = {}
    own: dict[tuple, bool] = {}
    for ob in bpy.data.objects:
        for modifier in _cache_modifiers(ob):
            path = bpy.path.abspath(modifier.filepath, library=ob.library)
            key = identity(path)
            if key not in own:
                own[key] = _owner_at(path) == owner
            own[key] &= ob != mesh_object and _is_changeable(ob) and modifier.name.partition(".")[0] == _NAME
            players.setdefault(key, []).append(ob)
    return {key: list(dict.fromkeys(found)) for key, found in players.items() if own[key]}


def add_player(scene: bpy.types.Scene, copy: bpy.types.Object, path: Path, numbers: range) -> None:
    """Add a modifier before all others that makes a copy play the file with those frames."""
    modifier = copy.modifiers.new(_NAME, "MESH_CACHE")
    # By name: modifiers that are pinned to the end stay after a new one.
    name = modifier.name
    copy.modifiers.move(copy.modifiers.find(name), 0)
    _play(scene, copy.modifiers[name], path, numbers)


def play_anew(scene: bpy.types.Scene, players: list, copy: bpy.types.Object, path: Path, numbers: range) -> list:
    """Make earlier copies play the file's new content; returns those that still exist.

    copy: a new copy, whose mesh they get if their vertices or faces differ. Everything else about them stays.
    """
    there = [player for player in players if is_alive(player)]
    for player in there:
        old = player.data
        if not _same_topology(old, copy.data):
            player.data = copy.data
            if old.users == 0:
                bpy.data.meshes.remove(old)
        elif old.shape_keys is None:
            write_attribute(old, "position", "FLOAT_VECTOR", read_attribute(copy.data, "position"))
            old.update()
        for modifier in _cache_modifiers(player):
            if identity(bpy.path.abspath(modifier.filepath)) == identity(path):
                _play(scene, modifier, path, numbers)
        player.update_tag()
    return there


def _play(scene: bpy.types.Scene, modifier: bpy.types.MeshCacheModifier, path: Path, numbers: range) -> None:
    modifier.cache_format = "PC2"
    modifier.filepath = _relative(path)
    modifier.time_mode, modifier.play_mode, modifier.interpolation = "FRAME", "SCENE", "LINEAR"
    # Sample = scale · time − start, with Blender's evaluation time of a frame.
    first, step = actions.key_times(scene, np.array([numbers[0], numbers.step], dtype=np.float64))
    modifier.frame_scale = 1.0 / step
    modifier.frame_start = first / step


def _cache_modifiers(mesh_object: bpy.types.Object) -> list:
    return [each for each in mesh_object.modifiers if each.type == "MESH_CACHE" and each.filepath]


def _owner_at(path: str) -> dict | None:
    with suppress(OSError):
        return cache_owner(Path(path))
    return None


def _is_changeable(mesh_object: bpy.types.Object) -> bool:
    if mesh_object.type != "MESH" or mesh_object.data.is_editmode:
        return False
    return mesh_object.library is None and mesh_object.override_library is None and mesh_object.data.library is None


def _same_topology(one: bpy.types.Mesh, other: bpy.types.Mesh) -> bool:
    if len(one.vertices) != len(other.vertices):
        return False
    return all(map(np.array_equal, face_corners(one), face_corners(other)))


def _relative(path: Path) -> str:
    """The path relative to the .blend file, if that is saved on the same drive."""
    if bpy.data.filepath:
        with suppress(ValueError):
            return bpy.path.relpath(str(path))
    return str(path)
