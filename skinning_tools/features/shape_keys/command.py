# SPDX-License-Identifier: GPL-3.0-or-later
"""`convert-shape-keys`: shape keys to bones with sliders."""

import argparse

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import find_objects
from .conversion import convert_named
from .settings import ShapeKeySettings


def _add_object(command: argparse.ArgumentParser) -> None:
    arguments.add_objects(
        command,
        "the mesh object that has the shape keys, or a pattern such as 'Head*'; if repeated, or if a pattern matches "
        "several: convert all to one armature, with the sliders of all",
    )


COMMANDS = (
    Command(
        "convert-shape-keys",
        "turn shape keys into bones with sliders",
        "Make a skinned copy of a mesh whose bones do what its shape keys do, with a slider for each of them, and save "
        "the file.",
        settings=ShapeKeySettings,
        work=convert_named,
        add_object=_add_object,
        find=find_objects,
    ),
)
