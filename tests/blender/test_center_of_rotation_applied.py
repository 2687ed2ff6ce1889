# SPDX-License-Identifier: GPL-3.0-or-later
"""The Center of Rotation modifier after Object > Apply and other edits of the mesh at rest, without baking again."""

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Vector

from skinning_tools.blender.center_records import CRS_PROPERTY, native_modifier
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core import rotation_centers as core
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.centers.baking import read_centers
from tests.blender import scenes
from tests.blender.crs_scenes import FRAMES, TOLERANCE, add
from tests.blender.skinned_meshes import diagonal, expected, rigged_tube

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on"),
]

TURN = (1.0, 0.7, 2.0)
SIMILARITIES = {
    "larger": {"scale": (2.5, 2.5, 2.5)},
    "smaller": {"scale": (0.1, 0.1, 0.1)},
    "all axes mirrored": {"scale": (-1.5, -1.5, -1.5)},
    "one axis mirrored": {"scale": (-1.0, 1.0, 1.0)},
    "turned": {"rotation_euler": TURN},
    "moved": {"location": (3.0, -2.0, 5.0)},
    "all": {"location": (3.0, -2.0, 5.0), "rotation_euler": TURN, "scale": (2.0, 2.0, 2.0)},
}
UNEVEN = {"scale": (1.0, 2.0, 0.5)}

# A character 5 long and 0.6 wide, made thinner: how much along its other axes, and what it is turned by then.
SHAPES = {
    "flat": (1.0, 0.0),
    "as paper": (1.0, 0.0005),
    "thin": (1.0, 0.005),
    "a rope": (0.05, 0.05),
    "a needle": (0.002, 0.002),
    "a band": (0.1, 0.001),
}
TURNS = {"straight": (0, 0, 0), "by an eighth": (np.pi / 4, 0, 0), "oblique": TURN, "an arm at rest": (0, 0.52, 0)}


def character(parented: bool, shaped: Matrix | None = None):
    """A tube with a belly on one side, so that its centers are not in its middle; mesh and armature in one place."""
    ob, rig = rigged_tube(rings=31, segments=12)
    rest = read_skin(bpy.context, ob).rest
    bulge = 0.2 * np.exp(-((rest[:, 0] - 2.2) ** 2)) * np.clip(rest[:, 2] / 0.3, 0, 1)
    move(ob, rest + np.stack([0 * bulge, 0.3 * bulge, bulge], axis=-1))
    for each in (ob, rig):
        each.location, each.rotation_euler, each.scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    if shaped is not None:
        ob.data.transform(shaped)
    if parented:
        ob.parent = rig
    bpy.context.view_layer.update()
    add(ob)
    return ob, rig


def move(ob, positions) -> None:
    ob.data.attributes["position"].data.foreach_set("vector", np.asarray(positions, np.float32).ravel())
    ob.data.update()


def apply(objects, placed, given) -> None:
    """Give ``placed`` a transform, and apply what that does to ``objects``."""
    for name, value in given.items():
        setattr(placed, name, value)
    bpy.context.view_layer.update()
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob in objects)
    bpy.context.view_layer.objects.active = objects[0]
    assert bpy.ops.object.transform_apply(location=True, rotation=True, scale=True) == {"FINISHED"}


