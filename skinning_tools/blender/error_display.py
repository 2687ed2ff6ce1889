# SPDX-License-Identifier: GPL-3.0-or-later
"""The error attribute, and other figures of vertices, as colors that the viewport shows in its solid mode."""

import math
from typing import NamedTuple

import bpy
import numpy as np
from bpy.app.translations import pgettext_rpt as rpt_

from .attributes import remove_attributes
from .lengths import length_text

ERROR_ATTRIBUTE = "skinning_error"
COLOR_ATTRIBUTE = "skinning_error_color"

# All colors that tell something for a while, each with the attributes that go with it. At most one is on a mesh.
WEIGHT_COLORS = "skinning_weight_color"
INFLUENCES_ATTRIBUTE = "skinning_influence_count"
_VIEWS = {COLOR_ATTRIBUTE: (), WEIGHT_COLORS: (INFLUENCES_ATTRIBUTE,)}

# Custom properties of the mesh: the colors that were active before, the error that is red, and the largest.
_ACTIVE_BEFORE = "skinning_active_color"
_RED, _LARGEST = "skinning_error_red", "skinning_error_largest"
# A note of the objects that were hidden for the colors' sake; see visibility.hide_for.
HIDDEN = "skinning_error_hidden"

# One vertex that is far off would make all others blue. What is this part of the largest error counts as none.
PERCENT = 99
_NONE = 1e-7

# The colors that weight painting has accustomed artists to: blue is none, red is most.
RAMP = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


class Scale(NamedTuple):
    """The errors, in scene units, that are red, with all above, and that are the largest."""

    red: float
    largest: float

    @classmethod
    def of(cls, errors: np.ndarray) -> "Scale":
        """Red are the largest one in a hundred of the errors (N,), those that are none not counted.

        At least two are red, so that one that is far off does not set the scale: the smaller one does. Of only two
        the larger one does, as nothing tells that it is the odd one.
        """
        largest = float(errors.max(initial=0.0))
        counted = errors[errors > _NONE * largest]
        return cls(float(np.percentile(counted, PERCENT, method="lower")) if len(counted) > 2 else largest, largest)

    def texts(self, context: bpy.types.Context) -> tuple[str, ...]:
        """What is red, and the largest where that is more, in the scene's units."""
        red, largest = (length_text(context.scene, length, 3) for length in self)
        if red == largest:
            return (largest,)
        return f"{PERCENT} %: {red}", rpt_("largest: {distance}").format(distance=largest)

    def meaning(self, context: bpy.types.Context) -> str:
        """What the colors mean, for a report."""
        red, largest = (length_text(context.scene, length, 3) for length in self)
        if red == largest:
            return rpt_("blue: no error; red: {distance}").format(distance=largest)
        text = rpt_("blue: no error; red: {red} or more ({percent}th percentile); largest error: {largest}")
        return text.format(red=red, percent=PERCENT, largest=largest)


def has_error(object: bpy.types.Object | None) -> bool:
    return object is not None and object.type == "MESH" and ERROR_ATTRIBUTE in object.data.attributes


def shows_error(object: bpy.types.Object | None) -> bool:
    return has_error(object) and shows_colors(object)


def shows_colors(object: bpy.types.Object) -> bool:
    return COLOR_ATTRIBUTE in object.data.color_attributes


def error_colors(errors: np.ndarray, red: float) -> np.ndarray:
    """(N, 4) float32 colors of ``errors`` (N,); ``red`` is red, and so is what is above."""
    positions = (errors / red if red > 0 else np.zeros(len(errors))) * (len(RAMP) - 1)
    colors = np.ones((len(errors), 4), np.float32)
    for channel in range(3):
        colors[:, channel] = np.interp(positions, np.arange(len(RAMP)), RAMP[:, channel])
    return colors


def add_error_colors(
    object: bpy.types.Object, name: str = ERROR_ATTRIBUTE, scale: Scale | None = None, unit: float = 1.0
) -> Scale:
    """Show the attribute ``name`` as colors, the active ones of the mesh, in ``scale`` or its own; returns that, in
    the scene's units. unit: what one of the attribute is in these."""
    mesh = object.data
    errors = read_errors(mesh, name)
    scale = Scale.of(errors) if scale is None else scale
    add_colors(object, COLOR_ATTRIBUTE, error_colors(errors, scale.red))
    shown = Scale(scale.red * unit, scale.largest * unit)
    mesh[_RED], mesh[_LARGEST] = shown
    return shown


def shown_scale(object: bpy.types.Object) -> Scale | None:
    """The scale of the error colors on the object; None where it shows none."""
    if object.type != "MESH" or not shows_colors(object):
        return None
    values = [object.data.get(name) for name in (_RED, _LARGEST)]
    # Anybody may have changed them.
    return Scale(*values) if all(isinstance(value, float) and math.isfinite(value) for value in values) else None


def add_colors(object: bpy.types.Object, name: str, values: np.ndarray) -> None:
    """Make ``values`` (N, 4) the color attribute ``name``, the active one of the mesh, in place of other ``_VIEWS``."""
    mesh = object.data
    colors = mesh.color_attributes
    if not any(view in colors for view in _VIEWS) and colors.active_color is not None:
        mesh[_ACTIVE_BEFORE] = colors.active_color.name
    _remove_views(mesh, but=name)
    attribute = colors.get(name) or colors.new(name, "FLOAT_COLOR", "POINT")
    attribute.data.foreach_set("color", np.ascontiguousarray(values, np.float32).ravel())
    mesh.attributes.active_color = attribute
    mesh.update()


def read_errors(mesh: bpy.types.Mesh, name: str = ERROR_ATTRIBUTE) -> np.ndarray:
    """(N,) float32."""
    errors = np.empty(len(mesh.vertices), np.float32)
    mesh.attributes[name].data.foreach_get("value", errors)
    return errors


def remove_error_colors(object: bpy.types.Object) -> None:
    """Take the colors away; those that were active before are so again."""
    mesh = object.data
    _remove_views(mesh)
    for name in (_RED, _LARGEST, HIDDEN):
        mesh.pop(name, None)
    before = mesh.pop(_ACTIVE_BEFORE, "")
    if isinstance(before, str) and before in mesh.color_attributes:
        mesh.attributes.active_color = mesh.attributes[before]


def _remove_views(mesh, but: str = "") -> None:
    for name, others in _VIEWS.items():
        if name != but:
            remove_attributes(mesh, (name, *others))


def show_colors(context: bpy.types.Context, shown: bool) -> None:
    """Let the 3D view that the user is in show the colors of meshes, or their materials again."""
    space = context.space_data
    if space is None or space.type != "VIEW_3D":
        return
    if shown:
        space.shading.type = "SOLID"
        space.shading.color_type = "VERTEX"
    elif space.shading.color_type == "VERTEX":
        space.shading.color_type = "MATERIAL"
