# SPDX-License-Identifier: GPL-3.0-or-later
"""Files saved by earlier versions: their settings, and results that can still be read, changed and removed.

``earlier_files/make.py`` saved them.
"""

from pathlib import Path

import bpy
import numpy as np
import pytest

from skinning_tools.blender.conversions import result_of
from skinning_tools.features.centers.bake_state import shown_bake_state
from skinning_tools.features.centers.baking import FRESH
from skinning_tools.features.eigenskin.record import eigenskin_record
from tests.blender.binding_scenes import activate

pytestmark = pytest.mark.usefixtures("extension")

FILES = sorted((Path(__file__).parent / "earlier_files").glob("*.blend"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def scene(request) -> bpy.types.Scene:
    bpy.ops.wm.open_mainfile(filepath=str(request.param))
    return bpy.context.scene


def skinned_flags() -> list[bpy.types.Object]:
    return [ob for ob in bpy.data.objects if ob.name.startswith("Flag_skinned")]


def positions(ob: bpy.types.Object) -> np.ndarray:
    mesh = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    places = np.empty(len(mesh.vertices) * 3, np.float32)
    mesh.vertices.foreach_get("co", places)
    return places.reshape(-1, 3)


def test_settings_stay(scene):
    assert scene.skinning_conversion.bone_count == 7
    assert scene.skinning_conversion.bone_kind == "RIGID"
    assert scene.skinning_rotation_centers.sigma == pytest.approx(0.2)


def test_a_conversion_is_found_and_converted_again_as_it_was(scene):
    flag = bpy.data.objects["Flag"]
    result = result_of(bpy.data.objects["Flag_skinned"])
    assert result.source == flag
    assert bpy.data.objects["Flag_skinned"]["skinning_bone_count"] == 4
    activate(flag)
    bpy.ops.skinning.convert_again(replace=True)
    (again,) = skinned_flags()
    assert again["skinning_bone_count"] == 4
    assert result_of(again).source == flag
    bpy.ops.skinning.delete_result()
    assert skinned_flags() == []
    assert not flag.hide_get()


def test_corrections_can_be_removed_and_built_again(scene):
    ob = bpy.data.objects["Corrected"]
    record = eigenskin_record(ob)
    assert record is not None
    activate(ob)
    bpy.ops.skinning.remove_eigenskin()
    assert eigenskin_record(ob) is None
    assert ob.data.shape_keys is None
    bpy.ops.skinning.build_eigenskin(components=1)
    rig = ob.find_armature()
    bone = rig.pose.bones["Lower"]
    bone.rotation_euler = (0, 0, 0)
    straight = positions(ob)
    assert np.abs(straight - positions_without_keys(ob)).max() < 1e-6
    bone.rotation_euler = (np.radians(60), 0, 0)
    bpy.context.view_layer.update()
    target = bpy.data.objects["Swollen"]
    plain = np.linalg.norm(positions_without_keys(ob) - positions(target), axis=1).max()
    assert np.linalg.norm(positions(ob) - positions(target), axis=1).max() < 0.2 * plain


def positions_without_keys(ob: bpy.types.Object) -> np.ndarray:
    keys = ob.data.shape_keys.key_blocks
    for key in keys:
        key.mute = True
    found = positions(ob)
    for key in keys:
        key.mute = False
    bpy.context.view_layer.update()
    return found


def test_baked_centers_still_count(scene):
    ob = bpy.data.objects["Centered"]
    activate(ob)
    assert shown_bake_state(ob) == FRESH


def test_bone_links_can_be_removed(scene):
    ob, rig = bpy.data.objects["Linked"], bpy.data.objects["Linked_bones"]
    assert len(rig.data.bones) == 3
    activate(rig)
    bpy.ops.skinning.remove_bone_links(all_joints=True)
    assert set(rig.data.bones.keys()) == {"Upper", "Lower"}
    assert {group.name for group in ob.vertex_groups} <= {"Upper", "Lower"}
    assert not [bone.name for bone in rig.pose.bones if bone.constraints]


def test_the_sliders_of_a_face_are_known(scene):
    if "Face_rig" not in bpy.data.objects:
        pytest.skip("saved before faces could be converted")
    rig = bpy.data.objects["Face_rig"]
    activate(rig)
    bpy.ops.skinning.add_slider_poses(kind="CLIPS")
    assert {"smile", "frown"} <= {action.name.rpartition("_")[2] or action.name for action in bpy.data.actions}
