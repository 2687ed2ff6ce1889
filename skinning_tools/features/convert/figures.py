# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a conversion, from the record on its objects."""

import bpy

from ...blender.figures import Figure
from ...blender.lengths import length_text
from ...blender.translation import translated
from ...blender.wording import counted


def figures_of_record(record: dict) -> list[Figure]:
    """record: as a conversion, or an earlier version with fewer entries, stored it on its objects."""
    settings, names = record["settings"], [part["source"] for part in record.get("parts", ())]
    first, last, step = (record[name] for name in ("frame_start", "frame_end", "frame_step"))
    clips = [clip["source"] for clip in record.get("clips", ())]
    count = record["frame_count"] if clips else round((last - first) / step) + 1
    every = f", step {step}" if step != 1 else ""
    distance = length_text(bpy.context.scene, record["largest_distance"], 3)
    # A clip that was read from a file is no object that the user knows.
    name = record.get("character", record["source"])
    found = [
        Figure("Objects", names, panel="") if names else Figure("Object", name, panel=""),
        *([Figure("Clips", clips, line=counted(len(clips), "clip"), panel="")] if clips else []),
        Figure(
            "Bones", record["bone_count"], panel=f"{record['bone_count']} {translated(settings['bone_kind'].title())}"
        ),
        Figure("Vertices", record["vertex_count"]),
        Figure(
            "Frames",
            {"count": count, "first": first, "last": last},
            f"{{count}} ({{first:g}} to {{last:g}}{every})",
            line=f"{count} frames",
        ),
        # Of a Solve Again: the errors are not those of the source.
        *([Figure("Target", record["target"])] if "target" in record else []),
        _error(record["e_rms"], settings.get("target_error", 0.0), record["bone_count"]),
        Figure("Largest error", record["max_error"], "{:.4f}", panel=f"{record['max_error']:.4f} ({distance})"),
    ]
    if "normals" in record:
        normals = {name: record["normals"][name] for name in ("mean", "within")}
        # The sidebar has room for little more than this.
        short = "{mean:.2f}° (90 %: {within:.2f}°)".format(**normals)
        found.append(Figure("Normals", normals, "{mean:.2f}° (90 % within {within:.2f}°)", panel=short))
    if settings.get("residual_shapes"):
        found.append(Figure("Residual shapes", settings["residual_shapes"]))
    if "joint_count" in record:
        found.append(Figure("Joints", record["joint_count"]))
    if "free_e_rms" in record:
        found.append(Figure("E_RMS without joints", record["free_e_rms"], "{:.4f}"))
    if "keys" in record:
        keys = {name: record["keys"][name] for name in ("after", "before")}
        after, before = keys.values()
        shown = f"{after:,} of {before:,}"
        found.append(Figure("Keys", keys, "{after} of {before}", panel=shown, line=f"{after:,} of {before:,} keys"))
    history = list(record.get("history", ()))
    if history:
        form = ", ".join(["{:.4g}"] * len(history))
        found.append(Figure("E_RMS after each sweep", history, form, line="", panel=""))
    return found


def _error(e_rms: float, target: float, bones: int) -> Figure:
    if not 0 < target < e_rms:
        return Figure("E_RMS", e_rms, "{:.4f}")
    line = f"E_RMS {e_rms:.4f} (target {target:g} not reached with up to {bones} bones)"
    shown = f"{e_rms:.4f} (target {target:g} missed)"
    return Figure("E_RMS", e_rms, line.removeprefix("E_RMS "), line=line, panel=shown)


def errors_of_objects(record: dict) -> list[Figure]:
    """The error of each object, if several were converted together."""
    return [
        Figure(f"E_RMS of {part['source']}", part["e_rms"], "{:.4f}", line="", group=("objects_e_rms", part["source"]))
        for part in record.get("parts", ())
    ]


def errors_of_clips(record: dict) -> list[Figure]:
    """The error of each clip."""
    return [
        Figure(
            f"E_RMS of {clip['source']}",
            clip["e_rms"],
            "{:.4f}",
            line=f"{clip['source']} {clip['e_rms']:.4f}",
            panel="",
            group=("clips_e_rms", clip["source"]),
        )
        for clip in record.get("clips", ())
    ]


def errors_of_bone_counts(record: dict) -> list[Figure]:
    """The curve of error over bones, in order; empty without a target error."""
    curve = record.get("curve") or {"bone_count": (), "e_rms": (), "solved": ()}
    return [
        Figure(
            counted(count, "bone"),
            {"e_rms": error, "solved": bool(solved)},
            "{e_rms:.4g}" if solved else "about {e_rms:.4g}",
            line="",
            group=("curve", str(count)),
        )
        for count, error, solved in zip(curve["bone_count"], curve["e_rms"], curve["solved"], strict=True)
    ]
