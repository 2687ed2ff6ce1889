# SPDX-License-Identifier: GPL-3.0-or-later
"""How meshes are bound: the settings that an artist keeps per scene, and the operators' own.

As with the settings of a conversion, an operator takes from the scene what its caller did not give when it is invoked
from the interface; from Python only the arguments and the defaults below count.
"""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, PointerProperty, StringProperty

from ...ui.common_settings import influences_property

METHOD_ITEMS = (
    (
        "DELAUNAY",
        "Delaunay",
        "Ways through the inside of the body: for characters, above all where parts lie close, such as fingers",
    ),
    (
        "POINT_TO_LINE",
        "Point to Line",
        "Planes at the joints divide the body: for limbs apart from each other. The fastest of the smooth ones",
    ),
    (
        "CONTAINMENT",
        "Containment",
        "Volumes around the bones, which you can edit: for parts that other methods give to the wrong bone",
    ),
    ("RIGID", "Rigid", "One bone a vertex: for robots, machines and armor"),
)

VOLUME_KIND_ITEMS = (
    ("CAPSULE", "Capsule", "A tube with round ends: for limbs"),
    ("ELLIPSOID", "Ellipsoid", "A stretched ball: for soft bodies"),
    ("BOX", "Box", "A cuboid: for machines"),
)

SETTING_NAMES = (
    "method",
    "max_influences",
    "replace",
    "whole_parts",
    "as_objects",
    "distance_limit",
    "use_envelopes",
)


def setting_annotations(limit: str) -> dict:
    """The properties of binding. limit: "min" for the panel, "soft_min" for the operator, which refuses in words."""
    return {
        "method": EnumProperty(
            name="Method",
            description="How the bones of a vertex are found",
            items=METHOD_ITEMS,
            default="DELAUNAY",
            options={"SKIP_SAVE"},
        ),
        "max_influences": influences_property(limit),
        "replace": BoolProperty(
            name="Replace",
            description="Make the weights of all vertices anew. Otherwise vertices that have weights of bones keep "
            "them. Locked vertex groups, and those not named as a bone, stay in either case",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "whole_parts": BoolProperty(
            name="Whole Parts",
            description="With Rigid, give each connected part of the mesh to one bone",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "as_objects": BoolProperty(
            name="As Objects",
            description="With Rigid, parent each selected object to its nearest bone, and leave the meshes as they are",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "distance_limit": FloatProperty(
            name="Distance Limit",
            description="No bone moves a vertex that is further away than this, unless it is the nearest one. 0 is off",
            default=0.0,
            subtype="DISTANCE",
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "use_envelopes": BoolProperty(
            name="Use Envelopes",
            description="No bone moves a vertex outside of its envelope: its radius and envelope distance",
            default=False,
            options={"SKIP_SAVE"},
        ),
    }


def volume_kind_property():
    return EnumProperty(
        name="Volume",
        description="The shape of the volumes around the bones",
        items=VOLUME_KIND_ITEMS,
        default="CAPSULE",
        options={"SKIP_SAVE"},
    )


def armature_name_property():
    return StringProperty(
        name="Armature",
        description="Name of the armature object. Empty chooses it: the active or selected one, or the mesh's own",
        default="",
        options={"SKIP_SAVE"},
    )


def _is_armature(_, object) -> bool:
    return object.type == "ARMATURE"


class SkinningBindSettings(bpy.types.PropertyGroup):
    """How the panel's buttons bind, kept with the scene."""

    __annotations__ = setting_annotations("min") | {
        "volume_kind": volume_kind_property(),
        "armature": PointerProperty(
            name="Armature",
            description="The armature to bind to. Empty chooses it: the active or selected one, or the mesh's own",
            type=bpy.types.Object,
            poll=_is_armature,
        ),
    }


def chosen_armature(scene) -> str:
    """Name of the armature that the panel has, "" where it is left to be chosen."""
    armature = scene.skinning_bind.armature
    return armature.name if armature is not None and armature.name in scene.objects else ""


registry = [SkinningBindSettings]


def register() -> None:
    bpy.types.Scene.skinning_bind = PointerProperty(type=SkinningBindSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_bind
