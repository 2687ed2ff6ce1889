# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers of an EigenSkin: simple expressions that Blender computes from the bones' rotations.

Values between the bones and the shape keys are elements of array properties on the meshes' Key data-block, one array
for each step: an angle for a hinge joint; for other joints the exponent of the radial function of each observation,
directly from the bone; for pairs of joints the tied basis; parts of sums that are too long for one expression; and the
values of the normals' components, which no shape key shows. Other layouts are slower, or no faster
(benchmarks/_eigenskin_drivers.py): with single properties and other data-blocks Blender wakes its threads for each
driver; quaternions in properties, and a property for each basis function of a hinge, need more drivers.
The quadratic parts of all basis functions of a joint are summed up beforehand: ten terms of a quaternion, three of an
angle.

Blender passes all values in single precision. Angles, exponents and their sums are therefore the right values to store;
if large weights would magnify their rounding, a second element holds the remainder.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.actions import property_path
from ...blender.drivers import new_driver, read_property, read_rotation
from .driver_network import ROUNDING, TOLERANCE, VALUE, Expression, Network, Rotation, Term, Value

if TYPE_CHECKING:
    from ...core.eigenskin import EigenSkin, Support

PREFIX = "skinning_eigenskin_"
# What the drivers compute, as a text, for engines that compute it themselves; no driver reads it.
MODEL = "model"
ANGLES, EXPONENTS, TIED, NORMALS = "angles", "exponents", "tied", "normals"

# Where no slider ends the range.
_CLAMPED = "clamp({{0}},{least:.10g},{most:.10g})"


def plan(model: "EigenSkin") -> Network:
    """All drivers that give the shape keys the values of ``model``, and those of the normals to an array."""
    planner = _Planner(model)
    planner.network.values += [
        planner.value(support, weights) for support in model.supports for weights in support.basis_weights.T
    ]
    normals = [
        planner.value(support, weights, _CLAMPED.format(least=-limit, most=limit))
        for support in model.supports
        if support.normals is not None
        for weights, limit in zip(support.normals.basis_weights.T, support.normals.limits, strict=True)
    ]
    for expression in normals:
        planner.network.keep(NORMALS, expression)
    return planner.network


# A weight, the text that multiplies it, and the values of {0}, {1} in that.
_Weighted = tuple[float, str, tuple[Value, ...]]


