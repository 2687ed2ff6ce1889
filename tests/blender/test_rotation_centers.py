# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Centers of Rotation: its result, what it refuses, and whether a bake is up to date."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from skinning_tools.blender import center_records
from skinning_tools.blender.skin_reader import read_skin
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.rotation_centers import bake_rotation_centers, mirror_pairs
from skinning_tools.features.centers import baking
from skinning_tools.features.centers.bake_state import shown_bake_state
from skinning_tools.features.centers.baking import FRESH, MISSING, STALE, UNKNOWN, bake_record, bake_state
from skinning_tools.features.centers.operators import SKINNING_OT_bake_rotation_centers
from skinning_tools.features.centers.settings import BakeSettings
from tests.blender import binding_scenes, moving_meshes, refusals, scenes, skinned_meshes
from tests.blender.bad_skins import BAD_SCENES, UNEVEN_SCENES
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def tube():
    return rigged_tube()[0]


def bake(**given):
    return bpy.ops.skinning.bake_rotation_centers(**given)


def attribute(ob, name: str) -> np.ndarray:
    found = ob.data.attributes[name]
    assert found.domain == "POINT"
    vector = found.data_type == "FLOAT_VECTOR"
    assert vector or found.data_type == "BOOLEAN"
    values = np.empty((len(found.data), 3), np.float32) if vector else np.empty(len(found.data), bool)
    found.data.foreach_get("vector" if vector else "value", values.ravel() if vector else values)
    return values


def refused(ob, *parts: str, **given) -> None:
    """Attributes and the mesh's record are as before, too."""

    def state() -> tuple:
        return moving_meshes.state(), attribute_names(ob), ob.data.get(center_records.BAKE_PROPERTY)

    refusals.refused(bake, *parts, state=state, **given)


def attribute_names(ob) -> list[str]:
    return sorted(found.name for found in ob.data.attributes) if not ob.data.is_editmode else []


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.1, 0.1), (0.3, 0.0)])
def test_attributes_hold_what_core_bakes(tube, sigma, epsilon):
    assert bake(sigma=sigma, subdivision_epsilon=epsilon, attribute_name="cor") == {"FINISHED"}
    skin = read_skin(bpy.context, tube)
    # Blender's properties are in single precision.
    sigma, epsilon = float(np.float32(sigma)), float(np.float32(epsilon))
    centers, valid = bake_rotation_centers(
        skin.rest, skin.triangles, skin.bones, skin.weights, sigma=sigma, subdivision_epsilon=epsilon
    )
    assert np.array_equal(attribute(tube, "cor"), centers)
    assert np.array_equal(attribute(tube, "cor_valid"), valid)
    assert 0 < valid.sum() < len(valid)
    record = bake_record(tube)
    assert (record.attribute, record.center_count) == ("cor", valid.sum())
    assert (record.sigma, record.subdivision_epsilon) == pytest.approx((sigma, epsilon))


def test_the_bake_records_its_settings(tube):
    bake()
    assert (attribute(tube, "rotation_center").shape, attribute(tube, "rotation_center_valid").dtype) == (
        (len(tube.data.vertices), 3),
        bool,
    )
    record = bake_record(tube)
    assert (record.sigma, record.subdivision_epsilon) == pytest.approx((0.1, 0.1))


def test_report_has_the_counts(tube):
    result, _ = scenes.drain(baking.bake(bpy.context, [tube], 0.1, 0.1, "rotation_center"))
    count = int(attribute(tube, "rotation_center_valid").sum())
    assert f"{count} with a center, {len(tube.data.vertices) - count} without" in result.summary()


def test_symmetrized_centers_mirror_each_other(tube):
    skin = read_skin(bpy.context, tube)
    tube.data.attributes["position"].data.foreach_set("vector", (skin.rest - (2.5, 0, 0)).astype(np.float32).ravel())
    tube.data.update()
    group = tube.vertex_groups["Bone 1"]
    for vertex in np.flatnonzero((skin.rest[:, 0] < 2) & (skin.rest[:, 0] > 1)).tolist():
        group.add([vertex], 0.5 * group.weight(vertex), "REPLACE")
    pairs = mirror_pairs(read_skin(bpy.context, tube).rest)
    assert (pairs >= 0).all()
    bake()
    flip = np.array([-1, 1, 1])
    before = attribute(tube, "rotation_center")
    assert np.abs(before[pairs] * flip - before).max() > 1e-3
    bake(symmetrize=True)
    centers = attribute(tube, "rotation_center")
    assert np.abs(centers[pairs] * flip - centers).max() < 1e-6
    assert bake_record(tube).symmetrize


