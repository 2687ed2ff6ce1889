# SPDX-License-Identifier: GPL-3.0-or-later
"""`export`: a skinned character as a file for an engine."""

import argparse
from functools import partial

from ...blender.preconditions import find_object
from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from . import export
from .settings import ExportSettings


def _add_object(command: argparse.ArgumentParser) -> None:
    arguments.add_rig_object(command)
    command.add_argument(
        "--file",
        type=arguments.WRITTEN,
        required=True,
        metavar="FILE",
        help="the file to write, which ends in .glb, .fbx or .usdc as the format needs",
    )
    arguments.add_incomplete(command)


COMMANDS = (
    Command(
        "export",
        "export a skinned character for an engine, and compare the file with the scene",
        "Export an armature and all visible meshes that it deforms as a glTF, FBX or USD file with settings that play, "
        "read the file again, and measure how far its mesh is from the scene's. The .blend file is not saved.",
        settings=ExportSettings,
        work=export.export,
        add_object=_add_object,
        find=partial(find_object, kinds=("MESH", "ARMATURE")),
        more=lambda options: {"filepath": str(options.file)},
        saves=False,
    ),
)
