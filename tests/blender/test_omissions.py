# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes name what Blender leaves out of the shapes that are read; there are no notes if nothing is left out."""

import bpy
import pytest

from demos import creature, flag_scene
from skinning_tools.blender.animation.animation_reader import read_animation
from skinning_tools.blender.animation.omission_checks import Driven, drivers_in_error
from skinning_tools.blender.animation.omissions import KINDS, LEVELS, refused
from skinning_tools.core.errors import BadMesh, BadScene
from tests.blender import omission_scenes, scenes
from tests.blender.omission_scenes import COMPLETE, FRAMES, OMISSIONS

EVERY = [pytest.param(scene, expected, id=scene.__name__) for scene, expected in OMISSIONS.items()]


def read(object):
    return scenes.drain(read_animation(bpy.context, object, *FRAMES))[0]


@pytest.mark.parametrize(("scene", "expected"), EVERY)
def test_omissions_are_reported(scene, expected, tmp_path):
    kind, *words = expected
    object = omission_scenes.build(scene, tmp_path)
    found = read(object).omissions
    assert [each.kind for each in found] == [kind]
    for word in words:
        assert word in found[0].text


@pytest.mark.parametrize(("count", "them"), [(1, "it"), (2, "them"), (3, "them"), (4, "them"), (6, "them")])
def test_drivers_in_error_are_counted(count, them):
    scenes.empty_scene()
    hook = omission_scenes.hook(scenes.grid())
    for index in range(count):
        omission_scenes.driver(hook, ("location", "rotation_euler")[index // 3], "2 +* 3", index % 3)
    bpy.context.view_layer.update()
    (text,) = drivers_in_error([Driven(hook)])
    assert text.startswith("the driver of " if count == 1 else "the drivers of ")
    assert f"{'is' if count == 1 else 'are'} invalid, so Blender does not evaluate {them}. Correct" in text


@pytest.mark.parametrize(("scene", "expected"), EVERY)
def test_it_is_refused_unless_allowed(scene, expected, tmp_path):
    kind, *words = expected
    object = omission_scenes.build(scene, tmp_path)
    before, state = scenes.data_blocks(), scenes.ui_state()
    with refused(set(KINDS) - {kind}):
        bpy.data.meshes.remove(read(object).mesh)
    if kind == LEVELS:
        return
    with refused({kind}), pytest.raises(BadScene) as raised:
        read(object)
    for word in (*words, f"--allow-incomplete {kind}"):
        assert word in str(raised.value)
    assert scenes.ui_state() == state
    assert scenes.data_blocks() == before


def test_it_is_reported_as_the_cause_if_nothing_is_left_to_read(tmp_path):
    object = omission_scenes.build(omission_scenes.lost_files_of_particles, tmp_path)
    with pytest.raises(BadMesh) as raised:
        read(object)
    for word in ("no vertices at frame 1", 'the simulation "Particles" of object "Flag" is empty', "particles' Cache"):
        assert word in str(raised.value)


@pytest.mark.parametrize("scene", COMPLETE, ids=lambda scene: scene.__name__)
def test_nothing_is_reported_if_nothing_is_left_out(scene, tmp_path):
    object = omission_scenes.build(scene, tmp_path)
    with refused(KINDS):
        assert read(object).omissions == ()


def cloth_of_the_demo(folder):
    flag_scene.empty_file()
    return flag_scene.add_cloth(FRAMES[1])


def simulated_cloth_of_the_demo(folder):
    flag = cloth_of_the_demo(folder)
    for _ in flag_scene.simulate(flag, FRAMES[1]):
        pass
    return flag


def cache_of_the_demo(folder):
    scenes.wave(scenes.grid())
    scenes.export_cache(folder / "flag.abc", *FRAMES)
    flag_scene.empty_file()
    return flag_scene.open_cache(str(folder / "flag.abc"), FRAMES[1])


@pytest.mark.parametrize(
    "scene",
    [
        cloth_of_the_demo,
        simulated_cloth_of_the_demo,
        cache_of_the_demo,
        lambda folder: creature.build(0.2).body,
        lambda folder: creature.build(0.2, soft=False).body,
    ],
)
def test_nothing_is_reported_about_the_demos(scene, tmp_path):
    scenes.empty_scene()
    object = scene(tmp_path)
    bpy.context.view_layer.update()
    with refused(KINDS):
        assert read(object).omissions == ()
