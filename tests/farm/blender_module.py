# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces Blender's program where there is only its Python module.

blender_module.py -b [--python FILE | --command skinning COMMAND ...]
"""

import runpy
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    for option, program in (("--command", _command), ("--python", _python)):
        if option in arguments:
            program(arguments[arguments.index(option) + 1 :])
            return
    raise SystemExit(f"Nothing to do: {arguments}")


def _command(arguments: list[str]) -> None:
    assert arguments[0] == "skinning", arguments
    sys.argv = ["skinning_tools", *arguments[1:]]
    runpy.run_module("skinning_tools.command_line", run_name="__main__", alter_sys=True)


def _python(arguments: list[str]) -> None:
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
