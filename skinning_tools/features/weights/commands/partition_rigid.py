# SPDX-License-Identifier: GPL-3.0-or-later
"""`partition-rigid`: faces that one bone alone moves, apart from the skin."""

import bpy

from ....blender import background
from ....ui.command_line import arguments
from ....ui.command_line.common import find_object, progress_of
from ....ui.command_line.outcome import Outcome, Row, each
from .. import rigid_parts
from ..weight_tool_settings import OUTPUTS


def add(commands) -> None:
    partition = commands.add_parser(
        "partition-rigid",
        help="find or separate the faces that one bone alone moves",
        description="Find the faces of a skinned mesh that one bone alone moves, mark or separate them from the skin, "
        "and save the file.",
    )
    arguments.add_skinned_object(partition)
    arguments.add_enumeration(partition, "--to", OUTPUTS, "ATTRIBUTE", "what to make (default: %(default)s)")
    partition.add_argument(
        "--tolerance",
        type=arguments.number,
        default=0.0,
        metavar="W",
        help="weight that a vertex of a rigid part may have on other bones (default: %(default)s)",
    )
    partition.add_argument(
        "--least-faces",
        type=arguments.whole_number,
        default=1,
        metavar="N",
        help="smaller parts stay with the skin (default: %(default)s)",
    )
    arguments.add_target(partition)
    partition.set_defaults(run=_run)


def _run(options) -> Outcome:
    context = bpy.context
    steps = rigid_parts.partition(
        context, find_object(context.scene, options.object), options.to, options.tolerance, options.least_faces
    )
    partitioned = background.drain(steps, progress_of(options))
    figures = partitioned.figures
    shares = dict(rigid_parts.share_rows(figures.shares))
    skin_share = 1 - figures.rigid_share
    rows = [
        Row("Object", partitioned.object_name),
        *each("Vertices with {}", shares, "vertex_shares", lambda share: f"{share:.1%}"),
        Row("Rigid parts", figures.parts),
        Row("Rigid faces", figures.rigid_faces, f"{figures.rigid_faces} ({figures.rigid_share:.1%})"),
        Row("Skin faces", figures.skin_faces, f"{figures.skin_faces} ({skin_share:.1%})"),
    ]
    return Outcome(rows, partitioned.seconds, partitioned.notes)
