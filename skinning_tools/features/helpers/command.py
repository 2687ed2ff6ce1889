# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands that add and remove bone links, twist bones and bulge bones."""

import argparse

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError, find_armature
from . import bone_links, bulge_bones
from .settings import BulgeRemovalSettings, BulgeSettings, LinkRemovalSettings, LinkSettings


def _check_count(options: argparse.Namespace) -> None:
    if options.count and options.most != 3:
        raise UsageError("--count sets the number at each joint: leave out --most")
    if options.count and not options.all_joints and options.threshold != 60:
        raise UsageError("With --joints and --count all named joints get bones: leave out --threshold")
    if options.kind == "TWIST" and (options.reach or options.spread or options.across):
        raise UsageError("Twist bones stand along the whole bone: leave out --reach, --spread and --across")


def _add_object(command: argparse.ArgumentParser) -> None:
    arguments.add_rig_object(command)
    # From the poses that show how far joints turn, and where the inside of a joint is.
    arguments.add_incomplete(command)


COMMANDS = (
    Command(
        "add-bone-links",
        "add bones that share the turn of joints, or a forearm's twist",
        "Add bones at joints, driven by constraints, that share their turn so that the skin keeps its volume, and give "
        "them weights on all meshes that the armature deforms. Save the file.",
        settings=LinkSettings,
        work=bone_links.add_links,
        check=_check_count,
        add_object=_add_object,
        find=find_armature,
    ),
    Command(
        "remove-bone-links",
        "remove bone links and twist bones",
        "Remove links and twist bones with everything added for them, restore the weights, and save the file.",
        settings=LinkRemovalSettings,
        work=bone_links.remove_links,
        add_object=arguments.add_rig_object,
        find=find_armature,
    ),
    Command(
        "add-bulge-bone",
        "add a bone that makes the skin bulge, such as a biceps",
        "Add a bone that moves or scales with the angle of another bone, by a driver that needs no script, and give it "
        "weights on all meshes within its reach. Save the file.",
        settings=BulgeSettings,
        work=bulge_bones.add_bulges,
        add_object=_add_object,
        find=find_armature,
    ),
    Command(
        "remove-bulge-bone",
        "remove bulge bones",
        "Remove bulge bones with everything added for them, restore the weights, and save the file.",
        settings=BulgeRemovalSettings,
        work=bulge_bones.remove_bulges,
        add_object=arguments.add_rig_object,
        find=find_armature,
    ),
)
