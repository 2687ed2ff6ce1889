# SPDX-License-Identifier: GPL-3.0-or-later
"""What a panel draws, without a window: a recorder stands in for Blender's layout."""

from types import FunctionType, MethodType, SimpleNamespace

import bpy


class Recorder:
    """A layout that notes texts, names of properties, and operators with their text and whether they can be pressed."""

    def __init__(self, parent=None):
        self._parent = parent
        self.enabled = True
        self.texts = parent.texts if parent else []
        self.buttons = parent.buttons if parent else {}
        self.properties = parent.properties if parent else []
        self.pointers = dict(parent.pointers) if parent else {}

    def __getattr__(self, name):
        if name in ("row", "column", "grid_flow", "box", "split", "menu_pie"):
            return lambda **_: Recorder(self)
        if name == "panel":
            return lambda *_, **__: (Recorder(self), Recorder(self))
        return lambda *_, **__: None

    def label(self, text="", **_):
        self.texts.append(text)

    def prop(self, owner, name, **_):
        self.properties.append(name)

    def context_pointer_set(self, name, value):
        self.pointers[name] = value

    def operator(self, name, text="", **_):
        properties = SimpleNamespace(name=name, layout=self)
        self.buttons[text or name] = properties
        return properties

    @property
    def active(self) -> bool:
        return self.enabled and (self._parent is None or self._parent.active)

    @active.setter
    def active(self, _) -> None:
        """An inactive layout is only drawn paler: its buttons can still be pressed."""


def drawn(panel) -> Recorder:
    layout = Recorder()
    context = SimpleNamespace(
        scene=bpy.context.scene,
        view_layer=bpy.context.view_layer,
        active_object=bpy.context.active_object,
        mode=bpy.context.mode,
        window_manager=bpy.context.window_manager,
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        region=SimpleNamespace(width=2000),
    )
    panel.draw(_Drawing(panel, layout), context)
    return layout


class _Drawing:
    """Stands in for an instance of a panel, which only Blender can make."""

    def __init__(self, panel, layout):
        self._panel, self.layout = panel, layout

    def __getattr__(self, name):
        found = getattr(self._panel, name)
        return MethodType(found, self) if isinstance(found, FunctionType) else found


def pressable(layout) -> set[str]:
    return {text for text, button in layout.buttons.items() if button.layout.active}
