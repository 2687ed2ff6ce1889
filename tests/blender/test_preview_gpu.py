# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview on the GPU: where it has the vertices against core.deform, and what it draws."""

import gc
import weakref
from types import SimpleNamespace

import bpy
import gpu
import numpy as np
import pytest
from mathutils import Matrix
from scipy.spatial.transform import Rotation

from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import METHODS, skin_frame, transformed_normals, vertex_transforms
from skinning_tools.features.centers.baking import read_centers
from tests.blender import engine_shaders, preview_samples, skinned_meshes

if bpy.app.version < (5, 1, 0):
    pytest.skip(
        "Blender before 5.1 cannot use the GPU without a window; tests/gui draws the preview in one",
        allow_module_level=True,
    )

from skinning_tools.features.preview import drawing, legend, session
from skinning_tools.features.preview.buffers import MOST_INFLUENCES, VertexData
from skinning_tools.features.preview.shaders import centers_shader, surface_shader
from skinning_tools.ui.view_drawing import View
from tests.blender.gpu_readback import skinned_by_gpu

pytestmark = pytest.mark.usefixtures("extension")

TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def switched_off():
    yield
    bpy.ops.skinning.preview(mode="OFF")


@pytest.fixture(scope="module", autouse=True)
def gpu_context():
    """OpenGL or Vulkan without a window."""
    engine_shaders.gpu_module()


@pytest.fixture
def tube():
    return preview_samples.posed_tube()


def shown():
    """The running preview."""
    return session.display.subject


# What the GPU computes


@pytest.mark.parametrize("frame", [4, 6, 8])
@pytest.mark.parametrize("method", METHODS)
def test_vertices_are_where_core_has_them(tube, method, frame):
    bpy.context.scene.frame_set(frame)
    assert bpy.ops.skinning.preview(mode=method) == {"FINISHED"}
    matrices = bone_matrices(read_skin(bpy.context, tube), bpy.context.evaluated_depsgraph_get())
    found = skinned_by_gpu(shown().data, matrices, method)
    expected = skinned_meshes.expected(tube, method)
    diagonal = skinned_meshes.diagonal(tube)
    assert np.linalg.norm(found - expected, axis=1).max() < TOLERANCE * diagonal
    # The pose is one in which that says something.
    rest = np.array([vertex.co for vertex in tube.data.vertices])
    assert np.linalg.norm(found - rest, axis=1).max() > 0.1 * diagonal


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("turn", [1.0, -1.0, None], ids=["half turn", "half turn back", "mirrored"])
@pytest.mark.parametrize("method", ["DQS", "CRS"])
def test_half_turns_go_the_same_way_around(tube, method, turn, axis, seed):
    """Both directions are equally near: rounding must not choose."""
    rig = bpy.data.objects["Rig"]
    skinned_meshes.random_rolls(rig, seed)
    if turn is None:
        skinned_meshes.mirror(rig, axis)
    else:
        skinned_meshes.half_turn(rig, axis, turn)
    bpy.context.scene.frame_set(1)
    bpy.ops.skinning.preview(mode=method)
    matrices = bone_matrices(read_skin(bpy.context, tube), bpy.context.evaluated_depsgraph_get())
    found = skinned_by_gpu(shown().data, matrices, method)
    difference = np.linalg.norm(found - skinned_meshes.expected(tube, method), axis=1)
    assert difference.max() < TOLERANCE * skinned_meshes.diagonal(tube)


