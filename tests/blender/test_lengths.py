# SPDX-License-Identifier: GPL-3.0-or-later
"""Lengths in the interface: distances in the world, in the scene's units, independent of scales."""

import re
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix

import skinning_tools
from skinning_tools.blender.error_display import shown_scale
from skinning_tools.blender.lengths import length_text
from skinning_tools.blender.records import EIGENSKIN
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.eigenskin.build import ERROR_BEFORE
from skinning_tools.features.eigenskin.examples import current_pose, read_rig
from skinning_tools.features.eigenskin.panel import SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result
from tests.blender import eigenskin_scenes, fit_scenes, panel_recorder, scenes

pytestmark = pytest.mark.usefixtures("extension")


def set_units(system="METRIC", unit="ADAPTIVE", scale=1.0) -> None:
    settings = bpy.context.scene.unit_settings
    settings.system, settings.scale_length = system, scale
    if system != "NONE":
        settings.length_unit = unit


TEXTS = [
    ("METRIC", "ADAPTIVE", 1.0, 0.015, "1.5 cm"),
    ("METRIC", "ADAPTIVE", 0.01, 1.5, "1.5 cm"),
    ("METRIC", "ADAPTIVE", 1000.0, 0.002, "2 m"),
    ("METRIC", "MILLIMETERS", 1.0, 0.015, "15 mm"),
    ("METRIC", "CENTIMETERS", 1.0, 12.0, "1200 cm"),
    ("METRIC", "METERS", 0.01, 1.5, "0.015 m"),
    ("METRIC", "KILOMETERS", 1.0, 1234.5, "1.234 km"),
    ("METRIC", "MICROMETERS", 0.001, 0.25, "250 µm"),
    ("IMPERIAL", "ADAPTIVE", 1.0, 0.3048, "1'"),
    ("IMPERIAL", "ADAPTIVE", 0.5, 0.6096, "1'"),
    ("IMPERIAL", "INCHES", 1.0, 0.0508, '2"'),
    ("IMPERIAL", "FEET", 1.0, 0.1524, "0.5'"),
    ("IMPERIAL", "THOU", 1.0, 0.0000254, "1 thou"),
    ("IMPERIAL", "MILES", 1.0, 3218.688, "2 mi"),
]


@pytest.mark.parametrize(("system", "unit", "scale", "length", "text"), TEXTS)
def test_the_scenes_units(system, unit, scale, length, text):
    scenes.empty_scene()
    set_units(system, unit, scale)
    assert length_text(bpy.context.scene, length) == text


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_without_a_system_it_is_a_number(scale):
    """Without a unit system, Blender leaves out the scale."""
    scenes.empty_scene()
    set_units("NONE", scale=scale)
    assert float(length_text(bpy.context.scene, 0.25)) == 0.25


def test_every_unit_of_blender_is_known():
    scenes.empty_scene()
    settings = bpy.context.scene.unit_settings
    for system in ("METRIC", "IMPERIAL"):
        settings.system = system
        for unit in [item.identifier for item in settings.bl_rna.properties["length_unit"].enum_items]:
            try:
                settings.length_unit = unit
            except TypeError:
                # Of the other system.
                continue
            assert length_text(bpy.context.scene, 1.0)


def test_only_one_module_converts_lengths_to_text():
    """Nothing else in the extension turns a length into text."""
    folder = Path(skinning_tools.__file__).parent
    found = [path.name for path in folder.rglob("*.py") if "units.to_string" in path.read_text(encoding="utf-8")]
    assert found == ["lengths.py"]


# In the mesh's space all of these are alike


def armature_scaled(ob, rig, size):
    """The mesh is the armature's child, which imports from other programs scale by 100."""
    ob.parent, ob.matrix_parent_inverse = rig, rig.matrix_world.inverted()
    rig.scale = (size,) * 3


def parent_scaled(ob, rig, size):
    parent = scenes.link(bpy.data.objects.new("Parent", None))
    for each in (ob, rig):
        each.parent = parent
    parent.scale = (size,) * 3


def both_scaled(ob, rig, size):
    for each in (ob, rig):
        each.matrix_world = Matrix.Scale(size, 4) @ each.matrix_world


def unevenly_scaled(ob, rig, size):
    parent_scaled(ob, rig, size)
    bpy.data.objects["Parent"].scale = (size, 2 * size, 0.5 * size)


def mirrored(ob, rig, size):
    parent_scaled(ob, rig, size)
    bpy.data.objects["Parent"].scale = (-size, size, size)


