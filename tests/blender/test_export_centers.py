# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation in an exported file, and the documentation's shader for engines, run on what the file holds."""

import bpy
import numpy as np
import pytest
from scipy.spatial import cKDTree

from skinning_tools.features.centers.baking import FRESH, MISSING, STALE, read_centers
from skinning_tools.features.centers.export import EXPORT_PROPERTY, export_state
from tests.blender import engine_shaders, refusals, scenes, skinned_meshes
from tests.blender.gltf_file import GltfFile

pytestmark = pytest.mark.usefixtures("extension")

TOLERANCE = 1e-5


@pytest.fixture
def tube():
    """A skinned mesh with fresh centers, mid-animation; armature and mesh are moved, turned and scaled."""
    ob, _ = skinned_meshes.rigged_tube()
    bpy.ops.skinning.bake_rotation_centers(sigma=0.3)
    bpy.context.scene.frame_set(4)
    return ob


def exported(ob, path, **options) -> GltfFile:
    for other in bpy.context.scene.objects:
        other.select_set(other == ob or other.type == "ARMATURE")
    bpy.ops.export_scene.gltf(
        filepath=str(path),
        export_format="GLB",
        use_selection=True,
        export_attributes=True,
        export_animations=False,
        export_rest_position_armature=False,
        export_current_frame=True,
        **options,
    )
    return GltfFile.read(path)


def in_file(ob, points, y_up=True) -> np.ndarray:
    """Object space to the file's, one point after another."""
    world = [ob.matrix_world @ bpy_vector for bpy_vector in map(_vector, points)]
    return np.array([(x, z, -y) if y_up else (x, y, z) for x, y, z in world])


def _vector(point):
    from mathutils import Vector

    return Vector(map(float, point))


def vertex_of_each_row(ob, positions, y_up=True) -> np.ndarray:
    """Which vertex each row of the file is: the exporter sorts and splits them."""
    rest = in_file(ob, [vertex.co for vertex in ob.data.vertices], y_up)
    distances, vertices = cKDTree(rest).query(positions)
    assert distances.max() < 1e-5
    return vertices


@pytest.mark.parametrize("y_up", [True, False])
def test_the_file_has_the_baked_centers_in_the_space_of_its_positions(tube, tmp_path, y_up):
    assert bpy.ops.skinning.prepare_centers_for_export(y_up=y_up) == {"FINISHED"}
    found = exported(tube, tmp_path / "tube.glb", export_yup=y_up).vertices()
    vertices = vertex_of_each_row(tube, found["POSITION"], y_up)
    assert set(vertices) == set(range(len(tube.data.vertices)))
    centers, valid = read_centers(tube)
    expected = in_file(tube, centers, y_up)[vertices]
    np.testing.assert_allclose(found["_COR"], expected, atol=1e-6 * skinned_meshes.diagonal(tube))
    # Where a vertex has no center, its position; elsewhere something else.
    moved = np.linalg.norm(found["_COR"] - found["POSITION"], axis=1)
    assert moved[~valid[vertices]].max() < 1e-6
    assert moved[valid[vertices]].min() > 1e-3


@pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="the native modifier needs Blender 5.1")
def test_a_mesh_with_the_native_modifier_is_exported_as_one_without(tube, tmp_path, capfd):
    bpy.ops.skinning.prepare_centers_for_export()
    before = exported(tube, tmp_path / "before.glb").vertices()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    capfd.readouterr()
    bpy.ops.skinning.prepare_centers_for_export()
    assert "remove the Center of Rotation modifier before the export" in "".join(capfd.readouterr())
    after = exported(tube, tmp_path / "after.glb").vertices()
    assert set(after) == set(before) >= {"POSITION", "JOINTS_0", "WEIGHTS_0", "_COR"}
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)


