# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers of an EigenSkin: expressions that Blender evaluates by itself, with core's values in every pose."""

import json
import math
import re
import subprocess
import textwrap
from collections import Counter
from dataclasses import replace

import bpy
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.eigenskin import PoseSpace
from skinning_tools.core.eigenskin.pose_space import SAME_ROTATION
from skinning_tools.features.eigenskin import driver_network, drivers
from skinning_tools.features.eigenskin.examples import read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.writer import write_eigenskin
from tests.blender import another_process, scenes
from tests.blender import eigenskin_models as models

UPPER, LOWER = 2, 3


def close_hinge() -> PoseSpace:
    """Observations as close to each other as they may be."""
    degrees = 1.01 * np.degrees(SAME_ROTATION)
    return models.hinge((degrees, 2 * degrees, 100, 100 + degrees))


def close_ball() -> PoseSpace:
    near = models.ball(3).centers
    others = near[1:] + 0.8 * SAME_ROTATION * np.roll(near[1:], 1, axis=1) * [1, -1, 1, -1]
    return PoseSpace(np.concatenate([near, others / np.linalg.norm(others, axis=1, keepdims=True)]), None, 1.1)


def interpolating(joints, joint: int, space: PoseSpace):
    """A support whose values change from 1 to −1 between neighbours."""
    model = models.made_up(joints, {joint: space}, components=2)
    values = np.zeros((len(space.centers), 2))
    values[1:] = (-1.0) ** np.arange(len(values) - 1)[:, None] * [1.0, -0.7]
    weights = space.weights(values[1:])
    return replace(model, supports=(replace(model.supports[0], basis_weights=weights),))


MODELS = {
    "hinge": lambda joints: models.made_up(joints, {LOWER: models.hinge()}),
    "hinge about any axis": lambda joints: models.made_up(joints, {LOWER: models.hinge(axis=(0.3, -0.8, 1e-9))}),
    "hinge to one side": lambda joints: models.made_up(joints, {LOWER: models.hinge((40, 90, 170))}),
    "hinge to the other side": lambda joints: models.made_up(
        joints, {LOWER: models.hinge((-150, -80, -30), axis=(0.3, -0.8, 0.52))}, size=500.0
    ),
    "hinge that folds both ways": lambda joints: interpolating(joints, LOWER, models.hinge((-130, -100, 100, 130))),
    "ball": lambda joints: models.made_up(joints, {UPPER: models.ball()}),
    "both": lambda joints: models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge()}),
    "small radius": lambda joints: models.made_up(
        joints, {UPPER: models.ball(radius=0.01), LOWER: models.hinge(radius=0.01)}
    ),
    "large radius": lambda joints: interpolating(joints, UPPER, models.ball(radius=100.0)),
    "large weights": lambda joints: models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge()}, size=500.0),
    "close hinge": lambda joints: interpolating(joints, LOWER, close_hinge()),
    "close ball": lambda joints: interpolating(joints, UPPER, close_ball()),
    "pair": lambda joints: models.made_up(
        joints, {UPPER: models.ball(4), LOWER: models.hinge()}, pairs=[(UPPER, LOWER)]
    ),
    "pair with large weights": lambda joints: models.made_up(
        joints, {UPPER: models.ball(3), LOWER: models.ball(3, seed=1)}, pairs=[(UPPER, LOWER)], size=100.0
    ),
    "many observations": lambda joints: models.made_up(
        joints, {UPPER: models.ball(150), LOWER: models.hinge(np.arange(-170.0, 170.0, 0.9))}, size=0.1, components=1
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODELS)
def test_values_are_those_of_core(rigged, kind):
    ob, rig, joints = rigged
    model = MODELS[kind](joints)
    write_eigenskin(ob, rig, joints, model)
    random = np.random.default_rng(0)
    largest = 0.0
    for number in range(60):
        if number % 2:
            models.turn_at_random(rig, random)
        else:
            turn_near_centers(rig, model, random)
        expected = models.expected_values(ob, joints, model)
        # Of single precision: a share of large values, and what its step in a rotation makes of them.
        limit = 1e-5 * np.maximum(1.0, np.abs(expected)) + np.finfo(np.float32).eps * models.slopes(ob, joints, model)
        assert np.all(np.abs(models.shown_values(ob) - expected) <= limit)
        largest = max(largest, np.abs(expected).max())
    assert largest > 0.1


