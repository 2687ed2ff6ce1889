# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands that bake deformers, and bring the earlier weights back."""

import argparse

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from . import bake, earlier_weights, training
from .settings import DeformerSettings, RestoreSettings, TrainingSettings


def _add_object(command: argparse.ArgumentParser) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object with the modifiers")


def _add_cache(command: argparse.ArgumentParser) -> None:
    _add_object(command)
    command.add_argument(
        "--cache",
        type=arguments.WRITTEN,
        required=True,
        metavar="FILE",
        help="the point cache to write, which ends in .pc2",
    )


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
    Command(
        "save-training-set",
        "save poses and deformed shapes to train a learned deformer",
        "Save random poses of the skeleton as an action, which nothing plays yet, and the mesh with its deformers in "
        "each as a PC2 point cache, and save the file.",
        settings=TrainingSettings,
        work=training.save_training_set,
        add_object=_add_cache,
        more=lambda options: {"filepath": str(options.cache)},
    ),
)