class _Planner:
    def __init__(self, model: "EigenSkin"):
        self.model = model
        self.network = Network()
        self._angles: dict[int, Value] = {}
        self._exponents: dict[tuple[int, int], Value] = {}
        self._tied: dict[tuple[int, int], Value] = {}

    def value(self, support: "Support", weights: np.ndarray, form: str = VALUE) -> Expression:
        """The basis functions of a support times ``weights`` (M,), in ``form``."""
        weighted = self.weighted_basis(support, weights)
        terms = [Term(f"{_rounded(weight)}{text}", values) for weight, text, values in weighted]
        largest = sum(abs(weight) for weight, _, _ in weighted)
        return self.network.value_of(terms, max(largest, 1e-30), form=form)

    def weighted_basis(self, support: "Support", weights: np.ndarray) -> list[_Weighted]:
        """The terms of a value, the basis functions of its support times ``weights`` (M,)."""
        if support.centers is None:
            (joint,) = support.joints
            radial, quadratic = self.model.spaces[joint].shares
            return [
                *((weight, *self._radial(joint, center)) for center, weight in enumerate(radial * weights)),
                *self._quadratics(joint, quadratic * weights),
            ]
        first, second = support.joints
        return [
            (weight, "*{0}*{1}", (self._tied_feature(first, one), self._tied_feature(second, other)))
            for weight, (one, other) in zip(weights, support.centers.tolist(), strict=True)
        ]

    def _radial(self, joint: int, center: int) -> tuple[str, tuple[Value, ...]]:
        """The radial part of a basis function."""
        space = self.model.spaces[joint]
        if space.axis is None:
            return "*exp({0})", (self._exponent(joint, center),)
        from ...core.eigenskin import hinge_angles

        angle = float(hinge_angles(space.centers[center : center + 1], space.axis)[0])
        away = f"{{0}}{_exact(-angle)}" if angle else "{0}"
        return f"*exp(pow({away},2)/{-(space.radius**2):.10g})", (self._angle(joint),)

    def _quadratics(self, joint: int, weights: np.ndarray) -> list[_Weighted]:
        """The quadratic parts of a joint's basis functions times ``weights`` (M,), summed up."""
        space = self.model.spaces[joint]
        if space.axis is None:
            channels = [(Rotation(joint=self.model.joint_names[joint], channel=channel),) for channel in "WXYZ"]
            form = np.einsum("m,mi,mj->ij", weights, space.centers, space.centers)
            return [
                (form[i, i], "*{0}*{0}", (channels[i],))
                if i == j
                else (2 * form[i, j], "*{0}*{1}", (channels[i], channels[j]))
                for i in range(4)
                for j in range(i, 4)
            ]
        from ...core.eigenskin import hinge_angles

        # cos²(x / 2) = (1 + cos x) / 2
        angles, angle = hinge_angles(space.centers, space.axis), (self._angle(joint),)
        half = 0.5 * weights
        return [
            (half.sum(), "", ()),
            (half @ np.cos(angles), "*cos({0})", angle),
            (half @ np.sin(angles), "*sin({0})", angle),
        ]

    def _angle(self, joint: int) -> Value:
        if joint not in self._angles:
            from ...core.eigenskin import hinge_middle

            space = self.model.spaces[joint]
            assert space.axis is not None
            along = _product(self.model.joint_names[joint], (0.0, *space.axis))
            text = f"2*atan2((1 if {{0}}>=0 else -1)*({along.text}),abs({{0}}))"
            middle = hinge_middle(space.centers, space.axis)
            if middle:
                # Kept positive for fmod: within half a turn of the middle.
                text = f"fmod({text}{_rounded(3 * np.pi - middle)},2*pi){_rounded(middle - np.pi)}"
            turned, largest = Term(text, along.values), np.pi + abs(middle)
            # The largest of the sums' slopes; that of a radial function is below 1 / radius.
            slope = self._weights[joint] / space.radius
            exactly = largest * ROUNDING * slope > TOLERANCE
            self._angles[joint] = self.network.store(ANGLES, [turned], largest, exactly)
        return self._angles[joint]

    def _exponent(self, joint: int, center: int) -> Value:
        """That of the radial function: −(spread / radius)², where spread² = 4 − 4 (q · p)²."""
        if (joint, center) not in self._exponents:
            space = self.model.spaces[joint]
            product = _product(self.model.joint_names[joint], space.centers[center])
            square = "({0}*{0}+{1}*{1}+{2}*{2}+{3}*{3})"
            factor = 4 / space.radius**2
            text = f"{factor:.10g}*(pow({product.text},2)/{square}-1)"
            # x exp(−x) is at most exp(−1).
            exactly = np.exp(-1) * ROUNDING * self._weights[joint] > TOLERANCE
            self._exponents[joint, center] = self.network.store(
                EXPONENTS, [Term(text, product.values)], factor, exactly
            )
        return self._exponents[joint, center]

    def _tied_feature(self, joint: int, center: int) -> Value:
        """The tied feature of a center, counted after rest; see core.eigenskin.pose_space.PoseSpace."""
        if (joint, center) not in self._tied:
            space = self.model.spaces[joint]
            weights = np.zeros(len(space.centers))
            weights[[0, center + 1]] = -space.features(space.centers[:1])[0, center + 1], 1.0
            radial, quadratic = space.shares
            weighted = [
                *((radial * weights[place], *self._radial(joint, place)) for place in (0, center + 1)),
                *self._quadratics(joint, quadratic * weights),
            ]
            terms = [Term(f"{_rounded(weight)}{text}", values) for weight, text, values in weighted]
            exactly = 2 * ROUNDING * self._pair_weights[joint] > TOLERANCE
            self._tied[joint, center] = self.network.store(TIED, terms, 1.0, exactly)
        return self._tied[joint, center]

    @cached_property
    def _weights(self) -> dict[int, float]:
        """The largest factor on each joint's basis."""
        return self._largest_sums(self.model.supports)

    @cached_property
    def _pair_weights(self) -> dict[int, float]:
        return self._largest_sums([support for support in self.model.supports if support.centers is not None])

    def _largest_sums(self, supports: "Sequence[Support]") -> dict[int, float]:
        found: dict[int, float] = {}
        for support in supports:
            weights = np.hstack([part.basis_weights for part in (support, support.normals) if part is not None])
            largest = float(np.abs(weights).sum(axis=0).max())
            for joint in support.joints:
                found[joint] = max(found.get(joint, 0.0), largest)
        return found


