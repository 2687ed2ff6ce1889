# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the preview on, in every mode, through posing, playback, undo, loss. Started by run.py."""

import bpy
import gpu
import numpy as np
from driver import (
    after,
    enable,
    in_window,
    look_from_front,
    new_file,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    switch_off,
    views,
    window,
)

from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import METHODS
from skinning_tools.features.preview import session
from skinning_tools.features.preview.drawing import COLORS
from skinning_tools.features.preview.panel import SKINNING_PT_preview
from tests.blender import preview_samples, skinned_meshes

pictures: dict = {}


def read_view() -> None:
    """Draw handler of the test: keep what is in the view, after everything else was drawn."""
    width, height = bpy.context.region.width, bpy.context.region.height
    buffer = gpu.state.active_framebuffer_get()
    x, y, *_ = gpu.state.viewport_get()
    pixels = buffer.read_color(x, y, width, height, 4, 0, "FLOAT")
    pictures[bpy.context.area.as_pointer()] = np.array(pixels.to_list()).reshape(height, width, 4)


def pixels(area=None) -> np.ndarray:
    return pictures[(area or views()[0]).as_pointer()]


def seen(method: str, area=None) -> np.ndarray:
    """Mask of the pixels that have the hue of a method's surface, whatever their brightness."""
    rgb = np.clip(pixels(area)[..., :3], 0, 1)
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    size = np.linalg.norm(rgb, axis=-1)
    hue = np.array(COLORS[method]) / np.linalg.norm(COLORS[method])
    return (size > 0.05) & (rgb @ hue > 0.999 * size)


def counts(area=None) -> dict[str, int]:
    return {method: int(np.count_nonzero(seen(method, area))) for method in METHODS}


def shows(*methods, area=None) -> bool:
    found = counts(area)
    return all((found[method] > 500) == (method in methods) for method in METHODS)


def preview(**given) -> None:
    with in_window():
        bpy.ops.skinning.preview(**given)


def shown():
    return session.display.subject


def new_scene():
    """Generator: the rigged mesh of the other tests in a new file, seen from the front; returns the mesh object."""
    yield from new_file()
    with in_window():
        tube = preview_samples.posed_tube()
        bpy.ops.skinning.bake_rotation_centers()
    yield after(0.2)
    look_from_front()
    for area in views():
        with in_window(area):
            bpy.context.space_data.overlay.show_floor = False
            bpy.ops.view3d.zoom(delta=-3)
    bpy.types.SpaceView3D.draw_handler_add(read_view, (), "WINDOW", "POST_PIXEL")
    yield after(1.0)
    return tube


def tests():
    enable(SKINNING_PT_preview)
    tube = yield from new_scene()
    assert shows()
    yield from buttons()
    on_this_gpu(tube)
    yield from side_by_side()
    yield from posed_and_played(tube)
    yield from edited(tube)
    yield from in_two_views()
    yield from ended()


def buttons():
    """Generator: the panel's, one for each method."""
    yield from open_tab("Skinning")
    yield from press_button("mode='LBS'", across=0.2)
    yield after(0.5)
    picture("preview_1_linear")
    assert shows("LBS"), counts()
    yield from press_button("mode='DQS'", across=0.5)
    yield after(0.5)
    assert shows("DQS"), counts()
    yield from press_button("mode='CRS'", across=0.8)
    yield after(0.5)
    picture("preview_2_centers")
    assert shows("CRS"), counts()
    passes("the panel's buttons switch between the methods")


def on_this_gpu(tube):
    """Positions read back from the GPU."""
    from tests.blender.gpu_readback import skinned_by_gpu

    matrices = bone_matrices(read_skin(bpy.context, tube), bpy.context.evaluated_depsgraph_get())
    for method in METHODS:
        found = skinned_by_gpu(shown().data, matrices, method)
        error = np.abs(found - skinned_meshes.expected(tube, method)).max() / skinned_meshes.diagonal(tube)
        assert error < 1e-5, (method, error)
        passes(f"{method} on this GPU is {error:.1e} of the diagonal from core")


def side_by_side():
    """Generator: all methods at once, and the distance between them in color."""
    settings = bpy.context.window_manager.skinning_preview
    preview(mode="CRS", side_by_side=True)
    settings.show_centers, settings.spacing, settings.offset = True, 0.8, -0.1
    yield after(0.5)
    picture("preview_3_side_by_side")
    assert shows(*METHODS), counts()
    settings.colors = "DISTANCE"
    settings.show_centers = False
    yield after(0.3)
    picture("preview_4_distance")
    assert shows(), counts()
    # Blue where methods agree, brighter hues where they do not: outside of the legend, which has them all.
    surface = pixels()[200:, :800, :3]
    assert np.count_nonzero(surface @ (-1, -1, 1) > 0.2) > 1000
    assert np.count_nonzero(surface @ (0, 1, -1) > 0.4) > 500
    settings.colors, settings.side_by_side, settings.offset = "METHOD", False, 0.0
    yield after(0.3)
    assert shows("CRS"), counts()
    passes("side by side, centers, and distances in color")


