# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning Tools: animations to bones, weights and keyframes.

Nothing here imports bpy before it registers: `core` works without Blender.
"""


def _modules() -> list:
    from . import command_line
    from .blender import character, look_ups
    from .features import FEATURES
    from .ui import boundary, jobs

    parts = ("settings", "operators", "panels")
    modules = [module for part in parts for feature in FEATURES for module in getattr(feature, part)]
    return [look_ups, character, *modules, boundary, jobs, command_line]


def _menu_entries() -> list:
    from .features import FEATURES

    return [entry for feature in FEATURES for entry in feature.menus.items()]


def register() -> None:
    import bpy

    for module in _modules():
        for cls in getattr(module, "registry", ()):
            bpy.utils.register_class(cls)
        if hasattr(module, "register"):
            module.register()
    for menu, draw in _menu_entries():
        getattr(bpy.types, menu).append(draw)


def unregister() -> None:
    import bpy

    for menu, draw in _menu_entries():
        getattr(bpy.types, menu).remove(draw)
    for module in reversed(_modules()):
        if hasattr(module, "unregister"):
            module.unregister()
        for cls in reversed(getattr(module, "registry", ())):
            bpy.utils.unregister_class(cls)
