# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands the animation of shape keys to the sliders: curves and drivers are copied, NLA strips are followed."""

from dataclasses import dataclass

import bpy

from ...blender.actions import (
    copy_action,
    copy_curve,
    curve_container,
    existing_curves,
    new_action,
    property_path,
    strip_curves,
    value_path,
)
from ...blender.drivers import follow_property
from ...blender.figures import Figure
from .body import Body
from .reading import ShapeKeys, Slider
from .rig_writer import FaceRig

_GROUP = "Sliders"


@dataclass(frozen=True)
class HandedOver:
    """Numbers of sliders: with a copied curve, with a copied driver, of these with one that needs scripts as it did
    before, and with a driver that reads the shape key."""

    animated: int = 0
    driven: int = 0
    scripted: int = 0
    following: int = 0

    def figures(self) -> list[Figure]:
        return [
            Figure("Sliders animated", self.animated, if_any=True),
            Figure("Sliders driven", self.driven, if_any=True),
            Figure("Scripted drivers", self.scripted, if_any=True),
            Figure("Sliders following the NLA", self.following, if_any=True),
        ]


def hand_over(source: ShapeKeys, rig: FaceRig, body: Body | None, made: list) -> HandedOver:
    """Animate the sliders of ``rig`` as the shape keys of ``source`` are; adds a new action to ``made``.

    A slider reads the key itself where NLA strips animate that, and without animation has the key's present value.
    Values stay in the range of the key, to which Blender clamps those of a shape key.
    """
    keys = source.mesh_object.data.shape_keys
    animation = keys.animation_data
    for slider, name in zip(source.sliders, rig.slider_names, strict=True):
        rig.armature[name] = keys.key_blocks[slider.name].value
    if animation is None:
        return HandedOver()
    sliders = {
        value_path(slider.name): (slider, name) for slider, name in zip(source.sliders, rig.slider_names, strict=True)
    }
    drivers = [curve for curve in animation.drivers if curve.data_path in sliders and not curve.mute]
    done = {curve.data_path for curve in drivers}
    strips = {curve.data_path for curve in strip_curves(animation)} & sliders.keys() - done
    done |= strips
    curves = [curve for curve in existing_curves(keys) if curve.data_path in sliders.keys() - done and not curve.mute]
    if curves:
        container = _container(rig.armature, made)
        for curve in curves:
            slider, name = sliders[curve.data_path]
            copy = copy_curve(container, curve, property_path(name), _GROUP)
            if len(copy.modifiers) or _leaves(copy, slider):
                _clamp(copy, slider)
    for curve in drivers:
        slider, name = sliders[curve.data_path]
        copy = rig.armature.animation_data_create().drivers.from_existing(src_driver=curve)
        copy.data_path = property_path(name)
        _retarget(copy.driver, keys, sliders, rig.armature, body)
        _clamp(copy, slider)
    for path in sorted(strips):
        follow_property(rig.armature, property_path(sliders[path][1]), keys, path)
    scripted = sum(each.driver.type == "SCRIPTED" and not each.driver.is_simple_expression for each in drivers)
    return HandedOver(len(curves), len(drivers), scripted, len(strips))


def _container(armature: bpy.types.Object, made: list) -> "bpy.types.Action | bpy.types.ActionChannelbag":
    """That of the curves of an action of the armature's own. A copied body plays the action of the original, which
    stays as it is."""
    action = armature.animation_data.action if armature.animation_data is not None else None
    if action is None or not existing_curves(armature):
        made.append(new_action(armature, armature.name))
    elif action.users > 1 or action.library is not None:
        made.append(copy_action(armature, armature, armature.name, lambda path: True))
    return curve_container(armature)


def _leaves(curve: bpy.types.FCurve, slider: Slider) -> bool:
    """Whether a curve may leave the slider's range: Bézier curves stay between their keys and handles."""
    heights = [point[1] for key in curve.keyframe_points for point in (key.co, key.handle_left, key.handle_right)]
    inside = all(slider.least <= height <= slider.most for height in heights)
    overshoot = any(key.interpolation in {"BACK", "ELASTIC"} for key in curve.keyframe_points)
    return not inside or overshoot or curve.extrapolation == "LINEAR"


def _clamp(curve: bpy.types.FCurve, slider: Slider) -> None:
    limits = curve.modifiers.new("LIMITS")
    limits.use_min_y = limits.use_max_y = True
    limits.min_y, limits.max_y = slider.least, slider.most


def _retarget(
    driver: bpy.types.Driver, keys: bpy.types.Key, sliders: dict, armature: bpy.types.Object, body: Body | None
) -> None:
    """Let a copied driver read sliders in place of keys, and the body's copy in place of the body."""
    for variable in driver.variables:
        for target in variable.targets:
            if target.id == keys and target.data_path in sliders:
                path = property_path(sliders[target.data_path][1])
                target.id_type, target.id, target.data_path = "OBJECT", armature, path
            elif body is not None and target.id == body.skin.armature:
                target.id = armature
            elif body is not None and target.id == body.skin.armature.data:
                target.id = armature.data
