# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones of both kinds in one rig, those in files of earlier versions, and objects that the user has parented to
them."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.helper_bones.bones import OF_JOINTS_COLLECTION, PARENT_COLLECTION, SOLVED_COLLECTION
from skinning_tools.blender.helper_bones.records import OF_JOINTS, find_helpers
from skinning_tools.blender.helper_bones.shared_weights import SharedWeights
from skinning_tools.blender.vertex_groups import read_columns
from tests.blender import joint_helper_scenes as limbs
from tests.blender.helper_bone_scenes import ROUNDING, add, added_helpers, jiggling_rig, remove, stored, structure
from tests.blender.joint_helper_scenes import add_links, animate, remove_links
from tests.blender.partial_scenes import BONES, select

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("kind", ["RIGID", "AFFINE"])
def test_solved_ones_of_earlier_versions_go_as_well(kind):
    """These had another property, and their collections none."""
    ob, armature, _, _ = jiggling_rig()
    before, bones, collections = stored(ob), structure(armature), armature.data.collections_all.keys()
    add(bone_kind=kind)
    helpers = added_helpers(armature)
    for bone in armature.data.bones:
        if "skinning_helper" in bone:
            del bone["skinning_helper"]
            bone["skinning_added_bone"] = "HELPER" if bone.name in helpers else "PARENT"
    names = (SOLVED_COLLECTION, PARENT_COLLECTION)
    for collection in [each for each in armature.data.collections_all if each.name in names]:
        del collection["skinning_helper"]
    assert added_helpers(armature) == helpers
    # A second round joins them.
    add(bone_count=1, bone_kind=kind)
    assert len(added_helpers(armature)) == 3
    remove()
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=2 * ROUNDING)
    assert structure(armature) == bones
    assert armature.data.collections_all.keys() == collections


def test_links_as_earlier_versions_have_stored_them():
    """The property of the bones, the record and the attributes of the mesh, and the mark of the collection."""
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    before = limbs.state(rig, [ob])
    add_links("fore.L", count=1)
    (helper,) = find_helpers(rig)
    earlier = {"kind": "LINKS", "number": 1, "part": "SKIN", "index": 1, "end": "fore.L", "made_animation": False}
    assert rig.data.bones[helper.skin[0]]["skinning_helper"].to_dict() == earlier
    record = {"groups": ["upper.L", "fore.L", helper.skin[0]], "others": 2, "made": []}
    assert ob.data["skinning_helpers"].to_dict() == {"1": record}
    kinds = {each.name: each.data_type for each in ob.data.attributes if "skinning" in each.name}
    assert kinds == {".skinning_helper_1": "INT", ".skinning_helper_1_0": "FLOAT", ".skinning_helper_1_1": "FLOAT"}
    collection = rig.data.collections_all[OF_JOINTS_COLLECTION]
    collection["skinning_helper"] = True
    collection.name = "Mine"
    add_links("hand.L", count=1)
    assert OF_JOINTS_COLLECTION not in rig.data.collections_all
    remove_links(all_joints=True)
    assert limbs.state(rig, [ob]) == before


def test_links_and_solved_ones_in_one_rig():
    ob, armature, _, _ = jiggling_rig()
    before = stored(ob)
    add(bone_count=1)
    solved = added_helpers(armature)
    select(armature)
    add_links(all_joints=True, threshold=0.02)
    joints = {helper.end for helper in find_helpers(armature, OF_JOINTS)}
    assert joints
    assert joints <= set(BONES)
    for given in ({"joints": solved[0], "count": 1}, {"joints": solved[0], "count": 1, "kind": "TWIST"}):
        with pytest.raises(RuntimeError, match="is a helper bone itself"):
            bpy.ops.skinning.add_bone_links(**given)
    remove_links(all_joints=True)
    assert added_helpers(armature) == solved
    select(ob)
    remove()
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=ROUNDING)
    assert set(armature.data.bones.keys()) == set(BONES)


def test_children_added_to_links_stay_and_references_to_links_are_removed(capfd):
    ob, rig = limbs.bar()
    animate(rig, "fore.L", 100)
    before = limbs.state(rig, [ob])
    add_links("fore.L", count=1)
    (link,) = find_helpers(rig)[0].skin
    prop = bpy.data.objects.new("Prop", None)
    bpy.context.scene.collection.objects.link(prop)
    prop.parent, prop.parent_type, prop.parent_bone = rig, "BONE", link
    for name, bone in (("Own", "fore.L"), ("Gone", link)):
        constraint = prop.constraints.new("COPY_ROTATION")
        constraint.name, constraint.target, constraint.subtarget, constraint.influence = name, rig, bone, 0.0
    rig.data.pose_position = "REST"
    bpy.context.view_layer.update()
    place = np.array(prop.matrix_world)
    remove_links("fore.L")
    assert "1 constraint that referred to them removed" in capfd.readouterr().out
    assert (prop.parent_bone, [each.name for each in prop.constraints]) == ("upper.L", ["Own"])
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(prop.matrix_world), place, atol=1e-5)
    rig.data.pose_position = "POSE"
    bpy.data.objects.remove(prop)
    bpy.context.view_layer.update()
    assert limbs.state(rig, [ob])["bones"] == before["bones"]


def test_weights_are_taken_without_the_mesh():
    """The computation runs in a worker thread, which must not use Blender."""
    ob, rig = limbs.bar()
    each = SharedWeights(ob, rig)
    each.object = None
    (own,) = each.add_names(["link"])
    fore = each.index("fore.L")
    before = read_columns(ob, ["fore.L"])
    each.take(1, [own], [fore], np.where(each.bones == fore, own, each.bones), each.weights)
    assert each.changes[1].groups == ("fore.L", "link")
    np.testing.assert_array_equal(each.changes[1].before[:1], before)
    assert each.changed.any()