def test_nothing_but_the_attribute_changes_and_a_second_time_renews_it(tube):
    names = set(tube.data.attributes.keys())
    before = scenes.evaluated_positions(tube)
    bpy.ops.skinning.prepare_centers_for_export()
    assert set(tube.data.attributes.keys()) == names | {"_COR"}
    np.testing.assert_array_equal(scenes.evaluated_positions(tube), before)
    tube.location.x += 1
    bpy.context.view_layer.update()
    bpy.ops.skinning.prepare_centers_for_export()
    stored = np.array([item.vector for item in tube.data.attributes["_COR"].data])
    np.testing.assert_allclose(stored, in_file(tube, read_centers(tube)[0]), atol=1e-5)


def test_the_cause_of_an_outdated_attribute_is_reported(tube):
    assert export_state(tube) == MISSING
    bpy.ops.skinning.prepare_centers_for_export()
    assert export_state(tube) == FRESH
    bpy.context.scene.frame_set(7)
    assert export_state(tube) == FRESH
    tube.location.x += 0.01
    bpy.context.view_layer.update()
    assert export_state(tube) == STALE
    bpy.ops.skinning.prepare_centers_for_export()
    assert export_state(tube) == FRESH
    bpy.ops.skinning.bake_rotation_centers(sigma=0.4)
    assert export_state(tube) == STALE
    del tube.data[EXPORT_PROPERTY]
    assert export_state(tube) == STALE


def test_unbaked_and_old_centers_are_refused(tube):
    # The first ring has one bone only: what counts are shares of the sum.
    tube.vertex_groups[1].add([0], 0.3, "REPLACE")
    with pytest.raises(RuntimeError, match="older than its mesh or weights"):
        bpy.ops.skinning.prepare_centers_for_export()
    assert "_COR" not in tube.data.attributes
    skinned_meshes.rigged_tube()
    with refusals.raises_unmet("NO_CENTERS"):
        bpy.ops.skinning.prepare_centers_for_export()


def test_an_attribute_of_somebody_else_is_kept(tube):
    tube.data.attributes.new("_COR", "FLOAT", "POINT")
    with refusals.raises_unmet('ATTRIBUTE_OF_ANOTHER_KIND "_COR"'):
        bpy.ops.skinning.prepare_centers_for_export()
    assert tube.data.attributes["_COR"].data_type == "FLOAT"


@pytest.mark.parametrize("frame", [4, 8])
@pytest.mark.parametrize("sample", ["baked", "far"])
def test_the_shader_moves_the_file_as_core_moves_the_mesh(tube, tmp_path, frame, sample):
    """POSITION, _COR, JOINTS_0, WEIGHTS_0 and the joints of the file in; out comes what core.deform says in Blender."""
    engine_shaders.gpu_module()
    if sample == "far":
        move_centers(tube)
    bpy.context.scene.frame_set(frame)
    bpy.ops.skinning.prepare_centers_for_export()
    file = exported(tube, tmp_path / "tube.glb")
    found = file.vertices()
    result = engine_shaders.evaluated(
        "center_of_rotation.glsl",
        "(skin_matrix(_COR, JOINTS_0, WEIGHTS_0) * vec4(POSITION, 1.0)).xyz",
        {name: found[name] for name in ("POSITION", "_COR", "JOINTS_0", "WEIGHTS_0")},
        {"joints_texture": engine_shaders.joint_texels(file.joint_matrices())},
    )
    vertices = vertex_of_each_row(tube, found["POSITION"])
    expected = in_file(tube, skinned_meshes.expected(tube))[vertices]
    linear = in_file(tube, skinned_meshes.expected(tube, "LBS"))[vertices]
    diagonal = np.linalg.norm(np.ptp(found["POSITION"], axis=0))
    assert len(result) == len(vertices)
    assert np.linalg.norm(result - expected, axis=1).max() < TOLERANCE * diagonal
    assert np.linalg.norm(result - linear, axis=1).max() > 100 * TOLERANCE * diagonal


def move_centers(ob) -> None:
    """Centers anywhere near those that were baked: smooth ones hide mistakes."""
    attribute = ob.data.attributes["rotation_center"]
    centers, valid = read_centers(ob)
    centers[valid] += 0.2 * np.random.default_rng(3).normal(size=(valid.sum(), 3))
    attribute.data.foreach_set("vector", centers.ravel())
