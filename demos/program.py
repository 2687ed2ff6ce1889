# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the programs of this folder: options, and a safe exit."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def parse_options(description: str) -> argparse.Namespace:
    """The options of a program that renders: output, a folder, made if necessary; samples; percent."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "demo", help="folder for the pictures")
    parser.add_argument("--samples", type=int, default=32, help="of Cycles for each pixel")
    parser.add_argument("--percent", type=int, default=100, help="of the resolution, to see the pictures sooner")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def leave(status: int) -> NoReturn:
    """End the process: Blender 4's module can crash while Python shuts down, after all is written."""
    sys.stdout.flush()
    os._exit(status)
