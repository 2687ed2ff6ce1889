# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of containment binding: the shown volumes are the ones used; editing, mirroring and removing them."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.blender.bodies import deforming_bones, read_body, read_skeleton, stretch_of
from skinning_tools.core.binding.containment import KINDS, Volume, containment_volumes
from skinning_tools.features.bind.volumes import read_volumes, volumes_of, wire_shape
from tests.blender import refusals, scenes
from tests.blender.binding_scenes import activate, armature_of_segments, check_bound, cube, tube, weights_of
from tests.blender.refusals import refused

pytestmark = pytest.mark.usefixtures("extension")

every_kind = pytest.mark.parametrize("kind", KINDS)


def generated(**settings):
    """The volumes of the armature, by the bone's name."""
    assert bpy.ops.skinning.generate_volumes(**settings) == {"FINISHED"}
    bpy.context.view_layer.update()
    return by_bone(bpy.data.objects["Rig"])


def by_bone(rig):
    return {ob["skinning_volume"]["bone"]: ob for ob in volumes_of(rig)}


def read(ob, rig):
    return read_volumes(ob, rig, deforming_bones(rig))


@every_kind
@pytest.mark.parametrize("radii", [(0.3, 1.2, 0.5), (1.0, 0.4, 0.7), (2.0, 2.0, 2.0)])
def test_the_shape_shown_is_the_surface_that_is_scored(kind, radii):
    points, edges = wire_shape(kind, radii)
    assert np.allclose(Volume(0, kind, np.eye(4), np.array(radii)).depth(points), 1, atol=1e-9)
    assert np.allclose(np.abs(points).max(axis=0), radii, rtol=0.01)
    # Closed loops, or the edges of a box.
    assert set(np.unique(edges, return_counts=True)[1]) == ({3} if kind == "BOX" else {2})


@every_kind
@pytest.mark.parametrize("scale", [(1.2, 1.2, 1.2), (0.5, -2.0, 1.0)])
def test_generated_volumes_are_read_back(kind, scale):
    ob, rig = tube()
    ob.scale = scale
    bpy.context.view_layer.update()
    body, skeleton = read_body(ob), read_skeleton(ob, rig)
    made = containment_volumes(body, skeleton, kind)
    generated(kind=kind)
    found, notes = read(ob, rig)
    assert not notes
    assert {volume.kind for volume in found} == {kind}
    for volume, expected in zip(found, made, strict=True):
        assert volume.bone == expected.bone
        scale = np.diag([*expected.radii, 1.0])
        assert np.allclose(volume.depth(body.rest), expected.depth(body.rest), rtol=1e-4, atol=1e-5)
        assert np.allclose(volume.matrix @ np.diag([*volume.radii, 1.0]), expected.matrix @ scale, atol=1e-5)


def test_an_unevenly_scaled_armature_shears_nothing():
    ob, rig = tube()
    rig.animation_data_clear()
    rig.scale = (1.0, 0.4, 2.0)
    bpy.context.view_layer.update()
    body = read_body(ob)
    made = containment_volumes(body, read_skeleton(ob, rig))
    generated()
    for volume, expected in zip(read(ob, rig)[0], made, strict=True):
        assert np.allclose(volume.depth(body.rest), expected.depth(body.rest), rtol=1e-5, atol=1e-5)


def test_they_are_wire_shapes_in_a_collection_of_their_own():
    _, rig = tube()
    state = scenes.ui_state()
    volumes = generated()
    assert scenes.ui_state() == state
    assert sorted(volumes) == [f"Bone {index}" for index in range(5)]
    for volume in volumes.values():
        assert (volume.display_type, volume.hide_render, volume.parent, volume.parent_type) == (
            "WIRE", True, rig, "OBJECT"
        )  # fmt: skip
        assert [c.name for c in volume.users_collection] == ["Rig_volumes"]
        assert volume.visible_get()
    assert bpy.data.collections["Rig_volumes"].hide_render


def test_volumes_surround_the_rest_pose_and_follow_the_armature_object():
    _, rig = tube()
    places = []
    for frame in (1, 8):
        bpy.context.scene.frame_set(frame)
        places.append([np.array(volume.matrix_world) for volume in generated().values()])
    assert np.allclose(*places, atol=1e-6)
    middles = [bone.head_local.lerp(bone.tail_local, 0.5) for bone in rig.data.bones]
    for volume, middle in zip(by_bone(rig).values(), middles, strict=True):
        assert np.allclose(volume.matrix_world.translation, rig.matrix_world @ middle, atol=1e-5)
    rig.location.x += 3
    bpy.context.view_layer.update()
    moved = [np.array(volume.matrix_world) for volume in by_bone(rig).values()]
    assert np.allclose(np.array(moved)[:, 0, 3] - np.array(places[1])[:, 0, 3], 3, atol=1e-5)


