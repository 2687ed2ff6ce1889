# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning Tools: animations to bones, weights and keyframes.

Nothing here imports bpy before it registers: `core` works without Blender.
"""


def _modules() -> list:
    from . import command_line, operators, panels, preview
    from .scene import look_ups
    from .scene.convert import settings

    return [look_ups, settings, *preview.modules, *operators.modules, *panels.modules, command_line]


def register() -> None:
    import bpy

    for module in _modules():
        for cls in getattr(module, "registry", ()):
            bpy.utils.register_class(cls)
        if hasattr(module, "register"):
            module.register()


def unregister() -> None:
    import bpy

    for module in reversed(_modules()):
        if hasattr(module, "unregister"):
            module.unregister()
        for cls in reversed(getattr(module, "registry", ())):
            bpy.utils.unregister_class(cls)
