# SPDX-License-Identifier: GPL-3.0-or-later
"""`add-bulge-bone`: a bone that makes the skin bulge as another one bends."""

import math

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import find_armature, progress_of
from ....ui.command_line.outcome import Outcome, Row, each
from .. import bulge_bones
from ..bulge_presets import PRESETS
from ..joint_helper_settings import MEASURE_ITEMS, MOTION_ITEMS


def add(commands) -> None:
    bulge = commands.add_parser(
        "add-bulge-bone",
        help="add a bone that makes the skin bulge, such as a biceps",
        description="Add a bone that moves or scales with the angle of another one, by a driver that needs no script; "
        "it takes weights of all meshes within its reach. Save the file.",
    )
    arguments.add_rig_object(bulge)
    bulge.add_argument("--bone", metavar="NAME", required=True, help="the bone that carries the bulge")
    bulge.add_argument(
        "--driver-bone", metavar="NAME", default="", help="the bone whose angle counts (default: the preset's)"
    )
    bulge.add_argument(
        "--preset", choices=tuple(PRESETS), type=str.upper, default="BICEPS", help="which muscle (default: %(default)s)"
    )
    arguments.add_enumeration(bulge, "--motion", MOTION_ITEMS, None, "what the bulge does (default: the preset's)")
    arguments.add_enumeration(
        bulge, "--measure", MEASURE_ITEMS, None, "what angle of the driver bone counts (default: the preset's)"
    )
    bulge.add_argument(
        "--from",
        dest="angle_start",
        type=arguments.number,
        metavar="DEGREES",
        help="where it begins (default: the preset's)",
    )
    bulge.add_argument(
        "--to",
        dest="angle_end",
        type=arguments.number,
        metavar="DEGREES",
        help="where it is full (default: the preset's)",
    )
    bulge.add_argument(
        "--amount",
        type=arguments.number,
        default=0.0,
        metavar="SHARE",
        help="how far the skin moves, as a share of the radius (default: the preset's)",
    )
    bulge.add_argument(
        "--radius",
        type=arguments.number,
        default=0.0,
        metavar="DISTANCE",
        help="how far it reaches (default: by the bone's length)",
    )
    bulge.add_argument(
        "--around",
        type=arguments.number,
        default=0.0,
        metavar="DEGREES",
        help="turn its center about the bone (default: 0)",
    )
    bulge.add_argument("--through-space", action="store_true", help="measure the radius straight, not over the skin")
    bulge.add_argument("--mirror", action="store_true", help="one on the other side, too")
    arguments.add_target(bulge)
    bulge.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    armature = find_armature(context.scene, options.object)
    preset = PRESETS[options.preset]
    angles = [
        getattr(preset, name) if getattr(options, name) is None else math.radians(getattr(options, name))
        for name in ("angle_start", "angle_end")
    ]
    given = bulge_bones.BulgeSettings(
        options.preset,
        options.driver_bone,
        options.motion or preset.motion,
        options.measure or preset.measure,
        *angles,
        amount=options.amount,
        radius=options.radius,
        around=math.radians(options.around),
        along_surface=not options.through_space,
        mirror=options.mirror,
    )
    steps = bulge_bones.add_bulges(context, armature, options.bone, given)
    added = background.drain(steps, progress_of(options))
    rows = [
        Row("Armature", added.armature_name),
        *each("Bone {}", added.drivers, "bones", lambda driver: f"by {driver or 'its slider'}"),
        Row("Meshes", added.mesh_count),
        Row("Vertices", added.vertex_count),
    ]
    return Outcome(rows, notes=added.notes)
