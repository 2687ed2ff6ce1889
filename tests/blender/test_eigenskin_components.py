# SPDX-License-Identifier: GPL-3.0-or-later
"""The components shown before anything is built: they are those that the build then makes, and leave nothing."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.features.eigenskin import component_view
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.settings import BuildSettings
from skinning_tools.ui import drawn_view
from tests.blender import eigenskin_scenes, refusals, scenes
from tests.blender.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def limb(limb):
    """Nothing is shown afterwards."""
    yield limb
    component_view.display.stop()


def show(**given):
    return bpy.ops.skinning.show_eigenskin_components(**given)


def surface(**given):
    """The surface with settings of the panel."""
    for name, value in given.items():
        setattr(bpy.context.window_manager.skinning_components, name, value)
    return component_view.current_surface(bpy.context, component_view.display.subject)


refused = partial(refusals.refused, show, state=lambda: snapshot(bpy.data.objects["Limb"]))


@pytest.mark.parametrize("half_rotation", [False, True])
def test_the_components_are_those_that_the_build_makes(limb, half_rotation):
    """By Blender's own evaluation of one shape key, at rest and, on the same weights, in a pose."""
    ob, rig = limb
    ob.scale = (1.5, 1.5, 1.5)
    bpy.context.view_layer.update()
    before = snapshot(ob)
    assert show(components=2, half_rotation=half_rotation) == {"FINISHED"}
    assert snapshot(ob) == before
    assert component_view.display.subject.summary() == "Limb: 2 supports, 4 components"
    poses = [()] if half_rotation else [(), [("lower", "X", 50), ("upper", "Y", 20)]]
    seen = {}
    for number, turns in enumerate(poses):
        eigenskin_scenes.pose(rig, turns)
        for support in ("upper", "lower"):
            for component in (1, 2):
                seen[number, support, component] = surface(support=support, component=component, value=-0.6)
    assert bpy.ops.skinning.build_eigenskin(components=2, half_rotation=half_rotation) == {"FINISHED"}
    blocks = ob.data.shape_keys.key_blocks
    for curve in ob.data.shape_keys.animation_data.drivers:
        curve.mute = True
    for (number, support, component), found in seen.items():
        eigenskin_scenes.pose(rig, poses[number])
        for block in blocks[1:]:
            block.value = -0.6 if block.name == f"{support} {component}" else 0.0
        bpy.context.view_layer.update()
        places = scenes.world_positions(ob)
        assert np.abs(found.positions - places).max() < 2e-6
        blocks[f"{support} {component}"].value = 0.0
        bpy.context.view_layer.update()
        assert np.abs(scenes.world_positions(ob) - places).max() > 0.01


def test_colors_by_amount(limb):
    """Blue where nothing moves, red where most does, and the length of red in the scene's units."""
    ob, _ = limb
    ob.scale = (2, 2, 2)
    bpy.context.view_layer.update()
    show()
    still, moved = surface(support="lower", value=0.0), surface(support="lower", value=1.0)
    assert np.array_equal(still.colors, np.tile([0, 0, 1], (len(still.colors), 1)))
    away = np.linalg.norm(moved.positions - still.positions, axis=1)
    assert moved.red == pytest.approx(away.max(), rel=1e-5)
    assert moved.colors[np.argmax(away)].tolist() == [1, 0, 0]
    assert np.array_equal(moved.colors[away < 1e-9], np.tile([0, 0, 1], (int((away < 1e-9).sum()), 1)))
    half = surface(value=-0.5)
    assert half.colors[np.argmax(away)].tolist() == pytest.approx([0, 1, 0])
    assert half.red == moved.red


