# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert with an active result: converts its source again, and the result itself only on request."""

import re

import bpy
import pytest

from skinning_tools.blender.conversions import result_of, stands_for_conversion
from skinning_tools.features.convert.panel import SKINNING_PT_convert_animation
from tests.blender import command_runs, moving_meshes, panel_recorder, refusals, scenes, several_scenes

pytestmark = pytest.mark.usefixtures("extension")


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 4, "iterations": 3} | given)


def activate(name: str, *others: str):
    several_scenes.select(*(bpy.data.objects[each] for each in (name, *others)))
    return bpy.data.objects[name]


def converted_flag(**given):
    """A source with one result, Flag_skinned on Flag_rig; another Convert makes objects with .001."""
    source = moving_meshes.waving_grid()
    convert(**given)
    return source


def rigs() -> list[str]:
    return [ob.name for ob in bpy.data.objects if stands_for_conversion(ob)]


def drawn():
    return panel_recorder.drawn(SKINNING_PT_convert_animation)


@pytest.mark.parametrize(("active", "mode"), [("Flag_skinned", "OBJECT"), ("Flag_rig", "OBJECT"), ("Flag_rig", "POSE")])
@pytest.mark.parametrize("shown", ["OTHER", "SOURCE", "RESULT", "BOTH"])
@pytest.mark.parametrize("on_result", ["KEEP", "REPLACE"])
def test_its_source_is_converted_again(scene, capsys, active, mode, shown, on_result):
    source = converted_flag()
    expected = result_of(source).figures["e_rms"]
    bpy.ops.skinning.compare_result(show=shown)
    activate(active)
    bpy.ops.object.mode_set(mode=mode)
    assert f"Converts Flag, the source of {active}" in drawn().texts
    before = scenes.data_blocks()
    earlier = bpy.data.objects["Flag_skinned"].session_uid
    assert convert(on_result=on_result) == {"FINISHED"}
    # What replaces a result has its names.
    ending = ".001" if on_result == "KEEP" else ""
    assert (earlier in [ob.session_uid for ob in bpy.data.objects]) == (on_result == "KEEP")
    assert rigs() == list(dict.fromkeys(["Flag_rig", f"Flag_rig{ending}"]))
    made = bpy.context.view_layer.objects.active
    assert (made.name, bpy.context.mode, source.visible_get()) == (f"Flag_skinned{ending}", "OBJECT", True)
    assert (result_of(made).mesh, result_of(made).rig) == (made, made.parent)
    assert made["skinning_report"]["armature"] == made.parent.name
    assert (made["skinning_report"]["source"], made["skinning_e_rms"]) == ("Flag", pytest.approx(expected, rel=1e-12))
    assert f"{active} is the result of a conversion: its source is converted, Flag" in capsys.readouterr().out
    if on_result == "REPLACE":
        assert scenes.data_blocks() == before


def test_the_source_itself_is_as_before(scene, capsys):
    source = converted_flag()
    before = scenes.ui_state()
    convert(on_result="REPLACE")
    assert scenes.ui_state() == before
    assert rigs() == ["Flag_rig", "Flag_rig.001"]
    assert "result of a conversion" not in capsys.readouterr().out
    assert "Converts Flag" in drawn().texts
    assert source == bpy.context.view_layer.objects.active


def test_the_result_is_converted_on_request(scene):
    converted_flag()
    activate("Flag_skinned")
    scene.skinning_conversion.on_result = "CONVERT"
    assert "Converts Flag_skinned, the result of a conversion" in drawn().texts
    convert(on_result="CONVERT")
    assert bpy.data.objects["Flag_skinned_skinned"]["skinning_report"]["source"] == "Flag_skinned"
    activate("Flag_rig")
    refusals.refused(convert, "NOT_A_MESH", on_result="CONVERT")


def test_the_result_of_a_result(scene):
    """It represents the first source; the chosen result is replaced."""
    converted_flag()
    activate("Flag_skinned")
    convert(on_result="CONVERT")
    activate("Flag_skinned_skinned")
    assert "Converts Flag, the source of Flag_skinned_skinned" in drawn().texts
    convert(on_result="REPLACE")
    assert rigs() == ["Flag_rig", "Flag_rig.001"]
    assert [bpy.data.objects[name]["skinning_report"]["source"] for name in rigs()] == ["Flag", "Flag"]


