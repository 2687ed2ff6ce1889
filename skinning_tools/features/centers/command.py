# SPDX-License-Identifier: GPL-3.0-or-later
"""`bake-rotation-centers`: the center of rotation of each vertex, as an attribute."""

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import find_objects
from . import modifier
from .settings import BakeAndPlaySettings

COMMANDS = (
    Command(
        "bake-rotation-centers",
        "store the center of rotation of each vertex of a skinned mesh",
        "Find the center of rotation of each vertex of a skinned mesh, store it as an attribute, and save the file. "
        "Several meshes of one armature are one body, whose centers agree where the meshes meet.",
        settings=BakeAndPlaySettings,
        work=modifier.bake,
        add_object=arguments.add_skinned_objects,
        find=find_objects,
    ),
)
