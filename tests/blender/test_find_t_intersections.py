# SPDX-License-Identifier: GPL-3.0-or-later
"""Find T-Intersections: which vertices it selects, what it and Bind tell, and that it changes nothing else."""

import bpy
import numpy as np
import pytest

from tests.blender import scenes
from tests.blender.binding_scenes import activate, armature_of_segments, check_bound, tube
from tests.blender.refusals import refused

pytestmark = pytest.mark.usefixtures("extension")

# To the left a face with a long side, to the right two faces that meet on it in vertex 2.
POINTS = [[2, 0, 0], [2, 2, 0], [2, 0.7, 0], [0, 0, 0], [0, 2, 0], [4, 0, 0], [4, 0.7, 0], [4, 2, 0]]
FACES = [(3, 0, 1, 4), (0, 5, 6, 2), (2, 6, 7, 1)]


def strip():
    scenes.empty_scene()
    rig = armature_of_segments([[(0, 1, 0), (2, 1, 0)], [(2, 1, 0), (4, 1, 0)]], parents=(-1, 0))
    ob = scenes.mesh_object(np.array(POINTS, float), FACES, name="Strip")
    activate(ob)
    return ob, rig


def test_the_vertex_is_selected_and_reported(capfd):
    ob, _ = strip()
    assert bpy.ops.skinning.find_t_intersections() == {"FINISHED"}
    assert "Strip 1 T-intersection selected" in "".join(capfd.readouterr())
    assert ob.mode == "EDIT"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert [vertex.index for vertex in ob.data.vertices if vertex.select] == [2]


def test_bind_counts_them(capfd):
    ob, rig = strip()
    bpy.ops.skinning.bind(method="DELAUNAY")
    assert "opens at 1 T-intersection when it bends" in "".join(capfd.readouterr())
    check_bound(ob, rig)
    bpy.ops.skinning.bind(method="RIGID", replace=True)
    assert "T-intersection" not in "".join(capfd.readouterr())


def test_a_mesh_without_any_stays_as_it_is(capfd):
    ob, _ = tube()
    selected = [vertex.select for vertex in ob.data.vertices]
    assert bpy.ops.skinning.find_t_intersections() == {"FINISHED"}
    assert "no T-intersection" in "".join(capfd.readouterr())
    assert ob.mode == "OBJECT"
    assert [vertex.select for vertex in ob.data.vertices] == selected


def test_a_hidden_mesh_is_refused():
    ob, _ = strip()
    ob.hide_viewport = True
    refused("find_t_intersections", 'HIDDEN "Strip"')
