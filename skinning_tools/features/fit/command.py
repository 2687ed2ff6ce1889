# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommand that fits the weights of a mesh to a shape in a pose."""

import argparse

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError
from ...ui.settings import choice
from .fit import fit
from .settings import CANDIDATES, FitSettings

# Only the window has selected bones: here they are named.
_CANDIDATES = choice(
    "Bones",
    [item for item in CANDIDATES if item[0] != "SELECTED"],
    "OWN",
    tip="Bones that may get weights: each vertex's own bones, adjoining bones, or all bones",
    flag="--candidates",
)


def _add_object(command: argparse.ArgumentParser) -> None:
    """Add the object, and the options that exclude each other or may be repeated."""
    arguments.add_skinned_object(command)
    source = command.add_mutually_exclusive_group()
    source.add_argument("--target", metavar="NAME", help="an object with the same vertices at the target positions")
    source.add_argument("--shape-key", metavar="NAME", help="a shape key of the mesh, deformed by the bones")
    source.add_argument("--copies", action="store_true", help="the posed copies in the file (the default)")
    command.add_argument(
        "--frame",
        type=arguments.frame_number,
        action="append",
        default=[],
        metavar="F",
        help="a frame to read the pose from; may be repeated (default: the file's current frame)",
    )
    bones = command.add_mutually_exclusive_group()
    _CANDIDATES.add_option(bones)
    bones.add_argument(
        "--bones", type=arguments.name_list, default=(), metavar="BONE,BONE", help="the bones that may get weights"
    )
    arguments.add_incomplete(command)


def _more(options: argparse.Namespace) -> dict:
    source = "OBJECT" if options.target else "SHAPE_KEY" if options.shape_key else "COPIES"
    if options.frame and source == "COPIES":
        raise UsageError("Posed copies store their own poses: --frame requires --target or --shape-key")
    return {
        "source": source,
        "target": options.target or "",
        "shape_key": options.shape_key or "",
        "candidates": options.candidates,
        "bones": options.bones,
        "frames": tuple(options.frame),
    }


COMMANDS = (
    Command(
        "fit-weights-to-pose",
        "fit weights that bring a mesh closest to a shape in a pose",
        "Fit the weights of a mesh so that its bones bring it as close as possible to a shape key or to another object "
        "in the present pose or in several frames, and save the file.",
        settings=FitSettings,
        work=fit,
        add_object=_add_object,
        more=_more,
    ),
)