@pytest.mark.parametrize("what", ["delete", "rename", "empty", "itself", "rig named so"])
@pytest.mark.parametrize("active", ["Flag_skinned", "Flag_rig"])
def test_a_source_that_is_not_there(scene, what, active):
    source = converted_flag()
    if what == "rename":
        source.name = "Banner"
    else:
        bpy.data.objects.remove(source)
    if what == "empty":
        scene.collection.objects.link(bpy.data.objects.new("Flag", None))
    if what == "itself":
        bpy.data.objects["Flag_skinned"].name = "Flag"
        active = active.replace("Flag_skinned", "Flag")
    if what == "rig named so":
        bpy.data.objects["Flag_rig"].name = "Flag"
        active = active.replace("Flag_rig", "Flag")
    activate(active)
    refusals.refused(convert, "name of its own source" if what == "itself" else '"Flag" of this conversion was renamed')
    assert "Convert to Skinning" not in panel_recorder.pressable(drawn())
    if bpy.data.objects[active].type == "MESH":
        assert convert(on_result="CONVERT") == {"FINISHED"}


@pytest.mark.parametrize("how", ["viewport", "collection", "excluded", "another scene"])
def test_a_source_that_cannot_be_shown(scene, how):
    source = converted_flag()
    if how == "viewport":
        source.hide_viewport = True
    else:
        home = bpy.data.collections.new("Home")
        (bpy.data.scenes.new("Other") if how == "another scene" else scene).collection.children.link(home)
        for before in source.users_collection:
            before.objects.unlink(source)
        home.objects.link(source)
        if how != "another scene":
            setattr(
                bpy.context.view_layer.layer_collection.children["Home"],
                "exclude" if how == "excluded" else "hide_viewport",
                True,
            )
    activate("Flag_skinned")
    refusals.refused(convert, 'object "Flag"')


def test_cancelled_or_failed_it_leaves_the_source_hidden(scene):
    source = converted_flag()
    bpy.ops.skinning.compare_result(show="RESULT")
    activate("Flag_rig")
    bpy.ops.object.mode_set(mode="POSE")
    refusals.refused(convert, "too few for 1000 bones", bone_count=1000, on_result="REPLACE")
    assert source.hide_get()
    assert bpy.context.mode == "POSE"


def test_a_duplicate_stands_for_the_same_source(scene):
    converted_flag()
    rig, mesh = (bpy.data.objects[name].copy() for name in ("Flag_rig", "Flag_skinned"))
    mesh.parent = mesh.modifiers["Armature"].object = rig
    alone = bpy.data.objects["Flag_skinned"].copy()
    alone.data = alone.data.copy()
    alone.modifiers.clear()
    for ob in (rig, mesh, alone):
        scene.collection.objects.link(ob)
    for ob in (alone, mesh, rig):
        activate(ob.name)
        assert f"Converts Flag, the source of {ob.name}" in drawn().texts
        convert()
        made = bpy.context.view_layer.objects.active
        assert made["skinning_report"]["source"] == "Flag"
    activate(rig.name)
    convert(on_result="REPLACE")
    assert "Flag_rig" in bpy.data.objects
    assert "Flag_skinned" in bpy.data.objects


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("with_source", [True, False])
@pytest.mark.parametrize("stranger", [True, False])
def test_in_another_file(scene, tmp_path, link, with_source, stranger):
    """A linked result's source is the one in its own file, not a local object of the same name."""
    converted_flag()
    objects = {bpy.data.objects[name] for name in ("Flag_rig", "Flag_skinned", *(["Flag"] if with_source else []))}
    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), objects, fake_user=True)
    scene = moving_meshes.fresh_scene()
    if stranger:
        moving_meshes.twisting_bar("Flag")
    with bpy.data.libraries.load(str(path), link=link) as (there, wanted):
        wanted.objects = [name for name in there.objects if with_source or name != "Flag"]
    for ob in wanted.objects:
        scene.collection.objects.link(ob)
    bpy.context.view_layer.update()
    mesh = next(ob for ob in wanted.objects if ob.type == "MESH" and "skinned" in ob.name)
    several_scenes.select(mesh)
    if not with_source and not stranger:
        why = "is not in this file: the result is linked from library.blend" if link else "was renamed or deleted"
        refusals.refused(convert, f'"Flag" of this conversion {why}')
        return
    if link:
        refusals.refused(convert, "LINKED", on_result="REPLACE")
    convert()
    made = bpy.context.view_layer.objects.active
    assert made["skinning_report"]["source"] == "Flag"
    library = next((ob for ob in wanted.objects if ob.name == "Flag"), None)
    if link and with_source:
        method = result_of(mesh).figures["method"]
        assert made["skinning_report"]["method"] == method
        assert result_of(mesh).source == library


