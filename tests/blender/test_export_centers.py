# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation in an exported file, and the documentation's shader for engines, run on what the file holds."""

import os
from pathlib import Path

import bpy
import numpy as np
import pytest
from scipy.spatial import cKDTree

from skinning_tools.core import quaternions
from skinning_tools.core.deform import polar_decomposition
from skinning_tools.features.centers.baking import FRESH, MISSING, STALE, read_centers
from skinning_tools.features.centers.export import EXPORT_PROPERTY, export_state
from tests.blender import scenes, skinned_meshes
from tests.blender.gltf_file import GltfFile

pytestmark = pytest.mark.usefixtures("extension")

SHADER = Path(__file__).resolve().parents[2] / "docs" / "shaders" / "center_of_rotation.glsl"
TOLERANCE = 1e-5

# What an engine adds to the shader: its joints, here texels, the four columns of the matrix and the quaternion.
BEFORE = """
mat4 joint_matrix(uint joint)
{
  ivec2 texel = ivec2(0, int(joint));
  return mat4(texelFetch(joints_texture, texel, 0), texelFetch(joints_texture, texel + ivec2(1, 0), 0),
              texelFetch(joints_texture, texel + ivec2(2, 0), 0), texelFetch(joints_texture, texel + ivec2(3, 0), 0));
}

vec4 joint_rotation(uint joint) { return texelFetch(joints_texture, ivec2(4, int(joint)), 0); }
"""
AFTER = """
void main()
{
  value = (skin_matrix(center, joints, weights) * vec4(rest, 1.0)).xyz;
  gl_Position = vec4(pixel, 0.0, 1.0);
  gl_PointSize = 1.0;
}
"""


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


def test_what_makes_the_attribute_old_is_told(tube):
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
    with pytest.raises(RuntimeError, match="no centers of rotation"):
        bpy.ops.skinning.prepare_centers_for_export()


def test_an_attribute_of_somebody_else_is_kept(tube):
    tube.data.attributes.new("_COR", "FLOAT", "POINT")
    with pytest.raises(RuntimeError, match='has an attribute "_COR" of another kind'):
        bpy.ops.skinning.prepare_centers_for_export()
    assert tube.data.attributes["_COR"].data_type == "FLOAT"


@pytest.mark.parametrize("frame", [4, 8])
@pytest.mark.parametrize("sample", ["baked", "far"])
def test_the_shader_moves_the_file_as_core_moves_the_mesh(tube, tmp_path, frame, sample):
    """POSITION, _COR, JOINTS_0, WEIGHTS_0 and the joints of the file in; out comes what core.deform says in Blender."""
    gpu = gpu_module()
    if sample == "far":
        move_centers(tube)
    bpy.context.scene.frame_set(frame)
    bpy.ops.skinning.prepare_centers_for_export()
    file = exported(tube, tmp_path / "tube.glb")
    found = file.vertices()
    result = skinned_by_shader(gpu, found, file.joint_matrices())
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


def gpu_module():
    """Blender's gpu module with a context behind it; skips where it cannot have one, except in CI."""
    if bpy.app.version < (5, 1, 0):
        pytest.skip("Blender before 5.1 cannot use the GPU without a window")
    import gpu

    try:
        gpu.init()
        gpu.platform.renderer_get()
    except (SystemError, RuntimeError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Blender finds no GPU here; on Debian: apt-get install libegl1 libgl1-mesa-dri ({error})")
    return gpu


def skinned_by_shader(gpu, vertices, joint_matrices) -> np.ndarray:
    """(N, 3): each vertex is drawn as a pixel, whose color is where the shader puts it."""
    count = len(vertices["POSITION"])
    inputs = (
        ("VEC3", "rest", "POSITION"),
        ("VEC3", "center", "_COR"),
        ("UVEC4", "joints", "JOINTS_0"),
        ("VEC4", "weights", "WEIGHTS_0"),
        ("VEC2", "pixel", "pixel"),
    )
    interface = gpu.types.GPUStageInterfaceInfo("engine")
    interface.smooth("VEC3", "value")
    info = gpu.types.GPUShaderCreateInfo()
    info.sampler(0, "FLOAT_2D", "joints_texture")
    layout = gpu.types.GPUVertFormat()
    for slot, (kind, name, _) in enumerate(inputs):
        info.vertex_in(slot, kind, name)
        whole = kind == "UVEC4"
        layout.attr_add(
            id=name, comp_type="U32" if whole else "F32", len=int(kind[-1]), fetch_mode="INT" if whole else "FLOAT"
        )
    info.vertex_out(interface)
    info.fragment_out(0, "VEC4", "color")
    info.vertex_source(BEFORE + SHADER.read_text(encoding="utf-8") + AFTER)
    info.fragment_source("void main() { color = vec4(value, 1.0); }")
    shader = gpu.shader.create_from_info(info)

    width, height = 64, -(-count // 64)
    numbers = np.arange(count)
    places = (np.stack([numbers % width, numbers // width], axis=1) + 0.5) / (width, height) * 2 - 1
    arrays = vertices | {"pixel": places}
    buffer = gpu.types.GPUVertBuf(layout, count)
    for kind, name, source in inputs:
        kept = np.uint32 if kind == "UVEC4" else np.float32
        buffer.attr_fill(name, np.ascontiguousarray(arrays[source], dtype=kept))
    texels = np.empty((len(joint_matrices), 5, 4), np.float32)
    texels[:, :4] = joint_matrices.swapaxes(1, 2)
    turns = quaternions.from_matrices(polar_decomposition(joint_matrices[:, :3, :3])[0])
    texels[:, 4] = np.roll(turns, -1, axis=-1)
    data = gpu.types.Buffer("FLOAT", texels.size, texels.ravel())
    texture = gpu.types.GPUTexture((5, len(joint_matrices)), format="RGBA32F", data=data)
    target = gpu.types.GPUOffScreen(width, height, format="RGBA32F")
    with target.bind():
        frame_buffer = gpu.state.active_framebuffer_get()
        frame_buffer.clear(color=(0.0, 0.0, 0.0, 0.0))
        gpu.state.program_point_size_set(True)
        shader.uniform_sampler("joints_texture", texture)
        gpu.types.GPUBatch(type="POINTS", buf=buffer).draw(shader)
        pixels = frame_buffer.read_color(0, 0, width, height, 4, 0, "FLOAT")
        gpu.state.program_point_size_set(False)
    target.free()
    read = np.array(pixels.to_list(), dtype=np.float64).reshape(-1, 4)[:count]
    assert (read[:, 3] == 1).all(), "not every vertex was drawn"
    return read[:, :3]