@pytest.mark.parametrize("kind", MODELS)
def test_expressions_need_no_python_and_are_not_cut(rigged, kind):
    ob, rig, joints = rigged
    model = MODELS[kind](joints)
    network = drivers.plan(model.without_normals())
    written = write_eigenskin(ob, rig, joints, model)
    curves = list(ob.data.shape_keys.animation_data.drivers)
    assert len(curves) == written.driver_count == network.driver_count
    texts = sorted(expression.text for expression in [*network.elements.values(), *network.values])
    assert sorted(curve.driver.expression for curve in curves) == texts
    for curve in curves:
        assert curve.driver.is_simple_expression, curve.driver.expression
        assert curve.driver.is_valid
        assert len(curve.driver.expression) < 255
        assert not len(curve.modifiers)
        assert not len(curve.keyframe_points)


def test_no_two_drivers_of_an_array_run_at_the_same_time(rigged, tmp_path):
    """Each writes the whole array: Blender must put all of them into one row, or it loses values now and then."""
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, MODELS["pair with large weights"](joints))
    path = tmp_path / "relations.dot"
    graph = bpy.context.evaluated_depsgraph_get()
    if bpy.app.version < (5, 0):
        graph.debug_relations_graphviz(filepath=str(path))
    else:
        path.write_text(graph.debug_relations_graphviz())
    text = path.read_text()
    arrays = dict(re.findall(rf'"(\d+)" \[[^\n]*?label="DRIVER\(\[\\"{drivers.PREFIX}(\w+)\\"', text))
    rows = dict(re.findall(r'"(\d+)" -> "(\d+)" \[[^\n]*id="Driver Serialization"', text))
    assert set(arrays.values()) == {drivers.EXPONENTS, drivers.TIED, f"{driver_network.SUMS}_1"}
    following = [array for node, array in arrays.items() if arrays.get(rows.get(node)) == array]
    counts = Counter(arrays.values())
    assert Counter(following) == {array: count - 1 for array, count in counts.items()}


def test_driver_counts(rigged):
    """What the benchmark has found to be the fastest."""
    _, _, joints = rigged
    counts = {kind: drivers.plan(MODELS[kind](joints).without_normals()).driver_count for kind in ("hinge", "ball")}
    # An angle, and two for each of three shape keys; seven exponents, and two for each shape key.
    assert counts == {"hinge": 1 + 3 * 2, "ball": 7 + 3 * 2}


FUNCTIONS = {"exp", "pow", "atan2", "sin", "cos", "pi", "fmod", "trunc"}


def test_either_quaternion_of_a_rotation_will_do(rigged):
    """Blender gives one of them. Python understands the expressions, too."""
    _, _, joints = rigged
    model = MODELS["both"](joints)
    network = drivers.plan(model.without_normals())
    known = {"abs": abs, "min": min, "round": round} | {name: getattr(math, name) for name in FUNCTIONS}
    rotations = np.roll(Rotation.random(len(joints.joint_names), random_state=5).as_quat(), 1, axis=1)
    for signed in (rotations, -rotations):
        channels = {
            driver_network.Rotation(name, channel): value
            for name, rotation in zip(joints.joint_names, signed, strict=True)
            for channel, value in zip("WXYZ", rotation, strict=True)
        }

        def value(expression, inputs):
            return eval(expression.text, known, {name: inputs[part] for name, part in expression.inputs.items()})

        # Elements come after those that they depend on.
        for element, expression in network.elements.items():
            channels[element] = value(expression, channels)
        values = [value(expression, channels) for expression in network.values]
        np.testing.assert_allclose(values, model.values(rotations[None])[0], atol=1e-6)


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_half_turns_have_the_values_of_core(rigged, name):
    """Where angles jump from one end to the other, and a half turn about another axis is no angle at all."""
    ob, rig, joints = rigged
    model = models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge(axis=(0.6, 0.0, 0.8))})
    write_eigenskin(ob, rig, joints, model)
    for rotation in (
        (0, 0.6, 0, 0.8),
        (0, -0.6, 0, -0.8),
        (0, 0, 1, 0),
        (0, 0.8, 0, -0.6),
        (-1, 0, 0, 0),
        (0, 1, 0, 0),
    ):
        models.turn(rig, {name: rotation})
        np.testing.assert_allclose(
            models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5, rtol=0
        )