def test_colors_by_direction(limb):
    """Red, green and blue are X, Y and Z of the displacement in the mesh's own space, as in the paper's figure 5."""
    ob, _ = limb
    ob.rotation_euler = ob.location = (0, 0, 0)
    bpy.context.view_layer.update()
    show()
    still, moved = (surface(support="upper", value=value, colors="DIRECTION") for value in (0.0, 1.0))
    assert np.array_equal(still.colors, np.full(still.colors.shape, 0.5))
    away = moved.positions - still.positions
    expected = 0.5 + 0.5 * away / np.linalg.norm(away, axis=1).max()
    assert moved.colors == pytest.approx(expected, abs=1e-5)
    assert surface(value=-1.0).colors == pytest.approx(1 - expected, abs=1e-5)


def test_a_component_or_joint_that_is_not_there(limb):
    show(components=2)
    settings = bpy.context.window_manager.skinning_components
    assert [item.name for item in settings.supports] == ["upper", "lower"]
    second = surface(support="upper", component=2).positions
    assert np.array_equal(surface(component=9).positions, second)
    assert np.array_equal(surface(support="gone").positions, second)
    show(components=1)
    assert component_view.chosen(settings, component_view.display.subject)[1] == 0


def test_settings_of_the_panel_are_the_builds(limb):
    """Each of the operator's settings is the build's, and none that the components depend on is missing."""
    names = set(bpy.ops.skinning.show_eigenskin_components.get_rna_type().properties.keys()) - {"rna_type", "show"}
    assert names <= set(BuildSettings.declared)
    from skinning_tools.core.eigenskin import EigenSkinSettings

    assert set(EigenSkinSettings.__annotations__) & set(BuildSettings.declared) <= names


def test_refused_without_examples(limb):
    _, rig = limb
    for item in rig.skinning_eigenskin.examples:
        item.enabled = False
    refused("examples of object", "are disabled")
    assert component_view.display.subject is None
    rig.skinning_eigenskin.examples.clear()
    refused("has no examples")
    bpy.context.view_layer.objects.active = None
    assert not bpy.ops.skinning.show_eigenskin_components.poll()


@pytest.mark.parametrize("end", ["off", "load", "unregister", "again"])
def test_off_leaves_nothing(limb, end):
    ob, _ = limb
    before, handlers = snapshot(ob), Counter(bpy.app.handlers.load_pre)
    show()
    assert component_view.display.shown
    if end == "off":
        bpy.context.view_layer.objects.active = None
        assert show(show=False) == {"FINISHED"}
    elif end == "load":
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    elif end == "unregister":
        skinning_tools.unregister()
        skinning_tools.register()
    else:
        show(components=1)
        assert len(component_view.display._handles) == 2
        show(show=False)
    assert component_view.display.subject is None
    assert not component_view.display.shown
    assert not bpy.context.window_manager.skinning_components.supports
    assert Counter(bpy.app.handlers.load_pre) == handlers
    if end in ("off", "again"):
        bpy.context.view_layer.objects.active = ob
        assert snapshot(ob) == before
        assert eigenskin_record(ob) is None


def test_the_mesh_is_found_again_by_another_name(limb):
    ob, _ = limb
    show()
    places = surface().positions
    ob.name = "Leg"
    assert np.array_equal(surface().positions, places)
    ob.hide_set(True)
    assert surface() is None


@pytest.mark.parametrize("change", ["deleted", "edited", "fault"])
def test_drawing_ends_with_the_reason(limb, change, monkeypatch):
    ob, _ = limb
    show()
    if change == "deleted":
        bpy.data.objects.remove(ob)
    elif change == "edited":
        ob.data.vertices.add(1)
    else:
        monkeypatch.setattr(component_view, "current_surface", lambda *_: 1 / 0)
    overlay = SimpleNamespace(show_overlays=True)
    context = SimpleNamespace(
        space_data=SimpleNamespace(overlay=overlay), view_layer=bpy.context.view_layer,
        window_manager=bpy.context.window_manager,
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(drawn_view, "bpy", SimpleNamespace(context=context, app=bpy.app, types=bpy.types))
        component_view.display.draw("POST_VIEW")
        assert component_view.display.ending
        component_view.display._end()
    assert component_view.display.subject is None
    assert not component_view.display.shown
    assert ("ZeroDivisionError" if change == "fault" else "no longer shown") in component_view.display.failure