def error(ob, centers) -> float:
    """Of the modifier against core with ``centers``, over all frames; as a share of the mesh's size."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        skin = read_skin(bpy.context, ob)
        matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
        right = skin_frame(skin.rest, skin.bones, skin.weights, matrices, "CRS", centers)
        found.append(np.abs(scenes.evaluated_positions(ob) - right).max())
    return max(found) / diagonal(ob)


def baked_anew(ob) -> np.ndarray:
    """The centers that the mesh has as it is now, which is not changed."""
    skin = read_skin(bpy.context, ob)
    return core.bake_rotation_centers(skin.rest, skin.triangles, skin.bones, skin.weights)[0]


def turns_about_centers(ob) -> bool:
    bpy.context.scene.frame_set(4)
    return np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max() > 1e-3 * diagonal(ob)


@pytest.mark.parametrize("given", SIMILARITIES.values(), ids=SIMILARITIES)
@pytest.mark.parametrize("who", ["mesh", "armature", "both"])
def test_applied_transforms(who, given):
    ob, rig = character(parented=who != "mesh")
    placed = ob if who == "mesh" else rig
    apply({"mesh": [ob], "armature": [rig], "both": [rig, ob]}[who], placed, given)
    assert error(ob, baked_anew(ob)) < TOLERANCE
    assert turns_about_centers(ob)


@pytest.mark.parametrize("who", ["mesh", "armature", "both"])
def test_applied_uneven_scale(who):
    """The centers follow the mesh: close to those of a new bake, in which larger faces count for more."""
    ob, rig = character(parented=who != "mesh")
    centers = read_centers(ob)[0]
    placed = ob if who == "mesh" else rig
    apply({"mesh": [ob], "armature": [rig], "both": [rig, ob]}[who], placed, UNEVEN)
    if who != "armature":
        centers = centers * np.array(UNEVEN["scale"], np.float32)
    assert error(ob, centers) < TOLERANCE
    assert error(ob, baked_anew(ob)) < 2e-3


def test_many_small_steps():
    ob, _ = character(parented=False)
    for seed in range(5):
        random = np.random.default_rng(seed)
        scale = (random.uniform(0.5, 2),) * 3
        apply([ob], ob, {"location": random.normal(size=3), "rotation_euler": random.normal(size=3), "scale": scale})
    assert error(ob, baked_anew(ob)) < TOLERANCE


def by_script(ob):
    ob.data.transform(Matrix.LocRotScale(Vector((1, 2, 3)), Euler(TURN), Vector((3, 3, 3))))


def origin_to_geometry(ob):
    bpy.ops.object.origin_set(type="ORIGIN_GEOMETRY")


def in_edit_mode(ob):
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.transform.resize(value=(3, 3, 3))
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.parametrize("change", [by_script, origin_to_geometry, in_edit_mode])
def test_data_moved_by_other_means(change):
    ob, _ = character(parented=False)
    before = np.array([vertex.co for vertex in ob.data.vertices])
    change(ob)
    assert np.abs(np.array([vertex.co for vertex in ob.data.vertices]) - before).max() > 0.1
    assert error(ob, baked_anew(ob)) < TOLERANCE


def test_with_shape_keys():
    ob, _ = rigged_tube()
    block = scenes.shape_keys(ob, count=1)[0]
    block.value = 0.3
    add(ob)
    apply([ob], ob, SIMILARITIES["all"])
    centers = baked_anew(ob)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        skin = read_skin(bpy.context, ob)
        own = np.empty(skin.rest.size, np.float32)
        ob.data.shape_keys.key_blocks[1].points.foreach_get("co", own)
        shaped = skin.rest + 0.3 * (own.reshape(-1, 3) - skin.rest)
        matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
        right = skin_frame(shaped, skin.bones, skin.weights, matrices, "CRS", centers)
        assert np.abs(scenes.evaluated_positions(ob) - right).max() < TOLERANCE * diagonal(ob), frame


def test_a_flat_mesh():
    ob, _ = rigged_tube()
    rest = read_skin(bpy.context, ob).rest
    move(ob, rest * (1, 1, 0))
    for name in ("location", "rotation_euler"):
        setattr(ob, name, (0, 0, 0))
    add(ob)
    apply([ob], ob, SIMILARITIES["all"])
    assert error(ob, baked_anew(ob)) < TOLERANCE


def thinned(shape: str, turn: str) -> tuple[bpy.types.Object, Matrix]:
    """The character as one of the ``SHAPES`` and ``TURNS``, and the map that has made it so."""
    made = Euler(TURNS[turn]).to_matrix().to_4x4() @ Matrix.Diagonal((1, *SHAPES[shape], 1))
    return character(parented=False, shaped=made)[0], made


def applied_location(ob):
    apply([ob], ob, {"location": (1, 0, 0)})


def applied_location_far_away(ob):
    apply([ob], ob, {"location": (30, -20, 50)})


def applied_rotation(ob):
    apply([ob], ob, {"rotation_euler": (0.3, 0.2, 0.1)})


def one_vertex_moved(ob):
    ob.data.vertices[0].co.z += 1e-4
    ob.data.update()


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_thin_shapes(shape, turn):
    """Thin meshes are compared as exactly as others: rounding must not count as a short axis."""
    ob = thinned(shape, turn)[0]
    # One after the other: each is a change against what the centers belong to.
    for change in (one_vertex_moved, applied_location, applied_rotation, applied_location_far_away):
        change(ob)
        assert error(ob, baked_anew(ob)) < TOLERANCE, change


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("shape", ["as paper", "thin", "a rope", "a needle", "a band"])
def test_thin_shapes_that_get_thick(shape, turn):
    ob, made = thinned(shape, turn)
    centers = read_centers(ob)[0]
    back = np.array(made.inverted())
    ob.data.transform(made.inverted())
    ob.data.update()
    assert error(ob, centers @ back[:3, :3].T) < TOLERANCE
    assert turns_about_centers(ob)


def test_in_edit_mode_it_follows_as_well():
    ob, _ = character(parented=False)
    apply([ob], ob, SIMILARITIES["all"])
    bpy.context.scene.frame_set(4)
    before = scenes.evaluated_positions(ob)
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    shown = np.array([vertex.co for vertex in evaluated.to_mesh().vertices])
    bpy.ops.object.mode_set(mode="OBJECT")
    assert np.abs(shown - before).max() < TOLERANCE * diagonal(ob)


# Edits that no map tells of


def test_centers_move_with_the_vertices_that_are_edited():
    ob, _ = character(parented=False)
    rest, centers = read_skin(bpy.context, ob).rest, read_centers(ob)[0].astype(np.float64)
    hand = rest[:, 0] > 4.5
    offset = np.array([0.02, 0.03, -0.05])
    move(ob, rest + hand[:, None] * offset)
    assert error(ob, centers + hand[:, None] * offset) < 5e-4


def test_vertices_removed():
    ob, _ = character(parented=False)
    apply([ob], ob, SIMILARITIES["all"])
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    for vertex in list(ob.data.vertices)[::3][:60]:
        vertex.select = True
    # The centers that are kept.
    kept = [not vertex.select for vertex in ob.data.vertices]
    centers = baked_anew(ob)[kept]
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")
    assert len(ob.data.vertices) == sum(kept)
    assert error(ob, centers) < TOLERANCE


def test_another_shape_altogether_is_off():
    ob, _ = character(parented=False)
    rest = read_skin(bpy.context, ob).rest
    # Bent to a half circle: no map does that.
    angle, radius = np.pi * rest[:, 0] / 5, 5 / np.pi + rest[:, 2]
    move(ob, np.stack([np.sin(angle) * radius, rest[:, 1], np.cos(angle) * radius], axis=-1))
    bpy.context.view_layer.update()
    assert not turns_about_centers(ob)
    bpy.ops.skinning.bake_rotation_centers()
    assert turns_about_centers(ob)
    assert error(ob, read_centers(ob)[0]) < TOLERANCE


def test_a_mesh_joined_to_it_does_not_count():
    ob, _ = character(parented=False)
    other = scenes.grid(20, 20)
    other.location = (30, 40, 50)
    count = len(ob.data.vertices)
    centers = read_centers(ob)[0]
    bpy.context.scene.frame_set(4)
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    right = skin_frame(skin.rest, skin.bones, skin.weights, matrices, "CRS", centers)
    bpy.context.view_layer.objects.active = ob
    for each in (ob, other):
        each.select_set(True)
    bpy.ops.object.join()
    assert len(ob.data.vertices) > count
    assert np.abs(scenes.evaluated_positions(ob)[:count] - right).max() < TOLERANCE * np.abs(right).max()


# What it needs is put back


@pytest.mark.parametrize("own", [False, True])
def test_removing_restores_the_rest_positions(own):
    ob, _ = character(parented=False)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    ob.add_rest_position_attribute = own
    names = sorted(attribute.name for attribute in ob.data.attributes)
    for _ in range(2):
        bpy.ops.skinning.add_center_of_rotation_modifier()
        assert ob.add_rest_position_attribute
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert ob.add_rest_position_attribute == own
    assert sorted(attribute.name for attribute in ob.data.attributes) == names


def test_a_copy_with_shape_keys_has_no_attributes_of_the_modifier():
    ob, _ = character(parented=False)
    bpy.ops.skinning.crs_to_shape_keys(frame_start=1, frame_end=3)
    copy = bpy.data.objects[f"{ob.name}_crs"]
    assert ob.add_rest_position_attribute
    assert not copy.add_rest_position_attribute
    assert not [attribute.name for attribute in copy.data.attributes if attribute.name.startswith("skinning_")]


def test_a_modifier_of_an_older_file_plays_and_is_removed():
    """The mesh lacks the copy of the positions and the notes about it."""
    ob, _ = character(parented=False)
    ob.data.attributes.remove(ob.data.attributes["skinning_rest"])
    ob.add_rest_position_attribute = False
    del native_modifier(ob).node_group[CRS_PROPERTY]["rest_position"]
    bpy.context.view_layer.update()
    assert error(ob, read_centers(ob)[0]) < TOLERANCE
    ob.modifiers["Armature"].show_render = False
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    assert ob.modifiers["Armature"].show_viewport