def test_bind_uses_them_as_they_are():
    ob, rig = tube()
    bpy.ops.skinning.bind(method="CONTAINMENT")
    silent = weights_of(ob, rig)
    assert not volumes_of(rig)
    volumes = generated()
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    assert np.allclose(weights_of(ob, rig), silent, atol=5e-6)
    volumes["Bone 2"].scale = [4 * value for value in volumes["Bone 2"].scale]
    bpy.context.view_layer.update()
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    wide = check_bound(ob, rig)
    assert wide[:, 2].sum() > 1.5 * silent[:, 2].sum()
    # The volumes are for this method alone.
    bpy.ops.skinning.bind(method="RIGID", replace=True)
    rigid = weights_of(ob, rig)
    bpy.ops.skinning.remove_volumes()
    bpy.ops.skinning.bind(method="RIGID", replace=True)
    assert np.array_equal(weights_of(ob, rig), rigid)


def test_a_posed_armature_and_hidden_volumes_make_no_difference():
    ob, rig = tube()
    volumes = generated()
    volumes["Bone 1"].location.x += 0.2
    bpy.context.view_layer.update()
    expected = [volume.matrix for volume in read(ob, rig)[0]]
    scenes.layer_collection("Rig_volumes").exclude = True
    bpy.context.scene.frame_set(8)
    assert np.allclose(expected, [volume.matrix for volume in read(ob, rig)[0]], atol=1e-6)


@every_kind
@pytest.mark.parametrize("way", ["object", "mesh", "applied"])
def test_moved_rotated_and_scaled_in_any_way(kind, way):
    """As an object, all vertices in Edit Mode, or by an object whose transform is applied."""
    ob, rig = tube()
    volume = generated(kind=kind)["Bone 1"]
    change = (
        Matrix.Translation((0.1, 0.2, 0.3)) @ Matrix.Rotation(0.7, 4, (1, 2, 3)) @ Matrix.Diagonal((1.5, 2, 0.7, 1))
    )
    if way == "mesh":
        volume.data.transform(change)
    else:
        volume.matrix_basis = volume.matrix_basis @ change
    if way == "applied":
        activate(volume)
        bpy.ops.object.transform_apply()
        activate(ob)
    bpy.context.view_layer.update()
    world = np.array([volume.matrix_world @ vertex.co for vertex in volume.data.vertices])
    stretch = stretch_of(ob)
    shown = np.array(
        [stretch @ (ob.matrix_world.inverted() @ Matrix.Translation(point)).translation for point in world]
    )
    found = {v.bone: v for v in read(ob, rig)[0]}[1]
    assert np.allclose(found.depth(shown), 1, atol=2e-5)


def test_a_tapered_box_counts_as_it_is():
    """Its end toward the next bone is a third as wide: what is beside it there goes to the next bone."""
    ob, rig = tube()
    box = generated(kind="BOX")["Bone 1"]
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    before = weights_of(ob, rig)
    for vertex in box.data.vertices:
        if vertex.co.y > 0:
            vertex.co.x, vertex.co.z = vertex.co.x / 3, vertex.co.z / 3
    volume = {each.bone: each for each in read(ob, rig)[0]}[1]
    assert volume.kind == "MESH"
    world = np.array([box.matrix_world @ vertex.co for vertex in box.data.vertices])
    inverse, stretch = np.array(ob.matrix_world.inverted()), np.array(stretch_of(ob))
    shown = (world @ inverse[:3, :3].T + inverse[:3, 3]) @ stretch.T
    np.testing.assert_allclose(volume.depth(shown), 1, atol=1e-5)
    assert volume.depth(0.9 * shown + 0.1 * shown.mean(axis=0)).max() < 1
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    after = check_bound(ob, rig)
    assert after[:, 1].sum() < 0.97 * before[:, 1].sum()
    # As if it were another mesh, given to the object.
    box.data = box.data.copy()
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    np.testing.assert_allclose(weights_of(ob, rig), after, atol=1e-6)


def test_a_tapered_box_is_mirrored():
    ob, rig = sides()
    left = generated(kind="BOX")["arm.L"]
    left.data.vertices[0].co *= 0.5
    activate(left, ob)
    bpy.ops.skinning.mirror_volumes()
    activate(ob)
    found = {each.bone: each for each in read(ob, rig)[0]}
    names = deforming_bones(rig)
    assert {found[names.index(name)].kind for name in ("arm.L", "arm.R")} == {"MESH"}
    points = 3 * np.random.default_rng(0).normal(size=(50, 3))
    depths = found[names.index("arm.L")].depth(points)
    np.testing.assert_allclose(found[names.index("arm.R")].depth(points * [-1, 1, 1]), depths, atol=1e-4)