def random_skin(vertex_count=3000, bone_count=20, influences=8, degrees=80.0, shear=0.1, place=0.0, seed=0):
    """rest, normals, bones, weights, matrices, centers: unrelated numbers, turns less than ``degrees`` from rest."""
    random = np.random.default_rng(seed)
    rest = random.uniform(-1, 1, (vertex_count, 3)) + place
    normals = random.normal(size=rest.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    bones = random.integers(0, bone_count, (vertex_count, influences))
    weights = random.random(bones.shape) * (random.random(bones.shape) < 0.7)
    weights[:, 0] += 0.1
    weights /= weights.sum(axis=1, keepdims=True)
    axes = random.normal(size=(bone_count, 3))
    angles = np.radians(degrees) * random.uniform(-1, 1, (bone_count, 1))
    turns = Rotation.from_rotvec(angles * axes / np.linalg.norm(axes, axis=1, keepdims=True)).as_matrix()
    linear = turns + shear * random.normal(size=turns.shape)
    # About the middle of the mesh, as the bones of a mesh far from its object's origin turn.
    shift = place - linear @ np.full(3, place) + random.normal(size=(bone_count, 3))
    matrices = np.concatenate([linear, shift[..., None]], axis=-1)
    return rest, normals, bones, weights, matrices, rest + 0.3 * random.normal(size=rest.shape)


def data_of(rest, normals, bones, weights, centers):
    return VertexData.of(rest, normals, np.zeros((0, 3), int), bones, weights, centers, np.ones(len(rest), bool))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="eight influences, shear"),
        pytest.param({"influences": 1}, id="one influence"),
        pytest.param({"influences": 9}, id="nine influences"),
        pytest.param({"bone_count": 700}, id="more bones than a row of the texture"),
        pytest.param({"place": 1000.0, "shear": 0.0}, id="far from the origin"),
    ],
)
def test_any_skin_is_as_core_has_it(method, given):
    rest, normals, bones, weights, matrices, centers = random_skin(**given)
    found = skinned_by_gpu(data_of(rest, normals, bones, weights, centers), matrices, method)
    expected = skin_frame(rest, bones, weights, matrices, method, centers)
    assert np.linalg.norm(found - expected, axis=1).max() < TOLERANCE * np.linalg.norm(np.ptp(rest, axis=0))


@pytest.mark.parametrize("method", METHODS)
def test_normals_are_as_core_has_them(method):
    rest, normals, bones, weights, matrices, centers = random_skin()
    found = skinned_by_gpu(data_of(rest, normals, bones, weights, centers), matrices, method, normals=True)
    expected = transformed_normals(normals, vertex_transforms(rest, bones, weights, matrices, method, centers))
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_mirroring_bones_and_vertices_without_weights(method):
    rest, normals, bones, weights, matrices, centers = random_skin(influences=2)
    matrices[::2, :, 0] *= -1
    weights[:10] = 0
    # Two bones that mirror, or two that do not: no motion leads from one kind to the other.
    bones[:, 1] = (bones[:, 0] + 2) % 20
    data = data_of(rest, normals, bones, weights, centers)
    found = skinned_by_gpu(data, matrices, method)
    expected = skin_frame(rest, bones, weights, matrices, method, centers)
    assert np.linalg.norm(found - expected, axis=1).max() < TOLERANCE * np.linalg.norm(np.ptp(rest, axis=0))
    assert np.abs(found[:10] - rest[:10]).max() < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_of_very_many_influences_the_strongest_are_kept(method):
    rest, normals, bones, weights, matrices, centers = random_skin(influences=36, bone_count=60)
    data = data_of(rest, normals, bones, weights, centers)
    counts = np.count_nonzero(weights, axis=1)
    assert data.crowded == np.count_nonzero(counts > MOST_INFLUENCES)
    assert 0 < data.crowded < len(rest)
    kept = weights * (np.argsort(np.argsort(-weights, axis=1, kind="stable"), axis=1) < MOST_INFLUENCES)
    kept /= kept.sum(axis=1, keepdims=True)
    expected = skin_frame(rest, bones, kept, matrices, method, centers)
    found = skinned_by_gpu(data, matrices, method)
    assert np.linalg.norm(found - expected, axis=1).max() < TOLERANCE * np.linalg.norm(np.ptp(rest, axis=0))


# What is drawn


SIZE = 200


def drawn(ob, depth=1.0, **look) -> np.ndarray:
    """(SIZE, SIZE, 4) the preview of ``ob``, seen along −z: 24 units to the right and up from (−2, −12).

    depth: of what is there already, 0 nearest.
    """
    projection = np.diag([2 / 24, 2 / 24, -1 / 50, 1.0])
    view = np.eye(4)
    view[:3, 3] = (-10, 0, 0)
    matrices = bone_matrices(read_skin(bpy.context, ob), bpy.context.evaluated_depsgraph_get())
    target = gpu.types.GPUOffScreen(SIZE, SIZE, format="RGBA32F")
    with target.bind():
        buffer = gpu.state.active_framebuffer_get()
        buffer.clear(color=(0.0, 0.0, 0.0, 0.0), depth=depth)
        drawing.draw(
            shown().data,
            matrices,
            np.array(ob.matrix_world, dtype=np.float64),
            View(view, projection, False),
            drawing.Look(**look),
        )
        pixels = np.array(buffer.read_color(0, 0, SIZE, SIZE, 4, 0, "FLOAT").to_list())
    target.free()
    return pixels


def columns_of(ob, positions) -> np.ndarray:
    """Where ``positions`` (N, 3) of the mesh's space are in the picture, in pixels."""
    world = np.array(ob.matrix_world, dtype=np.float64)
    return ((positions @ world[:3, :3].T + world[:3, 3])[:, :2] + (2, 12)) * (SIZE / 24)