def test_joints_at_rest_leave_their_shape_keys_at_exactly_zero(rigged):
    """Blender then skips them: rounding that is left of parents' rotations must not be seen."""
    ob, rig, _ = rigged
    models.corrected(ob, rig)
    random = np.random.default_rng(0)
    for _ in range(20):
        models.turn_at_random(rig, random)
        models.turn(rig, {"lower": (1, 0, 0, 0)})
        values = dict(zip(written_keys(ob), models.shown_values(ob), strict=True))
        assert [value for name, value in values.items() if name.startswith("lower")] == [0.0] * 3
    assert any(values.values())


CONSTRAINTS = {
    "copy rotation": ("upper", "COPY_ROTATION", {"mix_mode": "BEFORE", "influence": 0.7}),
    "limit": ("lower", "LIMIT_ROTATION", {"use_limit_x": True, "min_x": 0.5, "max_x": 0.6, "owner_space": "LOCAL"}),
    "inverse kinematics": ("lower", "IK", {"chain_count": 2}),
    "track": ("upper", "DAMPED_TRACK", {}),
}


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_constraints_count(rigged, kind):
    ob, rig, joints = rigged
    target = scenes.link(bpy.data.objects.new("Target", None))
    target.location, target.rotation_euler = (0.7, 0.9, 0.6), (0.5, 1.0, -0.7)
    model = models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge()})
    write_eigenskin(ob, rig, joints, model)
    models.turn_at_random(rig, np.random.default_rng(0), most=1.0)
    before = models.shown_values(ob)
    name, constraint_kind, settings = CONSTRAINTS[kind]
    constraint = rig.pose.bones[name].constraints.new(constraint_kind)
    if hasattr(constraint, "target"):
        constraint.target = target
    for setting, value in settings.items():
        setattr(constraint, setting, value)
    bpy.context.view_layer.update()
    shown = models.shown_values(ob)
    assert np.abs(shown - before).max() > 0.01
    np.testing.assert_allclose(shown, models.expected_values(ob, joints, model), atol=1e-5, rtol=0)


def test_scales_euler_angles_and_bones_that_do_not_inherit(rigged):
    ob, rig, joints = rigged
    model = models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge()})
    write_eigenskin(ob, rig, joints, model)
    rig.data.bones["lower"].use_inherit_rotation = False
    rig.data.bones["upper"].inherit_scale = "NONE"
    rig.scale = (1.7, 1.7, 1.7)
    random = np.random.default_rng(0)
    for _ in range(10):
        for bone in rig.pose.bones:
            bone.rotation_mode = random.choice(["XYZ", "ZYX", "AXIS_ANGLE"])
            bone.rotation_euler = random.uniform(-4, 4, 3)
            bone.rotation_axis_angle = random.uniform(-3, 3, 4)
            bone.location, bone.scale = random.normal(size=3), random.uniform(0.5, 1.5, 3)
        bpy.context.view_layer.update()
        shown, expected = models.shown_values(ob), models.expected_values(ob, joints, model)
        np.testing.assert_allclose(shown, expected, atol=1e-5, rtol=0)


NAMES = ['"', "\\", 'a"b\\"]["c', "[0]", "{0} {}", "knöchel.L", "肘" * 21, "x" * 63, "%s", "'", "exp(", "  "]


@pytest.mark.parametrize("name", NAMES)
def test_bones_may_have_any_name(rigged, name):
    ob, rig, _ = rigged
    other = f"{name[:8]}+"
    # Such names go through expressions, paths and properties.
    rig.data.bones["lower"].name, rig.data.bones["upper"].name = name, other
    joints = read_rig(bpy.context, ob)[1]
    assert joints.joint_names[UPPER:] == (other, name)
    model = models.made_up(
        joints, {UPPER: models.ball(2), LOWER: models.hinge((-50, 50))}, pairs=[(UPPER, LOWER)], components=1
    )
    written = write_eigenskin(ob, rig, joints, model)
    models.turn(rig, {other: model.spaces[UPPER].centers[1], name: model.spaces[LOWER].centers[1]})
    shown = models.shown_values(ob)
    assert np.abs(shown).min() > 1e-2
    np.testing.assert_allclose(shown, models.expected_values(ob, joints, model), atol=1e-5, rtol=0)
    assert len({*written.shape_keys, *written.groups}) == 6
    assert all(len(key.encode()) <= 63 for key in (*written.shape_keys, *written.groups))
    assert not {*written.groups} & {bone.name for bone in rig.data.bones}


