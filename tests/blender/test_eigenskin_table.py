# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of EigenSkin for engines, and the documentation's shaders, run on what the files hold."""

import json
import struct

import bpy
import numpy as np
import pytest

from skinning_tools.core.eigenskin.shader_tables import model_of, model_text, shader_tables
from skinning_tools.core.geometry import unit
from skinning_tools.core.quaternions import normalized
from skinning_tools.features.eigenskin.examples import read_rig
from tests.blender import eigenskin_models, eigenskin_scenes, engine_shaders, refusals
from tests.blender.test_export_centers import exported, in_file, vertex_of_each_row

pytestmark = pytest.mark.usefixtures("extension")

TOLERANCE = 1e-5
# What an engine adds for the values: the table, and each joint's place among its matrices, with its axes.
VALUES = (
    engine_shaders.JOINTS
    + """
vec4 turn_between(mat4 parent, mat4 joint, vec4 axes);
vec4 eigenskin_network(int texel) { return texelFetch(network, ivec2(texel % 1024, texel / 1024), 0); }
vec4 joint_turn(int joint)
{
  vec4 places = texelFetch(list, ivec2(0, joint), 0);
  mat4 parent = places.y < 0.0 ? mat4(1.0) : joint_matrix(uint(places.y));
  return turn_between(parent, joint_matrix(uint(places.x)), texelFetch(list, ivec2(1, joint), 0));
}
"""
)
# And for the vertices.
VERTICES = """
vec4 eigenskin_displacement(int texel) { return texelFetch(displacements, ivec2(texel % 1024, texel / 1024), 0); }
float eigenskin_value(int component) { return texelFetch(values_texture, ivec2(component, 0), 0).x; }
"""
NORMALS = VERTICES.replace("eigenskin_displacement", "eigenskin_correction").replace("displacements", "normals")


def read_table(path) -> tuple[dict, dict[str, np.ndarray]]:
    data = path.read_bytes()
    assert data[:8] == b"SKINEIG1"
    (length,) = struct.unpack_from("<I", data, 8)
    head = json.loads(data[12 : 12 + length])
    found = {}
    for name, place in head["tables"].items():
        count = 4 * place["width"] * place["height"]
        texels = np.frombuffer(data, "<f4", count, 12 + length + place["offset"])
        found[name] = texels.reshape(place["height"], place["width"], 4)
    return head, found


def shaded_values(head, tables, matrices, joints) -> np.ndarray:
    """(C,) what the shader makes of the joints' matrices (P, 4, 4), by their names ``joints``."""
    places = np.zeros((len(head["joints"]), 2, 4))
    for row, joint in enumerate(head["joints"]):
        parent = joint["parent"]
        places[row, 0, :2] = joints.index(joint["name"]), -1 if parent is None else joints.index(parent)
        places[row, 1] = joint["axes"]
    count = len(head["components"]) + head["normal_components"]
    found = engine_shaders.evaluated(
        "eigenskin_values.glsl",
        "vec3(eigenskin_value_of(int(component.x)))",
        {"component": np.column_stack([np.arange(count)] * 2)},
        {"network": tables["network"], "list": places, "joints_texture": engine_shaders.joint_texels(matrices)},
        before=VALUES,
    )
    return found[:, 0]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["made up", "built"])