def test_several_objects_stand_for_all_their_sources(scene):
    several_scenes.character()
    several_scenes.convert()
    expected = bpy.data.objects["Body_rig"]["skinning_report"].to_dict()
    for number, active in enumerate(("Eye_skinned", "Body_skinned", "Body_rig"), start=1):
        activate(active)
        assert f"Converts Body, Clothes, Eye, the source of {active}" in drawn().texts
        convert(bone_count=8, iterations=5)
        figures = bpy.data.objects[f"Body_rig.{number:03}"]["skinning_report"].to_dict()
        assert [part["source"] for part in figures["parts"]] == ["Body", "Clothes", "Eye"]
        assert figures["e_rms"] == expected["e_rms"]
    earlier = activate("Eye_skinned").parent.session_uid
    # What another object uses stays, and keeps its name.
    kept = bpy.data.objects["Body_rig"].animation_data.action
    kept.name, kept.use_fake_user = "Tweaked", True
    names = scenes.data_blocks()["objects"]
    convert(on_result="REPLACE")
    assert earlier not in [ob.session_uid for ob in bpy.data.objects]
    assert scenes.data_blocks()["objects"] == names
    for name in ("Body", "Clothes", "Eye"):
        made = bpy.data.objects[f"{name}_skinned"]
        assert (made.parent.name, made.data.name) == ("Body_rig", made.name)
        assert made["skinning_report"]["source"] == name
    assert kept.name == "Tweaked"
    assert made.parent.animation_data.action.name.startswith("Body_skinning")


@pytest.mark.parametrize(
    ("selected", "sources", "replaced"),
    [
        (["Flag", "Flag_skinned"], ["Flag"], ["Flag_rig"]),
        (["Flag_skinned", "Flag"], ["Flag"], ["Flag_rig"]),
        (["Flag_skinned", "Flag_rig"], ["Flag"], ["Flag_rig"]),
        (["Flag_rig", "Flag_skinned"], ["Flag"], ["Flag_rig"]),
        (["Flag", "Bar_skinned"], ["Flag", "Bar"], ["Bar_rig"]),
        (["Flag_skinned", "Bar"], ["Flag", "Bar"], ["Flag_rig"]),
        (["Flag_skinned", "Bar_skinned"], ["Flag", "Bar"], ["Flag_rig", "Bar_rig"]),
        (["Bar_rig", "Flag_skinned"], ["Bar", "Flag"], ["Flag_rig", "Bar_rig"]),
        (["Bar", "Flag", "Flag_skinned", "Bar_skinned"], ["Bar", "Flag"], ["Flag_rig", "Bar_rig"]),
    ],
)
@pytest.mark.parametrize("on_result", ["KEEP", "REPLACE"])
def test_sources_and_results_selected_together(scene, selected, sources, replaced, on_result):
    converted_flag()
    moving_meshes.twisting_bar()
    convert()
    activate(*selected)
    # What replaces a result may have its names.
    before = {bpy.data.objects[name].session_uid: name for name in rigs()}
    chosen = scene.skinning_conversion
    chosen.selected_objects, chosen.on_result = True, on_result
    assert any(text.startswith(f"Converts {', '.join(sources)}, the source of ") for text in drawn().texts)
    convert(selected_objects=True, on_result=on_result)
    after = {ob.session_uid: ob for ob in map(bpy.data.objects.get, rigs())}
    made, *more = after.keys() - before.keys()
    assert not more
    figures = after[made]["skinning_report"].to_dict()
    assert [part["source"] for part in figures.get("parts", [figures])] == sources
    gone = [before[uid] for uid in before.keys() - after.keys()]
    assert sorted(gone) == (sorted(replaced) if on_result == "REPLACE" else [])


def test_one_of_those_selected_has_lost_its_source(scene):
    converted_flag()
    bpy.data.objects.remove(bpy.data.objects["Flag"])
    moving_meshes.twisting_bar()
    activate("Bar", "Flag_skinned")
    refusals.refused(convert, '"Flag" of this conversion was renamed or deleted', selected_objects=True)
    assert convert() == {"FINISHED"}


def test_bones_are_suggested_for_the_source(scene, capsys):
    converted_flag()
    activate("Flag_skinned")
    assert bpy.ops.skinning.suggest_bones() == {"FINISHED"}
    assert "Flag: " in capsys.readouterr().out


def test_converting_a_chosen_result_again(scene):
    """Convert Again reads what the conversion read."""
    converted_flag()
    activate("Flag_skinned")
    convert(on_result="CONVERT")
    activate("Flag_skinned_rig")
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}
    assert bpy.context.view_layer.objects.active["skinning_report"]["source"] == "Flag_skinned"


# The command line


@pytest.fixture
def shot(scene, tmp_path):
    converted_flag()
    bpy.ops.skinning.compare_result(show="RESULT")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    return tmp_path


def run(folder, *arguments) -> int:
    return command_runs.run("convert", *arguments, "--bones", 4, "--iterations", 3, "--output", folder / "out.blend")