def test_baking_again_keeps_one_pair_of_attributes(tube):
    bake()
    names, first = attribute_names(tube), attribute(tube, "rotation_center")
    bake(sigma=0.5)
    assert attribute_names(tube) == names
    assert np.abs(attribute(tube, "rotation_center") - first).max() > 1e-4


def test_one_undo_step(tube):
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="Before")
    bpy.ops.skinning.bake_rotation_centers("EXEC_DEFAULT", True)
    assert bake_state(tube) == FRESH
    bpy.ops.ed.undo()
    assert bake_state(bpy.data.objects["Arm"]) == MISSING
    assert "rotation_center" not in bpy.data.objects["Arm"].data.attributes


def test_cancelling_leaves_nothing(tube):
    before, names = moving_meshes.state(), attribute_names(tube)
    steps = baking.bake(bpy.context, [tube], 0.1, 0.1, "rotation_center")
    next(steps)
    steps.close()
    assert (moving_meshes.state(), attribute_names(tube), bake_state(tube)) == (before, names, MISSING)


def test_the_mesh_must_not_change_meanwhile(tube):
    steps = baking.bake(bpy.context, [tube], 0.1, 0.1, "rotation_center")
    next(steps)
    tube.data.vertices.add(1)
    with refusals.raises_unmet('EDITED "Arm"'):
        scenes.drain(steps)
    assert bake_state(tube) == MISSING


@pytest.mark.parametrize(
    ("spoil", "parts"),
    BAD_SCENES + UNEVEN_SCENES,
    ids=[spoil.__name__ for spoil, _ in BAD_SCENES + UNEVEN_SCENES],
)
def test_bad_scenes(tube, spoil, parts):
    spoil(tube, bpy.data.objects["Rig"])
    bpy.context.view_layer.objects.active = tube
    bpy.context.view_layer.update()
    refused(tube, *parts)


@pytest.mark.parametrize("sigma", [0.0, -0.5])
def test_sigma_must_be_positive(tube, sigma):
    refused(tube, f"OUT_OF_RANGE Sigma … at least 0.0001 … {sigma:g}", sigma=sigma)


def test_epsilon_must_not_be_negative(tube):
    refused(tube, "OUT_OF_RANGE Subdivision … at least 0 … -0.1", subdivision_epsilon=-0.1)


def test_epsilon_is_off_or_not_too_small():
    tube, _ = rigged_tube(bone_count=2, rings=21, segments=3)
    refused(tube, "must be 0 (off) or at least 0.001", subdivision_epsilon=0.0009)
    assert bake(subdivision_epsilon=0.001) == {"FINISHED"}
    assert bake(subdivision_epsilon=0.0) == {"FINISHED"}


def test_every_vertex_on_one_bone(tube):
    tube.vertex_groups.clear()
    count = len(tube.data.vertices)
    write_weights(tube, ["Bone 0", "Bone 1"], np.arange(count)[:, None] % 2, np.ones((count, 1)))
    refused(tube, "Nothing needs a center of rotation", '"Arm"', "Enable Deform")


def test_groups_without_weights(tube):
    for group in tube.vertex_groups:
        group.remove(range(len(tube.data.vertices)))
    refused(tube, "No vertex", '"Arm"', "weight")


def test_no_faces(tube):
    positions = [vertex.co for vertex in tube.data.vertices]
    bones, weights = read_skin(bpy.context, tube).bones, read_skin(bpy.context, tube).weights
    ob = scenes.mesh_object(positions, name="Points")
    ob.modifiers.new("Armature", "ARMATURE").object = bpy.data.objects["Rig"]
    write_weights(ob, [f"Bone {index}" for index in range(5)], bones, weights)
    tube.select_set(False)
    refused(ob, 'There are no faces in object "Points"')


@pytest.mark.parametrize(
    "name", ["", " ", "cor ", "skinning_influences_1", "position", ".hidden", "Bone 1", "x" * 60, "count"]
)
def test_names_that_are_in_use(tube, name):
    tube.data.attributes.new("count", "INT", "POINT")
    refused(tube, "name", attribute_name=name)


