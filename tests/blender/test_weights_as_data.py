# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of 8 and 16 bits in exported glTF files and in the packed table: what the files have beside what *Compress*
stores, and what stays as it is."""

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.vertex_groups import put_weights
from skinning_tools.core.binding.compression import STEPS, compress_weights
from tests.blender import refusals, skinned_meshes
from tests.blender.gltf_file import GltfFile
from tests.blender.snapshots import snapshot
from tests.blender.test_export_centers import exported, vertex_of_each_row
from tests.core.binding.test_packing import documented_reader

pytestmark = pytest.mark.usefixtures("extension")

COMPONENTS = {"8": 5121, "16": 5123}


def tube(influences=4):
    """The tube with random weights on all of its bones, none at the last ring."""
    ob, rig = skinned_meshes.rigged_tube(bone_count=max(influences, 5))
    random = np.random.default_rng(0)
    count = len(ob.data.vertices)
    bones = np.array([random.choice(len(rig.data.bones), influences, replace=False) for _ in range(count)])
    # The exporter leaves out weights of up to 0.0001.
    weights = 0.99 * random.dirichlet(np.ones(influences), count) + 0.01 / influences
    weights[-16:] = 0
    enable()
    put_weights(ob, [bone.name for bone in rig.data.bones], bones, weights)
    return ob, rig


def enable() -> None:
    """Make the extension an enabled add-on, as the exporter asks only those; a new scene has none."""
    bpy.context.preferences.addons.new().module = skinning_tools.__name__


def choose(weights: str) -> None:
    bpy.context.scene.skinning_weight_tools.gltf.weights = weights


def joints_of(file: GltfFile) -> list[str]:
    return [file.content["nodes"][joint]["name"] for joint in file.content["skins"][0]["joints"]]


def dense(names, bones, weights, order) -> np.ndarray:
    """(N, P) weights of the bones ``order``, from rows over the bones ``names``."""
    found = np.zeros((len(bones), len(names)))
    np.add.at(found, (np.arange(len(bones))[:, None], bones), weights)
    return found[:, [list(names).index(name) for name in order]]


@pytest.mark.parametrize("influences", [4, 7])
@pytest.mark.parametrize("bits", ["8", "16"])
def test_the_file_has_the_steps_that_compress_makes(tmp_path, bits, influences):
    ob, rig = tube(influences)
    before = snapshot(ob)
    choose(bits)
    file = exported(ob, tmp_path / "tube.glb", export_all_influences=True)
    assert snapshot(ob) == before
    (primitive,) = file.content["meshes"][0]["primitives"]
    sets = -(-influences // 4)
    found = file.vertices()
    for number in range(sets):
        accessor = file.content["accessors"][primitive["attributes"][f"WEIGHTS_{number}"]]
        assert (accessor["componentType"], accessor["normalized"]) == (COMPONENTS[bits], True)
        assert found[f"JOINTS_{number}"].dtype == np.uint8
    steps = np.hstack([found[f"WEIGHTS_{number}"] for number in range(sets)]).astype(np.int64)
    joints = np.hstack([found[f"JOINTS_{number}"] for number in range(sets)])
    full = STEPS[int(bits)]
    assert (steps.sum(axis=1) == full).all()

    read = read_bone_weights(ob, rig)
    rounded = compress_weights(read.bones, read.weights, bits=int(bits), max_influences=influences)
    vertices = vertex_of_each_row(ob, found["POSITION"])
    bound = read.bound[vertices]
    names = joints_of(file)
    written = dense(names, joints, steps, read.names)
    expected = dense(read.names, rounded.bones, rounded.steps, read.names)[vertices]
    # The exporter's own rows are of single precision, which decides between remainders that are nearly equal.
    different = np.abs(written - expected)[bound].max(axis=1)
    assert (different > 0).mean() < 0.01
    exact = dense(read.names, read.bones, read.weights, read.names)[vertices]
    assert np.abs(written / full - exact)[bound].max() <= (1 - 1 / influences) / full + 1e-6


def test_floats_stay_the_default(tmp_path):
    ob, _ = tube()
    assert exported(ob, tmp_path / "tube.glb").vertices()["WEIGHTS_0"].dtype == np.float32


def test_meshes_without_skin_are_exported_as_before(tmp_path):
    ob, _ = tube()
    ob.modifiers.clear()
    before = exported(ob, tmp_path / "before.glb").vertices()
    choose("8")
    after = exported(ob, tmp_path / "after.glb").vertices()
    assert "WEIGHTS_0" not in after
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)


@pytest.mark.parametrize("bits", ["8", "16"])
def test_the_table_has_the_steps_that_compress_stores(tmp_path, bits):
    ob, rig = tube(5)
    before = snapshot(ob)
    path = tmp_path / "tube.bin"
    refusals.finished("save_weight_table", filepath=str(path), bits=bits, max_influences=3)
    assert snapshot(ob) == before
    names, bones, weights = documented_reader()(path)
    read = read_bone_weights(ob, rig)
    assert tuple(names) == read.names
    assert (bones[-16:] == len(names)).all()
    bpy.ops.skinning.compress_weights(bits=bits, max_influences=3)
    stored = read_bone_weights(ob, rig)
    expected = dense(stored.names, stored.bones, stored.weights, names)[:-16]
    np.testing.assert_allclose(dense(names, bones[:-16], weights[:-16], names), expected, atol=1e-7)


def test_the_table_replaces_only_its_own_file(tmp_path):
    tube()
    path = tmp_path / "tube.bin"
    for _ in range(2):
        refusals.finished("save_weight_table", filepath=str(path))
    path.write_bytes(b"other")
    refusals.refused("save_weight_table", "did not write the file", filepath=str(path))
    assert path.read_bytes() == b"other"
    refusals.refused("save_weight_table", "needs a file name", filepath="")
