# SPDX-License-Identifier: GPL-3.0-or-later
"""A layout that draws nothing and checks everything: panels without a window, in any state of the file."""

import math
from types import SimpleNamespace

import bpy

import skinning_tools
from skinning_tools.features import FEATURES
from skinning_tools.ui import groups

WIDTH = 300


class PaperLayout:
    """Accepts the calls of a UILayout, and raises if Blender would have nothing to draw."""

    def __init__(self):
        self.enabled = self.active = True
        self.use_property_split = self.use_property_decorate = False
        self.scale_y = self.scale_x = 1.0
        self.alert = False
        self.alignment, self.emboss, self.operator_context = "EXPAND", "NORMAL", "INVOKE_DEFAULT"

    def _same(self, *_, **__):
        return self

    row = column = box = split = grid_flow = column_flow = _same

    def separator(self, *_, **__) -> None:
        pass

    menu = popover = context_pointer_set = template_icon = separator_spacer = separator

    def panel(self, idname, default_closed=False):
        return self, self

    def label(self, text="", icon="NONE", **_) -> None:
        assert isinstance(text, str), text
        assert not {"nan", "inf"} & set(text.lower().split()), text
        assert icon in _icons(), icon

    def prop(self, owner, name, text="", **_) -> None:
        assert owner is not None, name
        getattr(owner, name)

    def prop_search(self, owner, name, place, collection, **_) -> None:
        self.prop(owner, name)
        getattr(place, collection)

    def progress(self, factor=0.0, text="", **_) -> None:
        assert math.isfinite(factor), text
        self.label(text)

    def operator(self, idname, text="", icon="NONE", **_):
        assert icon in _icons(), icon
        module, name = idname.split(".")
        return _Chosen(getattr(getattr(bpy.ops, module), name).get_rna_type())

    def operator_menu_enum(self, idname, name, text="", icon="NONE", **_):
        assert name in self.operator(idname, text, icon)._rna.properties, name

    def template_list(self, kind, _id, owner, items, active_owner, active, **_) -> None:
        listing = _stand_in(getattr(bpy.types, kind))
        listing.filter_name, listing.layout_type, listing.bitflag_filter_item = "", "DEFAULT", 1
        every = getattr(owner, items)
        shown = listing.filter_items(bpy.context, owner, items)[0] if hasattr(listing, "filter_items") else ()
        for index, item in enumerate(every):
            if not shown or shown[index]:
                listing.draw_item(PaperContext(), PaperLayout(), owner, item, 0, active_owner, active)
        getattr(active_owner, active)


class _Chosen:
    """The properties of an operator on a button."""

    def __init__(self, rna):
        super().__setattr__("_rna", rna)

    def __setattr__(self, name, value):
        assert name in self._rna.properties, name


class PaperContext:
    """The context with a simulated sidebar."""

    region = SimpleNamespace(width=WIDTH)
    # Blender has none without a window.
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
    space_data = SimpleNamespace(
        shading=SimpleNamespace(type="SOLID", color_type="MATERIAL"),
        overlay=SimpleNamespace(weight_paint_mode_opacity=1.0),
    )

    def __getattr__(self, name):
        return getattr(bpy.context, name)


def draw_all() -> list[str]:
    """Draw every panel of the sidebar whose poll allows it; returns their names. Raises what the panels raise."""
    shown = [panel for panel in sidebar_panels() if shows_itself(panel)]
    for panel in shown:
        draw(panel)
    return [panel.__name__ for panel in shown]


def sidebar_panels() -> list[type]:
    every = (
        each
        for feature in FEATURES
        for module in feature.panels
        for each in module.registry
        if issubclass(each, bpy.types.Panel)
    )
    return [*groups.registry, *(panel for panel in every if panel.bl_region_type == "UI")]


def shows_itself(panel) -> bool:
    drawing = _stand_in(panel)
    return not hasattr(drawing, "poll") or drawing.poll(PaperContext())


def draw(panel) -> None:
    drawing, context = _stand_in(panel), PaperContext()
    drawing.layout = PaperLayout()
    for part in ("draw_header", "draw"):
        if hasattr(drawing, part):
            getattr(drawing, part)(context)


def _stand_in(cls):
    """An instance of a class with all that ours has of its own: Blender makes those of its types itself."""
    package = skinning_tools.__name__
    own = [kind for kind in cls.__mro__ if kind.__module__.startswith(package)]
    members = {name: value for kind in own[::-1] for name, value in vars(kind).items() if not name.startswith("__")}
    return type(cls.__name__, (), members)()


def _icons():
    return bpy.types.UILayout.bl_rna.functions["prop"].parameters["icon"].enum_items.keys()
