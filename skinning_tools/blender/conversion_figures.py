# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures that a conversion stores on its objects, if they are intact."""

import math
from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np

from .measure import RigMeter

# On the skinned meshes and the rig of a conversion.
REPORT_PROPERTY = "skinning_report"
# The figures' frames are those in which the result was measured last. Those that were converted are in a group of their
# own once Solve Again has measured others.
FRAMES = "frame_start", "frame_end", "frame_step"
CONVERTED_FRAMES = "converted_frames"

_TEXTS = ("source", "object", "armature")
_NUMBERS = ("e_rms", "max_error", "largest_distance")
_COUNTS = ("bone_count", "vertex_count")
_NUMBER = (int, float)
# The settings that are read again.
_SETTINGS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("bone_kind", "method"), str),
    **dict.fromkeys(("bone_count", "max_influences", "iterations", "residual_shapes"), int),
    **dict.fromkeys(("target_error", "optimize_rest_pose", "smoothness"), _NUMBER),
}
# Blender's own limit.
_LAST_FRAME = 1048574


def figures_of(ob: bpy.types.Object) -> dict | None:
    """The figures as plain values; None if ``ob`` has no readable figures."""
    return ob[REPORT_PROPERTY].to_dict() if has_figures(ob) else None


def measured_figures(meter: RigMeter, frame_numbers: Sequence[float]) -> dict:
    """What ``meter`` has measured in the frames, as entries of the figures."""
    return {
        "frame_count": len(frame_numbers),
        "frame_start": frame_numbers[0],
        "frame_end": frame_numbers[-1],
        "e_rms": meter.e_rms,
        "max_error": meter.max_error,
        # In scene units, of a vertex in any frame.
        "largest_distance": float(meter.vertex_error.max()),
        "frame_e_rms": meter.frame_e_rms.tolist(),
        "frame_max_error": meter.frame_max_error.tolist(),
        "worst_frame": frame_numbers[meter.worst_row],
        "worst_vertex": meter.worst_vertex,
    }


def write_figures(mesh_object: bpy.types.Object, figures: dict) -> None:
    """Store the figures on a skinned mesh, with the properties of the contract."""
    for name in ("e_rms", "max_error", "bone_count"):
        mesh_object[f"skinning_{name}"] = figures[name]
    mesh_object[REPORT_PROPERTY] = figures


def has_figures(ob: bpy.types.Object) -> bool:
    """Whether the object is a conversion's mesh or rig. Cheap enough for all objects in a panel's draw."""
    stored = ob.get(REPORT_PROPERTY)
    return stored is not None and _is_group(stored) and ob.type in {"MESH", "ARMATURE"} and _is_sound(stored)


def _is_sound(stored: Any) -> bool:
    """Whether the figures are valid; earlier versions did not store all of them."""
    return (
        all(isinstance(stored.get(name), str) for name in _TEXTS)
        and all(_is_number(stored.get(name)) for name in _NUMBERS)
        and all(_is_count(stored.get(name)) for name in _COUNTS)
        and _are_frames(stored)
        and _are_numbers_by_name(stored.get("seconds"))
        and _are_settings(stored.get("settings"))
        and all(name not in stored or is_sound(stored[name]) for name, is_sound in _OPTIONAL.items())
    )


def _is_group(value: Any) -> bool:
    return hasattr(value, "to_dict")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def _is_frame(value: Any) -> bool:
    return _is_number(value) and abs(value) <= _LAST_FRAME


def _are_frames(group: Any) -> bool:
    start, end, step = (group.get(name) for name in FRAMES) if _is_group(group) else (None, None, None)
    return _is_frame(start) and _is_frame(end) and _is_count(step)


def _are_numbers(values: Any) -> bool:
    """Whether all values of an array are numbers; Blender returns an empty array as a list."""
    if isinstance(values, list):
        return not values
    return hasattr(values, "typecode") and bool(np.isfinite(np.asarray(values)).all())


def _are_numbers_by_name(group: Any) -> bool:
    return _is_group(group) and all(_is_number(value) for value in group.values())


def _are_settings(group: Any) -> bool:
    return _is_group(group) and "bone_kind" in group and all(
        isinstance(value, _SETTINGS[name]) and (isinstance(value, str) or _is_number(value))
        for name, value in group.items() if name in _SETTINGS
    )  # fmt: skip


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_parts(values: Any) -> bool:
    return isinstance(values, list) and all(
        _is_group(part) and _is_number(part.get("e_rms")) and isinstance(part.get("source"), str)
        and isinstance(part.get("object"), str) and isinstance(part.get("source_data", ""), str)
        for part in values
    )  # fmt: skip


def _are_clips(values: Any) -> bool:
    return isinstance(values, list) and all(
        _is_group(clip) and _is_number(clip.get("e_rms")) and isinstance(clip.get("source"), str)
        and isinstance(clip.get("source_data", ""), str) and _is_frame(clip.get("frame_start"))
        and _is_count(clip.get("frame_count"))
        for clip in values
    )  # fmt: skip


def _is_curve(group: Any) -> bool:
    if not _is_group(group):
        return False
    columns = [group.get(name) for name in ("bone_count", "e_rms", "solved")]
    return all(_are_numbers(column) for column in columns) and len({len(column) for column in columns}) == 1


_OPTIONAL = {
    CONVERTED_FRAMES: _are_frames,
    "source_data": lambda value: isinstance(value, str),
    "collection": lambda value: isinstance(value, str),
    "character": lambda value: isinstance(value, str),
    "history": _are_numbers,
    "frame_e_rms": _are_numbers,
    "frame_max_error": _are_numbers,
    "worst_frame": _is_number,
    "worst_vertex": lambda value: isinstance(value, int) and value >= 0,
    "joint_count": lambda value: isinstance(value, int),
    "key_tolerance": _is_number,
    "root_bone": _is_number,
    "joint_hierarchy": _is_number,
    "rotation_only": _is_number,
    "limit_margin": lambda value: _is_number(value) and 0 <= value <= math.pi,
    "free_e_rms": _is_number,
    "joint_slip": _is_number,
    "parts": _are_parts,
    "clips": _are_clips,
    "worst_clip": lambda value: isinstance(value, str),
    "frame_count": lambda value: isinstance(value, int),
    "notes": _are_texts,
    "curve": _is_curve,
    "motion": _is_number,
    "target": lambda value: isinstance(value, str),
    "target_data": lambda value: isinstance(value, str),
    "normals": lambda value: _are_numbers_by_name(value) and {"mean", "within"} <= set(value.keys()),
    "keys": lambda value: _are_numbers_by_name(value) and {"after", "before", "tolerance"} <= set(value.keys()),
}
