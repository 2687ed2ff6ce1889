# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether the animation of an object can be read: its type, mode, visibility, scale and cache files."""

import contextlib
import math
import os
import re
import struct
from pathlib import Path
from typing import NamedTuple

import bpy

from ..core.errors import BadScene
from .preconditions import check_mode, check_type, check_visible, object_label, unmet

# Types that Object > Convert turns into meshes.
CONVERTIBLE = {"CURVE", "SURFACE", "META", "FONT"}
# They insert vertices between others.
REFINING_MODIFIERS = {"BEVEL", "BOOLEAN", "DECIMATE", "MIRROR", "MULTIRES", "REMESH", "SCREW", "SKIN", "SUBSURF"} | {
    "VOLUME_TO_MESH", "WELD", "WIREFRAME"
}  # fmt: skip
CACHE_MODIFIERS = ("MESH_SEQUENCE_CACHE", "MESH_CACHE")

# PC2: magic and version; points, first time, seconds per frame, frames. MDD: frames and points, then a time per frame.
_PC2_HEAD, _MDD_HEAD = struct.Struct("<16xiffi"), struct.Struct(">ii")
_POSITION_BYTES = 12


def check_object(context: bpy.types.Context, mesh_object: bpy.types.Object | None, hidden_by_eye: bool = False) -> None:
    """Raises BadScene if the animation of ``mesh_object`` cannot be read, with the reason. Cheap: evaluates nothing.

    hidden_by_eye: allowed, as the object is shown before it is read.
    """
    convertible = mesh_object is not None and mesh_object.type in CONVERTIBLE
    check_type(mesh_object, "Choose the mesh that moves" + (", or convert it to a mesh" if convertible else ""))
    assert mesh_object is not None
    check_mode(mesh_object)
    if not (hidden_by_eye and mesh_object.hide_get(view_layer=context.view_layer)):
        check_visible(context.scene, context.view_layer, mesh_object)
    if not mesh_object.data.vertices and not visible_modifiers(mesh_object):
        raise unmet("NO_VERTICES", object=mesh_object)
    _check_scale(mesh_object)
    check_cache_files(mesh_object)


def visible_modifiers(mesh_object: bpy.types.Object) -> list:
    """The modifiers that the viewport's evaluation includes."""
    return [modifier for modifier in mesh_object.modifiers if modifier.show_viewport]


