# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the components of a shoulder are shown in color, moved by the slider, and hidden, before
anything is built. Started by run.py."""

import bpy
from driver import (
    after,
    begin_with,
    click,
    enable,
    event,
    find_button,
    idle,
    in_window,
    look,
    looks_like,
    looks_unlike,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    region,
    settled,
    views,
)
from mathutils import Vector

from skinning_tools.features.eigenskin import component_view
from skinning_tools.features.eigenskin.component_panel import SKINNING_PT_eigenskin_components
from tests.blender import eigenskin_scenes, joint_helper_scenes
from tests.blender.snapshots import snapshot
from tests.conftest import SHARED

JOINT = "upperarm01.L"
TURNS = [(axis, degrees) for axis in "XZ" for degrees in (-50, 50)]


def human_with_examples() -> None:
    """The human rig with examples of its left shoulder, by dual quaternions, in Pose Mode at rest."""
    body, rig = joint_helper_scenes.human(SHARED / "human_rig.npz")
    body.name, rig.name = "Body", "Rig"
    body.data.shade_smooth()
    for axis, degrees in TURNS:
        eigenskin_scenes.add_example(body, rig, [(JOINT, axis, degrees)])
    eigenskin_scenes.pose(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    rig.hide_set(False)


def body():
    return bpy.data.objects["Body"]


def rig():
    return bpy.data.objects["Rig"]


def look_at_shoulder() -> None:
    view = views()[0].spaces.active.region_3d
    view.view_rotation = Vector((0.5, -1.0, 0.4)).to_track_quat("Z", "Y")
    view.view_location = rig().matrix_world @ rig().pose.bones[JOINT].head
    view.view_distance, view.view_perspective = 0.5 * max(body().dimensions), "ORTHO"


def tests():
    enable(SKINNING_PT_eigenskin_components)
    yield from begin_with(human_with_examples)
    yield from open_tab("Skinning")
    look_at_shoulder()
    before = snapshot(body())
    plain = yield from settled(views()[0], "WINDOW")
    picture("components_1_plain")

    yield from press_button("show_eigenskin_components(", across=0.3)
    yield lambda: idle() and component_view.display.subject is not None
    settings = bpy.context.window_manager.skinning_components
    assert settings.support == JOINT
    yield looks_unlike(plain, views()[0], "WINDOW")
    yield after(0.5)
    picture("components_2_amount")
    amount = yield from settled(views()[0], "WINDOW")
    assert snapshot(body()) == before
    passes(f"the button shows the components of {', '.join(component_view.display.subject.supports)}")

    with in_window():
        settings.value = -1.0
    yield looks_unlike(amount, views()[0], "WINDOW")
    yield after(0.3)
    picture("components_3_other_way")
    with in_window():
        settings.component, settings.value, settings.colors = 2, 1.0, "DIRECTION"
    yield after(0.5)
    picture("components_4_direction")
    directions = look(views()[0], "WINDOW")
    with in_window():
        rig().pose.bones[JOINT].rotation_quaternion = (0.9, 0.3, 0.0, 0.3)
    yield looks_unlike(directions, views()[0], "WINDOW")
    yield after(0.3)
    picture("components_5_posed")
    with in_window():
        rig().pose.bones[JOINT].rotation_quaternion = (1, 0, 0, 0)
    yield looks_like(directions, views()[0], "WINDOW")
    passes("slider, component, colors and pose change the picture at once")

    ui = region("UI")
    for _ in range(10):
        press("WHEELDOWNMOUSE", ui.x + 5, ui.y + ui.height // 2)
        yield after(0.05)
    picture("components_6_panel")
    place = yield from find_button("show=False", across=0.82)
    click(place)
    yield lambda: component_view.display.subject is None
    main = region("WINDOW")
    event("MOUSEMOVE", "NOTHING", main.x + main.width // 3, main.y + main.height // 3)
    yield looks_like(plain, views()[0], "WINDOW")
    assert not component_view.display.shown
    assert snapshot(body()) == before
    picture("components_7_off")
    passes("switched off, nothing is left")