def test_name_of_the_flag_must_be_free(tube):
    tube.vertex_groups.new(name="cor_valid")
    refused(tube, '"cor_valid" for something else', attribute_name="cor")


def test_linked_mesh(tube, tmp_path):
    path = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    scenes.empty_scene()
    with bpy.data.libraries.load(str(path), link=True) as (_, linked):
        linked.objects = ["Arm", "Rig"]
    scenes.link(bpy.data.objects["Arm"])
    with refusals.raises_unmet("LINKED"):
        bake()


def test_state_follows_mesh_weights_and_bones(tube):
    assert (bake_state(tube), shown_bake_state(tube)) == (MISSING, MISSING)
    bake()
    assert (bake_state(tube), shown_bake_state(tube)) == (FRESH, FRESH)
    group = tube.vertex_groups["Bone 1"]
    weight = group.weight(300)
    group.add([300], 0.5 * weight, "REPLACE")
    assert bake_state(tube) == STALE
    group.add([300], weight, "REPLACE")
    assert bake_state(tube) == FRESH
    tube.data.vertices[0].co.x += 0.1
    assert bake_state(tube) == STALE
    tube.data.vertices[0].co.x -= 0.1
    bpy.data.objects["Rig"].data.bones["Bone 1"].use_deform = False
    assert bake_state(tube) == STALE


def test_the_state_ignores_data_that_centers_do_not_depend_on(tube):
    bake()
    bpy.context.scene.frame_set(5)
    scenes.shape_keys(tube, count=1)[0].value = 1.0
    tube.vertex_groups.new(name="Pinned").add([0, 1], 1.0, "REPLACE")
    for given in list(tube.data.vertices[300].groups):
        given.weight *= 0.5
    assert bake_state(tube) == FRESH


def test_state_does_not_mind_a_group_without_weights(tube):
    tube.vertex_groups["Bone 0"].remove(range(len(tube.data.vertices)))
    bake()
    tube.vertex_groups.remove(tube.vertex_groups["Bone 0"])
    assert bake_state(tube) == FRESH


def world_centers(ob) -> np.ndarray:
    world = np.array(ob.matrix_world)
    return attribute(ob, "rotation_center") @ world[:3, :3].T + world[:3, 3]


@pytest.mark.parametrize("active", ["Lower", "Upper", "Rig"])
def test_selected_meshes_of_one_armature_are_one_body(tube, active):
    bpy.context.view_layer.update()
    bake()
    whole, valid = world_centers(tube), attribute(tube, "rotation_center_valid")
    lower, upper = skinned_meshes.cut(tube, 18)
    # A bone without a group in one half: bones have other numbers there.
    lower.vertex_groups.remove(lower.vertex_groups["Bone 4"])
    for ob in (lower, upper):
        center_records.remove_centers(ob.data)
    binding_scenes.activate(*(bpy.data.objects[name] for name in {active: 1, "Lower": 1, "Upper": 1}))
    assert bake() == {"FINISHED"}
    size = skinned_meshes.diagonal(tube)
    assert np.abs(world_centers(lower) - whole[: 19 * 16]).max() < 1e-6 * size
    assert np.abs(world_centers(upper) - whole[18 * 16 :]).max() < 1e-6 * size
    assert np.array_equal(attribute(lower, "rotation_center_valid"), valid[: 19 * 16])
    assert [bake_state(ob) for ob in (lower, upper)] == [FRESH, FRESH]
    # Alone, each half has other centers at the rim.
    center_records.remove_centers(lower.data)
    binding_scenes.activate(lower)
    bake()
    assert np.abs(world_centers(lower) - whole[: 19 * 16]).max() > 1e-3 * size


def test_several_meshes_are_written_all_or_none(tube):
    halves = skinned_meshes.cut(tube, 18)
    binding_scenes.activate(*halves)
    halves[1].vertex_groups.new(name="cor")
    for ob in halves:
        refused(ob, 'object "Upper"', "for something else", attribute_name="cor")
    halves[1].scale = (1, 1, 2)
    bpy.context.view_layer.update()
    refused(halves[0], 'UNEVEN_SCALE object "Upper"')


