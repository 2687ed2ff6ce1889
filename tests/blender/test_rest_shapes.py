# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation belong to the bind pose: the shape and the places of the bones in which nothing moves.

The shape may differ from the mesh itself, by shape keys and modifiers above the armature; a reference without any of
these, whose mesh has that shape, tells what is right.
"""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from skinning_tools.blender.attributes import write_attribute
from skinning_tools.blender.background import drain
from skinning_tools.blender.center_records import BAKE_PROPERTY, BASIS, CURRENT
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.rotation_centers import bake_rotation_centers
from skinning_tools.features.centers import baking
from skinning_tools.features.centers.baking import bake_record, read_centers
from skinning_tools.features.preview import session
from tests.blender import scenes
from tests.blender.crs_scenes import FRAMES, TOLERANCE
from tests.blender.skinned_meshes import diagonal, rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

with_modifier = pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on")


def moved_by_a_key(ob) -> None:
    block = shape_key(ob, 0.8)
    block.value = 1.0


def shape_key(ob, share: float) -> bpy.types.ShapeKey:
    """The mesh itself lies apart from the bones, bent; the key takes it to them by ``share``."""
    rest = read_skin(bpy.context, ob).rest
    ob.shape_key_add(name="Basis")
    block = ob.shape_key_add(name="Fitted")
    block.data.foreach_set("co", rest.astype(np.float32).ravel())
    apart = rest + share * (0.05 * np.sin(rest) + (0.3, -0.2, 0.25))
    apart[:, 2] += share * 0.04 * rest[:, 0] ** 2
    apart = apart.astype(np.float32)
    ob.data.shape_keys.reference_key.data.foreach_set("co", apart.ravel())
    write_attribute(ob.data, "position", "FLOAT_VECTOR", apart)
    ob.data.update()
    return block


def moved_by_a_pinned_key(ob) -> None:
    shape_key(ob, 0.8)
    ob.active_shape_key_index = 1
    ob.show_only_shape_key = True


def moved_by_a_lattice(ob) -> None:
    lattice = scenes.link(bpy.data.objects.new("Cage", bpy.data.lattices.new("Cage")))
    lattice.data.points_u = 4
    lattice.matrix_world = ob.matrix_world @ Matrix.LocRotScale(Vector((2.5, 0, 0)), None, Vector((5.2, 0.8, 0.8)))
    random = np.random.default_rng(0)
    for point in lattice.data.points:
        point.co_deform = Vector(point.co_deform) + Vector(0.15 * random.uniform(-1, 1, 3))
    before_armature(ob, "LATTICE").object = lattice
    bpy.context.view_layer.objects.active = ob


def moved_by_modifiers(ob) -> None:
    before_armature(ob, "CAST").factor = 0.3
    before_armature(ob, "SMOOTH").iterations = 4


def before_armature(ob, kind: str) -> bpy.types.Modifier:
    name = ob.modifiers.new(kind.title(), kind).name
    ob.modifiers.move(ob.modifiers.find(name), ob.modifiers.find("Armature"))
    return ob.modifiers[name]


WAYS = {
    "shape key": moved_by_a_key,
    "pinned shape key": moved_by_a_pinned_key,
    "lattice": moved_by_a_lattice,
    "modifiers": moved_by_modifiers,
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def shaped(request):
    """A skinned mesh that is deformed before its armature deforms it, the active one."""
    ob, _ = rigged_tube()
    request.param(ob)
    bpy.context.view_layer.update()
    return ob


def shape_in_blender(ob) -> np.ndarray:
    """(N, 3) what Blender makes of the object without its armature."""
    armature = ob.modifiers["Armature"]
    armature.show_viewport = False
    bpy.context.view_layer.update()
    found = scenes.evaluated_positions(ob).astype(np.float64)
    armature.show_viewport = True
    bpy.context.view_layer.update()
    return found


def right_centers(ob) -> np.ndarray:
    skin = read_skin(bpy.context, ob)
    return bake_rotation_centers(shape_in_blender(ob), skin.triangles, skin.bones, skin.weights)[0]


def right_positions(ob, shape, centers) -> np.ndarray:
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    return skin_frame(shape, skin.bones, skin.weights, matrices, "CRS", centers)


def test_centers_of_what_the_armature_gets(shaped):
    blocks = scenes.data_blocks()
    shape, right = shape_in_blender(shaped), right_centers(shaped)
    size = diagonal(shaped)
    assert bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT") == {"FINISHED"}
    found, valid = read_centers(shaped)
    assert np.abs(found - right)[valid].max() < 1e-6 * size
    # The mesh itself is another shape.
    assert np.linalg.norm(shape - read_skin(bpy.context, shaped).rest, axis=1).max() > 0.01 * size
    assert bake_record(shaped).shape == CURRENT
    assert baking.bake_state(shaped) == baking.FRESH
    assert scenes.data_blocks() == blocks


def test_the_mesh_itself_by_default_and_the_user_is_told(shaped):
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    deformed, valid = read_centers(shaped)
    result = drain(baking.bake(bpy.context, [shaped], 0.1, 0.1, "rotation_center"))
    assert np.abs(read_centers(shaped)[0] - deformed)[valid].max() > 0.005 * diagonal(shaped)
    assert bake_record(shaped).shape == BASIS
    assert [note for note in result.notes if "Rest Shape" in note and shaped.name in note]
    assert result.notes[0] in result.summary()


@with_modifier
def test_the_modifier_turns_about_them(shaped):
    shape, right = shape_in_blender(shaped), right_centers(shaped)
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    bpy.ops.skinning.add_center_of_rotation_modifier()
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        difference = scenes.evaluated_positions(shaped) - right_positions(shaped, shape, right)
        assert np.abs(difference).max() < TOLERANCE * diagonal(shaped), frame


def test_a_frame_range_turns_about_them(shaped):
    shape, right = shape_in_blender(shaped), right_centers(shaped)
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    bpy.ops.skinning.crs_to_shape_keys(frame_start=4, frame_end=4)
    copy = bpy.data.objects[f"{shaped.name}_crs"]
    bpy.context.scene.frame_set(4)
    difference = scenes.evaluated_positions(copy) - right_positions(shaped, shape, right)
    assert np.abs(difference).max() < TOLERANCE * diagonal(shaped)


def test_the_preview_has_that_shape(shaped):
    shape = shape_in_blender(shaped)
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    try:
        bpy.ops.skinning.preview(mode="CRS")
        for _ in range(2):
            data = session.display.subject.data
            assert np.abs(data.rest + data.origin - shape).max() < 1e-6 * diagonal(shaped)
            session._refresh()
        # Reading evaluates the mesh, which is no edit: it would be read over and over.
        assert not session.display.subject.stale
        assert not bpy.app.timers.is_registered(session._refresh)
    finally:
        bpy.ops.skinning.preview(mode="OFF")


@with_modifier
def test_applied_transforms_keep_them():
    ob, _ = rigged_tube()
    moved_by_a_key(ob)
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    bpy.ops.skinning.add_center_of_rotation_modifier()
    for other in bpy.context.view_layer.objects:
        other.select_set(other == ob)
    bpy.ops.object.transform_apply(location=True, rotation=True, scale=True)
    # Blender moves the keys, too.
    skin = read_skin(bpy.context, ob)
    shape = np.empty((len(skin.rest), 3), np.float32)
    ob.data.shape_keys.key_blocks["Fitted"].points.foreach_get("co", shape.ravel())
    right = bake_rotation_centers(shape.astype(float), skin.triangles, skin.bones, skin.weights)[0]
    bpy.context.scene.frame_set(4)
    difference = scenes.evaluated_positions(ob) - right_positions(ob, shape, right)
    assert np.abs(difference).max() < TOLERANCE * diagonal(ob)


# When nothing is told


def little_key(ob):
    block = shape_key(ob, 0.02)
    block.value = 1.0


def muted_key(ob):
    moved_by_a_key(ob)
    ob.data.shape_keys.key_blocks["Fitted"].mute = True


def key_at_zero(ob):
    shape_key(ob, 0.8).value = 0.0


def after_the_armature(ob):
    ob.modifiers.new("Cast", "CAST").factor = 0.5


def turned_off(ob):
    before_armature(ob, "CAST").show_viewport = False


@pytest.mark.parametrize("change", [little_key, muted_key, key_at_zero, after_the_armature, turned_off])
def test_nothing_is_told_of_what_hardly_matters(change):
    ob, _ = rigged_tube()
    change(ob)
    result = drain(baking.bake(bpy.context, [ob], 0.1, 0.1, "rotation_center"))
    assert not result.notes


def test_added_vertices_have_no_shape_of_the_mesh():
    ob, _ = rigged_tube()
    before_armature(ob, "SUBSURF")
    assert bpy.ops.skinning.bake_rotation_centers() == {"FINISHED"}
    before = read_centers(ob)[0]
    with pytest.raises(RuntimeError, match="changes the number of vertices"):
        bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    assert np.array_equal(read_centers(ob)[0], before)
    assert bake_record(ob).shape == BASIS


def test_a_bake_of_an_older_version_is_of_the_mesh_itself():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers(rest_shape="CURRENT")
    del ob.data[BAKE_PROPERTY]["shape"]
    assert bake_record(ob).shape == BASIS


# Figure 3 of the evaluation: bones of the bind pose approximate the mesh; the root is not at the world's origin


def placed_anywhere(ob, rig, seed: int) -> None:
    """Mesh and armature at other places, the mesh as it was relative to the armature."""
    random = np.random.default_rng(seed)
    relative = rig.matrix_world.inverted() @ ob.matrix_world
    turn = Matrix.Rotation(random.uniform(1, 3), 4, Vector(random.normal(size=3)))
    rig.matrix_world = Matrix.Translation(random.normal(size=3)) @ turn @ Matrix.Scale(random.uniform(0.5, 2), 4)
    ob.matrix_world = rig.matrix_world @ relative
    bpy.context.view_layer.update()


@pytest.mark.parametrize("seed", range(3))
def test_bones_move_the_mesh_from_the_bind_pose_on(seed):
    """L = T B⁻¹: what a bone does in the world now, after what it does in the bind pose is undone."""
    ob, rig = rigged_tube(seed=seed)
    placed_anywhere(ob, rig, seed)
    bpy.context.scene.frame_set(4)
    skin = read_skin(bpy.context, ob)
    found = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    to_mesh = ob.matrix_world.inverted() @ rig.matrix_world
    for name, matrix in zip(skin.bone_names, found, strict=True):
        bind, now = to_mesh @ rig.data.bones[name].matrix_local, to_mesh @ rig.pose.bones[name].matrix
        assert np.abs(np.array(now @ bind.inverted())[:3] - matrix).max() < 1e-5
    # In the bind pose nothing moves, by any method.
    bpy.context.scene.frame_set(1)
    at_rest = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    centers = bake_rotation_centers(*arrays(skin))[0]
    for method in ("LBS", "DQS", "CRS"):
        positions = skin_frame(skin.rest, skin.bones, skin.weights, at_rest, method, centers)
        assert np.abs(positions - skin.rest).max() < 1e-5


def test_centers_do_not_depend_on_where_the_bones_are():
    """On mesh and weights alone: objects may be placed and rest bones moved without a new bake."""
    ob, rig = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    before = read_centers(ob)[0]
    placed_anywhere(ob, rig, 0)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.roll += 0.4
        bone.tail += Vector((0, 0.1, 0.2))
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = ob
    assert baking.bake_state(ob) == baking.FRESH
    bpy.ops.skinning.bake_rotation_centers()
    assert np.array_equal(read_centers(ob)[0], before)


def arrays(skin):
    return skin.rest, skin.triangles, skin.bones, skin.weights


def test_a_pose_made_the_rest_pose():
    """The mesh takes the shape of the pose, and the pose becomes the bones' rest: another bind pose, and a new bake."""
    ob, rig = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.frame_set(4)
    shape = scenes.evaluated_positions(ob)
    rig.animation_data_clear()
    write_attribute(ob.data, "position", "FLOAT_VECTOR", shape)
    ob.data.update()
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.armature_apply(selected=False)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = ob
    assert baking.bake_state(ob) == baking.STALE
    bpy.ops.skinning.bake_rotation_centers()
    skin = read_skin(bpy.context, ob)
    right = bake_rotation_centers(shape.astype(float), *arrays(skin)[1:])[0]
    assert np.abs(read_centers(ob)[0] - right).max() < 1e-6
    assert np.abs(bone_matrices(skin, bpy.context.evaluated_depsgraph_get()) - np.eye(3, 4)).max() < 1e-5
    assert np.abs(right_positions(ob, skin.rest, right) - shape).max() < 1e-5
