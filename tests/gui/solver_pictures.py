# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the pictures of conversions and partial solves in docs/images. Started by run.py
--docs-pictures."""

import bpy
from driver import (
    after,
    can_take_pictures,
    enable,
    idle,
    in_window,
    look_from_front,
    new_file,
    open_tab,
    picture,
    press_button,
    settled,
    switch_off,
    views,
)

from demos import creature
from skinning_tools.features.convert.panel import SKINNING_PT_conversion_result, SKINNING_PT_convert_animation
from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender.partial_scenes import select

BONES = 24


def arranged():
    """Generator: the creature beside the sidebar, whose tab is open."""
    look_from_front()
    yield after(0.5)
    yield from open_tab("Skinning")
    space = views()[0].spaces.active
    space.show_region_toolbar = False
    space.region_3d.view_location.x += 1.0
    space.region_3d.view_distance *= 1.15
    space.overlay.show_floor = space.overlay.show_cursor = False
    yield after(0.5)


def conversion():
    """Generator: the animation of a body to a skeleton."""
    yield from new_file()
    with in_window():
        body = creature.build(soft=False).body
        body.modifiers["Armature"].object.hide_set(True)
        select(body)
    settings = bpy.context.scene.skinning_conversion
    settings.bone_count, settings.bone_kind, settings.joint_hierarchy = BONES, "RIGID", True
    yield from arranged()
    yield from press_button("skinning.convert_animation")
    while idle():
        yield after(0)
    yield idle
    with in_window():
        body.hide_set(True)
        select(bpy.data.objects["Creature_rig"], bpy.data.objects["Creature_skinned"])
        bpy.context.scene.frame_set(6)
    yield after(1.0)
    picture("conversion", views()[0])
    switch_off()


def partial_solve():
    """Generator: weights for a copy of the body, to follow it."""
    enable(SKINNING_PT_partial_solves)
    yield from new_file()
    with in_window():
        made = creature.build()
        copy = made.body.copy()
        copy.data = made.body.data.copy()
        copy.shape_key_clear()
        copy.name, made.body.name = "Body", "Cache"
        bpy.context.scene.collection.objects.link(copy)
        creature.write_weights(copy, *creature.nearest_bones(copy))
        # In the same place, of which only one can be seen.
        made.body.display_type, made.rig.show_in_front = "BOUNDS", True
        select(made.body, copy)
    yield from arranged()
    yield from press_button("skinning.solve_weights")
    while idle():
        yield after(0)
    yield idle
    with in_window():
        bpy.context.scene.frame_set(35)
    # Panels slide to their new places.
    yield after(2.0)
    yield from settled()
    picture("partial_solves", views()[0])


def tests():
    assert can_take_pictures(), "Blender's process cannot take pictures: ImageMagick's import or a display is missing"
    enable(SKINNING_PT_convert_animation, SKINNING_PT_conversion_result)
    yield from conversion()
    yield from partial_solve()
