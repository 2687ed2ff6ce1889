# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: the pictures of the preview in docs/images. Started by run.py --docs-pictures."""

from math import pi

import bpy
from driver import after, can_take_pictures, enable, in_window, look_from_front, new_file, open_tab, picture, views
from mathutils import Matrix, Vector

from demos import rotation_center_poses as poses
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.features.preview.panel import SKINNING_PT_preview
from tests.blender import scenes, skinned_meshes

HIDDEN_OVERLAYS = ("floor", "axis_x", "axis_y", "bones", "cursor", "object_origins", "outline_selected", "text")
# Less than in the other pictures, where the bar meets itself.
BEND = 90.0
SPACING = 1.1
# All columns beside the sidebar.
VIEW_CENTER, VIEW_DISTANCE = (1.2, 0, 2.1), 10.4


def posed_bar() -> bpy.types.Object:
    """The bar of the other pictures, standing, twisted and bent by its bones."""
    pose = poses.bar(poses.TWIST, BEND)
    rig = skinned_meshes.armature("Rig", len(pose.matrices))
    rig.data.transform(Matrix.Scale(poses.LENGTH / len(pose.matrices), 4))
    bar = scenes.mesh_object(pose.rest, pose.triangles, name="Bar")
    bar.data.shade_smooth()
    write_weights(bar, [bone.name for bone in rig.data.bones], pose.bones, pose.weights)
    bar.modifiers.new("Armature", "ARMATURE").object = rig
    for bone, matrix in zip(rig.pose.bones, pose.matrices, strict=True):
        bone.matrix = Matrix([*matrix.tolist(), (0, 0, 0, 1)]) @ bone.bone.matrix_local
        # The next one is set relative to it.
        bpy.context.view_layer.update()
    rig.rotation_euler.y = bar.rotation_euler.y = -pi / 2
    return bar


def arrange_view(space) -> None:
    space.show_region_toolbar = space.show_region_header = space.show_region_tool_header = False
    for name in HIDDEN_OVERLAYS:
        setattr(space.overlay, f"show_{name}", False)
    view = space.region_3d
    view.view_rotation = Vector((0.25, -1.0, 0.42)).to_track_quat("Z", "Y")
    view.view_location, view.view_distance = VIEW_CENTER, VIEW_DISTANCE


def tests():
    assert can_take_pictures(), "Blender's process cannot take pictures: ImageMagick's import or a display is missing"
    enable(SKINNING_PT_preview)
    yield from new_file()
    with in_window():
        posed_bar()
        bpy.ops.skinning.bake_rotation_centers()
    look_from_front()
    yield after(0.5)
    yield from open_tab("Skinning")
    arrange_view(views()[0].spaces.active)
    with in_window():
        bpy.ops.skinning.preview(mode="CRS", side_by_side=True)
    settings = bpy.context.window_manager.skinning_preview
    settings.spacing = SPACING
    yield after(1.0)
    picture("preview_methods", views()[0])
    settings.colors = "DISTANCE"
    yield after(1.0)
    picture("preview_distance", views()[0])
