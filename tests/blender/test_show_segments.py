# SPDX-License-Identifier: GPL-3.0-or-later
"""Show Segments: the bones as the binding takes them, drawn over the armature until the button is pressed again."""

from collections import Counter

import bpy
import numpy as np
import pytest
from mathutils import Matrix

import skinning_tools
from skinning_tools.core.errors import BadScene
from skinning_tools.features.bind import segment_view
from skinning_tools.features.bind.bind import bind_record
from tests.blender import refusals, scenes
from tests.blender.binding_scenes import activate, armature_of_segments, binding_of
from tests.blender.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("extension")

JOINTS = (0.0, 1.5, 3.0, 4.5)


@pytest.fixture
def limb():
    """A box along x and its armature, placed and scaled: four bones without a length of their own, and a target.
    Nothing is shown afterwards."""
    scenes.empty_scene()
    bpy.ops.mesh.primitive_cube_add()
    ob = bpy.context.object
    ob.data.transform(Matrix.Translation((3, 0, 0)) @ Matrix.Diagonal((3, 0.5, 0.5, 1)))
    # The bones' own axes lie along the limb, as those of other programs do.
    segments = [[(x, 0, 0), (x + 0.01, 0, 0)] for x in JOINTS] + [[(3, 0, 4), (3, 0, 4.01)]]
    rig = armature_of_segments(segments, parents=[-1, 0, 1, 2, -1])
    placed = Matrix.Translation((1, 2, 3)) @ Matrix.Rotation(0.7, 4, (1, 2, 3)) @ Matrix.Diagonal((2, 2, 2, 1))
    ob.matrix_world = rig.matrix_world = placed
    activate(rig, ob)
    bpy.context.view_layer.update()
    yield ob, rig
    segment_view.display.stop()


def show(**given):
    return bpy.ops.skinning.show_segments(**given)


def test_segments_are_those_of_the_binding(limb, capfd):
    """From joint to joint, where the armature is; the target is left out, as the binding leaves it out."""
    ob, rig = limb
    before = snapshot(ob), binding_of(rig)
    assert show() == {"FINISHED"}
    assert (snapshot(ob), binding_of(rig)) == before
    assert "4 segments, bones left out Bone 4" in capfd.readouterr().out
    rig.location.x += 1.0
    bpy.context.view_layer.update()
    segments, left_out = segment_view.places(bpy.context, segment_view.display.subject)
    to_rig = np.array(rig.matrix_world.inverted())
    ends = segments @ to_rig[:3, :3].T + to_rig[:3, 3]
    np.testing.assert_allclose(ends[:, 0], [(x, 0, 0) for x in JOINTS], atol=1e-5)
    np.testing.assert_allclose(ends[:-1, 1], [(x, 0, 0) for x in JOINTS[1:]], atol=1e-5)
    # The last one has no child: it ends near the end of the box.
    np.testing.assert_allclose(ends[-1, 1], (6, 0, 0), atol=0.3)
    np.testing.assert_allclose(left_out @ to_rig[:3, :3].T + to_rig[:3, 3], [[(3, 0, 4), (3, 0, 4.01)]], atol=1e-5)
    rig.hide_set(True)
    assert segment_view.places(bpy.context, segment_view.display.subject) is None
    rig.hide_set(False)
    show(all_bones=True)
    assert [len(found) for found in segment_view.places(bpy.context, segment_view.display.subject)] == [5, 0]
    bpy.ops.skinning.bind()
    assert bind_record(ob).left_out == ("Bone 4",)


def test_a_mesh_that_has_weights_is_read_too(limb):
    ob, _ = limb
    bpy.ops.skinning.bind()
    activate(ob)
    show()
    assert len(segment_view.display.subject.ends) == 4


def test_in_the_current_pose(limb):
    _, rig = limb
    rig.pose.bones["Bone 0"].location.y = 0.25
    bpy.context.view_layer.update()
    show(in_pose=True)
    # A bone's Y axis runs along the limb.
    np.testing.assert_allclose(segment_view.display.subject.ends[:4, 0, 0], np.add(JOINTS, 0.25), atol=1e-5)


@pytest.mark.parametrize("end", ["off", "load", "unregister"])
def test_off_leaves_nothing(limb, end):
    handlers = Counter(bpy.app.handlers.load_pre)
    show()
    assert segment_view.display.shown
    if end == "off":
        bpy.context.view_layer.objects.active = None
        assert show(show=False) == {"FINISHED"}
    elif end == "load":
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    else:
        skinning_tools.unregister()
        skinning_tools.register()
    assert segment_view.display.subject is None
    assert not segment_view.display.shown
    assert Counter(bpy.app.handlers.load_pre) == handlers


def test_a_deleted_armature_ends_it_with_the_reason(limb):
    _, rig = limb
    show()
    bpy.data.objects.remove(rig)
    with pytest.raises(BadScene, match=r"no longer shown.*was deleted"):
        segment_view.places(bpy.context, segment_view.display.subject)


def test_without_an_armature(limb):
    ob, rig = limb
    activate(ob)
    bpy.data.objects.remove(rig)
    refusals.refused(show, "There is no armature", state=lambda: snapshot(ob))
    assert segment_view.display.subject is None
