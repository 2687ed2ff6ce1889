# SPDX-License-Identifier: GPL-3.0-or-later
"""A vertex group as what has to be closest, and the quality and emphasis of a conversion."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.background import drain
from skinning_tools.blender.conversions import result_of
from skinning_tools.features.convert.settings import QUALITIES, settings_of
from skinning_tools.features.partial import again
from tests.blender import moving_meshes

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def source():
    moving_meshes.fresh_scene()
    return moving_meshes.waving_grid()


def convert(**given):
    bpy.ops.skinning.convert_animation(**{"bone_count": 3, "iterations": 5} | given)
    return result_of(bpy.context.view_layer.objects.active)


def end_of(source):
    """The vertices of the free end."""
    length = max(vertex.co.x for vertex in source.data.vertices)
    return [vertex.index for vertex in source.data.vertices if vertex.co.x > 0.6 * length]


def errors_of(source, result, vertices):
    return sum(
        np.square(moving_meshes.world_positions(source, frame) - moving_meshes.world_positions(result.mesh, frame))[
            vertices
        ].sum()
        for frame in range(1, 9)
    )


@pytest.mark.parametrize("modifier", [False, True])
def test_the_vertices_of_the_group_are_closer(source, modifier):
    end = end_of(source)
    source.vertex_groups.new(name="Face").add(end, 1.0, "REPLACE")
    if modifier:
        source.modifiers.new("Subdivision", "SUBSURF")
    plain = convert(bone_kind="RIGID")
    bpy.context.view_layer.objects.active = source
    weighed = convert(bone_kind="RIGID", importance="Face")
    assert errors_of(source, weighed, end) < 0.9 * errors_of(source, plain, end)
    assert settings_of(weighed.figures).importance == "Face"


def test_solve_again_counts_the_group_too_and_tells_where_it_is_gone(source):
    end = end_of(source)
    source.vertex_groups.new(name="Face").add(end, 1.0, "REPLACE")
    result = convert(bone_kind="RIGID", joint_hierarchy=True, importance="Face")
    assert not drain(again.solve_again(bpy.context, result.mesh)).notes
    now = errors_of(source, result, end)
    source.vertex_groups.clear()
    notes = drain(again.solve_again(bpy.context, result.mesh)).notes
    assert any('no vertex group "Face"' in note for note in notes)
    assert now < 0.9 * errors_of(source, result, end)


def test_a_missing_group_is_refused(source):
    with pytest.raises(RuntimeError, match='no vertex group "Hands"'):
        convert(importance="Hands")
    assert list(bpy.data.objects) == [source]


@pytest.mark.parametrize("quality", [item[0] for item in QUALITIES])
def test_the_quality_is_noted(source, quality):
    result = convert(quality=quality, iterations=1)
    assert settings_of(result.figures).quality == quality


def test_emphasis_lowers_the_largest_error(source):
    plain = convert()
    bpy.context.view_layer.objects.active = source
    assert convert(emphasis=1.0).mesh["skinning_max_error"] < plain.mesh["skinning_max_error"]
