# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommand that fits the weights of a mesh to a shape in a pose."""

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError
from ...ui.command_line.outcome import Row
from .fit import fit
from .settings import CANDIDATES, FitSettings

# Selected bones are a matter of the window: here they are named.
_CANDIDATES = [item for item in CANDIDATES if item[0] != "SELECTED"]


def _add_object(command) -> None:
    """The object, and the options that exclude each other or stand for several values."""
    arguments.add_skinned_object(command)
    source = command.add_mutually_exclusive_group()
    source.add_argument(
        "--target", metavar="NAME", help="an object with the same vertices, which is where the mesh should be"
    )
    source.add_argument("--shape-key", metavar="NAME", help="a shape key of the mesh, moved by the bones")
    source.add_argument("--copies", action="store_true", help="the posed copies that the file has (the default)")
    command.add_argument(
        "--frame",
        type=arguments.frame_number,
        action="append",
        default=[],
        metavar="F",
        help="a frame whose pose counts; several may be given (default: the file's current frame)",
    )
    bones = command.add_mutually_exclusive_group()
    arguments.add_enumeration(
        bones,
        "--candidates",
        _CANDIDATES,
        "OWN",
        "bones that may get weights: each vertex's own, those adjoining, all (default: %(default)s)",
    )
    bones.add_argument(
        "--bones", type=arguments.name_list, default=(), metavar="BONE,BONE", help="the bones that may get weights"
    )
    arguments.add_incomplete(command)


def _more(options) -> dict:
    source = "OBJECT" if options.target else "SHAPE_KEY" if options.shape_key else "COPIES"
    if options.frame and source == "COPIES":
        raise UsageError("Posed copies have poses of their own: --frame goes with --target or --shape-key")
    return {
        "source": source,
        "target": options.target or "",
        "shape_key": options.shape_key or "",
        "candidates": options.candidates,
        "bones": options.bones,
        "frames": tuple(options.frame),
    }


def _rows(result) -> list[Row]:
    return [
        Row("Object", result.object_name),
        Row("Poses", result.poses),
        Row("Vertices fitted", result.count),
        Row("Out of reach", result.missed),
        Row("Mean distance left", result.mean, f"{result.mean:.6g}"),
        Row("Largest distance left", result.largest, f"{result.largest:.6g}, vertex {result.worst}"),
        Row("Worst vertex", result.worst),
    ]


COMMANDS = (
    Command(
        "fit-weights-to-pose",
        "weights that bring a mesh closest to a shape in a pose",
        "Fit the weights of a mesh so that its bones bring it as close as they can to a shape key or to another object "
        "in the present pose or in several frames, and save the file.",
        settings=FitSettings,
        work=fit,
        rows=_rows,
        add_object=_add_object,
        more=_more,
    ),
)
