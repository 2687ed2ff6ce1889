# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of binding, kept with the scene."""

import bpy
from bpy.props import PointerProperty

from ...core.binding import methods
from ...core.errors import BadSettings
from ...ui.settings import HARD, Settings, choice, influences, name, number, switch

METHODS = tuple((each.identifier, each.label, each.tip) for each in methods.METHODS)

VOLUME_KINDS = (
    ("CAPSULE", "Capsule", "A tube with round ends: for limbs"),
    ("ELLIPSOID", "Ellipsoid", "A stretched ball: for soft bodies"),
    ("BOX", "Box", "A cuboid: for machines"),
)

_VOLUME_KIND = choice("Volume", VOLUME_KINDS, "CAPSULE", tip="The shape of the volumes around the bones")


class ArmatureSettings(Settings, stored="skinning_bind"):
    """Operators have the armature by its name; the scene has the object."""

    armature = name(
        "Armature",
        tip="Name of the armature object. Empty chooses it: the active or selected one, or the mesh's own",
    )

    @classmethod
    def fill(cls, operator, scene) -> None:
        if not operator.properties.is_property_set("armature"):
            operator.armature = chosen_armature(scene)
        super().fill(operator, scene)


class BindSettings(ArmatureSettings):
    method = choice("Method", METHODS, "DELAUNAY", tip="How the bones of a vertex are found", flag="--method")
    max_influences = influences()
    replace = switch(
        "Replace",
        False,
        tip="Make the weights of all vertices anew. Otherwise vertices that have weights of bones keep them. Locked "
        "vertex groups, and those not named as a bone, stay in either case",
        flag="--replace",
        help="make weights anew that there are already",
    )
    whole_parts = switch(
        "Whole Parts",
        False,
        tip="With Rigid, give each connected part of the mesh to one bone",
        flag="--whole-parts",
    )
    as_objects = switch(
        "As Objects",
        False,
        tip="With Rigid, parent each selected object to its nearest bone, and leave the meshes as they are",
        flag="--as-objects",
        help="with RIGID: parent the objects to bones",
    )
    distance_limit = number(
        "Distance Limit",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="No bone moves a vertex that is further away than this, unless it is the nearest one. 0 is off",
        flag="--distance-limit",
        metavar="D",
        help="how far a bone reaches, in the scene's units (default: no limit)",
    )
    use_envelopes = switch(
        "Use Envelopes",
        False,
        tip="No bone moves a vertex outside of its envelope: its radius and envelope distance",
        flag="--use-envelopes",
    )

    def check(self) -> None:
        """Raises BadSettings."""
        if self.max_influences < 1:
            raise BadSettings(f"Influences must be at least 1, not {self.max_influences}")
        if not self.distance_limit >= 0:
            raise BadSettings(f"The distance limit must not be negative, but it is {self.distance_limit:g}. 0 is none")


class VolumeSettings(ArmatureSettings):
    kind = _VOLUME_KIND

    @classmethod
    def fill(cls, operator, scene) -> None:
        if not operator.properties.is_property_set("kind"):
            operator.kind = scene.skinning_bind.volume_kind
        super().fill(operator, scene)


def chosen_armature(scene) -> str:
    """Name of the armature that the panel has, "" where it is left to be chosen."""
    armature = scene.skinning_bind.armature
    return armature.name if armature is not None and armature.name in scene.objects else ""


def binds_objects(settings) -> bool:
    """Whether objects are parented to bones instead of getting weights."""
    return settings.method == "RIGID" and settings.as_objects


class SkinningBindSettings(bpy.types.PropertyGroup):
    """How the panel's buttons bind, kept with the scene."""

    __annotations__ = BindSettings.group_annotations() | {
        "volume_kind": _VOLUME_KIND.as_property(HARD),
        "armature": PointerProperty(
            name="Armature",
            description="The armature to bind to. Empty chooses it: the active or selected one, or the mesh's own",
            type=bpy.types.Object,
            poll=lambda _, object: object.type == "ARMATURE",
        ),
    }


registry = [SkinningBindSettings]


def register() -> None:
    bpy.types.Scene.skinning_bind = PointerProperty(type=SkinningBindSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_bind
