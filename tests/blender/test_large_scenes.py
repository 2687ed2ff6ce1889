# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels and polls in large scenes: what they do does not grow with the objects that they have nothing to do with, and
what they remember is what is there.

Counted, not timed: the instructions of Python, and how often code asks for all objects, which Blender goes through.
"""

import subprocess
from functools import partial
from pathlib import Path

import bpy
import pytest

from skinning_tools.blender import conversions, look_ups
from skinning_tools.blender.skin_reader import meshes_of
from skinning_tools.core import run_time
from skinning_tools.features.convert import conversion
from skinning_tools.features.fit import posed_copies
from tests.blender import another_process, crowded_scenes, object_walks, scenes
from tests.reliability import paper_layout, walk

pytestmark = pytest.mark.usefixtures("extension")

ROOT = Path(__file__).resolve().parents[2]
# Each has all kinds of objects, more armatures than a message names, and the same ones first.
CROWDS = (200, 400)
# A call may go through all objects once to find those that it knows the places of, and through the selection.
MOST_WALKS = 2


@pytest.fixture
def told(monkeypatch):
    """As with a window: look-ups are remembered until Blender reports a change. The machine's pace, by which the panel
    names the times of more or fewer choices, stays that of the model."""
    monkeypatch.setattr(look_ups, "_has_redraws", lambda: True)
    monkeypatch.setattr(conversion, "learn_pace", lambda expected, taken: None)
    monkeypatch.setattr(run_time, "_pace", {})
    look_ups._forget()


@pytest.fixture
def tabulated(monkeypatch):
    """The indices that had to go through all objects."""
    found = []
    exact = look_ups.Index._tabulated
    monkeypatch.setattr(look_ups.Index, "_tabulated", lambda index: found.append(index) or exact(index))
    return found


def calls() -> dict:
    """What a redraw may call in the present state, by name."""
    classes = [walk._class_of(name) for name in walk.operator_names()]
    polls = {cls.bl_idname: partial(cls.poll, bpy.context) for cls in classes if "poll" in dir(cls)}
    panels = paper_layout.sidebar_panels()
    polls |= {f"{panel.__name__}.poll": partial(paper_layout.shows_itself, panel) for panel in panels}
    shown = (panel for panel in panels if paper_layout.shows_itself(panel))
    return polls | {panel.__name__: partial(paper_layout.draw, panel) for panel in shown}


def redraw() -> None:
    for call in calls().values():
        call()


def counts(crowd: int, path) -> dict:
    """The cost of each call in each state of a scene with that number of other objects."""
    crowded_scenes.character()
    crowded_scenes.add_crowd(crowd, path)
    bpy.context.scene.skinning_bind.method = "CONTAINMENT"
    found = {}
    for state in crowded_scenes.STATES:
        crowded_scenes.enter(*state)
        redraw()
        for name, call in calls().items():
            found[(*state, name)] = object_walks.counted(call, apart_from=(paper_layout.__file__,))
    return found


def test_a_redraw_takes_no_more_in_a_large_scene(told, tmp_path):
    small, large = (counts(crowd, tmp_path / f"{crowd}.blend") for crowd in CROWDS)
    assert small.keys() == large.keys()
    grown = {key: (small[key].instructions, large[key].instructions) for key in small}
    assert {key: pair for key, pair in grown.items() if pair[1] > pair[0]} == {}
    many = {key: str(each) for key, each in large.items() if each.walks.total() > MOST_WALKS}
    assert many == {}


WALKS = {
    "a loop": lambda: [ob for ob in bpy.data.objects if ob.type == "CAMERA"],
    "a function of all": lambda: any(map(bool, bpy.data.objects[:])),
    "a name": lambda: bpy.data.objects.get("Limb"),
    "a name in the view layer": lambda: "Limb" in bpy.context.view_layer.objects,
    "the selection": lambda: bpy.context.selected_objects,
    "the scenes of an object": lambda: bpy.data.objects["Limb"].users_scene,
    "the collections of an object": lambda: bpy.data.objects["Limb"].users_collection,
    "the children of an object": lambda: bpy.data.objects["Limb"].children,
    "the users of an object": lambda: bpy.data.user_map(subset={bpy.data.objects["Limb"]}),
}


@pytest.mark.parametrize("way", WALKS)
def test_the_count_includes_every_way_to_iterate_over_objects(way):
    crowded_scenes.character()
    assert object_walks.counted(WALKS[way]).walks.total() >= 1
    assert object_walks.counted(lambda: bpy.context.view_layer.objects.active.name).walks.total() == 0


def test_objects_are_gone_through_once_after_a_change(told, tabulated, tmp_path):
    crowded_scenes.character()
    crowded_scenes.add_crowd(20, tmp_path / "crowd.blend")
    for state in crowded_scenes.STATES:
        crowded_scenes.enter(*state)
        bpy.context.view_layer.update()
        tabulated.clear()
        redraw()
        assert len(tabulated) == len(set(tabulated))
        tabulated.clear()
        redraw()
        assert tabulated == []


def test_without_change_notifications_each_call_searches_once(tabulated, tmp_path):
    crowded_scenes.character()
    for state in crowded_scenes.STATES[:8]:
        crowded_scenes.enter(*state)
        for name, call in calls().items():
            tabulated.clear()
            call()
            assert len(tabulated) == len(set(tabulated)), name
    assert not look_ups._memory.tables


def answers() -> dict:
    """The results of all look-ups, as names."""
    layer, scene = bpy.context.view_layer, bpy.context.scene
    armatures = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    found = {
        "copies": posed_copies.copies_in(scene),
        "conversions": conversions.conversions(),
        "armatures": look_ups.armatures_in(layer),
        **{("meshes", rig.name_full): meshes_of(rig, layer) for rig in armatures},
        **{("users", rig.name_full): look_ups.users_of(rig.data) for rig in armatures},
    }
    results = {("result", ob.name_full): conversions.result_of(ob) for ob in bpy.data.objects}
    named = {name: look_ups.named(name) for name in ("Limb", "Flag", "Renamed", "Copy", "nobody")}
    return (
        {key: sorted(ob.name_full for ob in obs) for key, obs in found.items()}
        | {
            key: each and [part and part.name_full for part in (each.source, each.mesh, each.rig)]
            for key, each in results.items()
        }
        | {name: ob and ob.name_full for name, ob in named.items()}
    )


def shared_answers() -> dict:
    with look_ups.sharing():
        return answers()


def _copy(name: str):
    copy = bpy.data.objects[name].copy()
    copy.name = "Copy"
    bpy.context.scene.collection.objects.link(copy)


def _undo():
    bpy.ops.ed.undo_push(message="before")
    bpy.data.objects["Limb"].name = "Renamed"
    bpy.data.objects.remove(bpy.data.objects["Flag"])
    bpy.ops.ed.undo_push(message="after")
    shared_answers()
    bpy.ops.ed.undo()


def _redo():
    _undo()
    shared_answers()
    bpy.ops.ed.redo()


def _swap():
    """As many objects as before, in the same order."""
    bpy.data.objects.remove(bpy.data.objects["Limb"])
    scenes.grid(name="Limb")


def _open_another(path):
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    scenes.empty_scene()
    shared_answers()
    bpy.ops.wm.open_mainfile(filepath=str(path))


CHANGES = {
    "another armature": lambda _: setattr(
        bpy.data.objects["Limb"].modifiers["Armature"], "object", bpy.data.objects["Flag_rig"]
    ),
    "no armature": lambda _: setattr(bpy.data.objects["Limb"].modifiers["Armature"], "object", None),
    "a modifier more": lambda _: setattr(
        bpy.data.objects["Flag"].modifiers.new("Armature", "ARMATURE"), "object", bpy.data.objects["Limb rig"]
    ),
    "a parent that deforms": lambda _: (
        setattr(bpy.data.objects["Flag"], "parent", bpy.data.objects["Limb rig"])
        or setattr(bpy.data.objects["Flag"], "parent_type", "ARMATURE")
    ),
    "a copy": lambda _: _copy("Limb"),
    "a copy of the rig": lambda _: _copy("Limb rig"),
    "a mesh renamed": lambda _: setattr(bpy.data.objects["Limb"], "name", "Renamed"),
    "a source renamed": lambda _: setattr(bpy.data.objects["Flag"], "name", "Renamed"),
    "a result renamed": lambda _: setattr(bpy.data.objects["Flag_skinned"], "name", "A"),
    "a rig renamed": lambda _: setattr(bpy.data.objects["Flag_rig"], "name", "Z"),
    "a source removed": lambda _: bpy.data.objects.remove(bpy.data.objects["Flag"]),
    "a rig removed": lambda _: bpy.data.objects.remove(bpy.data.objects["Limb rig"]),
    "as many objects": lambda _: _swap(),
    "taken off the scene": lambda _: scenes.home().objects.unlink(bpy.data.objects["Limb"]),
    "hidden": lambda _: bpy.data.objects["Limb"].hide_set(True),
    "disabled": lambda _: setattr(bpy.data.objects["Limb"], "hide_viewport", True),
    "a pose copied": lambda _: bpy.ops.skinning.start_weight_fit(),
    "converted again": lambda _: (
        crowded_scenes.activate(bpy.data.objects["Flag"])
        or bpy.ops.skinning.convert_animation(bone_count=2, iterations=1)
    ),
    "a result deleted": lambda _: (
        crowded_scenes.activate(bpy.data.objects["Flag_skinned"]) or bpy.ops.skinning.delete_result()
    ),
    "undone": lambda _: _undo(),
    "redone": lambda _: _redo(),
    "another file": lambda folder: _open_another(folder / "other.blend"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_cached_answers_follow_a_change(change, told, tmp_path):
    crowded_scenes.character()
    scenes.select_bones(bpy.data.objects["Limb rig"])
    bpy.data.objects["Limb rig"].pose.bones["lower"].rotation_quaternion = (0.9, 0.4, 0, 0)
    bpy.context.view_layer.update()
    assert shared_answers() == answers()
    assert look_ups._memory.tables
    CHANGES[change](tmp_path)
    bpy.context.view_layer.update()
    assert shared_answers() == answers()


@pytest.mark.parametrize("change", CHANGES)
def test_cached_answers_never_return_removed_objects(change, told, tmp_path, monkeypatch):
    """A cached look-up is checked before use: it may lack objects, but never returns removed ones."""
    crowded_scenes.character()
    bpy.data.objects["Limb rig"].pose.bones["lower"].rotation_quaternion = (0.9, 0.4, 0, 0)
    bpy.context.view_layer.update()
    shared_answers()
    CHANGES[change](tmp_path)
    shown, true = shared_answers(), answers()
    for key, names in shown.items():
        if key in ("copies", "conversions", "armatures") or key[0] in ("meshes", "users"):
            assert set(names) <= set(true[key]), key


@pytest.mark.parametrize("handlers", ["depsgraph_update_post", "undo_post", "redo_post", "load_post"])
def test_nothing_is_cached_after_another_add_on_clears_the_handlers(handlers, told, monkeypatch):
    crowded_scenes.character()
    place = getattr(bpy.app.handlers, handlers)
    place.remove(look_ups._forget)
    try:
        shared_answers()
        assert not look_ups._memory.tables
        assert not look_ups._memory.places
    finally:
        place.append(look_ups._forget)


def test_no_object_outlives_the_call_that_found_it(told):
    crowded_scenes.character()
    redraw()
    assert look_ups._memory.tables
    assert not look_ups._kept
    numbers = [pair for table in look_ups._memory.tables.values() for pairs in table.values() for pair in pairs]
    assert {type(number) for pair in numbers for number in pair} == {int}


LOADING = f"""
import os, sys, traceback
import bpy
sys.path.insert(0, {str(ROOT)!r})
try:
    import skinning_tools
    from skinning_tools.features import FEATURES
    skinning_tools.register()
    from tests.blender import moving_meshes, scenes
    from tests.reliability import paper_layout
    classes = [cls for feature in FEATURES for module in feature.operators for cls in module.registry]
    polls = [cls.poll for cls in classes if issubclass(cls, bpy.types.Operator) and "poll" in dir(cls)]
    moving_meshes.fresh_scene()
    flag = moving_meshes.waving_grid()
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones.new("Bone").tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    flag.vertex_groups.new(name="Bone").add(range(20), 1.0, "REPLACE")
    flag.modifiers.new("Armature", "ARMATURE").object = rig
    for active in (flag, rig):
        bpy.context.view_layer.objects.active = active
        print("DRAWN", len(paper_layout.draw_all()), sum(poll(bpy.context) for poll in polls))
        print("LOADED", *sorted(name for name in sys.modules if name.partition(".")[0] == "scipy"))
except Exception:
    traceback.print_exc()
sys.stdout.flush(); sys.stderr.flush()
os._exit(0)
"""


@pytest.mark.skipif(bool(bpy.app.binary_path), reason="the checkout is looked at, not what is installed")
def test_no_panel_and_no_poll_loads_scipy():
    """Loading takes a third of a second, for which the window would stand still."""
    done = subprocess.run(another_process.command(LOADING), capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("LOADED")] == ["LOADED", "LOADED"], done.stdout + done.stderr
    drawn = [list(map(int, line.split()[1:])) for line in lines if line.startswith("DRAWN")]
    assert all(panels > 10 and possible > 10 for panels, possible in drawn), drawn