def free_properties(key: bpy.types.Key, network: Network, taken: Sequence[str]) -> dict[str, str]:
    """Unused names for the network's arrays and the ``MODEL`` on the Key data-block, except those in ``taken``."""
    names = {}
    for array in (*network.sizes, MODEL):
        name, number = PREFIX + array, 1
        while name in key or name in taken:
            number += 1
            name = f"{PREFIX}{array}_{number}"
        names[array] = name
    return names


def normals_property(names: Sequence[str]) -> str:
    """The one of the custom properties ``names`` with the values of the normals' components."""
    return next(name for name in names if name.startswith(PREFIX + NORMALS))


def write_drivers(
    key: bpy.types.Key, armature: bpy.types.Object, network: Network, names: dict[str, str], value_paths: Sequence[str]
) -> None:
    """Make the network's properties and drivers on the Key data-block ``key``.

    armature: the object whose bones they read. names: of its arrays, see ``free_properties``. value_paths: of each
    component's shape key's value.
    """
    for array, size in network.sizes.items():
        key[names[array]] = [0.0] * size
    # Array by array: Blender writes whole arrays, and keeps two drivers of an array from running at the same time only
    # if no driver of another array is between them in the list.
    arrays = list(network.sizes)
    for element in sorted(network.elements, key=lambda element: (arrays.index(element.array), element.index)):
        driver = new_driver(key, property_path(names[element.array]), element.index)
        _fill(driver, network.elements[element], key, armature, names)
    for path, expression in zip(value_paths, network.values, strict=True):
        _fill(new_driver(key, path), expression, key, armature, names)


def drivers_of(key: bpy.types.Key) -> Iterator:
    """The driver curves of a data-block."""
    return iter(key.animation_data.drivers if key.animation_data else ())


def _fill(
    driver: bpy.types.Driver,
    expression: Expression,
    key: bpy.types.Key,
    armature: bpy.types.Object,
    names: dict[str, str],
) -> None:
    """Make a new driver compute ``expression``."""
    for name, part in expression.inputs.items():
        if isinstance(part, Rotation):
            read_rotation(driver, name, armature, part.joint, part.channel)
        else:
            read_property(driver, name, key, f"{property_path(names[part.array])}[{part.index}]")
    driver.expression = expression.text


def _product(joint: str, factors: np.ndarray | tuple[float, float, float, float]) -> Term:
    """The sum of a joint's four channels, {0} … {3}, times ``factors``."""
    channels = tuple((Rotation(joint, channel),) for channel in "WXYZ")
    parts = [f"{_exact(factor)}*{{{index}}}" for index, factor in enumerate(factors) if factor]
    return Term("".join(parts).removeprefix("+"), channels)


def _exact(number: float) -> str:
    return f"{float(number):+.17g}"


def _rounded(number: float) -> str:
    """The number with its sign, to ten digits, and as many decimals if it is large: large weights cancel each other."""
    number = float(number)
    return f"{number:+.{10 + max(0, int(np.ceil(np.log10(max(abs(number), 1.0)))))}g}"