@pytest.mark.parametrize("names", [["Flag_skinned"], ["Flag_rig"], ["Flag*"], ["Flag", "Flag_skinned"], ["F*_skinned"]])
@pytest.mark.parametrize("on_result", ["keep", "REPLACE"])
def test_on_the_command_line(shot, capsys, names, on_result):
    arguments = [each for name in names for each in ("--object", name)]
    assert run(shot, *arguments, "--on-result", on_result) == 0
    printed = capsys.readouterr().out
    assert re.search("^Object +Flag$", printed, re.MULTILINE)
    named = "Flag_rig" if "Flag_rig" in names else "Flag_skinned"
    note = rf"^Note +{named} is the result of a conversion: its source is converted, Flag$"
    assert re.search(note, printed, re.MULTILINE)
    assert rigs() == (["Flag_rig", "Flag_rig.001"] if on_result == "keep" else ["Flag_rig"])


def test_the_result_itself_on_the_command_line(shot, capsys):
    assert run(shot, "--object", "Flag_skinned", "--on-result", "convert") == 0
    assert "Note" not in capsys.readouterr().out
    assert bpy.data.objects["Flag_skinned_skinned"]["skinning_report"]["source"] == "Flag_skinned"


def test_a_source_that_is_not_there_on_the_command_line(shot, capsys):
    bpy.data.objects["Flag"].name = "Banner"
    bpy.ops.wm.save_mainfile()
    before = moving_meshes.state()
    assert run(shot, "--object", "Flag_skinned") == 1
    assert '"Flag" of this conversion was renamed or deleted' in capsys.readouterr().err
    assert moving_meshes.state() == before


def deleted(how: str) -> None:
    """Delete the conversion of Flag in one of the possible ways."""
    if how.startswith("delete"):
        activate(how.partition(" ")[2])
        bpy.ops.skinning.delete_result()
    elif how == "replace":
        activate("Flag_skinned")
        convert(on_result="REPLACE")
    elif how == "replace the rig":
        activate("Flag_rig")
        convert(on_result="REPLACE")
    else:
        activate("Flag_rig")
        bpy.ops.skinning.convert_again(replace=True)


WAYS = ["delete Flag_skinned", "delete Flag_rig", "delete Flag", "replace", "replace the rig", "again"]
STAYS = "{0} was made from {1}, which is deleted: {0} stays but cannot be converted again"


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("made", ["mesh", "rig renamed", "rig deleted", "two", "chain", "none"])
def test_conversions_of_a_deleted_result_are_reported(scene, capfd, how, made):
    converted_flag()
    if made != "none":
        activate("Flag_skinned")
        convert(on_result="CONVERT")
        told = ["Flag_skinned_rig"]
    if made == "rig renamed":
        bpy.data.objects["Flag_skinned_rig"].name = "Second"
        told = ["Second"]
    elif made == "rig deleted":
        bpy.data.objects.remove(bpy.data.objects["Flag_skinned_rig"])
        told = ["Flag_skinned_skinned"]
    elif made == "two":
        activate("Flag_skinned")
        convert(on_result="CONVERT")
        told.append("Flag_skinned_rig.001")
    elif made == "chain":
        # Its own source stays.
        activate("Flag_skinned_skinned")
        convert(on_result="CONVERT")
    elif made == "none":
        # Another conversion of the same source is none of the deleted result.
        activate("Flag")
        convert()
        told = []
        how = how.replace("delete Flag", "delete Flag_rig") if how == "delete Flag" else how
    capfd.readouterr()
    deleted(how)
    out = capfd.readouterr().out
    assert [ob.name for ob in bpy.data.objects if STAYS.format(ob.name, "Flag_skinned") in out] == told
    assert out.count("which is deleted") == len(told)


def test_results_replaced_together_are_not_reported_as_left(scene, capfd):
    """Where a result and what was made from it are replaced at once, and where only one of them is."""
    sources = several_scenes.character()
    several_scenes.convert()
    activate("Body_skinned")
    convert(on_result="CONVERT")
    capfd.readouterr()
    several_scenes.select(bpy.data.objects["Body_skinned"], bpy.data.objects["Body_skinned_skinned"])
    several_scenes.convert(on_result="REPLACE")
    assert "which is deleted" not in capfd.readouterr().out
    assert {"Body_rig", "Body_skinned_rig"}.isdisjoint(rigs())
    assert all(source.name in bpy.data.objects for source in sources)


def test_conversions_of_one_of_several_results_are_reported_with_it(scene, capfd):
    several_scenes.character()
    several_scenes.convert()
    activate("Eye_skinned")
    convert(on_result="CONVERT")
    capfd.readouterr()
    activate("Body_rig")
    bpy.ops.skinning.delete_result()
    assert STAYS.format("Eye_skinned_rig", "Eye_skinned") in capfd.readouterr().out