def test_renaming_changes_nothing(rigged):
    ob, rig, joints = rigged
    model = models.made_up(joints, {UPPER: models.ball(), LOWER: models.hinge()})
    write_eigenskin(ob, rig, joints, model)
    rig.name, rig.data.name, ob.name, ob.data.name, ob.data.shape_keys.name = "A", "B", "C", "D", "E"
    rig.data.bones["lower"].name = 'Unter"arm'
    models.turn_at_random(rig, np.random.default_rng(0))
    joints = read_rig(bpy.context, ob)[1]
    assert joints.joint_names[LOWER] == 'Unter"arm'
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5, rtol=0)


def test_no_dependency_cycles(rigged, capfd):
    ob, rig, joints = rigged
    key_count = write_eigenskin(ob, rig, joints, MODELS["pair with large weights"](joints)).shape_key_count
    models.turn_at_random(rig, np.random.default_rng(0))
    assert "ependency cycle" not in "".join(capfd.readouterr())
    # Blender does say so where there is one.
    key = ob.data.shape_keys
    key["loop"] = 0.0
    driver = key.driver_add('["loop"]').driver
    target = driver.variables.new().targets[0]
    target.id_type, target.id, target.data_path = "KEY", key, '["loop"]'
    bpy.context.view_layer.update()
    assert "ependency cycle" in "".join(capfd.readouterr())
    assert key_count == 9


def test_a_file_plays_without_the_extension_and_without_scripts(rigged, tmp_path):
    ob, rig, joints = rigged
    random = np.random.default_rng(0)
    model = MODELS["pair"](joints)
    write_eigenskin(ob, rig, joints, model)
    poses, expected = [], []
    for _ in range(10):
        models.turn_at_random(rig, random, most=1.5)
        poses.append({bone.name: list(bone.rotation_quaternion) for bone in rig.pose.bones})
        expected.append(models.expected_values(ob, joints, model))
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "limb.blend"))
    (tmp_path / "poses.json").write_text(json.dumps({"poses": poses, "keys": written_keys(ob)}), encoding="utf-8")
    command = another_process.command(textwrap.dedent(PLAY))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (tmp_path / "values.json").is_file(), done.stdout + done.stderr
    values = json.loads((tmp_path / "values.json").read_text())
    np.testing.assert_allclose(values, expected, atol=1e-5, rtol=0)
    assert np.abs(expected).max() > 0.3


PLAY = """
    import json, os, sys, traceback, bpy

    def play():
        bpy.context.preferences.filepaths.use_scripts_auto_execute = False
        given = json.load(open("poses.json", encoding="utf-8"))
        bpy.ops.wm.open_mainfile(filepath=os.path.abspath("limb.blend"), use_scripts=False)
        # A driver that needs Python's objects does not work here.
        empty = bpy.data.objects.new("Empty", None)
        bpy.context.scene.collection.objects.link(empty)
        empty.driver_add("location", 0).driver.expression = "7.0 + len(bpy.data.objects)"
        values = []
        for pose in given["poses"]:
            for name, rotation in pose.items():
                bpy.data.objects["Limb rig"].pose.bones[name].rotation_quaternion = rotation
            bpy.context.view_layer.update()
            key = bpy.data.objects["Limb"].data.shape_keys.evaluated_get(bpy.context.evaluated_depsgraph_get())
            values.append([key.key_blocks[name].value for name in given["keys"]])
        assert empty.location[0] == 0.0, empty.location
        assert not [name for name in sys.modules if name.startswith("skinning_tools")]
        json.dump(values, open("values.json", "w"))

    try:
        import skinning_tools
    except ImportError:
        try:
            play()
        except BaseException:
            traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # Blender's module may crash, or hang, where Python ends by itself.
    os._exit(0)
"""


def turn_near_centers(rig, model, random) -> None:
    for joint, space in model.spaces.items():
        rotation = space.centers[random.integers(len(space.centers))] * random.choice([-1.0, 1.0])
        rotation = rotation + 10.0 ** random.uniform(-9, -2) * random.normal(size=4)
        models.turn(rig, {model.joint_names[joint]: rotation / np.linalg.norm(rotation)})


def written_keys(ob) -> list[str]:
    return [name for support in eigenskin_record(ob).supports for name in support.keys]
