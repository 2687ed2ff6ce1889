# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands that bake deformers, and bring the earlier weights back."""

import argparse

from ...ui.command_line.command import Command
from . import bake, earlier_weights
from .settings import DeformerSettings, RestoreSettings


def _add_object(command: argparse.ArgumentParser) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object with the modifiers")


COMMANDS = (
    Command(
        "bake-deformers",
        "bake deforming modifiers to weights",
        "Solve for weights, and helper bones that joints drive, that imitate the modifiers after the Armature modifier "
        "at random poses, switch these off, and save the file.",
        settings=DeformerSettings,
        work=bake.bake_deformers,
        add_object=_add_object,
    ),
    Command(
        "restore-weights",
        "bring back the weights from before bake-deformers",
        "Bring back the weights and modifiers from before bake-deformers, remove its helper bones, and save the file.",
        settings=RestoreSettings,
        work=earlier_weights.restore_weights,
        add_object=_add_object,
    ),
)