PLACINGS = [armature_scaled, parent_scaled, both_scaled, unevenly_scaled, mirrored]


@pytest.mark.parametrize("size", [100.0, 0.01])
@pytest.mark.parametrize("place", PLACINGS)
def test_eigenskins_errors_are_distances_in_the_world(place, size, capfd):
    ob, rig = eigenskin_scenes.limb_with_examples()
    place(ob, rig, size)
    bpy.context.view_layer.update()
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.skinning.build_eigenskin(components=2) == {"FINISHED"}
    linear = np.array(ob.matrix_world, dtype=np.float64)[:3, :3]
    largest = np.zeros(len(ob.data.vertices))
    items = rig.skinning_eigenskin.examples
    for item, turn in zip(items, eigenskin_scenes.POSES, strict=True):
        eigenskin_scenes.pose(rig, [turn])
        skin, bones = read_rig(bpy.context, ob)
        _, matrices = current_pose(skin, bones, bpy.context.evaluated_depsgraph_get())
        right, plain = (skin_frame(skin.rest, skin.bones, skin.weights, matrices, each) for each in ("DQS", "LBS"))
        before = np.linalg.norm((plain - right) @ linear.T, axis=1)
        after = np.linalg.norm((scenes.evaluated_positions(ob) - right) @ linear.T, axis=1)
        assert item.error_before == pytest.approx(np.sqrt(np.mean(before**2)), rel=2e-3)
        assert item.error_after == pytest.approx(np.sqrt(np.mean(after**2)), rel=2e-3, abs=2e-6 * size)
        assert item.worst_distance == pytest.approx(after.max(), rel=2e-3, abs=2e-6 * size)
        np.maximum(largest, before, out=largest)
    stored = np.empty(len(largest), np.float32)
    ob.data.attributes[ERROR_BEFORE].data.foreach_get("value", stored)
    np.testing.assert_allclose(stored, largest, rtol=5e-3, atol=2e-5 * size)
    worst = max(items, key=lambda item: item.worst_distance)
    assert length_text(bpy.context.scene, worst.worst_distance, 3) in capfd.readouterr().out


@pytest.mark.parametrize(("scale", "shown"), [(1.0, 1.0), (0.01, 0.01), (100.0, 100.0)])
def test_the_panel_shows_them_in_the_scenes_units(scale, shown):
    ob, rig = eigenskin_scenes.limb_with_examples()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.build_eigenskin(components=2)
    set_units("METRIC", "METERS", scale)
    item = rig.skinning_eigenskin.examples[0]
    rig.skinning_eigenskin.active_index = 0
    texts = panel_recorder.drawn(SKINNING_PT_eigenskin).texts
    value = float(texts[texts.index("Error Before") + 1].split()[0])
    assert value == pytest.approx(item.error_before * shown, rel=2e-3)


def built_by_an_earlier_version(place, size):
    """Earlier versions measured in the mesh's own units, and had no word of it in the record: a mesh that gets its
    scale only after it was built has the same figures."""
    ob, rig = eigenskin_scenes.limb_with_examples()
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.skinning.build_eigenskin(components=2) == {"FINISHED"}
    if "world_units" in ob.data[EIGENSKIN]:
        del ob.data[EIGENSKIN]["world_units"]
    place(ob, rig, size)
    bpy.context.view_layer.update()
    bpy.context.view_layer.objects.active = ob
    rig.skinning_eigenskin.active_index = 0
    set_units("METRIC", "METERS")
    return ob, rig.skinning_eigenskin.examples


def length_after(texts, label, beginning=""):
    return float(texts[texts.index(label) + 1].removeprefix(beginning).split()[0])


def not_scaled(ob, rig, size):
    """As most are: nothing to mend."""