def test_an_open_shape_is_reported():
    ob, rig = tube()
    volume = generated()["Bone 1"]
    volume.data.vertices[3].co.x += 0.2
    told = '"Bone 1_volume" was edited, and its shape cannot be used. It is not closed: '
    refused("bind", f"{told}it has no faces", method="CONTAINMENT")
    generated(kind="BOX")
    activate(by_bone(rig)["Bone 1"])
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide()
    bpy.ops.object.mode_set(mode="OBJECT")
    mesh = by_bone(rig)["Bone 1"].data
    activate(ob)
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    kept = [tuple(face.vertices) for face in mesh.polygons][1:]
    points = [tuple(vertex.co) for vertex in mesh.vertices]
    mesh.clear_geometry()
    mesh.from_pydata(points, [], kept)
    refused("bind", f"{told}4 of its edges are open", method="CONTAINMENT", replace=True)


def test_a_flat_volume_is_reported():
    tube()
    generated()["Bone 1"].scale.z = 0
    refused("bind", '"Bone 1_volume" is flat. Scale it up', method="CONTAINMENT")


def test_a_damaged_property_is_reported():
    tube()
    generated()["Bone 1"]["skinning_volume"] = 3
    refused(
        "bind", 'property "skinning_volume" of the volume "Bone 1_volume" was changed by hand', method="CONTAINMENT"
    )


def test_a_volume_in_edit_mode_is_reported():
    tube()
    activate(generated()["Bone 1"])
    bpy.ops.object.mode_set(mode="EDIT")
    for operator in (bpy.ops.skinning.remove_volumes, bpy.ops.skinning.generate_volumes):
        with refusals.raises_unmet('MODE "Bone 1_volume" … Edit Mode'):
            operator()
    bpy.ops.object.mode_set(mode="OBJECT")


def test_deleted_volumes_leave_their_bones_without_weights(capfd):
    ob, rig = tube()
    volume = generated()["Bone 2"]
    activate(volume)
    bpy.ops.object.delete()
    activate(ob)
    bpy.ops.skinning.bind(method="CONTAINMENT")
    assert not check_bound(ob, rig)[:, 2].any()
    assert "Bone 2: no volume, so no weights" in capfd.readouterr().out


def test_volumes_of_deleted_bones_are_ignored(capfd):
    ob, rig = tube()
    generated()
    rig.data.bones["Bone 2"].use_deform = False
    rig.data.bones["Bone 3"].name = "New"
    bpy.ops.skinning.bind(method="CONTAINMENT")
    said = capfd.readouterr().out
    assert "Bone 2, Bone 3: volumes of bones that are missing or do not deform" in said
    assert "New: no volume, so no weights" in said
    check_bound(ob, rig)


def test_a_locked_bone_is_left_out_quietly(capfd):
    ob, rig = tube()
    generated()
    ob.vertex_groups.new(name="Bone 2").lock_weight = True
    bpy.ops.skinning.bind(method="CONTAINMENT")
    assert "volume" not in capfd.readouterr().out.split("bound", 1)[1]
    assert not check_bound(ob, rig)[:, 2].any()


def test_a_copy_is_a_second_volume_of_its_bone():
    ob, rig = tube()
    end = np.argmax([vertex.co.x for vertex in ob.data.vertices])
    volume = generated()["Bone 0"]
    bpy.ops.skinning.bind(method="CONTAINMENT")
    assert weights_of(ob, rig)[end, 0] < 0.02
    activate(volume)
    bpy.ops.object.duplicate()
    copy = bpy.context.object
    copy.location = by_bone(rig)["Bone 4"].location
    copy.scale = [3 * value for value in copy.scale]
    bpy.context.view_layer.update()
    activate(ob)
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    assert check_bound(ob, rig)[end, 0] > 0.2


def test_several_meshes_share_the_volumes():
    ob, rig = tube()
    world = np.array(ob.matrix_world)
    bpy.ops.skinning.generate_volumes()
    alone = [volume.radii for volume in read(ob, rig)[0]]
    ring = scenes.mesh_object(
        [(world @ [2.5, 3 * np.cos(a), 3 * np.sin(a), 1])[:3] for a in np.arange(600)], name="Ring"
    )
    activate(rig, ob, ring)
    bpy.ops.skinning.generate_volumes()
    both = [volume.radii for volume in read(ob, rig)[0]]
    assert both[2][0] > 2 * alone[2][0]
    bpy.ops.skinning.bind(method="CONTAINMENT")
    check_bound(ring, rig)


