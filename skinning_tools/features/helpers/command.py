# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands that add bone links, twist bones and bulge bones, and take them away again."""

import math

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError, find_armature
from ...ui.command_line.outcome import Row, each
from . import bone_links, bulge_bones
from .rig import TWIST
from .settings import BulgeRemovalSettings, BulgeSettings, LinkRemovalSettings, LinkSettings


def _check_count(options) -> None:
    if options.count and options.most != 3:
        raise UsageError("--count is how many there are at each joint: leave out --most")
    if options.count and not options.all_joints and options.threshold != 60:
        raise UsageError("With --joints and --count all of these joints get bones: leave out --threshold")


def _linked(added) -> list[Row]:
    word = "Twist bones" if added.kind == TWIST else "Links"
    skipped = {name: math.degrees(turn) for name, turn in added.skipped.items()}
    return [
        Row("Armature", added.armature_name),
        *each(f"{word} of {{}}", added.counts, "added"),
        *each("Turn of {}", skipped, "skipped_degrees", lambda degrees: f"{degrees:.0f}°, none"),
        Row("Meshes", added.mesh_count),
        Row("Vertices", added.vertex_count),
    ]


def _bulged(added) -> list[Row]:
    return [
        Row("Armature", added.armature_name),
        *each("Bone {}", added.drivers, "bones", lambda driver: f"by {driver or 'its slider'}"),
        Row("Meshes", added.mesh_count),
        Row("Vertices", added.vertex_count),
    ]


def _removed(removed) -> list[Row]:
    return [
        Row("Armature", removed.armature_name),
        Row("Removed", list(removed.joints), ", ".join(removed.joints)),
        Row("Vertices painted since", removed.painted),
    ]


_ON_ARMATURE = {"add_object": arguments.add_rig_object, "find": find_armature}

COMMANDS = (
    Command(
        "add-bone-links",
        "add bones at joints that share their turn, or a forearm's twist",
        "Add bones at joints, driven by constraints, that share their turn so that the skin keeps its volume; they "
        "take weights of all meshes that the armature deforms. Save the file.",
        settings=LinkSettings,
        work=bone_links.add_links,
        rows=_linked,
        check=_check_count,
        **_ON_ARMATURE,
    ),
    Command(
        "remove-bone-links",
        "take bone links and twist bones away again",
        "Remove links and twist bones with all that they added, give their weights back, and save the file.",
        settings=LinkRemovalSettings,
        work=bone_links.remove_links,
        rows=_removed,
        **_ON_ARMATURE,
    ),
    Command(
        "add-bulge-bone",
        "add a bone that makes the skin bulge, such as a biceps",
        "Add a bone that moves or scales with the angle of another one, by a driver that needs no script; it takes "
        "weights of all meshes within its reach. Save the file.",
        settings=BulgeSettings,
        work=bulge_bones.add_bulges,
        rows=_bulged,
        **_ON_ARMATURE,
    ),
    Command(
        "remove-bulge-bone",
        "take bulge bones away again",
        "Remove bulge bones with all that they added, give their weights back, and save the file.",
        settings=BulgeRemovalSettings,
        work=bulge_bones.remove_bulges,
        rows=_removed,
        **_ON_ARMATURE,
    ),
)
