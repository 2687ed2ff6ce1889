# SPDX-License-Identifier: GPL-3.0-or-later
"""Which collections of the scene new objects may go into: those of a linked or overridden character take none."""

import bpy


def collections_beside(context: bpy.types.Context, object: bpy.types.Object) -> list[bpy.types.Collection]:
    """The scene's collections that hold ``object`` and can be changed; the scene's own where it is in none of these."""
    own = context.scene.collection
    within = {own, *own.children_recursive}
    local = [home for home in object.users_collection if home.library is None and home.override_library is None]
    return [home for home in local if home in within] or [own]
