# SPDX-License-Identifier: GPL-3.0-or-later
"""`add-bone-links`: bones at joints that share their turn, and twist bones."""

import math

import bpy

from ....blender import background
from ....blender.bone_selection import named_bones
from ....ui.command_line import arguments
from ....ui.command_line.common import UsageError, find_armature, progress_of
from ....ui.command_line.outcome import Outcome, Row, each
from .. import bone_links
from ..joint_helper_rig import TWIST
from ..joint_helper_settings import KIND_ITEMS


def add(commands) -> None:
    links = commands.add_parser(
        "add-bone-links",
        help="add bones at joints that share their turn, or a forearm's twist",
        description="Add bones at joints, driven by constraints, that share their turn so that the skin keeps its "
        "volume; they take weights of all meshes that the armature deforms. Save the file.",
    )
    arguments.add_rig_object(links)
    arguments.add_joints(links, "all joints that turn by more than the threshold")
    arguments.add_enumeration(links, "--kind", KIND_ITEMS, KIND_ITEMS[0][0], "what to add (default: %(default)s)")
    links.add_argument(
        "--threshold",
        type=arguments.number,
        default=60.0,
        metavar="DEGREES",
        help="joints that turn by no more need none (default: %(default)g)",
    )
    links.add_argument(
        "--most", type=arguments.whole_number, default=3, metavar="N", help="most at one joint (default: %(default)s)"
    )
    links.add_argument(
        "--count",
        type=arguments.whole_number,
        default=0,
        metavar="N",
        help="so many at each joint (default: as its range asks for)",
    )
    links.add_argument(
        "--reach",
        type=arguments.number,
        default=0.0,
        metavar="DISTANCE",
        help="blend the weights anew up to here from the joint (default: keep the blend that is there)",
    )
    links.add_argument("--mirror", action="store_true", help="the joints of the other side, too")
    arguments.add_target(links)
    links.set_defaults(run=_run)


def _run(options) -> Outcome:
    if options.count and options.most != 3:
        raise UsageError("--count is how many there are at each joint: leave out --most")
    if options.count and not options.all_joints and options.threshold != 60:
        raise UsageError("With --joints and --count all of these joints get bones: leave out --threshold")
    context = bpy.context
    armature = find_armature(context.scene, options.object)
    given = bone_links.LinkSettings(
        kind=options.kind,
        threshold=math.radians(options.threshold),
        most=options.most,
        count=options.count,
        reach=options.reach,
        mirror=options.mirror,
        all_joints=options.all_joints,
    )
    names = [] if options.all_joints else named_bones(armature, options.joints)
    steps = bone_links.add_links(context, armature, names, given)
    added = background.drain(steps, progress_of(options))
    word = "Twist bones" if given.kind == TWIST else "Links"
    rows = [
        Row("Armature", added.armature_name),
        *each(f"{word} of {{}}", added.counts, "added"),
        *each(
            "Turn of {}",
            {name: math.degrees(turn) for name, turn in added.skipped.items()},
            "skipped_degrees",
            lambda degrees: f"{degrees:.0f}°, none",
        ),
        Row("Meshes", added.mesh_count),
        Row("Vertices", added.vertex_count),
    ]
    return Outcome(rows, notes=added.notes)
