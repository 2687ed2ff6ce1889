# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of a mesh: written values are read back and replace earlier ones, and nothing else changes."""

import numpy as np
import pytest

from skinning_tools.blender.attributes import has_attribute, read_attribute, remove_attributes, write_attribute
from tests.blender import scenes

SHAPES = {"BOOLEAN": (), "INT": (), "FLOAT": (), "FLOAT_VECTOR": (3,), "FLOAT_COLOR": (4,), "FLOAT4X4": (4, 4)}


@pytest.fixture
def mesh():
    return scenes.grid().data


@pytest.mark.parametrize("domain", ["POINT", "FACE"])
@pytest.mark.parametrize("data_type", SHAPES)
def test_what_is_written_comes_back(mesh, data_type, domain):
    count = len(mesh.vertices if domain == "POINT" else mesh.polygons)
    values = np.random.default_rng(1).integers(0, 2, (2, count, *SHAPES[data_type]))
    for each in values:
        write_attribute(mesh, "figures", data_type, each, domain)
        assert (read_attribute(mesh, "figures") == each).all()
    assert [each.name for each in mesh.attributes if each.name.startswith("figures")] == ["figures"]
    assert has_attribute(mesh, "figures", data_type, domain)
    assert not has_attribute(mesh, "figures", data_type, "CORNER")
    assert not has_attribute(mesh, "figures", "BYTE_COLOR", domain)


def test_reading_into_a_part_of_an_array(mesh):
    count = len(mesh.vertices)
    values = np.full((count + 2, 3), 7, np.float32)
    assert read_attribute(mesh, "position", values[1:-1]) is not None
    assert (values[[0, -1]] == 7).all()
    assert (values[1:-1] == read_attribute(mesh, "position")).all()


@pytest.mark.parametrize(("data_type", "domain"), [("FLOAT", "POINT"), ("INT", "FACE")])
def test_an_attribute_of_another_kind_makes_room(mesh, data_type, domain):
    mesh.attributes.new("figures", data_type, domain)
    write_attribute(mesh, "figures", "INT", np.arange(len(mesh.vertices)))
    assert has_attribute(mesh, "figures", "INT")
    assert (read_attribute(mesh, "figures") == np.arange(len(mesh.vertices))).all()


def test_a_vertex_group_of_the_name_stays():
    ob = scenes.grid()
    group = ob.vertex_groups.new(name="figures")
    name = write_attribute(ob.data, "figures", "INT", np.arange(len(ob.data.vertices)))
    assert group.name == "figures" != name
    assert (read_attribute(ob.data, name) == np.arange(len(ob.data.vertices))).all()


def test_positions(mesh):
    values = np.random.default_rng(1).random((len(mesh.vertices), 3))
    write_attribute(mesh, "position", "FLOAT_VECTOR", values)
    assert mesh.vertices[3].co[:] == pytest.approx(values[3])


def test_removing_leaves_the_others(mesh):
    for name in ("one", "two", "three"):
        write_attribute(mesh, name, "INT", np.arange(len(mesh.vertices)))
    remove_attributes(mesh, ["one", "two", "none"])
    assert not {"one", "two"} & set(mesh.attributes.keys())
    assert (read_attribute(mesh, "three") == np.arange(len(mesh.vertices))).all()
