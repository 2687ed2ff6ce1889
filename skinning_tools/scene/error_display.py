# SPDX-License-Identifier: GPL-3.0-or-later
"""The error attribute, and other figures of vertices, as colors that the viewport shows in its solid mode."""

import math

import numpy as np

ERROR_ATTRIBUTE = "skinning_error"
COLOR_ATTRIBUTE = "skinning_error_color"

# All colors that tell something for a while, each with the attributes that go with it. At most one is on a mesh.
WEIGHT_COLORS = "skinning_weight_color"
INFLUENCES_ATTRIBUTE = "skinning_influence_count"
_VIEWS = {COLOR_ATTRIBUTE: (), WEIGHT_COLORS: (INFLUENCES_ATTRIBUTE,)}

# Custom properties of the mesh: the colors that were active before, and the error that is red.
_ACTIVE_BEFORE = "skinning_active_color"
_RED = "skinning_error_red"

# The colors that weight painting has accustomed artists to: blue is none, red is most.
RAMP = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def has_error(object) -> bool:
    return object is not None and object.type == "MESH" and ERROR_ATTRIBUTE in object.data.attributes


def shows_error(object) -> bool:
    return has_error(object) and shows_colors(object)


def shows_colors(object) -> bool:
    return COLOR_ATTRIBUTE in object.data.color_attributes


def error_colors(errors: np.ndarray, largest: float | None = None) -> np.ndarray:
    """(N, 4) float32 colors of ``errors`` (N,); ``largest``, the largest of them where not given, is red."""
    largest = float(errors.max(initial=0.0)) if largest is None else largest
    positions = (errors / largest if largest > 0 else np.zeros(len(errors))) * (len(RAMP) - 1)
    colors = np.ones((len(errors), 4), np.float32)
    for channel in range(3):
        colors[:, channel] = np.interp(positions, np.arange(len(RAMP)), RAMP[:, channel])
    return colors


def add_error_colors(object, name: str = ERROR_ATTRIBUTE, largest: float | None = None) -> float:
    """Show the attribute ``name`` as colors, the active ones of the mesh, and return the error that is red.

    That is ``largest``, or the largest of the attribute (scene units).
    """
    mesh = object.data
    errors = read_errors(mesh, name)
    largest = float(errors.max(initial=0.0)) if largest is None else largest
    add_colors(object, COLOR_ATTRIBUTE, error_colors(errors, largest))
    mesh[_RED] = largest
    return largest


def red_error(object) -> float | None:
    """The error that is red on the object, in scene units; None where it shows none."""
    value = object.data.get(_RED) if object.type == "MESH" and shows_colors(object) else None
    # Anybody may have changed it.
    return value if isinstance(value, float) and math.isfinite(value) else None


def add_colors(object, name: str, values: np.ndarray) -> None:
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


def read_errors(mesh, name: str = ERROR_ATTRIBUTE) -> np.ndarray:
    """(N,) float32."""
    errors = np.empty(len(mesh.vertices), np.float32)
    mesh.attributes[name].data.foreach_get("value", errors)
    return errors


def remove_error_colors(object) -> None:
    """Take the colors away; those that were active before are so again."""
    mesh = object.data
    _remove_views(mesh)
    mesh.pop(_RED, None)
    before = mesh.pop(_ACTIVE_BEFORE, "")
    if isinstance(before, str) and before in mesh.color_attributes:
        mesh.attributes.active_color = mesh.attributes[before]


def _remove_views(mesh, but: str = "") -> None:
    for name, others in _VIEWS.items():
        for each in (name, *others) if name != but else ():
            if each in mesh.attributes:
                mesh.attributes.remove(mesh.attributes[each])


def show_colors(context, shown: bool) -> None:
    """Let the 3D view that the user is in show the colors of meshes, or their materials again."""
    space = context.space_data
    if space is None or space.type != "VIEW_3D":
        return
    if shown:
        space.shading.type = "SOLID"
        space.shading.color_type = "VERTEX"
    elif space.shading.color_type == "VERTEX":
        space.shading.color_type = "MATERIAL"