def test_the_shaders_play_the_file_as_core_and_blender_do(tmp_path, kind, seed):
    engine_shaders.gpu_module()
    ob, rig = eigenskin_scenes.limb()
    if kind == "built":
        joints, model, _ = eigenskin_models.corrected(ob, rig)
    else:
        _, joints = read_rig(bpy.context, ob)
        pairs = [(eigenskin_models.UPPER, eigenskin_models.LOWER)]
        model = eigenskin_models.any_model(joints, pairs=pairs, seed=seed)
        eigenskin_models.write_eigenskin(ob, rig, joints, model, normals=True)
    refusals.finished("save_eigenskin_table", filepath=str(tmp_path / "limb.bin"))
    head, tables = read_table(tmp_path / "limb.bin")
    eigenskin_models.turn_at_random(rig, np.random.default_rng(seed), most=1.5)
    file = exported(ob, tmp_path / "limb.glb", export_morph=False)
    found = file.vertices()
    matrices = file.joint_matrices()
    names = [file.content["nodes"][joint]["name"] for joint in file.content["skins"][0]["joints"]]

    values = shaded_values(head, tables, matrices, names)
    expected, turned = (
        of(eigenskin_models.shown_rotations(ob, joints)[None])[0] for of in (model.values, model.normal_values)
    )
    # Single precision: of the features, which the weights magnify, and of the matrices.
    magnified = max(np.abs(support.basis_weights).sum(axis=0).max() for support in model.supports)
    assert head["normal_components"] == len(turned) == (0 if kind == "built" else len(expected))
    assert np.abs(values - np.concatenate([expected, turned])).max() < 2e-6 * max(magnified, 1)

    assert np.abs(expected).max() > 1e-3
    texels = np.zeros((1, len(values), 4))
    texels[0, :, 0] = values
    result = engine_shaders.evaluated(
        "eigenskin.glsl",
        "eigenskin_position(position, run)",
        {"position": found["POSITION"], "run": found["_EIGENSKIN"]},
        {"displacements": tables["displacements"], "values_texture": texels},
        before=VERTICES,
    )
    # Before the skin: the exporter leaves out small weights.
    vertices = vertex_of_each_row(ob, found["POSITION"])
    corrected = joints.rest + model.displacements(expected)
    distances = np.linalg.norm(result - in_file(ob, corrected)[vertices], axis=1)
    moved = np.linalg.norm(result - found["POSITION"], axis=1).max()
    assert moved > 1e-3
    assert distances.max() < 1e-6 * max(magnified, 1) + TOLERANCE
    if not len(turned):
        assert "_EIGENSKIN_NORMAL" not in found
        return
    result = engine_shaders.evaluated(
        "eigenskin_normals.glsl",
        "eigenskin_normal(normal, run)",
        {"normal": found["NORMAL"], "run": found["_EIGENSKIN_NORMAL"]},
        {"normals": tables["normals"], "values_texture": texels},
        before=NORMALS,
    )
    corrections = in_file(ob, model.normal_corrections(turned)) - in_file(ob, np.zeros((1, 3)))
    assert np.abs(corrections).max() > 0.1
    wanted = unit(found["NORMAL"] + corrections[vertices])
    # Sums that nearly cancel are left out.
    sure = np.linalg.norm(found["NORMAL"] + corrections[vertices], axis=1) > 0.3
    assert np.abs(result - wanted)[sure].max() < 1e-5 * max(magnified, 1)


def model_for_core():
    class Joints:
        joint_names = ("root", "upper", "lower")
        rest = np.zeros((80, 3))

    spaces = {1: eigenskin_models.ball(4), 2: eigenskin_models.hinge((-150, -30, 20))}
    return eigenskin_models.made_up(Joints, spaces, pairs=[(1, 2)])


def deltas_of(model) -> np.ndarray:
    return np.array([model.displacements(row) for row in np.eye(model.component_count)])


def test_runs_have_the_displacements_of_each_vertex():
    model = model_for_core()
    tables = shader_tables(model)
    values = np.random.default_rng(0).normal(size=model.component_count)
    runs = [tables.displacements[first : first + count] for first, count in tables.runs]
    found = np.array([values[rows[:, 3].astype(int)] @ rows[:, :3] for rows in runs])
    np.testing.assert_allclose(found, model.displacements(values), atol=1e-5)
    assert tables.runs[:, 1].sum() == len(tables.displacements)
    runs = [tables.normals[first : first + count] for first, count in tables.normal_runs]
    found = np.array([values[rows[:, 3].astype(int) - model.component_count] @ rows[:, :3] for rows in runs])
    np.testing.assert_allclose(found, model.normal_corrections(values), atol=1e-5)
    assert tables.joints == (1, 2)


def test_a_stored_model_gives_the_same_values():
    model = model_for_core()
    turns = np.array([model.normal_corrections(row) for row in np.eye(model.component_count)])
    again = model_of(model_text(model), deltas_of(model), turns)
    assert again.joint_names == ("upper", "lower")
    rotations = normalized(np.random.default_rng(1).normal(size=(50, 3, 4)))
    np.testing.assert_array_equal(again.values(rotations[:, 1:]), model.values(rotations))
    np.testing.assert_array_equal(again.normal_values(rotations[:, 1:]), model.normal_values(rotations))
    for shapes, normals in ((deltas_of(model)[:-1], turns), (deltas_of(model), turns[:-1])):
        with pytest.raises(ValueError, match="do not fit"):
            model_of(model_text(model), shapes, normals)
    with pytest.raises(ValueError, match="more shapes"):
        model_of(model_text(model), deltas_of(model), np.concatenate([turns, turns]))


def test_the_attribute_of_the_table_is_removed_with_the_corrections(tmp_path):
    ob, rig = eigenskin_scenes.limb()
    eigenskin_models.corrected(ob, rig)
    path = tmp_path / "limb.bin"
    refusals.finished("save_eigenskin_table", filepath=str(path))
    assert ob.data.attributes["_EIGENSKIN"].data_type == "FLOAT2"
    path.write_bytes(b"other")
    refusals.refused("save_eigenskin_table", "did not write the file", filepath=str(path))
    refusals.refused("save_eigenskin_table", "needs a file name", filepath="")
    bpy.ops.skinning.remove_eigenskin()
    assert "_EIGENSKIN" not in ob.data.attributes