def test_a_selected_mesh_of_another_armature_stays_as_it_is(tube):
    other, rig = tube.copy(), bpy.data.objects["Rig"].copy()
    other.data, other.name = tube.data.copy(), "Other"
    scenes.link(other)
    scenes.link(rig)
    other.modifiers["Armature"].object = rig
    binding_scenes.activate(tube, other)
    assert bake() == {"FINISHED"}
    assert (bake_state(tube), bake_state(other)) == (FRESH, MISSING)
    with refusals.raises_unmet("OTHER_ARMATURE"):
        scenes.drain(baking.bake(bpy.context, [tube, other], 0.1, 0.1, "rotation_center"))


def test_from_the_interface_the_scenes_settings_count(tube):
    settings = bpy.context.scene.skinning_rotation_centers
    settings.sigma, settings.attribute_name = 0.3, "mine"
    # Without a window Blender invokes nothing: what the button's click would call, on what it has been given.
    given = SimpleNamespace(settings=BakeSettings, subdivision_epsilon=0.2)
    given.properties = SimpleNamespace(is_property_set=given.__dict__.__contains__)
    SKINNING_OT_bake_rotation_centers.prepare(given, bpy.context)
    assert (given.sigma, given.attribute_name) == (pytest.approx(0.3), "mine")
    assert given.subdivision_epsilon == 0.2


def test_removed_attribute_counts_as_missing(tube):
    bake()
    tube.data.attributes.remove(tube.data.attributes["rotation_center_valid"])
    assert bake_state(tube) == MISSING


def damage_with_a_number(record):
    return 1


def damage_by_a_missing_value(record):
    return {name: value for name, value in record.items() if name != "sigma"}


def damage_by_another_type(record):
    return record | {"sigma": "small"}


@pytest.mark.parametrize("damage", [damage_with_a_number, damage_by_a_missing_value, damage_by_another_type])
def test_damaged_record_counts_as_missing(tube, damage):
    bake()
    tube.data[center_records.BAKE_PROPERTY] = damage(tube.data[center_records.BAKE_PROPERTY].to_dict())
    assert (bake_record(tube), bake_state(tube), shown_bake_state(tube)) == (None, MISSING, MISSING)
    center_records.remove_centers(tube.data)
    assert center_records.BAKE_PROPERTY not in tube.data
    bake()
    assert bake_state(tube) == FRESH


def test_record_of_a_newer_version_is_read(tube):
    bake()
    record = bake_record(tube)
    tube.data[center_records.BAKE_PROPERTY]["version"] = 2
    assert bake_record(tube) == record


def test_the_state_of_an_unreadable_mesh(tube):
    bake()
    rig = bpy.data.objects["Rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    assert bake_state(tube) == UNKNOWN
    with refusals.raises_unmet("ARMATURE_IN_EDIT_MODE"):
        baking.check_fresh(tube)
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.parametrize(("spoil", "parts"), UNEVEN_SCENES, ids=[spoil.__name__ for spoil, _ in UNEVEN_SCENES])
@pytest.mark.parametrize(
    "operator", ["prepare_centers_for_export", "crs_to_shape_keys", "crs_to_pc2", "add_center_of_rotation_modifier"]
)
def test_what_blends_rotations_refuses_an_uneven_scale(tube, operator, spoil, parts):
    bake()
    spoil(tube, bpy.data.objects["Rig"])
    bpy.context.view_layer.update()
    if operator.startswith("add") and bpy.app.version < (5, 1, 0):
        pytest.skip("the native modifier needs Blender 5.1")
    with pytest.raises(RuntimeError) as raised:
        getattr(bpy.ops.skinning, operator)()
    refusals.assert_says(raised.value, *parts)


def test_bakes_what_the_caller_calls_active(tube):
    """So does the preview's button while its mesh's armature is active, in Pose Mode."""
    rig, other = bpy.data.objects["Rig"], tube.copy()
    other.data = tube.data.copy()
    scenes.link(other)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    with bpy.context.temp_override(active_object=other):
        assert bake() == {"FINISHED"}
    assert (bake_state(other), bake_state(tube)) == (FRESH, MISSING)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = other
    with bpy.context.temp_override(active_object=tube):
        assert bake() == {"FINISHED"}
    assert bake_state(tube) == FRESH
