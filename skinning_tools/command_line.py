# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender -b file.blend --command skinning ...`: the extension's work, unattended."""

import argparse
import contextlib
import importlib
import os
import sys
from typing import NoReturn

import bpy

from .features import FEATURES
from .ui.command_line import running
from .ui.command_line.arguments import add_common, path_options
from .ui.command_line.common import UsageError
from .ui.command_line.stopping import end_with_parent
from .ui.command_line.terminal import keep_streams_apart


def main(arguments: list[str]) -> int:
    """Run one subcommand; returns the exit code (``ui.command_line.running.EXIT_CODES``)."""
    keep_streams_apart()
    end_with_parent()
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        # --help. Let Blender end in its own way, with the exit code.
        return int(stop.code or running.EXIT_DONE)
    except UsageError as error:
        path, others = _report_path(arguments)
        return running.refuse(path, arguments[0] if arguments else "", str(error), others)
    return running.perform(options)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors go into the report like all others."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise UsageError(message)


def parser() -> argparse.ArgumentParser:
    """All subcommands and their options."""
    epilog = "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in running.EXIT_CODES) + "."
    whole = _Parser(
        prog="blender -b FILE.blend --command skinning", description="Skinning Tools without a window.", epilog=epilog
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for feature in FEATURES:
        for command in feature.commands:
            command.add(commands)
    for name, command in commands.choices.items():
        add_common(command)
        command.set_defaults(command=name, parse=whole.parse_args, path_options=path_options(command))
        command.epilog = epilog
    return whole


def _report_path(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The report file named on an invalid command line, and the other words on it."""
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
    """Run `python -m skinning_tools.command_line COMMAND ...`, with Blender as a Python module."""
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
