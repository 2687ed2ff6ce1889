# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of binding, kept with the scene."""

import bpy
from bpy.props import PointerProperty

from ...core.binding import methods
from ...ui.presets import Presets
from ...ui.settings import HARD, Settings, choice, factor, influences, name, number, switch

METHODS = tuple((each.identifier, each.label, each.tip, "NONE", each.number) for each in methods.METHODS)

VOLUME_KINDS = (
    ("CAPSULE", "Capsule", "A tube with round ends: for limbs"),
    ("ELLIPSOID", "Ellipsoid", "A stretched ball: for soft bodies"),
    ("BOX", "Box", "A cuboid: for machines"),
)

_VOLUME_KIND = choice("Volume", VOLUME_KINDS, "CAPSULE", tip="The shape of the volumes around the bones")


class ArmatureSettings(Settings, stored="skinning_bind"):
    """The armature: operators have its name, the scene has the object."""

    armature = name(
        "Armature",
        tip="Name of the armature object. If empty, the active or selected armature, or the mesh's own",
    )

    @classmethod
    def unlike_stored(cls, scene: bpy.types.Scene) -> dict[str, str]:
        return {"armature": chosen_armature(scene)}


class BindSettings(ArmatureSettings):
    method = choice("Method", METHODS, "AUTOMATIC", tip="How weights are computed", flag="--method")
    max_influences = influences()
    replace = switch(
        "Replace",
        False,
        tip="Replace the weights of all vertices. Otherwise vertices that have weights of bones keep them. Locked "
        "vertex groups, and groups without a bone of that name, always stay",
        flag="--replace",
        help="replace existing weights",
    )
    in_pose = switch(
        "Bind in Current Pose",
        False,
        tip="Bind to the armature as it is posed now, for a mesh that fits this pose and not the rest pose. Nothing "
        "moves in this pose; the mesh and its shape keys get new positions at rest",
        flag="--in-pose",
        help="bind in the armature's pose at the file's current frame, and give the mesh a new rest shape",
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
        tip="With Rigid, parent each selected object to its nearest bone, without changing the meshes",
        flag="--as-objects",
        help="with RIGID: parent the objects to bones",
    )
    falloff_inside = factor(
        "Falloff Inside",
        0.0,
        most=1.0,
        tip="With Containment, where inside a volume its weights begin to fall, as a share of the way from its surface "
        "to its axis",
        flag="--falloff-inside",
        help="with CONTAINMENT: where inside a volume weights begin to fall, 0 at its surface, 1 on its axis",
    )
    falloff_outside = number(
        "Falloff Outside",
        0.0,
        least=0.0,
        soft_max=2.0,
        tip="With Containment, how far beyond its surface a volume still has weights, as a share of its radius. With "
        "both falloffs at 0, only the volume that a vertex is deepest in has weights",
        flag="--falloff-outside",
        help="with CONTAINMENT: how far outside a volume weights end, as a share of its radius",
    )
    smooth = switch(
        "Smooth",
        True,
        tip="With Containment, smooth the weights over the surface. When off, they come from the volumes and their "
        "falloffs alone",
        flag="--no-smoothing",
        help="with CONTAINMENT: do not smooth the weights over the surface",
    )
    all_bones = switch(
        "All Bones",
        False,
        tip="Roots, targets and other controls get weights, too. Otherwise only bones that are part of the body do",
        flag="--all-bones",
        help="roots, targets and other controls get weights, too",
    )
    selected_bones = switch(
        "Selected Bones",
        False,
        tip="Only the bones selected in Pose Mode get weights, for example only those of a face",
        flag="--selected-bones",
        help="only the bones that are selected in the file get weights",
    )
    distance_limit = number(
        "Distance Limit",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        tip="No bone moves a vertex that is farther away than this, unless it is the nearest bone. 0 is off",
        flag="--distance-limit",
        metavar="D",
        help="how far a bone reaches, in the scene's units (default: no limit)",
    )
    use_envelopes = switch(
        "Use Envelopes",
        False,
        tip="No bone moves a vertex outside its envelope: its radius and envelope distance",
        flag="--use-envelopes",
    )


class BindPresetSettings(Settings):
    """What a preset stores: all but the armature and its bones."""

    method = BindSettings.method
    max_influences = BindSettings.max_influences
    whole_parts = BindSettings.whole_parts
    as_objects = BindSettings.as_objects
    falloff_inside = BindSettings.falloff_inside
    falloff_outside = BindSettings.falloff_outside
    smooth = BindSettings.smooth
    all_bones = BindSettings.all_bones


PRESETS = Presets(
    "bind", "bind", BindPresetSettings, lambda context: context.scene.skinning_bind, "bpy.context.scene.skinning_bind"
)


class SegmentSettings(ArmatureSettings):
    """The settings of a binding that its segments depend on."""

    method = BindSettings.method
    in_pose = BindSettings.in_pose
    all_bones = BindSettings.all_bones
    selected_bones = BindSettings.selected_bones


class VolumeSettings(ArmatureSettings):
    kind = _VOLUME_KIND

    @classmethod
    def unlike_stored(cls, scene: bpy.types.Scene) -> dict[str, str]:
        return super().unlike_stored(scene) | {"kind": scene.skinning_bind.volume_kind}


def chosen_armature(scene: bpy.types.Scene) -> str:
    """The name of the armature in the panel's field, "" if empty."""
    armature = scene.skinning_bind.armature
    return armature.name if armature is not None and armature.name in scene.objects else ""


def binds_objects(settings: "BindSettings | SkinningBindSettings") -> bool:
    """Whether objects are parented to bones instead of getting weights."""
    return settings.method == "RIGID" and settings.as_objects


class SkinningBindSettings(bpy.types.PropertyGroup):
    """Settings of the panel's buttons, kept with the scene."""

    __annotations__ = BindSettings.group_annotations() | {
        "volume_kind": _VOLUME_KIND.as_property(HARD),
        "armature": PointerProperty(
            name="Armature",
            description="The armature to bind to. If empty, the active or selected armature, or the mesh's own",
            type=bpy.types.Object,
            poll=lambda _, ob: ob.type == "ARMATURE",
        ),
    }


registry = [SkinningBindSettings]
pointers = {"Scene.skinning_bind": SkinningBindSettings}