def posed_and_played(tube):
    """Generator: the preview follows the armature."""
    rig = bpy.data.objects["Rig"]
    window().view_layer.objects.active = rig
    with in_window():
        bpy.ops.object.mode_set(mode="POSE")
    before = seen("CRS")
    rig.pose.bones[0].rotation_euler.z += 1.0
    yield after(0.3)
    assert shows("CRS")
    assert np.count_nonzero(seen("CRS") != before) > 1000
    data = shown().data
    with in_window():
        bpy.ops.screen.animation_play()
    frames = set()
    for _ in range(20):
        yield after(0.05)
        frames.add((window().scene.frame_current, counts()["CRS"]))
    with in_window():
        bpy.ops.screen.animation_cancel()
    assert len({frame for frame, _ in frames}) > 2
    assert len({count for _, count in frames}) > 2
    assert shown().data is data, "posing and playback must not read the mesh again"
    passes("it follows the pose and playback, and sends only the bones")
    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
    window().view_layer.objects.active = tube


def edited(tube):
    """Generator: the preview of a mesh that is edited, renamed, and brought back by undo."""
    data = shown().data
    with in_window():
        bpy.ops.ed.undo_push(message="Posed")
        bpy.ops.object.mode_set(mode="EDIT")
    # Faint there, so that what is edited can be seen.
    yield after(0.3)
    with in_window():
        bpy.ops.mesh.select_all(action="SELECT")
        bpy.ops.transform.translate(value=(0, 0, 0.3))
        bpy.ops.object.mode_set(mode="OBJECT")
    yield after(1.0)
    assert shown().data is not data
    assert shows("CRS")
    with in_window():
        bpy.ops.ed.undo_push(message="Moved")
        tube.name = "Limb"
        bpy.ops.ed.undo_push(message="Renamed")
    moved = shown().data.rest + shown().data.origin
    for name, keys, same in (
        ("Arm", {}, True),
        ("Arm", {}, False),
        ("Arm", {"shift": True}, True),
        ("Limb", {"shift": True}, True),
    ):
        press("Z", ctrl=True, **keys)
        yield after(1.0)
        yield lambda: not shown().stale
        yield after(0.3)
        assert shows("CRS"), counts()
        assert shown().target() == bpy.data.objects[name]
        assert np.allclose(shown().data.rest + shown().data.origin, moved, atol=1e-4) == same
    passes("it lives through modes, edits, undo and redo")


def in_two_views():
    """Generator: an area split in two."""
    with in_window():
        bpy.ops.screen.area_split(direction="VERTICAL", factor=0.5)
    yield after(0.5)
    assert len(views()) == 2
    assert all(shows("CRS", area=area) for area in views())
    views()[1].spaces[0].overlay.show_overlays = False
    yield after(0.3)
    assert shows("CRS", area=views()[0])
    assert shows(area=views()[1])
    views()[1].spaces[0].overlay.show_overlays = True
    yield after(0.3)
    picture("preview_5_two_views")
    passes("it is in every view that shows overlays")


def ended():
    """Generator: whatever ends the preview leaves nothing in the view."""
    preview(mode="OFF")
    yield after(0.3)
    assert all(shows(area=area) for area in views())
    assert not session.display.shown
    passes("switched off it is gone")

    preview(mode="DQS")
    yield after(0.3)
    assert shows("DQS")
    bpy.data.objects.remove(shown().target())
    yield lambda: shown() is None
    assert not session.display.shown
    yield after(0.3)
    picture("preview_6_deleted")
    passes("a deleted mesh ends it, with the reason in the panel")

    yield from new_scene()
    preview(mode="LBS")
    yield after(0.3)
    assert shows("LBS")
    bpy.ops.wm.read_homefile(use_factory_startup=True)
    yield after(0.5)
    assert shown() is None
    assert not session.display.shown
    passes("another file ends it")

    yield from new_scene()
    preview(mode="LBS")
    yield after(0.3)
    assert shows("LBS")
    switch_off()
    yield after(0.3)
    assert shows()
    assert not session.display.shown
    passes("disabling the extension ends it")