def check_cache_files(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if a cache modifier names no file, or one that is missing or has no read permission."""
    for modifier, path in _cache_paths(mesh_object):
        label = f'the modifier "{modifier.name}" of {object_label(mesh_object)}'
        if not path:
            raise BadScene(f"No cache file is chosen in {label}. Choose one, or disable the modifier in the viewport")
        if not os.path.isfile(path):
            raise BadScene(f"The cache file of {label} is missing: {path}. Correct its path, or restore the file")
        if not os.access(path, os.R_OK):
            raise BadScene(f"The cache file of {label} has no read permission: {path}. Change the file's permissions")


def check_cache_content(mesh_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    """Raises BadScene if a cache exists, but lacks the data for the modifier.

    Blender itself then shows the mesh without its animation. Needs an up-to-date depsgraph.
    """
    for modifier, path in _cache_paths(mesh_object):
        label = f'the modifier "{modifier.name}" of {object_label(mesh_object)}'
        if modifier.type == "MESH_CACHE":
            _check_point_cache(mesh_object, modifier, path, label)
            continue
        if not modifier.object_path:
            raise BadScene(f"No object of the cache is chosen in {label}. Choose its Object Path")
        paths = [entry.path for entry in modifier.cache_file.evaluated_get(depsgraph).object_paths]
        if not paths:
            raise BadScene(
                f"The cache file of {label} cannot be read: {path}. "
                "It is damaged, or this build of Blender does not support its format; export it again"
            )
        if modifier.object_path not in paths:
            raise BadScene(
                f'The cache file of {label} has no object "{modifier.object_path}": {path}. Choose another Object Path'
            )


def cache_stamps(mesh_object: bpy.types.Object) -> dict[str, tuple[int, int]]:
    """Size and modification time of the object's cache files, for ``check_cache_unchanged``."""
    stamps = {}
    for _, path in _cache_paths(mesh_object):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            stamps[path] = status.st_size, status.st_mtime_ns
    return stamps


def check_cache_unchanged(mesh_object: bpy.types.Object, stamps: dict[str, tuple[int, int]]) -> None:
    """Raises BadScene if a cache file is missing, or has changed since ``stamps`` were taken."""
    check_cache_files(mesh_object)
    for path, stamp in cache_stamps(mesh_object).items():
        if stamps.get(path, stamp) != stamp:
            raise BadScene(
                f"A cache file of {object_label(mesh_object)} was changed while it was being read: {path}. "
                "Wait until it is written, and start again"
            )


def sequences(mesh_object: bpy.types.Object) -> list:
    """The modifiers that read one cache file per frame; see ``check_sequence_file``."""
    return [
        modifier
        for modifier in visible_modifiers(mesh_object)
        if modifier.type == "MESH_SEQUENCE_CACHE" and modifier.cache_file and modifier.cache_file.is_sequence
    ]


def check_sequence_file(
    mesh_object: bpy.types.Object, modifier: bpy.types.MeshSequenceCacheModifier, frame: int
) -> None:
    """Raises BadScene if the file of a sequence is missing at ``frame``: Blender would repeat the last one."""
    cache_file = modifier.cache_file
    number = round(cache_file.frame) if cache_file.override_frame else frame
    path = sequence_path(_absolute(cache_file.filepath, cache_file.library), number)
    if path is not None and not path.is_file():
        raise BadScene(
            f'The cache file of the modifier "{modifier.name}" of {object_label(mesh_object)} is missing at frame '
            f"{frame}: {path}. Restore the file, or leave that frame out of the range"
        )


def sequence_path(first: str, number: int) -> Path | None:
    """The file with that number in the sequence of the file ``first``; None if its name has no number."""
    path = Path(first)
    digits = re.search(r"\d+$", path.stem)
    if digits is None:
        return None
    return path.with_name(f"{path.stem[: digits.start()]}{number:0{len(digits[0])}d}{path.suffix}")


def _check_scale(mesh_object: bpy.types.Object) -> None:
    scale = [own * delta for own, delta in zip(mesh_object.scale, mesh_object.delta_scale, strict=True)]
    if all(scale) or _is_animated(mesh_object, ("scale", "delta_scale")):
        return
    axes = " and ".join(axis for axis, value in zip("XYZ", scale, strict=True) if value == 0)
    raise unmet("NO_SCALE_ALONG", object=mesh_object, axes=axes)


def _is_animated(mesh_object: bpy.types.Object, prefixes: tuple[str, ...]) -> bool:
    """Whether anything may animate the properties: an action with any content, the NLA or a driver."""
    animation = mesh_object.animation_data
    if animation is None:
        return False
    drivers = any(driver.data_path.startswith(prefixes) for driver in animation.drivers)
    return drivers or animation.action is not None or len(animation.nla_tracks) > 0


def _cache_paths(mesh_object: bpy.types.Object) -> list[tuple]:
    """(modifier, absolute path or "") of each enabled cache modifier."""
    found = []
    for modifier in visible_modifiers(mesh_object):
        if modifier.type not in CACHE_MODIFIERS:
            continue
        source = modifier.cache_file if modifier.type == "MESH_SEQUENCE_CACHE" else modifier
        filepath = source.filepath if source else ""
        library = source.library if isinstance(source, bpy.types.ID) else mesh_object.library
        found.append((modifier, _absolute(filepath, library) if filepath else ""))
    return found


def _absolute(filepath: str, library: bpy.types.Library | None) -> str:
    return os.path.normpath(bpy.path.abspath(filepath, library=library))


class PointCacheHead(NamedTuple):
    """What a PC2 or MDD file says of itself. beginning: of the positions, in bytes; times_wrong: those of the frames
    are none."""

    points: int
    frames: int
    beginning: int
    times_wrong: bool


def point_cache_head(path: str, kind: str, label: str) -> PointCacheHead | None:
    """The head of a point cache of the ``kind`` PC2 or MDD; None if the file is not one. label: of what plays it.
    Raises BadScene."""
    try:
        with open(path, "rb") as file:
            head = file.read(_PC2_HEAD.size)
    except OSError as error:
        raise BadScene(f"The cache file of {label} cannot be read: {path} ({error.strerror or error})") from error
    if kind == "PC2":
        if len(head) < _PC2_HEAD.size or head[:12] != b"POINTCACHE2\0":
            return None
        points, start, step, frames = _PC2_HEAD.unpack(head)
        times_wrong = not (math.isfinite(start) and math.isfinite(step) and step > 0)
        return PointCacheHead(points, frames, _PC2_HEAD.size, times_wrong)
    if len(head) < _MDD_HEAD.size:
        return None
    frames, points = _MDD_HEAD.unpack(head[: _MDD_HEAD.size])
    return PointCacheHead(points, frames, _MDD_HEAD.size + 4 * frames, False)


def _check_point_cache(
    mesh_object: bpy.types.Object, modifier: bpy.types.MeshCacheModifier, path: str, label: str
) -> None:
    """Raises BadScene for a damaged point cache: Blender would show the mesh at rest at its missing frames."""
    head = point_cache_head(path, modifier.cache_format, label)
    if head is None or head.frames < 1 or head.points < 1 or (head.times_wrong and modifier.time_mode == "TIME"):
        raise BadScene(
            f"The cache file of {label} is not in the {modifier.cache_format} format: {path}. Export it again"
        )
    points, frames, beginning, _ = head
    size = os.path.getsize(path)
    # After another modifier the number may differ, and only Blender knows it.
    expected = len(mesh_object.data.vertices)
    if points != expected and modifier == visible_modifiers(mesh_object)[0]:
        raise BadScene(
            f"The cache file of {label} has {points} points, but the mesh has {expected} vertices: {path}. "
            "Choose the cache that was made for this mesh"
        )
    whole = max(size - beginning, 0) // (points * _POSITION_BYTES)
    if whole < frames:
        raise BadScene(
            f"The cache file of {label} is incomplete: it has {whole} of its {frames} frames: {path}. "
            "Wait until it is written, or export it again"
        )
