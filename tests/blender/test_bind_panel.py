# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the last binding in the panel; a recorder replaces Blender's layout."""

import bpy
import pytest

from skinning_tools.features.bind.panel import SKINNING_PT_bind
from tests.blender.binding_scenes import activate, cube, tube
from tests.blender.panel_recorder import drawn

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def bound():
    ob, rig = tube()
    bpy.ops.skinning.bind(method="POINT_TO_LINE")
    return ob, rig


def test_the_figures_name_the_method_whichever_is_active(bound):
    ob, rig = bound
    for active, *others in ((ob,), (rig,), (rig, ob)):
        activate(active, *others)
        texts = drawn(SKINNING_PT_bind).texts
        assert texts[texts.index("Method") + 1] == "Point to Line", active.name


def test_no_figures_of_one_mesh_if_several_are_chosen(bound):
    ob, rig = bound
    activate(rig, ob, cube("Box", (1, 0, 0)))
    assert "Method" not in drawn(SKINNING_PT_bind).texts


def test_a_method_of_another_version_is_shown_as_it_is(bound):
    ob, _ = bound
    activate(ob)
    ob["skinning_bind"]["method"] = "LATER"
    assert "LATER" in drawn(SKINNING_PT_bind).texts