@pytest.mark.parametrize("method", METHODS)
def test_surface_is_drawn_where_the_vertices_are(tube, method):
    bpy.ops.skinning.preview(mode=method)
    rows, columns = np.nonzero(drawn(tube, methods=(method,))[..., 3])
    # The last ring is without weights, so that its faces stretch back to the rest pose like any others.
    places = columns_of(tube, skinned_meshes.expected(tube, method))
    for found, expected in ((columns, places[:, 0]), (rows, places[:, 1])):
        assert abs(found.min() - expected.min()) <= 1
        assert abs(found.max() + 1 - expected.max()) <= 1


def test_side_by_side_has_a_column_for_each_method(tube):
    bpy.context.scene.frame_set(1)
    bpy.ops.skinning.preview(mode="LBS")
    pixels = drawn(tube, methods=METHODS, spacing=1.05, offset=1.05)
    hues = {method: np.array(color) / np.linalg.norm(color) for method, color in drawing.COLORS.items()}
    shading = np.linalg.norm(pixels[..., :3], axis=-1, keepdims=True)
    seen = {
        method: np.nonzero((shading[..., 0] > 0) & (pixels[..., :3] @ hue > 0.9999 * shading[..., 0]))[1]
        for method, hue in hues.items()
    }
    assert all(len(columns) > 50 for columns in seen.values())
    assert seen["LBS"].max() < seen["DQS"].min()
    assert seen["DQS"].max() < seen["CRS"].min()


def test_colors_tell_the_distance_to_another_method(tube):
    bpy.ops.skinning.preview(mode="DQS")
    same = drawn(tube, methods=("DQS",), compared="DQS")
    covered = same[..., 3] > 0
    assert (same[covered, 2] > 0).all(), "no distance is blue"
    assert same[covered, :2].max() == 0
    distances = np.linalg.norm(skinned_meshes.expected(tube, "DQS") - skinned_meshes.expected(tube, "LBS"), axis=1)
    share = 100 * distances.max() / skinned_meshes.diagonal(tube)
    near = drawn(tube, methods=("DQS",), compared="LBS", color_range=0.1 * share)
    assert (near[..., 0] > 2 * near[..., 2]).any(), "ten times the range is red"
    far = drawn(tube, methods=("DQS",), compared="LBS", color_range=10 * share)
    assert far[..., 0].max() == 0, "a tenth of the range has no red in it"
    assert far[..., 1].max() > 0


def test_centers_are_drawn(tube):
    bpy.ops.skinning.preview(mode="CRS")
    without = drawn(tube, methods=("CRS",))
    with_centers = drawn(tube, methods=("CRS",), show_centers=True)
    yellow = (with_centers[..., 0] > 0.9) & (with_centers[..., 1] > 0.8) & (with_centers[..., 2] < 0.1)
    assert np.count_nonzero(yellow) > 100
    assert not ((without[..., 0] > 0.9) & (without[..., 1] > 0.8)).any()
    skin = read_skin(bpy.context, tube)
    centers, valid = read_centers(tube)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    moved = skin_frame(centers, skin.bones, skin.weights, matrices, "LBS")[valid]
    columns, rows = columns_of(tube, moved).astype(int).T
    assert np.count_nonzero(yellow[rows, columns]) > 0.99 * len(moved)
    # Not all of the picture is yellow there.
    assert np.count_nonzero(yellow[rows, (columns + 60) % SIZE]) < 0.5 * len(moved)


def test_centers_are_drawn_with_the_method_that_turns_about_them(tube):
    bpy.context.scene.frame_set(1)
    bpy.ops.skinning.preview(mode="CRS")
    pixels = drawn(tube, methods=METHODS, spacing=1.05, offset=1.05, show_centers=True)
    yellow = (pixels[..., 0] > 0.9) & (pixels[..., 1] > 0.8) & (pixels[..., 2] < 0.1)
    dqs = blue(pixels)
    assert yellow.any()
    assert np.nonzero(yellow)[1].min() > np.nonzero(dqs)[1].max()


def blue(pixels) -> np.ndarray:
    """Where dual quaternions are drawn."""
    hue = np.array(drawing.COLORS["DQS"]) / np.linalg.norm(drawing.COLORS["DQS"])
    shading = np.linalg.norm(pixels[..., :3], axis=-1)
    return (shading > 0) & (pixels[..., :3] @ hue > 0.9999 * shading)


