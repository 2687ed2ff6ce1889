# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes of a mesh: what is written comes back, in place of what was there, and nothing else is touched."""

import numpy as np
import pytest

from skinning_tools.blender.attributes import has_attribute, read_attribute, remove_attributes, write_attribute
from tests.blender import scenes

SHAPES = {"BOOLEAN": (), "INT": (), "FLOAT": (), "FLOAT_VECTOR": (3,), "FLOAT4X4": (4, 4)}


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
    assert not has_attribute(mesh, "figures", "FLOAT_COLOR", domain)


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
