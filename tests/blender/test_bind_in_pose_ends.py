# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding in the current pose: a write that fails leaves nothing, and a torn shape at rest is noted."""

import bpy
import pytest

from skinning_tools.features.bind import bind as bind_module
from tests.blender.binding_scenes import activate, binding_of
from tests.blender.posed_scenes import bound_in_pose, modeled, shapes_of, twisted

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("failing", ["write_rest", "write_record"])
def test_a_write_that_fails_leaves_nothing(failing, monkeypatch):
    """At the second of two meshes, one of which has an Armature modifier that is off and a group of its own."""
    ob, rig, _ = modeled()
    other = ob.copy()
    other.data = ob.data.copy()
    bpy.context.collection.objects.link(other)
    ob.vertex_groups.new(name="Bone 1").add([3, 4], 0.25, "REPLACE")
    ob.modifiers.new("Mine", "ARMATURE").object = rig
    ob.modifiers["Mine"].show_viewport = False
    activate(rig, ob, other)
    bpy.context.view_layer.update()
    real, calls = getattr(bind_module, failing), []

    def write(*given):
        calls.append(given)
        if len(calls) == 2:
            raise MemoryError("none left")
        return real(*given)

    def state():
        present = [each for each in bpy.data.objects if each.type == "MESH"]
        return [(binding_of(each), [shape.tolist() for shape in shapes_of(each)]) for each in present]

    before = state()
    monkeypatch.setattr(bind_module, failing, write)
    with pytest.raises(RuntimeError, match=r"none left|[Mm]emory"):
        bpy.ops.skinning.bind(in_pose=True, replace=True)
    assert len(calls) == 2
    assert state() == before


def test_a_torn_rest_shape_is_noted(capfd):
    """Half of a tube follows each of two bones, one of which is twisted: at rest the rings between them are twisted."""
    ob, _ = twisted()
    bound_in_pose(ob, method="RIGID")
    assert "its shape at rest is torn" in capfd.readouterr().out
    ob, _, _ = modeled()
    bound_in_pose(ob)
    assert "torn" not in capfd.readouterr().out
