# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender -b file.blend --command skinning ...`: the extension's work, unattended."""

import argparse
import contextlib
import importlib
import os
import sys

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
    convert_shots,
    fit_weights_to_pose,
    gather_reports,
    partition_rigid,
    remove_bone_links,
    remove_bulge_bone,
    remove_helper_bones,
    remove_rogue_weights,
    running,
    smooth_weights,
    solve_transforms,
    solve_weights,
)
from .commands.arguments import add_common, path_options
from .commands.common import UsageError
from .commands.stopping import end_with_parent
from .commands.terminal import keep_streams_apart

# In the order of the help's list.
COMMANDS = (
    convert,
    convert_shots,
    gather_reports,
    solve_weights,
    solve_transforms,
    add_helper_bones,
    remove_helper_bones,
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
    """Run one subcommand; returns the exit code (``commands.running.EXIT_CODES``)."""
    keep_streams_apart()
    end_with_parent()
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        # --help. Blender is to end in its own way, with the exit code.
        return stop.code or running.EXIT_DONE
    except UsageError as error:
        path, others = _report_path(arguments)
        return running.refuse(path, arguments[0] if arguments else "", str(error), others)
    return running.perform(options)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors go the way of all others, into the report."""

    def error(self, message: str):
        self.print_usage(sys.stderr)
        raise UsageError(message)


def parser() -> argparse.ArgumentParser:
    """All subcommands and their options."""
    epilog = "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in running.EXIT_CODES) + "."
    whole = _Parser(
        prog="blender -b FILE.blend --command skinning", description="Skinning Tools without a window.", epilog=epilog
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    for name, command in commands.choices.items():
        add_common(command)
        command.set_defaults(command=name, parse=whole.parse_args, path_options=path_options(command))
        command.epilog = epilog
    return whole


def _report_path(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Where the report of a command line is to go that cannot be understood as a whole, and what else it may name."""
    reader = _Parser(add_help=False, allow_abbrev=False, usage="")
    reader.add_argument("--report", default=None)
    try:
        known, others = reader.parse_known_args(arguments)
    except UsageError:
        return None, []
    return known.report, [part for text in others for part in {text, text.partition("=")[2]}]


_handles: list = []


def register() -> None:
    _handles.append(bpy.utils.register_cli_command("skinning", main))


def unregister() -> None:
    bpy.utils.unregister_cli_command(_handles.pop())


def _run_as_program() -> None:
    """`python -m skinning_tools.command_line COMMAND ...`, where Blender is a module of Python and no program."""
    if __package__ not in bpy.context.preferences.addons:
        importlib.import_module(__package__).register()
    status = main(sys.argv[1:])
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or a pipe that nobody reads
        sys.stdout.flush()
        sys.stderr.flush()
    # Blender's 4.2 module can crash while Python shuts down.
    os._exit(status)


if __name__ == "__main__":
    _run_as_program()