def test_side_by_side_has_the_mesh_in_its_middle(tube):
    bpy.context.scene.frame_set(1)
    bpy.ops.skinning.preview(mode="DQS")
    alone = drawn(tube, methods=("DQS",))
    with_others = drawn(tube, methods=METHODS, spacing=1.05)
    np.testing.assert_array_equal(blue(alone), blue(with_others))


def test_points_of_many_centers_are_smaller():
    assert drawing.point_pixels(0) == drawing.point_pixels(500) == 5
    assert 2 < drawing.point_pixels(4000) < 5
    assert drawing.point_pixels(1_000_000) == 2


def test_in_front_of_nearer_surfaces(tube):
    bpy.ops.skinning.preview(mode="LBS")
    assert not drawn(tube, depth=0.1, methods=("LBS",), in_front=False)[..., 3].any()
    shown_in_front = drawn(tube, depth=0.1, methods=("LBS",), in_front=True)
    np.testing.assert_array_equal(shown_in_front, drawn(tube, methods=("LBS",), in_front=True))
    assert shown_in_front[..., 3].any()


def test_the_state_is_given_back_as_blender_expects_it(tube):
    bpy.ops.skinning.preview(mode="CRS")
    drawn(tube, methods=METHODS, opacity=0.5, show_centers=True)
    state = gpu.state
    assert (state.depth_test_get(), state.depth_mask_get(), state.blend_get()) == ("NONE", False, "NONE")


def test_the_legend_names_methods_and_the_scale(tube):
    bpy.ops.skinning.preview(mode="LBS")
    regions = [SimpleNamespace(type="TOOLS", width=30)]
    context = SimpleNamespace(
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0, use_region_overlap=True)),
        region=SimpleNamespace(width=400, height=400),
        area=SimpleNamespace(regions=regions),
        scene=bpy.context.scene,
    )
    projection, view = np.diag([2 / 24, 2 / 24, -1 / 50, 1.0]), np.eye(4)
    view[:3, 3] = (-10, 0, 0)
    pictures = {}
    for name, look in (
        ("one", drawing.Look(methods=("LBS",))),
        ("three", drawing.Look(methods=METHODS)),
        ("scale", drawing.Look(methods=("LBS",), compared="DQS")),
    ):
        target = gpu.types.GPUOffScreen(400, 400)
        with target.bind(), gpu.matrix.push_pop(), gpu.matrix.push_pop_projection():
            buffer = gpu.state.active_framebuffer_get()
            buffer.clear(color=(0.0, 0.0, 0.0, 0.0))
            gpu.matrix.load_matrix(Matrix.Identity(4))
            gpu.matrix.load_projection_matrix(
                Matrix(((2 / 400, 0, 0, -1), (0, 2 / 400, 0, -1), (0, 0, -1, 0), (0, 0, 0, 1)))
            )
            to_world = np.array(tube.matrix_world, dtype=np.float64)
            legend.draw(context, shown().data, to_world, View(view, projection, False), look)
            pictures[name] = np.array(buffer.read_color(0, 0, 400, 400, 4, 0, "FLOAT").to_list())
        target.free()
    bright = {name: (picture[..., :3].min(axis=-1) > 0.5) for name, picture in pictures.items()}
    assert bright["one"].sum() > 50
    assert bright["three"].sum() > 2 * bright["one"].sum()
    # Blue to red above the lower left corner, right of the tools.
    bar = pictures["scale"][56, 50:270]
    assert bar[2, 2] > 0.9
    assert bar[-3, 0] > 0.9
    assert (bar[110, 1] > 0.9, bar[110, 0] < 0.1, bar[110, 2] < 0.1) == (True, True, True)
    assert not pictures["one"][56, 50:270, :3].any()


def test_opacity_shows_the_nearest_layer_only(tube):
    bpy.ops.skinning.preview(mode="LBS")
    solid, faint = (drawn(tube, methods=("LBS",), opacity=opacity) for opacity in (1.0, 0.25))
    covered = solid[..., 3] > 0
    assert covered.sum() > 100
    assert np.allclose(faint[covered, :3], 0.25 * solid[covered, :3], atol=1e-3)


def test_buffers_are_freed_when_off(tube):
    bpy.ops.skinning.preview(mode="CRS")
    drawn(tube, methods=METHODS, show_centers=True)
    view, data = weakref.ref(shown()), weakref.ref(shown().data)
    bpy.ops.skinning.preview(mode="OFF")
    gc.collect()
    assert view() is None
    assert data() is None, "buffers are kept"
    assert [shader.cache_info().currsize for shader in (surface_shader, centers_shader)] == [0, 0]
