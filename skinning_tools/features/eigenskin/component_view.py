# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the components over the 3D views, moved by the slider of the panel. While off, no handler draws anything.

Between redraws it keeps no reference to Blender's data, only the session-wide number of the mesh object.
"""

from collections.abc import Callable
from dataclasses import replace

import bpy
import numpy as np
from bpy.props import CollectionProperty, StringProperty

from ...blender.areas import redraw_views
from ...blender.data_blocks import object_again
from ...blender.fit_poses import bare_skin
from ...blender.lengths import length_text
from ...blender.skin_reader import armature_of, bone_matrices
from ...core.errors import BadScene
from ...ui.drawn_view import DrawnView
from ...ui.settings import HARD, Settings, choice, count, number
from ...ui.view_drawing import View, draw_note, draw_scale, draw_surface
from .components import COLOR_ITEMS, Components, Surface, displaced_surface

# The latest surface and its inputs: most redraws only turn the view.
_latest: list = [None, None]


def start(context: bpy.types.Context, found: Components) -> None:
    """Show ``found`` in place of the components shown before."""
    display.start(found)
    settings = context.window_manager.skinning_components
    settings.supports.clear()
    for name in found.supports:
        settings.supports.add().name = name
    if settings.support not in found.supports:
        settings.support = next(iter(found.supports))


def _forget(found: Components) -> None:
    _latest[:] = None, None
    for manager in bpy.data.window_managers:
        manager.skinning_components.supports.clear()


def current_surface(context: bpy.types.Context, found: Components) -> Surface | None:
    """The surface for the panel's settings in the present pose; None where the mesh is hidden.

    Raises BadScene if the mesh or its bones are gone.
    """
    mesh_object = object_again(found.name, found.uid)
    armature = armature_of(mesh_object) if mesh_object is not None else None
    if mesh_object is None or armature is None or len(mesh_object.data.vertices) != len(found.rest):
        raise BadScene(f'The components are no longer shown: "{found.name}" was deleted or edited, or has no armature')
    if context.view_layer.objects.get(mesh_object.name) != mesh_object or not _is_visible(context, mesh_object):
        return None
    depsgraph = context.evaluated_depsgraph_get()
    matrices = bone_matrices(bare_skin(mesh_object, armature, found.bone_names), depsgraph)
    to_world = np.array(mesh_object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    support, component, value, colors = chosen(context.window_manager.skinning_components, found)
    key = (found, support, component, value, colors, matrices.tobytes(), to_world.tobytes())
    if key != _latest[0]:
        _latest[:] = key, displaced_surface(found, matrices, to_world, support, component, value, colors)
    return _latest[1]


def _is_visible(context: bpy.types.Context, mesh_object: bpy.types.Object) -> bool:
    space = context.space_data
    shown_in_view = space is None or space.type != "VIEW_3D" or mesh_object.visible_in_viewport_get(space)
    return shown_in_view and mesh_object.visible_get(view_layer=context.view_layer)


def chosen(settings: "SkinningComponents", found: Components) -> tuple[str, int, float, str]:
    """The support, the component counted from 0, its value and the kind of colors that the settings name."""
    support = settings.support if settings.support in found.supports else next(iter(found.supports))
    component = min(settings.component, len(found.supports[support].components)) - 1
    return support, component, settings.value, settings.colors


def _draw_view(context: bpy.types.Context) -> None:
    _draw(_surface, context)


def _draw_pixels(context: bpy.types.Context) -> None:
    _draw(_legend, context)


def _surface(context: bpy.types.Context, found: Components, surface: Surface) -> None:
    view = View.of(context.region_data)
    draw_surface(surface.positions, surface.normals, found.triangles, surface.colors, view)


def _legend(context: bpy.types.Context, found: Components, surface: Surface) -> None:
    support, component, _, colors = chosen(context.window_manager.skinning_components, found)
    title = f"{support}, component {component + 1}"
    if colors == "AMOUNT":
        draw_scale(context, title, length_text(context.scene, surface.red))
    else:
        draw_note(context, f"{title}: red, green and blue for X, Y and Z")


def _draw(draw: Callable[[bpy.types.Context, Components, Surface], None], context: bpy.types.Context) -> None:
    found = display.subject
    if found is not None and context.space_data.overlay.show_overlays:
        surface = current_surface(context, found)
        if surface is not None:
            draw(context, found, surface)


class ComponentSettings(Settings):
    component = count("Component", 1, least=1, soft_most=10, tip="Number of the component, from the most important on")
    value = number(
        "Value",
        1.0,
        soft_min=-1.0,
        soft_max=1.0,
        subtype="FACTOR",
        tip="How much of the component is added, as by its shape key. 1 is the most that an example needs",
    )
    colors = choice("Color", COLOR_ITEMS, "AMOUNT", tip="What the colors show")


def _redraw(settings: bpy.types.PropertyGroup, context: bpy.types.Context) -> None:
    redraw_views()


class SkinningComponentSupport(bpy.types.PropertyGroup):
    """A support in the list of those that are shown, by its name"""


class SkinningComponents(bpy.types.PropertyGroup):
    """What of the components is shown, on the window manager: neither files nor undo have it"""

    __annotations__ = {
        name: replace(setting, more=setting.more | {"update": _redraw}).as_property(HARD)
        for name, setting in ComponentSettings.declared.items()
    } | {
        "support": StringProperty(
            name="Joint", description="The joint, or pair of joints, whose components are shown", update=_redraw
        ),
        "supports": CollectionProperty(type=SkinningComponentSupport),
    }


display = DrawnView("The components could not be drawn", _forget, POST_VIEW=_draw_view, POST_PIXEL=_draw_pixels)

handlers, unregister = display.handlers, display.stop
registry = [SkinningComponentSupport, SkinningComponents]
pointers = {"WindowManager.skinning_components": SkinningComponents}
