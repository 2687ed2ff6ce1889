# SPDX-License-Identifier: GPL-3.0-or-later
"""`transfer-weights`: weights from one mesh to others."""

import argparse
from collections.abc import Generator, Sequence
from typing import Any

import bpy

from ...blender.preconditions import find_object
from ...ui.command_line import arguments
from ...ui.command_line.command import Command, goes_with
from ...ui.command_line.common import UsageError, find_objects
from .settings import TransferSettings
from .targets import targets_of
from .transfer import Transfers, transfer


def _add_objects(command: argparse.ArgumentParser) -> None:
    arguments.add_objects(command, "a mesh object that gets weights, or a pattern for several; may be repeated")


def _check(options: argparse.Namespace) -> None:
    if options.mirror == "NONE" and not options.source:
        raise UsageError("--source is required without --mirror")
    goes_with("--invert", "--vertex-group")(options)


def _transfer(
    context: bpy.types.Context, meshes: Sequence[bpy.types.Object], **given: Any
) -> Generator[tuple[float, str], None, Transfers]:
    settings = TransferSettings(**given)
    mirror = settings.mirror != "NONE"
    source = find_object(context.scene, settings.source) if settings.source else meshes[0]
    return (yield from transfer(context, targets_of(context, source, meshes, mirror), settings))


COMMANDS = (
    Command(
        "transfer-weights",
        "transfer weights from one mesh to others",
        "Give meshes the weights of a skinned mesh beside them, as from a body to its clothes, and save the file.",
        settings=TransferSettings,
        work=_transfer,
        add_object=_add_objects,
        find=find_objects,
        check=_check,
    ),
)
