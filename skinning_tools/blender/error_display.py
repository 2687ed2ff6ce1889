# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the error attribute, and other values of vertices, as colors in the viewport's solid mode."""

import math
from typing import NamedTuple

import bpy
import numpy as np

from .attributes import read_attribute, remove_attributes, write_attribute
from .lengths import length_text
from .translation import translated

ERROR_ATTRIBUTE = "skinning_error"
COLOR_ATTRIBUTE = "skinning_error_color"

# All temporary colors, each with its attributes. A mesh has at most one of them.
WEIGHT_COLORS = "skinning_weight_color"
INFLUENCES_ATTRIBUTE = "skinning_influence_count"
POSE_TEST_COLORS = "skinning_pose_test_color"
_VIEWS = {COLOR_ATTRIBUTE: (), WEIGHT_COLORS: (INFLUENCES_ATTRIBUTE,), POSE_TEST_COLORS: ()}

# Custom properties of the mesh: the colors that were active before, the error shown in red, and the largest error.
_ACTIVE_BEFORE = "skinning_active_color"
_RED, _LARGEST = "skinning_error_red", "skinning_error_largest"
# A note of the objects hidden to show the colors; see visibility.hide_for.
HIDDEN = "skinning_error_hidden"

# One outlier would make all other vertices blue. Errors below this fraction of the largest count as none.
PERCENT = 99
_NONE = 1e-7

# The colors of weight painting: blue is none, red is most.
RAMP = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


class Scale(NamedTuple):
    """The error shown in red, like all above, and the largest error, in scene units."""

    red: float
    largest: float

    @classmethod
    def of(cls, errors: np.ndarray) -> "Scale":
        """Red are the largest hundredth of the errors (N,) that are not zero.

        At least two are red, so that an outlier does not set the scale: the smaller of the two does. Of only two errors
        the larger does, as either may be the outlier.
        """
        largest = float(errors.max(initial=0.0))
        counted = errors[errors > _NONE * largest]
        return cls(float(np.percentile(counted, PERCENT, method="lower")) if len(counted) > 2 else largest, largest)

    def texts(self, context: bpy.types.Context) -> tuple[str, ...]:
        """The error shown in red, and the largest error if that is more, in the scene's units."""
        red, largest = (length_text(context.scene, length, 3) for length in self)
        if red == largest:
            return (largest,)
        return f"{PERCENT} %: {red}", translated(f"largest: {largest}")

    def meaning(self, context: bpy.types.Context) -> str:
        """The meaning of the colors, for a report."""
        red, largest = (length_text(context.scene, length, 3) for length in self)
        if red == largest:
            return translated(f"blue: no error; red: {largest}")
        return translated(f"blue: no error; red: {red} or more ({PERCENT}th percentile); largest error: {largest}")


def has_error(ob: bpy.types.Object | None) -> bool:
    return ob is not None and ob.type == "MESH" and ERROR_ATTRIBUTE in ob.data.attributes


def shows_error(ob: bpy.types.Object | None) -> bool:
    return has_error(ob) and shows_colors(ob)


def shows_colors(mesh_object: bpy.types.Object) -> bool:
    return COLOR_ATTRIBUTE in mesh_object.data.color_attributes


def error_colors(errors: np.ndarray, red: float) -> np.ndarray:
    """(N, 4) float32 colors of ``errors`` (N,); ``red`` and larger errors are red."""
    positions = (errors / red if red > 0 else np.zeros(len(errors))) * (len(RAMP) - 1)
    colors = np.ones((len(errors), 4), np.float32)
    for channel in range(3):
        colors[:, channel] = np.interp(positions, np.arange(len(RAMP)), RAMP[:, channel])
    return colors


def add_error_colors(
    mesh_object: bpy.types.Object, name: str = ERROR_ATTRIBUTE, scale: Scale | None = None, unit: float = 1.0
) -> Scale:
    """Show the attribute ``name`` as the mesh's active colors, in ``scale`` or its own; returns the scale, in the
    scene's units. unit: the length of 1 of the attribute in these units."""
    mesh = mesh_object.data
    errors = read_errors(mesh, name)
    scale = Scale.of(errors) if scale is None else scale
    add_colors(mesh_object, COLOR_ATTRIBUTE, error_colors(errors, scale.red))
    shown = Scale(scale.red * unit, scale.largest * unit)
    mesh[_RED], mesh[_LARGEST] = shown
    return shown


def shown_scale(mesh_object: bpy.types.Object) -> Scale | None:
    """The scale of the error colors on the object; None if it shows none."""
    if mesh_object.type != "MESH" or not shows_colors(mesh_object):
        return None
    values = [mesh_object.data.get(name) for name in (_RED, _LARGEST)]
    # Users and scripts may have changed them.
    return Scale(*values) if all(isinstance(value, float) and math.isfinite(value) for value in values) else None


def add_colors(mesh_object: bpy.types.Object, name: str, values: np.ndarray) -> None:
    """Make ``values`` (N, 4) the color attribute ``name``, active on the mesh, in place of other ``_VIEWS``."""
    mesh = mesh_object.data
    colors = mesh.color_attributes
    if not any(view in colors for view in _VIEWS) and colors.active_color is not None:
        mesh[_ACTIVE_BEFORE] = colors.active_color.name
    _remove_views(mesh, but=name)
    written = write_attribute(mesh, name, "FLOAT_COLOR", values)
    mesh.attributes.active_color = mesh.attributes[written]
    mesh.update()


def read_errors(mesh: bpy.types.Mesh, name: str = ERROR_ATTRIBUTE) -> np.ndarray:
    """(N,) float32 errors of the vertices."""
    return read_attribute(mesh, name)


def remove_error_colors(mesh_object: bpy.types.Object) -> None:
    """Remove the colors, and make the previous ones active again."""
    mesh = mesh_object.data
    _remove_views(mesh)
    for name in (_RED, _LARGEST, HIDDEN):
        mesh.pop(name, None)
    before = mesh.pop(_ACTIVE_BEFORE, "")
    if isinstance(before, str) and before in mesh.color_attributes:
        mesh.attributes.active_color = mesh.attributes[before]


def _remove_views(mesh: bpy.types.Mesh, but: str = "") -> None:
    for name, others in _VIEWS.items():
        if name != but:
            remove_attributes(mesh, (name, *others))


def show_colors(context: bpy.types.Context, shown: bool) -> None:
    """Let the user's 3D view show the colors of meshes, or their materials again."""
    space = context.space_data
    if space is None or space.type != "VIEW_3D":
        return
    if shown:
        space.shading.type = "SOLID"
        space.shading.color_type = "VERTEX"
    elif space.shading.color_type == "VERTEX":
        space.shading.color_type = "MATERIAL"
