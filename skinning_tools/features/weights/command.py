# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands on the weights of a skinned mesh."""

from functools import partial

from ...blender.preconditions import find_object
from ...ui.command_line import arguments
from ...ui.command_line.command import Command, goes_with
from ...ui.command_line.common import find_objects
from ...ui.settings import Settings
from . import compression, rigid_parts, rogue_weights, smoothing, unweighted
from .settings import CompressSettings, PartitionSettings, RemoveRogueSettings, SmoothSettings

COMMANDS = (
    Command(
        "find-unweighted",
        "find the vertices that no bone moves",
        "Count the vertices that no deforming bone moves, in a mesh or in all meshes of an armature. The JSON report "
        "lists their indices. Nothing is saved.",
        settings=Settings,
        work=unweighted.count_unweighted,
        add_object=arguments.add_rig_object,
        find=partial(find_object, kinds=("MESH", "ARMATURE")),
        saves=False,
    ),
    Command(
        "remove-rogue-weights",
        "correct vertices that follow a bone far from its other vertices",
        "Give rogue weights, of vertices that follow a bone far from its other vertices, to the bones of the nearest "
        "valid vertices, and save the file. Doubtful weights and locked vertex groups do not change.",
        settings=RemoveRogueSettings,
        work=rogue_weights.remove,
    ),
    Command(
        "smooth-weights",
        "smooth the weights of a skinned mesh",
        "Smooth the weights of all bones over the surface of a skinned mesh, and save the file. Borders, creases, sums "
        "and locked vertex groups do not change. Several meshes of one armature are one body, whose weights agree "
        "where the meshes meet.",
        settings=SmoothSettings,
        work=smoothing.smooth,
        add_object=arguments.add_skinned_objects,
        find=find_objects,
        check=goes_with("--invert", "--vertex-group"),
    ),
    Command(
        "compress-weights",
        "round weights to 8 or 16 bits",
        "Round the weights of a skinned mesh to whole steps of 8 or 16 bits with sums of exactly 1, measure how far "
        "that moves vertices over the animation, and save the file.",
        settings=CompressSettings,
        work=compression.compress,
    ),
    Command(
        "partition-rigid",
        "find or separate the faces that only one bone moves",
        "Find the faces of a skinned mesh that only one bone moves, mark or separate them from the skin, and save the "
        "file.",
        settings=PartitionSettings,
        work=rigid_parts.partition,
    ),
)
