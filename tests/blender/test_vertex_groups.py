# SPDX-License-Identifier: GPL-3.0-or-later
import bpy
import numpy as np
import pytest

from skinning_tools.blender import vertex_groups
from skinning_tools.blender.vertex_groups import read_weights, write_weights
from skinning_tools.core.errors import BadWeights
from tests.blender import scenes

pytestmark = pytest.mark.usefixtures("empty")


def points(count):
    return scenes.mesh_object(np.random.default_rng(0).normal(size=(count, 3)))


def dense(bones, weights, bone_count):
    """(N, P)."""
    result = np.zeros((len(bones), bone_count))
    np.add.at(result, (np.arange(len(bones))[:, None], bones), weights)
    return result


def test_what_is_written_is_read():
    random = np.random.default_rng(1)
    bones = np.array([random.choice(7, 4, replace=False) for _ in range(50)], np.int32)
    weights = random.dirichlet(np.ones(4), 50)
    weights[:10] = [1, 0, 0, 0]
    names = [f"Bone {index}" for index in range(7)]
    object = points(50)
    write_weights(object, names, bones, weights)
    assert [group.name for group in object.vertex_groups] == names
    assert np.allclose(dense(*read_weights(object, names), 7), dense(bones, weights, 7), atol=1e-7)


@pytest.mark.parametrize("unused", [True, False])
def test_weights_written_in_parts_are_the_same_and_each_step_has_its_share(unused, monkeypatch):
    random, names = np.random.default_rng(1), [f"Bone {index}" for index in range(7)]
    bones = np.array([random.choice(6, 4, replace=False) for _ in range(50)], np.int32)
    weights = random.dirichlet(np.ones(4), 50)
    whole, parts, written = points(50), points(50), []
    write_weights(whole, names, bones, weights)
    fill = vertex_groups.fill_group
    monkeypatch.setattr(vertex_groups, "_PART", 8)
    monkeypatch.setattr(vertex_groups, "fill_group", lambda *given: (fill(*given), written.append(len(given[1]))))
    fractions = []
    for fraction, _ in vertex_groups.write_weights_in_parts(parts, names, bones, weights, unused):
        fractions.append(fraction)
        assert sum(written) <= 8
        written.clear()
    # A job pauses where a step changes nothing.
    steps = [fraction for fraction in fractions if fraction > vertex_groups._SORTED]
    assert (len(steps), steps, steps[-1]) == (len(set(steps)), sorted(steps), 1)
    assert [group.name for group in parts.vertex_groups] == names[: None if unused else 6]
    assert all(
        np.array_equal(*pair) for pair in zip(read_weights(parts, names), read_weights(whole, names), strict=True)
    )


@pytest.mark.parametrize("part", [1, 2, 7, 59, 60, 61, 1000])
@pytest.mark.parametrize("group_count", [0, 1, 5])
def test_parts_of_any_size_are_read_as_blender_has_the_weights(part, group_count, monkeypatch):
    monkeypatch.setattr(vertex_groups, "_PART", part)
    random, ob = np.random.default_rng(part + group_count), points(60)
    for number in range(group_count):
        group = ob.vertex_groups.new(name=f"Bone {number}")
        for vertex in np.flatnonzero(random.random(60) < 0.4).tolist():
            group.add([vertex], float(random.random()), "REPLACE")
    # In another order than the groups, with one missing group.
    names = ["Bone 3", "nobody", "Bone 0", "Bone 4"]
    expected = np.zeros((60, 4))
    for column, name in enumerate(names):
        group = ob.vertex_groups.get(name)
        for vertex in ob.data.vertices if group is not None else ():
            if group.index in [each.group for each in vertex.groups]:
                expected[vertex.index, column] = group.weight(vertex.index)
    assert np.array_equal(dense(*read_weights(ob, names), 4), expected)
    fractions = list(vertex_groups.read_weights_in_parts(ob, names))
    assert (len(fractions), fractions, fractions[-1]) == (len(set(fractions)), sorted(fractions), 1)


def test_unused_slots_write_nothing():
    """They repeat a bone that is used, and must not erase its weight."""
    object = points(2)
    write_weights(object, ["A", "B", "C"], np.array([[0, 1, 0], [2, 2, 2]]), np.array([[0.25, 0.75, 0], [1, 0, 0]]))
    stored = [{group.group: group.weight for group in vertex.groups} for vertex in object.data.vertices]
    assert stored == [{0: 0.25, 1: 0.75}, {2: 1.0}]


def test_a_bone_named_twice_has_the_sum():
    object = points(1)
    write_weights(object, ["A", "B"], np.array([[1, 1]]), np.array([[0.25, 0.5]]))
    assert [(group.group, group.weight) for group in object.data.vertices[0].groups] == [(1, 0.75)]


def test_reading_by_name_whatever_the_order_of_the_groups():
    object = points(3)
    for name, vertices in (("Other", [0, 1, 2]), ("B", [1]), ("A", [0, 1])):
        object.vertex_groups.new(name=name).add(vertices, 0.5, "REPLACE")
    bones, weights = read_weights(object, ["A", "B", "Missing"])
    assert np.array_equal(dense(bones, weights, 3), [[0.5, 0, 0], [0.5, 0.5, 0], [0, 0, 0]])
    assert bones.shape == weights.shape == (3, 2)


def test_a_mesh_without_groups():
    bones, weights = read_weights(points(3), ["A"])
    assert np.array_equal(weights, np.zeros((3, 1)))
    assert bones.shape == (3, 1)


@pytest.mark.parametrize("shapes", [((3, 2), (4, 2)), ((4, 2), (4, 3)), ((5, 2), (5, 2))])
def test_arrays_that_do_not_fit(shapes):
    object = points(4)
    with pytest.raises(BadWeights, match='"Flag" has 4 vertices'):
        write_weights(object, ["A", "B"], np.zeros(shapes[0], int), np.ones(shapes[1]))
    assert not object.vertex_groups
    assert bpy.data.objects["Flag"] == object
