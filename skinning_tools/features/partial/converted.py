# SPDX-License-Identifier: GPL-3.0-or-later
"""What Solve Again takes from the conversion that made a skeleton, and leaves of it."""

import bpy
import numpy as np

from ...blender import actions
from ...blender.attributes import write_attribute
from ...blender.bodies import named_parents
from ...blender.conversion_figures import CONVERTED_FRAMES, FRAMES, REPORT_PROPERTY, measured_figures, write_figures
from ...blender.conversions import Result, result_of, source_named
from ...blender.error_display import ERROR_ATTRIBUTE
from ...blender.importance import importance_of
from ...blender.measure import RigMeter
from ...blender.wording import names_text
from ...core.animation import Animation, motion_size
from ...core.errors import BadScene
from .parts import Parts

# Relative to the motion: animations that differ by less are the same, as positions are in single precision.
_SAME_MOTION = 1e-3


def conversion_of(parts: Parts) -> Result | None:
    """The conversion that made the skeleton, if any. Raises BadScene if the mesh alone does not tell its motion."""
    name, result = parts.armature.name, result_of(parts.mesh)
    if result is None or result.mesh != parts.mesh:
        return None
    others = [mesh for mesh in result.meshes if mesh != parts.mesh]
    if others:
        raise BadScene(
            f'The armature "{name}" was made for {names_text(others)}, too, but Solve Again fits one mesh. Join the '
            "sources (Ctrl J) and convert them again"
        )
    if result.figures["settings"]["bone_kind"] != "RIGID":
        raise BadScene(
            f'The bones of "{name}" that you edit do not deform the mesh themselves, since they can be scaled. '
            "Convert the source again with the bone kind Rigid"
        )
    if result.figures.get("clips"):
        raise BadScene(
            f'The armature "{name}" has an action for each of several clips, but Solve Again keys one. Convert the '
            "clip alone, and edit that skeleton"
        )
    return result


def holds_joints(result: Result | None) -> bool:
    """Whether the conversion, if there is one, has let bones only rotate."""
    figures = result.figures if result is not None else {}
    return bool(figures.get("rotation_only")) and not figures.get("joint_slip")


def left_behind(parts: Parts, result: Result | None) -> list[str]:
    """The groups, on a conversion's mesh, of bones that the user has deleted: the action still moves them.

    Locked groups, and those that a modifier or a shape key uses, are the user's.
    """
    if result is None:
        return []
    curves = actions.existing_curves(parts.armature)
    moved = {actions.bone_of(curve.data_path) for curve in curves} - set(parts.armature.data.bones.keys())
    keys = parts.mesh.data.shape_keys
    used = {block.vertex_group for block in (keys.key_blocks if keys is not None else ())}
    for modifier in parts.mesh.modifiers:
        # Some have several fields for groups.
        used |= {getattr(modifier, each.identifier) for each in modifier.bl_rna.properties if each.type == "STRING"}
    groups = [group for group in parts.mesh.vertex_groups if not group.lock_weight]
    return [group.name for group in groups if group.name in moved and group.name not in used]


def known_error(result: Result | None, parts: Parts, animation: Animation, step: int) -> float | None:
    """E_RMS as the panel shows it before, None if it is of another target, another animation or other frames."""
    if result is None or parts.target != _measured_target(result):
        return None
    figures, numbers = result.figures, animation.frame_numbers
    measured = figures["frame_start"], figures["frame_end"], figures["frame_step"]
    motion = motion_size(animation.frames)
    # Earlier versions did not store the motion.
    same = abs(figures.get("motion", motion) - motion) <= _SAME_MOTION * motion
    return float(figures["e_rms"]) if same and measured == (numbers[0], numbers[-1], step) else None


def shorter_notes(result: Result | None, numbers: np.ndarray) -> list[str]:
    """A note if the frames ``numbers`` are fewer than the skeleton had keys for."""
    if result is None:
        return []
    first, last = result.figures["frame_start"], result.figures["frame_end"]
    if numbers[0] <= first and numbers[-1] >= last:
        return []
    return [
        f"keys from frame {numbers[0]:g} to {numbers[-1]:g} only, where they were from {first:g} to {last:g}: widen "
        "the frame range and solve again for all of them"
    ]


def conversion_importance(context: bpy.types.Context, result: Result | None, count: int) -> np.ndarray | None:
    """(N,) how often each of the ``count`` vertices counts by the Importance of the conversion; None if it had none, or
    if the vertex group of its source is gone."""
    if result is None or result.source is None or "importance" not in result.figures:
        return None
    return importance_of(context, result.source, count, result.figures["importance"])


def importance_notes(result: Result | None, importance: np.ndarray | None) -> list[str]:
    """A note if the conversion had an Importance that no longer counts."""
    if importance is not None or result is None or "importance" not in result.figures:
        return []
    group = result.figures["importance"]
    return [f'all vertices count alike, as the source has no vertex group "{group}" for its Importance any more']


def _measured_target(result: Result) -> bpy.types.Object | None:
    """What the conversion's mesh was last compared with: the source, but for a Solve Again with another target."""
    figures = result.figures
    if "target" not in figures or result.mesh is None:
        return result.source
    return source_named({"source": figures["target"], "source_data": figures.get("target_data")}, result.mesh)


def update_record(
    result: Result, parts: Parts, meter: RigMeter, animation: Animation, step: int, names: tuple[str, ...]
) -> None:
    """Let the conversion's figures be those of the present skeleton and target. Its settings stay."""
    parents, numbers, target = named_parents(parts.armature, names), animation.frame_numbers, parts.target
    figures = result.figures
    settings = {
        CONVERTED_FRAMES: {name: figures[name] for name in FRAMES},
        # In those of an earlier version, only joints told.
        "joint_hierarchy": "joint_count" in figures,
    }
    new = {
        **({"target": target.name, "target_data": target.data.name} if target != result.source else {}),
        "motion": motion_size(animation.frames),
        **measured_figures(meter, numbers.tolist()),
        "frame_step": step,
        "bone_count": len(names),
        "joint_count": int((parents >= 0).sum()),
    }
    # Sweeps, keys, normals and other numbers of bones are of the skeleton as it was.
    gone = {"history", "keys", "curve", "free_e_rms", "normals", "notes", "target", "target_data"}
    record = settings | {name: value for name, value in figures.items() if name not in gone} | new
    write_figures(parts.mesh, record)
    if result.rig is not None and REPORT_PROPERTY in result.rig:
        result.rig[REPORT_PROPERTY] = record
    write_attribute(parts.mesh.data, ERROR_ATTRIBUTE, "FLOAT", meter.vertex_error)
