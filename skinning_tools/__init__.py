# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning Tools: animations to bones, weights and keyframes.

This module imports bpy only on registration: `core` works without Blender.
"""

from collections.abc import Iterable
from types import ModuleType

_PARTS = ("settings", "operators", "panels")


def _modules() -> list:
    from . import command_line
    from .blender import character, look_ups, translation
    from .features import FEATURES
    from .ui import boundary, groups, jobs, menus

    parts = {part: [module for feature in FEATURES for module in getattr(feature, part)] for part in _PARTS}
    return [
        *(look_ups, character, *parts["settings"], *parts["operators"], groups, *parts["panels"]),
        *(boundary, jobs, menus, command_line, translation),
    ]


def _pointers(module: ModuleType) -> list[tuple]:
    """Owner, name and group of each property group that a module adds to Blender's data-blocks."""
    import bpy

    found = [(*path.split("."), group) for path, group in getattr(module, "pointers", {}).items()]
    return [(getattr(bpy.types, owner), name, group) for owner, name, group in found]


def _menu_entries() -> list:
    from .features import FEATURES
    from .ui.feature import menu_entries

    return [(menu, menu_entries(operators)) for feature in FEATURES for menu, operators in feature.menus.items()]


def __getattr__(name: str) -> list[type]:
    """``glTF2ExportUserExtensions``, which Blender's glTF exporter looks for in every enabled add-on."""
    if name != "glTF2ExportUserExtensions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .features import FEATURES

    return [extension for feature in FEATURES for extension in feature.gltf_extensions]


def _manual_map() -> tuple[str, Iterable[tuple[str, str]]]:
    """What Blender's *Online Manual* opens, by the context menu of a button or setting."""
    from .features import FEATURES
    from .ui.manual import links

    return "", links(FEATURES)


def register() -> None:
    import bpy

    from .blender.app_handlers import add_handlers

    for module in _modules():
        for cls in getattr(module, "registry", ()):
            bpy.utils.register_class(cls)
        for owner, name, group in _pointers(module):
            setattr(owner, name, bpy.props.PointerProperty(type=group))
        add_handlers(getattr(module, "handlers", {}))
        if hasattr(module, "register"):
            module.register()
    for menu, draw in _menu_entries():
        getattr(bpy.types, menu).append(draw)
    bpy.utils.register_manual_map(_manual_map)


def unregister() -> None:
    import bpy

    from .blender.app_handlers import remove_handlers
    from .core.threads import end_threads

    bpy.utils.unregister_manual_map(_manual_map)
    for menu, draw in _menu_entries():
        getattr(bpy.types, menu).remove(draw)
    for module in reversed(_modules()):
        remove_handlers(getattr(module, "handlers", {}))
        if hasattr(module, "unregister"):
            module.unregister()
        for owner, name, _ in _pointers(module):
            delattr(owner, name)
        for cls in reversed(getattr(module, "registry", ())):
            bpy.utils.unregister_class(cls)
    end_threads()
