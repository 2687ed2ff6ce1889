# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of transferring weights, kept with the scene."""

import math

import bpy

from ...ui.settings import Settings, angle, choice, factor, influences, name, number, switch

MIRRORS = (
    ("NONE", "Off", "Take the weights from where the vertices are"),
    (
        "POSITIVE_X",
        "+X to -X",
        "Take them from the mirror image across the source's local X, with left and right exchanged in the names of "
        "bones, for the vertices on the negative side. Vertices in the middle become symmetric; all others stay",
    ),
    ("NEGATIVE_X", "-X to +X", "The same for the vertices on the positive side"),
)


KINDS = (
    ("FILLED", "Filled In", "Vertices whose weights were filled in from around them"),
    ("MATCHED", "Matched", "Vertices that have the weights of the closest point of the source"),
)


class TransferSettings(Settings, stored="skinning_transfer"):
    source = name(
        "Source",
        tip="The mesh that has the weights. If empty, the other selected mesh, or with Mirror the mesh itself",
        flag="--source",
        help="the mesh object that has the weights (with --mirror it may be left out: the mesh itself)",
    )
    groups = name(
        "Groups",
        tip="Names of bones, separated by commas, whose weights are transferred. If empty, all. The weights of other "
        "bones share the rest",
        flag="--groups",
        metavar="NAME,NAME",
        help="bones whose weights are transferred (default: all)",
    )
    factor = factor(
        "Factor",
        1.0,
        most=1.0,
        tip="How far present weights move toward the transferred ones. Vertices without weights get them in full",
        flag="--factor",
        metavar="F",
        help="how far present weights move toward the transferred ones, 0 to 1",
    )
    replace = switch(
        "Replace",
        True,
        tip="Change all vertices. When off, only those without weights of bones. Locked vertex groups always stay",
        flag="--only-empty",
        help="only vertices without weights of bones",
    )
    max_influences = influences(
        0,
        0,
        tip="Most bones that may move one vertex. 0 means as many as at a vertex of the source",
        help="most bones that may move one vertex (default: as many as at a vertex of the source)",
    )
    vertex_group = name(
        "Vertex Group",
        tip="Multiply the factor by the weights of this group. If empty, change all vertices",
        flag="--vertex-group",
        help="multiply the factor by the weights of this group",
    )
    invert_vertex_group = switch(
        "Invert", False, tip="Change vertices where the group has no weight", flag="--invert", help="where it has none"
    )
    lock_rim = switch(
        "Lock Rim",
        False,
        tip="Vertices on a border, such as of a sleeve, follow the closest point of the source, so that no gap opens "
        "there",
        flag="--lock-rim",
        help="vertices on a border follow the closest point",
    )
    mirror = choice("Mirror", MIRRORS, "NONE", tip="Take the weights from the other side", flag="--mirror")
    use_pose = switch(
        "Present Pose",
        False,
        tip="Match the source as its bones pose it now, for clothes that were made around that pose. Their shape "
        "stays. When off, the rest pose counts",
        flag="--present-pose",
        help="match the source in its present pose instead of its rest pose",
    )
    distance = number(
        "Distance",
        0.05,
        least=0.0,
        soft_max=0.5,
        precision=3,
        step=1,
        tip="How far the closest point may be away, as a share of the diagonal of the source. Weights of vertices "
        "farther away are filled in",
        flag="--distance",
        metavar="D",
        help="how far the closest point may be away, as a share of the diagonal of the source",
    )
    angle = angle(
        "Angle",
        math.radians(20),
        least=0.0,
        most=math.pi,
        tip="How much the normal of the closest point may differ. Weights of other vertices are filled in",
        flag="--angle",
        help="how much the normal of the closest point may differ",
    )


class SelectSettings(Settings):
    kind = choice("Vertices", KINDS, "FILLED", tip="Which vertices to select")


class SkinningTransferSettings(bpy.types.PropertyGroup):
    """How the panel's button transfers weights."""

    __annotations__ = TransferSettings.group_annotations()


registry = [SkinningTransferSettings]
pointers = {"Scene.skinning_transfer": SkinningTransferSettings}
