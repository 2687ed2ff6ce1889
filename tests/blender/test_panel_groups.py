# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups of the sidebar: what they name, the next step, and panels that hide while nothing is selected."""

import bpy
import pytest

from skinning_tools.blender import background
from skinning_tools.features import FEATURES
from skinning_tools.features.preview.panel import SKINNING_PT_preview
from skinning_tools.features.weights.weight_view_panel import SKINNING_PT_weight_view
from skinning_tools.ui import groups
from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb
from tests.blender.panel_recorder import drawn

pytestmark = pytest.mark.usefixtures("extension")


def top_panels() -> list[type]:
    """The panels directly inside a group."""
    panels = [cls for feature in FEATURES for module in feature.panels for cls in module.registry]
    names = [group.__name__ for group in groups.registry]
    return [cls for cls in panels if getattr(cls, "bl_parent_id", "") in names]


def shown() -> set[str]:
    return {cls.__name__ for cls in top_panels() if cls.poll(bpy.context)}


def test_every_panel_of_the_sidebar_is_in_a_group():
    alone = [
        cls.__name__
        for feature in FEATURES
        for module in feature.panels
        for cls in module.registry
        if issubclass(cls, bpy.types.Panel) and cls.bl_region_type == "UI" and not hasattr(cls, "bl_parent_id")
    ]
    assert alone == []


@pytest.mark.parametrize("kind", [None, "EMPTY", "LIGHT"])
def test_panels_hide_while_nothing_is_selected_that_they_work_on(kind):
    scenes.empty_scene()
    if kind is not None:
        bpy.ops.object.add(type=kind)
    always = {SKINNING_PT_preview.__name__, SKINNING_PT_weight_view.__name__}
    assert shown() == always
    for group in groups.registry:
        assert drawn(group).texts == [group.nothing]
    # A failure stays readable, and so does a running job.
    background.note_failure(background.Failure("Bind", "No weights"))
    assert shown() == always | {"SKINNING_PT_bind"}
    background.forget_failure()


def test_a_selected_mesh_beside_an_active_light_shows_the_panels():
    scenes.empty_scene()
    bpy.ops.mesh.primitive_cube_add()
    mesh_object = bpy.context.active_object
    bpy.ops.object.light_add()
    assert "SKINNING_PT_bind" not in shown()
    mesh_object.select_set(True)
    assert "SKINNING_PT_bind" in shown()


def steps() -> list[list[str]]:
    return [drawn(group).texts for group in groups.registry]


def test_groups_name_the_object_and_the_next_step():
    scenes.empty_scene()
    bpy.ops.mesh.primitive_cube_add()
    ob = bpy.context.active_object
    assert [texts[0] for texts in steps()] == [ob.name] * 3
    assert [texts[1].split(":")[0] for texts in steps()] == [
        "Convert Animation",
        "Bind the mesh to an armature",
        "Bind a mesh to an armature first",
    ]
    ob.shape_key_add(name="Basis")
    ob.shape_key_add(name="Smile")
    assert steps()[0][1].startswith("Convert Shape Keys")
    ob.data.shape_keys.key_blocks["Smile"].keyframe_insert("value", frame=1)
    assert steps()[0][1] == "Convert Animation"


@pytest.mark.parametrize("active", ["mesh", "armature"])
def test_a_rig_is_named_whole_from_either_of_its_objects(active):
    ob, rig = limb()
    bpy.context.view_layer.objects.active = ob if active == "mesh" else rig
    assert [texts[0] for texts in steps()] == [f"{ob.name}, {rig.name}"] * 3
    assert steps()[1][1].startswith("Clean the weights")
    assert steps()[0][1].startswith("Solve for an Existing Rig")
    ob.vertex_groups.clear()
    assert steps()[1][1].startswith("Bind the selected meshes")
    assert steps()[0][1].startswith("Bind the mesh below")


def test_an_armature_of_several_meshes_and_of_none():
    ob, rig = limb()
    twin = ob.copy()
    twin.data = ob.data.copy()
    scenes.link(twin)
    for each in (ob, twin):
        each.select_set(False)
    bpy.context.view_layer.objects.active = rig
    assert [texts[1] for texts in steps()] == [group.several for group in groups.registry]
    for each in [each for each in bpy.data.objects if each != rig]:
        bpy.data.objects.remove(each)
    assert "Bind and Weights" in steps()[0][1]
