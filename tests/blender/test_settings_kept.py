# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that a click in the panel passes to the work: those stored on the scene or the armature, except for
given ones."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from skinning_tools.features.eigenskin.component_operator import SKINNING_OT_show_eigenskin_components
from skinning_tools.features.eigenskin.operators import SKINNING_OT_build_eigenskin
from skinning_tools.features.eigenskin.skin_weights import SKINNING_OT_eigenskin_fit_weights
from skinning_tools.features.helpers.operators import SKINNING_OT_add_bone_links, SKINNING_OT_add_bulge_bone
from skinning_tools.features.partial.operators import SKINNING_OT_add_helper_bones, SKINNING_OT_solve_weights
from tests.blender import joint_helper_scenes as limbs
from tests.blender.partial_scenes import tube

pytestmark = pytest.mark.usefixtures("extension")


class _Caller(SimpleNamespace):
    # The property's default, which counts as unset.
    joints = ""


def clicked(operator, **given) -> dict:
    """Call what a click on the button would call, since Blender without a window invokes nothing."""
    settings, of_caller = operator.settings, _Caller(settings=operator.settings, **given)
    of_caller.properties = SimpleNamespace(is_property_set=lambda name: name in vars(of_caller))
    operator.prepare(of_caller, bpy.context)
    return {name: value for name, value in vars(of_caller).items() if name in settings.declared}


def test_settings_of_a_solve_and_those_that_all_solves_share():
    tube(move=0.1)
    scene = bpy.context.scene
    kept = scene.skinning_partial
    kept.armature, kept.frame_step, kept.weights.smoothness, kept.helpers.max_influences = "Rig", 2, 0.25, 6
    scene.frame_end, kept.frame_end = 77, 9
    got = clicked(SKINNING_OT_solve_weights, max_influences=3)
    assert (got["armature"], got["frame_step"], got["frame_end"], got["smoothness"]) == ("Rig", 2, 77, 0.25)
    assert got["max_influences"] == 3
    kept.use_scene_range = False
    got = clicked(SKINNING_OT_add_helper_bones)
    assert (got["frame_end"], got["max_influences"]) == (9, 6)


def test_a_bulge_as_the_panel_has_it_and_another_preset_with_its_own_angles():
    _, rig = limbs.bar()
    rig.skinning_joint_helpers.preset, rig.skinning_joint_helpers.mirror = "CALF", True
    got = clicked(SKINNING_OT_add_bulge_bone)
    assert (got["preset"], got["mirror"], np.degrees(got["angle_end"])) == ("CALF", True, pytest.approx(50))
    assert "bone" not in got
    got = clicked(SKINNING_OT_add_bulge_bone, preset="BICEPS")
    assert got["mirror"]
    assert not {"motion", "measure", "angle_start", "angle_end"} & set(got)


def test_the_named_joints_are_used():
    _, rig = limbs.bar()
    rig.skinning_joint_helpers.all_joints, rig.skinning_joint_helpers.count = True, 2
    assert clicked(SKINNING_OT_add_bone_links)["all_joints"]
    got = clicked(SKINNING_OT_add_bone_links, joints="fore.L")
    assert got["count"] == 2
    assert "all_joints" not in got


@pytest.mark.parametrize(
    "operator",
    [SKINNING_OT_build_eigenskin, SKINNING_OT_eigenskin_fit_weights, SKINNING_OT_show_eigenskin_components],
)
def test_settings_of_the_armature_that_deforms_the_active_mesh(operator):
    mesh_object, rig = limbs.bar()
    rig.skinning_eigenskin.components = 7
    for active in (rig, mesh_object):
        bpy.context.view_layer.objects.active = active
        assert clicked(operator)["components"] == 7
    # Nothing to fill from: hiding the components needs no armature.
    bpy.context.view_layer.objects.active = None
    assert not clicked(operator)
