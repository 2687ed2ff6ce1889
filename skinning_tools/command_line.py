# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender -b file.blend --command skinning ...`: the extension's work, unattended."""

import argparse
import logging

import bpy

from .commands import (
    add_bone_links,
    add_bulge_bone,
    add_helper_bones,
    bake_rotation_centers,
    bind,
    build_eigenskin,
    compress_weights,
    convert,
    fit_weights_to_pose,
    partition_rigid,
    remove_bone_links,
    remove_bulge_bone,
    remove_rogue_weights,
    smooth_weights,
    solve_transforms,
    solve_weights,
)
from .commands.common import UsageError, say_error
from .core.errors import SkinningError

logger = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_USAGE = 0, 1, 2

# In the order of the help's list.
COMMANDS = (
    convert,
    solve_weights,
    solve_transforms,
    add_helper_bones,
    bake_rotation_centers,
    build_eigenskin,
    bind,
    remove_rogue_weights,
    smooth_weights,
    compress_weights,
    partition_rigid,
    fit_weights_to_pose,
    add_bone_links,
    remove_bone_links,
    add_bulge_bone,
    remove_bulge_bone,
)


def main(arguments: list[str]) -> int:
    """Run one subcommand; returns the exit status: 0 done, 1 it failed, 2 the command line is wrong."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        # argparse has written its message; Blender is to end in its own way, with the exit status.
        return stop.code or EXIT_DONE
    try:
        options.run(options)
    except UsageError as error:
        say_error(str(error))
        return EXIT_USAGE
    except SkinningError as error:
        say_error(str(error))
        return EXIT_FAILED
    except Exception as error:
        logger.exception("The work failed")
        say_error(f"The work failed through a fault of its own ({type(error).__name__}: {error})")
        return EXIT_FAILED
    return EXIT_DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="blender -b FILE.blend --command skinning",
        description="Skinning Tools without a window.",
        epilog="Exit status: 0 done, 1 it failed (the reason is on the error output), 2 the command line is wrong.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser


_handles: list = []


def register() -> None:
    _handles.append(bpy.utils.register_cli_command("skinning", main))


def unregister() -> None:
    bpy.utils.unregister_cli_command(_handles.pop())
