# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands on the weights of a skinned mesh."""

from ...ui.command_line.command import Command, goes_with
from ...ui.command_line.outcome import Row, each
from . import compression, rigid_parts, rogue_weights, smoothing
from .settings import CompressSettings, PartitionSettings, RemoveRogueSettings, SmoothSettings


def _removed(result) -> list[Row]:
    return [
        Row("Object", result.object_name),
        Row("Vertices corrected", result.vertices),
        Row("Islands", result.islands),
        Row("Bones", result.bones),
        Row("Locked islands", result.locked),
        Row("Doubtful islands left", result.doubtful),
    ]


def _smoothed(result) -> list[Row]:
    return [
        Row("Object", result.object_name),
        Row("Vertices smoothed", result.changed),
        Row("Largest change", result.largest, f"{result.largest:.4f}"),
    ]


def _compressed(result) -> list[Row]:
    figures = result.figures
    worst = {"vertex": figures.vertex, "frame": figures.frame}
    measured = [
        Row("Largest error", figures.largest, f"{figures.largest:.6g}"),
        Row("Mean error", figures.mean, f"{figures.mean:.6g}"),
        Row("Worst vertex", worst, "{vertex} at frame {frame}".format(**worst)),
    ]
    return [
        Row("Object", result.object_name),
        Row("Vertices", figures.vertex_count),
        Row("Bits", figures.bits),
        Row("Influences", figures.influences),
        Row("Bytes per vertex", figures.byte_count),
        Row("Over the limit", figures.cut),
        *(measured if figures.frames else [Row("Largest error", None, "not measured: the armature is at rest")]),
        Row("Frames measured", figures.frames),
    ]


def _partitioned(result) -> list[Row]:
    figures = result.figures
    shares = dict(rigid_parts.share_rows(figures.shares))
    return [
        Row("Object", result.object_name),
        *each("Vertices with {}", shares, "vertex_shares", lambda share: f"{share:.1%}"),
        Row("Rigid parts", figures.parts),
        Row("Rigid faces", figures.rigid_faces, f"{figures.rigid_faces} ({figures.rigid_share:.1%})"),
        Row("Skin faces", figures.skin_faces, f"{figures.skin_faces} ({1 - figures.rigid_share:.1%})"),
    ]


COMMANDS = (
    Command(
        "remove-rogue-weights",
        "correct vertices that follow a bone far from its other ones",
        "Give rogue weights, of vertices that follow a bone far from its other ones, to the bones of the nearest valid "
        "vertices, and save the file. Doubtful ones and locked vertex groups stay.",
        settings=RemoveRogueSettings,
        work=rogue_weights.remove,
        rows=_removed,
    ),
    Command(
        "smooth-weights",
        "smooth the weights of a skinned mesh",
        "Smooth the weights of all bones over the surface of a skinned mesh, and save the file. Borders, creases, sums "
        "and locked vertex groups stay.",
        settings=SmoothSettings,
        work=smoothing.smooth,
        rows=_smoothed,
        check=goes_with("--invert", "--vertex-group"),
    ),
    Command(
        "compress-weights",
        "round weights to what 8 or 16 bits hold",
        "Round the weights of a skinned mesh to whole steps of 8 or 16 bits with sums of exactly 1, measure how far "
        "that moves vertices over the animation, and save the file.",
        settings=CompressSettings,
        work=compression.compress,
        rows=_compressed,
    ),
    Command(
        "partition-rigid",
        "find or separate the faces that one bone alone moves",
        "Find the faces of a skinned mesh that one bone alone moves, mark or separate them from the skin, and save the "
        "file.",
        settings=PartitionSettings,
        work=rigid_parts.partition,
        rows=_partitioned,
    ),
)
