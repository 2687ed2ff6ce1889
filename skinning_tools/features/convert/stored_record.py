# SPDX-License-Identifier: GPL-3.0-or-later
"""What a conversion stores on its objects: its figures and settings, in the form of custom properties."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import bpy

from ...blender.animation.animation_reader import SourceAnimation
from ...blender.conversion_figures import REPORT_PROPERTY, measured_figures, write_figures
from ...blender.measure import RigMeter
from ...blender.result_objects import CHARACTER, name_for_results
from ...core.animation import motion_size
from .rig_writer import Rig
from .settings import ConvertSettings

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition
    from .key_reduction import KeyCounts


def record_of(
    objects: Sequence[bpy.types.Object],
    source: SourceAnimation,
    decomposition: "Decomposition",
    rig: Rig,
    meter: RigMeter,
    settings: ConvertSettings,
) -> dict:
    """The figures, in the form of the objects' custom properties."""
    hierarchy, numbers = rig.bones.hierarchy, source.animation.frame_numbers.tolist()
    record = {
        # Names, not pointers: a pointer would make the result a user of the source.
        "source": objects[0].name,
        # Tells the source from another object of the same name.
        "source_data": objects[0].data.name,
        "object": rig.object.name,
        "armature": rig.armature.name,
        "collection": rig.collection.name,
        "method": source.method,
        "bone_count": decomposition.bone_count,
        "vertex_count": source.animation.vertex_count,
        "frame_step": settings.frame_step,
        **measured_figures(meter, numbers),
        "motion": motion_size(source.animation.frames),
        "solver_seconds": {name: float(value) for name, value in decomposition.seconds.items()},
        "root_bone": settings.root_bone,
        "joint_hierarchy": hierarchy is not None,
        "rotation_only": settings.rotation_only,
        "joint_slip": settings.joint_slip,
        "key_tolerance": settings.key_tolerance,
        "history": [float(error) for error in decomposition.history],
    }
    if CHARACTER in objects[0]:
        record["character"] = name_for_results(objects[0])
    if meter.normals is not None:
        record["normals"] = meter.normals
    if hierarchy is not None:
        record["joint_count"] = int((hierarchy.parents >= 0).sum())
    if decomposition.curve:
        # Columns, since a custom property cannot hold rows of mixed types.
        record["curve"] = {
            "bone_count": [point.bone_count for point in decomposition.curve],
            "e_rms": [point.e_rms for point in decomposition.curve],
            "solved": [int(point.solved) for point in decomposition.curve],
        }
    if len(objects) > 1:
        record["parts"] = [
            {
                "source": ob.name,
                "source_data": ob.data.name,
                "object": made.name,
                "e_rms": part.e_rms,
                "max_error": part.max_error,
            }
            for ob, made, part in zip(objects, rig.objects, meter.parts, strict=True)
        ]
    return record


def record_of_some(
    settings: ConvertSettings, free_e_rms: float | None, keys: "KeyCounts | None", notes: Sequence[str]
) -> dict[str, Any]:
    """The figures that a conversion has only with some settings. keys: None without a reduction of keys."""
    given = {
        "free_e_rms": free_e_rms,
        "limit_margin": settings.limit_margin if settings.rotation_limits else None,
        "keys": keys and {**keys._asdict(), "tolerance": settings.key_tolerance},
        "importance": settings.importance or None,
        "notes": list(notes) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def write_record_of(objects: Sequence[bpy.types.Object], rig: Rig, record: dict) -> None:
    """Store the figures on each skinned object and, for the panel, on the armature."""
    for source, made in zip(objects, rig.objects, strict=True):
        own = {"source": source.name, "source_data": source.data.name, "object": made.name}
        write_figures(made, {**record, **own})
    rig.armature[REPORT_PROPERTY] = record


def note_names(rig: Rig) -> None:
    """Bring the stored names of what was made up to date."""
    for carrier in (*rig.objects, rig.armature):
        figures = carrier[REPORT_PROPERTY]
        figures["object"] = (rig.object if carrier == rig.armature else carrier).name
        figures["armature"], figures["collection"] = rig.armature.name, rig.collection.name
        for part, made in zip(figures.get("parts", ()), rig.objects, strict=False):
            part["object"] = made.name