@pytest.mark.parametrize("size", [100.0, 0.01])
@pytest.mark.parametrize("place", [armature_scaled, parent_scaled, both_scaled, mirrored, not_scaled])
def test_measurements_of_an_earlier_version_are_shown_as_lengths_in_the_world(place, size, capfd):
    ob, items = built_by_an_earlier_version(place, size)
    factor = 1.0 if place is not_scaled else size
    texts = panel_recorder.drawn(SKINNING_PT_eigenskin).texts
    item = items[0]
    assert length_after(texts, "Error Before") == pytest.approx(item.error_before * factor, rel=2e-3)
    assert length_after(texts, "Error After") == pytest.approx(item.error_after * factor, rel=2e-3)
    beginning = f"{item.worst_vertex}  ("
    assert length_after(texts, "Worst Vertex", beginning) == pytest.approx(item.worst_distance * factor, rel=2e-3)
    worst = max(items, key=lambda item: item.worst_distance)
    texts = panel_recorder.drawn(SKINNING_PT_eigenskin_result).texts
    beginning = f"{worst.worst_vertex}  ("
    assert length_after(texts, "Worst Vertex", beginning) == pytest.approx(worst.worst_distance * factor, rel=2e-3)
    stored = np.empty(len(ob.data.vertices), np.float32)
    ob.data.attributes[ERROR_BEFORE].data.foreach_get("value", stored)
    assert bpy.ops.skinning.show_eigenskin_error(shown="BEFORE") == {"FINISHED"}
    assert shown_scale(ob).largest == pytest.approx(stored.max() * factor, rel=1e-4)
    assert length_text(bpy.context.scene, shown_scale(ob).red, 3) in capfd.readouterr().out
    colors = np.empty((len(stored), 4), np.float32)
    ob.data.color_attributes.active_color.data.foreach_get("color", colors.ravel())
    assert np.array_equal(np.all(colors[:, :3] == (1, 0, 0), axis=1), stored * factor >= shown_scale(ob).red * 0.9999)


@pytest.mark.parametrize("size", [100.0, 0.01])
def test_unknown_lengths_are_reported(size):
    built_by_an_earlier_version(unevenly_scaled, size)
    for panel in (SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_result):
        texts = panel_recorder.drawn(panel).texts
        assert not [text for text in texts if text.endswith((" m", " m)"))]
    with pytest.raises(RuntimeError, match="measured by an earlier version"):
        bpy.ops.skinning.show_eigenskin_error(shown="BEFORE")
    assert bpy.ops.skinning.build_eigenskin(components=2) == {"FINISHED"}
    texts = panel_recorder.drawn(SKINNING_PT_eigenskin).texts
    assert length_after(texts, "Error Before") > 0
    assert bpy.ops.skinning.show_eigenskin_error(shown="BEFORE") == {"FINISHED"}


@pytest.mark.parametrize("place", PLACINGS)
def test_an_examples_difference_is_one_in_the_world(place, capfd):
    ob, rig = eigenskin_scenes.limb()
    place(ob, rig, 100.0)
    block = scenes.shape_keys(ob, count=1)[0]
    points = np.array([vertex.co for vertex in ob.data.vertices])
    points[7] += (0.0, 0.03, 0.04)
    block.points.foreach_set("co", points.astype(np.float32).ravel())
    block.value = 1.0
    eigenskin_scenes.pose(rig, [("lower", "X", 40)])
    bpy.context.view_layer.objects.active = ob
    set_units("METRIC", "METERS")
    capfd.readouterr()
    assert bpy.ops.skinning.eigenskin_add_example(source="SHAPE_KEY", shape_key="Key 1") == {"FINISHED"}
    skin, bones = read_rig(bpy.context, ob)
    _, matrices = current_pose(skin, bones, bpy.context.evaluated_depsgraph_get())
    plain = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    linear = np.array(ob.matrix_world, dtype=np.float64)[:3, :3]
    apart = np.linalg.norm((scenes.evaluated_positions(ob) - plain) @ linear.T, axis=1).max()
    assert f"up to {length_text(bpy.context.scene, apart, 3)} from" in capfd.readouterr().out


def test_the_fits_distances_are_in_the_scenes_units(capfd):
    """The same under a parent that is scaled by 100, with a unit scale of a hundredth."""
    said = []
    for size in (1.0, 100.0):
        ob, rig = eigenskin_scenes.limb()
        parent_scaled(ob, rig, size)
        set_units("METRIC", "MILLIMETERS", 1 / size)
        eigenskin_scenes.pose(rig, [("lower", "X", 60)])
        bpy.context.view_layer.objects.active = ob
        copy = fit_scenes.start()
        points = fit_scenes.positions(copy.data)
        fit_scenes.place(copy, [150], [points[150] + (0.0, 0.0, 0.3)])
        capfd.readouterr()
        fit_scenes.fit()
        line = next(line for line in capfd.readouterr().out.splitlines() if "distance left" in line)
        said.append([float(length) for length in re.findall(r"distance left ([\d.]+) mm", line)])
    assert said[0][1] > 1
    np.testing.assert_allclose(said[0], said[1], rtol=5e-3)
