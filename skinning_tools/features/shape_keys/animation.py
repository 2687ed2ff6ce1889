# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands the animation of shape keys to the sliders: curves and drivers are copied, NLA strips are followed."""

from collections.abc import Sequence
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
from ...blender.wording import listed
from .body import Body
from .parts import FaceParts, Part
from .reading import Slider
from .rig_writer import FaceRig

# The slider of each shape key, by the data-block of the keys and the path of its value.
Names = dict[tuple[bpy.types.Key, str], str]

_GROUP = "Sliders"


@dataclass(frozen=True)
class HandedOver:
    """Numbers of sliders: with a copied curve, with a copied driver, of these with one that needs scripts as it did
    before, and with a driver that reads the shape key. differing: shape keys that another mesh of the face animates in
    another way."""

    animated: int = 0
    driven: int = 0
    scripted: int = 0
    following: int = 0
    differing: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        return [
            Figure("Sliders animated", self.animated, if_any=True),
            Figure("Sliders driven", self.driven, if_any=True),
            Figure("Scripted drivers", self.scripted, if_any=True),
            Figure("Sliders following the NLA", self.following, if_any=True),
        ]

    def notes(self) -> list[str]:
        if not self.differing:
            return []
        return [
            "Shape keys of one name are animated in different ways, of which the slider has that of the first mesh: "
            f"{listed(self.differing)}"
        ]


def hand_over(source: FaceParts, rig: FaceRig, made: list) -> HandedOver:
    """Animate the sliders of ``rig`` as the shape keys of ``source`` are; adds a new action to ``made``.

    Of meshes with a key of the same name, the first counts. A slider reads the key itself where NLA strips animate
    that, and without animation has the key's present value. Values stay in the range of the key, to which Blender
    clamps those of a shape key.
    """
    properties = {slider.name: name for slider, name in zip(source.sliders, rig.slider_names, strict=True)}
    names = {
        (part.mesh_object.data.shape_keys, value_path(slider.name)): properties[slider.name]
        for part in source.parts
        for slider in part.keys.sliders
    }
    owners, differing = _owners(source.parts, names)
    handed = [
        _hand_over(part, [slider for owner, slider in owners if owner is part], names, rig, made)
        for part in source.parts
    ]
    return HandedOver(
        sum(each.animated for each in handed),
        sum(each.driven for each in handed),
        sum(each.scripted for each in handed),
        sum(each.following for each in handed),
        differing,
    )


def _owners(parts: Sequence[Part], names: Names) -> tuple[list[tuple[Part, Slider]], tuple[str, ...]]:
    """For each slider, the first part whose key gives its animation; and the keys that a later part animates otherwise.

    A key with a driver that reads the key of the same name in another mesh does as that one does.
    """
    owners: dict[str, tuple[Part, Slider, tuple]] = {}
    differing: dict[str, None] = {}
    for part in parts:
        keys = part.mesh_object.data.shape_keys
        animations = _animations(keys)
        for slider in part.keys.sliders:
            path = value_path(slider.name)
            own = animations.get(path, ())
            if any(names.get(each) == names[keys, path] for each in own if isinstance(each, tuple)):
                continue
            if owners.setdefault(slider.name, (part, slider, own))[2] != own:
                differing[slider.name] = None
    return [(part, slider) for part, slider, _ in owners.values()], tuple(differing)


def _animations(keys: bpy.types.Key) -> dict[str, tuple]:
    """What animates each path of shape keys, in a form that can be compared. The tuples in those of drivers are what
    they read: data-block and path."""
    animation = keys.animation_data
    if animation is None:
        return {}
    found: dict[str, tuple] = {}
    for curve in (*strip_curves(animation), *existing_curves(keys)):
        points = (round(value, 5) for key in curve.keyframe_points for value in (*key.co, *key.handle_right))
        found[curve.data_path] = tuple(points)
    for curve in animation.drivers:
        targets = (target for variable in curve.driver.variables for target in variable.targets)
        read = ((target.id, target.data_path) for target in targets)
        found[curve.data_path] = curve.driver.type, curve.driver.expression, *read
    return found


def _hand_over(part: Part, own: list[Slider], names: Names, rig: FaceRig, made: list) -> HandedOver:
    """The animation of the keys of one mesh that are the sliders ``own``."""
    keys = part.mesh_object.data.shape_keys
    animation = keys.animation_data
    sliders = {value_path(slider.name): slider for slider in own}
    for path, slider in sliders.items():
        rig.armature[names[keys, path]] = keys.key_blocks[slider.name].value
    if animation is None:
        return HandedOver()
    drivers = [curve for curve in animation.drivers if curve.data_path in sliders and not curve.mute]
    done = {curve.data_path for curve in drivers}
    strips = {curve.data_path for curve in strip_curves(animation)} & sliders.keys() - done
    done |= strips
    curves = [curve for curve in existing_curves(keys) if curve.data_path in sliders.keys() - done and not curve.mute]
    if curves:
        container = _container(rig.armature, made)
        for curve in curves:
            slider = sliders[curve.data_path]
            copy = copy_curve(container, curve, property_path(names[keys, curve.data_path]), _GROUP)
            if len(copy.modifiers) or _leaves(copy, slider):
                _clamp(copy, slider)
    for curve in drivers:
        copy = rig.armature.animation_data_create().drivers.from_existing(src_driver=curve)
        copy.data_path = property_path(names[keys, curve.data_path])
        _retarget(copy.driver, names, rig.armature, part.body)
        _clamp(copy, sliders[curve.data_path])
    for path in sorted(strips):
        follow_property(rig.armature, property_path(names[keys, path]), keys, path)
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


def _retarget(driver: bpy.types.Driver, names: Names, armature: bpy.types.Object, body: Body | None) -> None:
    """Let a copied driver read sliders in place of keys, and the body's copy in place of the body."""
    for variable in driver.variables:
        for target in variable.targets:
            name = names.get((target.id, target.data_path))
            if name is not None:
                target.id_type, target.id, target.data_path = "OBJECT", armature, property_path(name)
            elif body is not None and target.id == body.skin.armature:
                target.id = armature
            elif body is not None and target.id == body.skin.armature.data:
                target.id = armature.data
