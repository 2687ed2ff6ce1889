# SPDX-License-Identifier: GPL-3.0-or-later
"""Results in Babylon.js and Godot, whose skinning needs neither browser nor screen, and before Khronos' validator."""

import os

import bpy
import numpy as np
import pytest

from tests.blender.gltf_file import GltfFile
from tests.engines import formats, godot_player, node_programs, samples

pytestmark = pytest.mark.usefixtures("extension")

# A fraction of the diagonal: the error of single precision through a chain of joints.
EXACT = 5e-6
# Blender's exporter puts a skinned mesh below its armature, where the standard expects it to be without a parent.
ACCEPTED = {"NODE_SKINNED_MESH_NON_ROOT"}


@pytest.fixture(autouse=True, scope="module")
def programs():
    reason = node_programs.missing() or godot_player.missing()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def conversion(**given):
    return samples.convert(samples.swaying_tube(), **given)


def driven_limb():
    ob = samples.corrected_limb()
    bpy.ops.skinning.unbake_eigenskin()
    return ob


SAMPLES = {
    "affine": lambda: conversion(bone_kind="AFFINE", residual_shapes=3),
    "scaled": lambda: conversion(bone_kind="SCALED", residual_shapes=3),
    "rigid": lambda: conversion(bone_kind="RIGID"),
    "hierarchy": lambda: conversion(bone_kind="RIGID", root_bone=True, joint_hierarchy=True),
    "flag": lambda: samples.convert(samples.waving_flag(), bone_kind="RIGID"),
    "eigenskin": samples.corrected_limb,
    "eigenskin_driven": driven_limb,
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_result_is_valid_and_plays_as_in_blender(tmp_path, sample):
    ob = SAMPLES[sample]()
    frames = range(1, samples.FRAME_COUNT + 1)
    expected = formats.played(ob, frames[0], len(frames))
    formats.number_vertices(ob)
    path = tmp_path / "sample.glb"
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.skinning.export_character(filepath=str(path), engine="GODOT", compare=False) == {"FINISHED"}

    assert {message["code"] for message in node_programs.complaints(path)} <= ACCEPTED

    keys, fps = ob.data.shape_keys, bpy.context.scene.render.fps
    times = np.array(frames) / fps
    for played in (node_programs.play(path, times), godot_player.play(path, times, fps)):
        found, vertices, facts = played
        assert set(vertices) == set(range(len(ob.data.vertices)))
        assert formats.largest_distance(found, expected[:, vertices]) < EXACT
        # Without the basis, and for values below zero with an offset.
        assert facts["morphs"] == (len(keys.key_blocks) - 1 + sample.startswith("eigenskin") if keys else 0)
        assert len(facts["clips"]) == 1


def test_the_validator_finds_the_errors(tmp_path):
    """Weights that do not sum to one, written into the file of a valid result."""
    ob = conversion(bone_kind="RIGID")
    path = formats.export(ob, tmp_path / "sample.glb")
    weights = GltfFile.read(path).vertices()["WEIGHTS_0"]
    content = path.read_bytes()
    assert content.count(weights.tobytes()) == 1
    path.write_bytes(content.replace(weights.tobytes(), (weights * np.float32(1.5)).tobytes()))
    assert "ACCESSOR_WEIGHTS_NON_NORMALIZED" in {message["code"] for message in node_programs.complaints(path)}


def test_unplayable_objects_are_reported(tmp_path):
    (tmp_path / "broken.glb").write_bytes(b"nothing that an engine knows")
    with pytest.raises(node_programs.ProgramFailed):
        node_programs.play(tmp_path / "broken.glb", [0])
    with pytest.raises(godot_player.PlayerFailed):
        godot_player.play(tmp_path / "broken.glb", [0], 24)