def test_generating_again_replaces_them_all():
    _, rig = tube()
    volumes = generated()
    volumes["Bone 1"].location.x += 5
    blocks = scenes.data_blocks()
    generated()
    assert scenes.data_blocks() == blocks
    assert abs(by_bone(rig)["Bone 1"].location.x - 1.5) < 0.1
    generated(kind="BOX")
    assert {len(volume.data.vertices) for volume in volumes_of(rig)} == {8}


def test_removing_leaves_nothing():
    tube()
    before = scenes.data_blocks()
    generated()
    assert bpy.ops.skinning.remove_volumes() == {"FINISHED"}
    assert scenes.data_blocks() == before
    refused("remove_volumes", '"Rig" has no volumes')


def test_the_artists_objects_in_the_collection_stay():
    tube()
    generated()
    light = bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT"))
    bpy.data.collections["Rig_volumes"].objects.link(light)
    bpy.ops.skinning.remove_volumes()
    assert [o.name for o in bpy.data.collections["Rig_volumes"].objects] == ["Lamp"]


def test_an_active_volume_stands_for_its_armature():
    ob, rig = tube()
    armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
    activate(ob, rig)
    volume = generated()["Bone 1"]
    activate(volume, ob)
    bpy.ops.skinning.bind(method="CONTAINMENT")
    check_bound(ob, rig)
    assert not volume.modifiers
    activate(volume)
    bpy.ops.skinning.bind(method="CONTAINMENT", replace=True)
    # Without a mesh selected: those that the volume was made for.
    ob.vertex_groups.clear()
    ob.modifiers.clear()
    bpy.ops.skinning.bind(method="CONTAINMENT")
    check_bound(ob, rig)
    bpy.ops.skinning.remove_volumes()
    assert not volumes_of(rig)


def sides():
    """A bar along x and an armature with a bone to either side and one between."""
    scenes.empty_scene()
    rig = armature_of_segments([[(-0.5, 0, 0), (0.5, 0, 0)], [(0.5, 0, 0), (3, 0, 0)], [(-0.5, 0, 0), (-3, 0, 0)]])
    for bone, name in zip(rig.data.bones, ("spine", "arm.L", "arm.R"), strict=True):
        bone.name = name
    rig.location, rig.rotation_euler = (1, 2, 3), (0.1, 0.2, 0.3)
    ob = cube("Bar", (0, 0, 0), 1)
    ob.data.transform(Matrix.Diagonal((7, 1, 1, 1)))
    ob.parent = rig
    activate(ob)
    bpy.context.view_layer.update()
    return ob, rig


@every_kind
@pytest.mark.parametrize("mesh_too", [False, True])
def test_the_other_side_gets_the_mirror_image(kind, mesh_too):
    ob, rig = sides()
    volumes = generated(kind=kind)
    left = volumes["arm.L"]
    left.location, left.rotation_euler, left.scale = (2, 0.3, 0.1), (0.4, 0.5, 1.2), (0.5, 1.5, 0.7)
    if mesh_too:
        left.data.transform(Matrix.Rotation(0.3, 4, "X") @ Matrix.Diagonal((1, 1.5, 2, 1)))
    bpy.context.view_layer.update()
    middle = np.array(volumes["spine"].matrix_world)
    refused("mirror_volumes", "No volume is selected")
    activate(left, volumes["spine"])
    assert bpy.ops.skinning.mirror_volumes() == {"FINISHED"}
    bpy.context.view_layer.update()
    assert len(volumes_of(rig)) == 3
    assert np.array_equal(by_bone(rig)["spine"].matrix_world, middle)
    found = {rig.data.bones[v.bone].name: v for v in read(ob, rig)[0]}
    points = np.random.default_rng(0).normal(scale=2, size=(200, 3))
    flipped = points * [-1, 1, 1]
    # The mesh's space is the armature's.
    assert np.allclose(found["arm.L"].depth(points), found["arm.R"].depth(flipped), rtol=2e-5)


def test_examples_that_cannot_be_mirrored():
    _, _ = sides()
    volumes = generated()
    activate(volumes["spine"])
    refused("mirror_volumes", "None of the selected volumes has a bone on the other side")
    activate(volumes["arm.L"], volumes["arm.R"])
    refused("mirror_volumes", "Volumes of both sides are selected: arm.L, arm.R")


def test_volumes_of_an_overridden_character(tmp_path):
    own = scenes.overridden(tube(), tmp_path / "library.blend")
    activate(own["MESH"], own["ARMATURE"])
    assert bpy.ops.skinning.generate_volumes() == {"FINISHED"}
    volumes = volumes_of(own["ARMATURE"])
    assert {ob.visible_get() for ob in volumes} == {True}
    scenes.reopened(tmp_path / "shot.blend")
    (rig,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob.override_library is not None)
    assert len(volumes_of(rig)) == len(rig.data.bones)
