# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that play point caches: how a new one does, and how those of an earlier bake play what replaces it."""

from contextlib import suppress
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions
from ...blender.attributes import read_attribute, write_attribute
from ...blender.data_blocks import is_alive
from ...blender.skin_reader import face_corners
from ...blender.written_files import identity
from .point_cache import cache_owner

# How the modifier of a copy is called, by which it is told from one that the artist has added.
_NAME = "Point Cache"


def earlier_copies(object, owner: dict[str, str]) -> dict[tuple, list[bpy.types.Object]]:
    """The copies of ``object`` that play earlier bakes of it, by the ``identity`` of the file.

    A file is missing here where anything else plays it as well, or a copy that cannot be changed: it has to stay.
    owner: of the files in the folder that is meant, as ``cache_owner`` has it.
    """
    players: dict[tuple, list] = {}
    own: dict[tuple, bool] = {}
    for ob in bpy.data.objects:
        for modifier in _cache_modifiers(ob):
            path = bpy.path.abspath(modifier.filepath, library=ob.library)
            key = identity(path)
            if key not in own:
                own[key] = _owner_at(path) == owner
            own[key] &= ob != object and _is_changeable(ob) and modifier.name.partition(".")[0] == _NAME
            players.setdefault(key, []).append(ob)
    return {key: list(dict.fromkeys(found)) for key, found in players.items() if own[key]}


def add_player(scene, copy, path: Path, numbers: range) -> None:
    """Let a copy play the file that has those frames, before all its modifiers."""
    modifier = copy.modifiers.new(_NAME, "MESH_CACHE")
    # By name: modifiers that are pinned to the end stay behind a new one.
    name = modifier.name
    copy.modifiers.move(copy.modifiers.find(name), 0)
    _play(scene, copy.modifiers[name], path, numbers)


def play_anew(scene, players: list, copy, path: Path, numbers: range) -> list:
    """Let earlier copies play what the file has now; returns those that are still there.

    copy: a new one, whose mesh they get where theirs has other vertices or faces. All else of them stays.
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


def _play(scene, modifier, path: Path, numbers: range) -> None:
    modifier.cache_format = "PC2"
    modifier.filepath = _relative(path)
    modifier.time_mode, modifier.play_mode, modifier.interpolation = "FRAME", "SCENE", "LINEAR"
    # Sample = scale · time − start, with the time at which Blender evaluates a frame.
    first, step = actions.key_times(scene, np.array([numbers[0], numbers.step], dtype=np.float64))
    modifier.frame_scale = 1.0 / step
    modifier.frame_start = first / step


def _cache_modifiers(object) -> list:
    return [each for each in object.modifiers if each.type == "MESH_CACHE" and each.filepath]


def _owner_at(path: str) -> dict | None:
    with suppress(OSError):
        return cache_owner(Path(path))
    return None


def _is_changeable(object) -> bool:
    if object.type != "MESH" or object.data.is_editmode:
        return False
    return object.library is None and object.override_library is None and object.data.library is None


def _same_topology(one, other) -> bool:
    if len(one.vertices) != len(other.vertices):
        return False
    return all(map(np.array_equal, face_corners(one), face_corners(other)))


def _relative(path: Path) -> str:
    """Relative to the .blend file, where there is one and no other drive lies between."""
    if bpy.data.filepath:
        with suppress(ValueError):
            return bpy.path.relpath(str(path))
    return str(path)
