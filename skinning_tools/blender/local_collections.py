# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene's collections that can hold new objects: those of a linked or overridden character cannot."""

import bpy


def collections_beside(context: bpy.types.Context, ob: bpy.types.Object) -> list[bpy.types.Collection]:
    """The scene's collections that hold ``ob`` and can be changed; if there are none, the scene's own."""
    own = context.scene.collection
    within = {own, *own.children_recursive}
    local = [home for home in ob.users_collection if home.library is None and home.override_library is None]
    return [home for home in local if home in within] or [own]
