# SPDX-License-Identifier: GPL-3.0-or-later
"""Several clips of one mesh: one skinned mesh, one armature, an action for each clip that plays its source."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions
from skinning_tools.blender.background import drain
from skinning_tools.blender.clip_tracks import play_clip
from skinning_tools.blender.conversions import conversions, result_of
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.features.convert.chosen_sources import convert_active, reason_not_to_convert
from skinning_tools.features.convert.result import frame_errors, worst_frame
from skinning_tools.features.convert.settings import ConvertSettings, settings_of
from tests.blender import command_runs, moving_meshes, refusals, scenes
from tests.blender.clip_scenes import FRAMES, character, clip, convert, local_positions
from tests.blender.several_scenes import select

pytestmark = pytest.mark.usefixtures("extension")

refused = partial(refusals.refused, convert)


def made() -> tuple[bpy.types.Object, bpy.types.Object]:
    return bpy.data.objects["Walk_skinned"], bpy.data.objects["Walk_rig"]


def measured(sources) -> dict[str, ErrorMeter]:
    """The error of each clip by the test's own way, in object space."""
    skinned, rig = made()
    first = local_positions(sources[0], FRAMES["Walk"][0])
    found = {}
    for source in sources:
        play_clip(rig, [skinned], source.name)
        meter = found[source.name] = ErrorMeter(unit_scale(first[None]), len(first))
        for frame in FRAMES[source.name]:
            meter.add(local_positions(source, frame), local_positions(skinned, frame))
    return found


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bone_kind": "RIGID", "joint_hierarchy": True, "root_bone": True},
        {"bone_kind": "SCALED", "residual_shapes": 2, "key_tolerance": 0.5},
    ],
    ids=["affine", "rigid", "scaled"],
)
def test_each_action_plays_its_source(given):
    sources = character()
    assert convert(**given) == {"FINISHED"}
    skinned, rig = made()
    figures = rig["skinning_report"].to_dict()
    meters = measured(sources)
    assert [entry["source"] for entry in figures["clips"]] == ["Walk", "Idle", "Run"]
    for entry in figures["clips"]:
        frames, meter = FRAMES[entry["source"]], meters[entry["source"]]
        assert (entry["frame_start"], entry["frame_count"]) == (frames[0], len(frames))
        assert entry["e_rms"] == pytest.approx(meter.e_rms, rel=1e-3, abs=1e-4)
        assert entry["max_error"] == pytest.approx(meter.max_error, rel=1e-3, abs=1e-3)
        assert 0 < meter.e_rms < 20
    counts = [entry["frame_count"] for entry in figures["clips"]]
    squares = [entry["e_rms"] ** 2 for entry in figures["clips"]]
    assert skinned["skinning_e_rms"] == pytest.approx(np.sqrt(np.average(squares, weights=counts)), rel=1e-6)
    assert figures["frame_count"] == sum(counts) == len(figures["frame_e_rms"])


def test_residual_shapes_correct_every_clip():
    sources = character()
    errors = []
    for shapes in (0, 4):
        convert(bone_kind="RIGID", residual_shapes=shapes)
        errors.append([meter.e_rms for meter in measured(sources).values()])
        bpy.context.view_layer.objects.active = made()[1]
        bpy.ops.skinning.delete_result()
        select(*sources)
    assert all(np.array(errors[1]) < 0.7 * np.array(errors[0]))


def test_longer_names_than_tracks_have():
    """As far as this Blender allows them; renamed meanwhile, the clips are still those that were read."""
    sources = character()
    for ob in sources:
        ob.name = f"{ob.name} {'x' * 90}"
    steps = convert_active(bpy.context, sources[0], bone_count=6, iterations=4, as_clips=True)
    while not next(steps)[1].startswith("Writing"):
        pass
    sources[1].name = "Renamed"
    record = drain(steps).record
    assert [clip["source"].split()[0] for clip in record["clips"]] == ["Walk", "Idle", "Run"]
    assert max(clip["e_rms"] for clip in record["clips"]) < 2


def test_what_is_left():
    sources = character()
    names = scenes.data_blocks()
    convert()
    new = {kind: sorted(set(found) - set(names[kind])) for kind, found in scenes.data_blocks().items()}
    assert {kind: found for kind, found in new.items() if found and kind != "all_ids"} == {
        "actions": ["Idle", "Run", "Walk"],
        "armatures": ["Walk_rig"],
        "collections": ["Walk_skinning"],
        "meshes": ["Walk_skinned"],
        "objects": ["Walk_rig", "Walk_skinned"],
    }
    skinned, rig = made()
    assert rig.animation_data.action.name == "Walk"
    for track, source in zip(rig.animation_data.nla_tracks, sources, strict=True):
        frames = FRAMES[source.name]
        (strip,) = track.strips
        assert (track.name, track.mute, strip.action.name) == (source.name, True, source.name)
        assert (strip.frame_start, strip.frame_end) == (frames[0], frames[-1])
        assert tuple(strip.action.frame_range) == (frames[0], frames[-1])
    np.testing.assert_allclose(rig.matrix_world, sources[0].matrix_world, atol=1e-6)
    assert skinned.parent == rig


def test_a_clip_keys_all_that_another_changes():
    """Or what the one leaves would show in the other."""
    sources = character()
    scenes.key_property(sources[0], "location", {1: (1, 2, 3), 8: (4, 2, 3)})
    convert()
    _, rig = made()
    keyed = []
    for source in sources:
        play_clip(rig, [], source.name)
        keyed.append({(curve.data_path, curve.array_index) for curve in actions.existing_curves(rig)})
    assert keyed[0] == keyed[1] == keyed[2]
    assert ("location", 0) in keyed[0]
    play_clip(rig, [], "Walk")
    bpy.context.scene.frame_set(8)
    assert rig.matrix_world.translation.x == pytest.approx(4)
    play_clip(rig, [], "Run")
    bpy.context.scene.frame_set(20)
    assert rig.matrix_world.translation.x == pytest.approx(1)


def test_a_clip_that_moves_as_a_whole_has_a_note():
    _, idle, _ = character()
    scenes.key_property(idle, "location", {7: (5, 0, 0), 14: (5, 3, 0)})
    convert()
    (note,) = made()[1]["skinning_report"]["notes"]
    assert note.startswith("Idle itself moves")


def test_results_are_found_and_deleted():
    sources = character()
    before = scenes.data_blocks()
    convert(residual_shapes=1)
    skinned, rig = made()
    for ob in (skinned, rig):
        result = result_of(ob)
        assert (result.sources, result.meshes) == (list(sources), [skinned])
    figures = result.figures
    settings = settings_of(figures)
    assert (settings.as_clips, settings.selected_objects, settings.frame_end) == (True, False, 24)
    numbers, errors, _ = frame_errors(figures)
    worst = figures["worst_clip"]
    assert (numbers, len(errors)) == (list(FRAMES[worst]), len(FRAMES[worst]))
    bpy.context.view_layer.objects.active = rig
    bpy.ops.skinning.show_worst_frame()
    assert (rig.animation_data.action.name, bpy.context.scene.frame_current) == (worst, worst_frame(figures))
    bpy.ops.skinning.show_error()
    assert not any(source.visible_get() for source in sources)
    bpy.ops.skinning.show_error()
    bpy.ops.skinning.compare_result(show="SOURCE")
    assert all(source.visible_get() for source in sources)
    made_first = scenes.data_blocks()
    play_clip(rig, [skinned], "Run")
    assert bpy.ops.skinning.convert_again(replace=True) == {"FINISHED"}
    again = bpy.context.view_layer.objects.active
    assert len(again["skinning_report"]["clips"]) == 3
    # Each action has the name of its clip, whichever played.
    assert scenes.data_blocks()["actions"] == made_first["actions"]
    tracks = made()[1].animation_data.nla_tracks
    assert [(track.name, track.strips[0].action.name) for track in tracks] == [(name, name) for name in FRAMES]
    slots = {slot.identifier for name in FRAMES for slot in getattr(bpy.data.actions[name], "slots", ())}
    assert slots <= {"OBWalk_rig", "KEWalk_skinned"}
    assert bpy.ops.skinning.delete_result() == {"FINISHED"}
    assert scenes.data_blocks() == before


def test_a_result_among_the_clips_stands_for_its_sources():
    sources = character()
    convert()
    select(made()[0], *sources)
    assert convert() == {"FINISHED"}
    figures = bpy.data.objects["Walk_rig.001"]["skinning_report"]
    assert [entry["source"] for entry in figures["clips"]] == ["Walk", "Idle", "Run"]


def test_other_numbers_of_vertices():
    character()
    bpy.data.objects["Run"].modifiers.new("Fine", "SUBSURF")
    refused('OTHER_VERTEX_COUNT object "Run" … object "Walk" has 63', "Clips of one mesh")


def test_other_faces():
    walk, _, _ = character()
    vertices, faces = moving_meshes.grid()
    other = moving_meshes.add_object("Turned", vertices, [face[::-1] for face in faces])
    select(walk, other)
    refused('"Turned" has as many vertices', "other faces", "order")


def test_a_clip_that_does_not_move():
    walk, _, _ = character()
    still = moving_meshes.add_object("Still", *moving_meshes.grid())
    select(walk, still)
    refused('Nothing moves: object "Still"', "frame 1 to 24")


def test_a_single_mesh():
    walk, _, _ = character()
    select(walk)
    refused("As Clips needs at least two meshes")
    assert "at least two" in reason_not_to_convert(bpy.context, ConvertSettings(as_clips=True))


def test_clips_of_the_same_name(tmp_path):
    walk, _, _ = character()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "other.blend"), copy=True)
    with bpy.data.libraries.load(str(tmp_path / "other.blend"), link=True) as (_, data):
        data.objects = ["Walk"]
    (linked,) = data.objects
    bpy.context.scene.collection.objects.link(linked)
    select(walk, linked)
    refused('Two of the clips have the name "Walk"')


def test_a_failure_at_the_last_clip_leaves_nothing():
    character()
    last = clip("Zebra", range(1, 9), 9)
    walk = bpy.data.objects["Walk"]
    last.location.x = 0
    modifier = last.modifiers.new("Fine", "SUBSURF")
    modifier.show_viewport = False
    modifier.keyframe_insert("show_viewport", frame=1)
    modifier.show_viewport = True
    modifier.keyframe_insert("show_viewport", frame=5)
    bpy.context.scene.frame_set(1)
    select(walk, bpy.data.objects["Run"], last)
    refused('object "Zebra" does not keep its topology')


@pytest.mark.parametrize("stage", ["Reading", "Solving", "Writing", "Reducing", "Measuring"])
def test_cancelled_it_leaves_nothing(stage):
    walk, _, _ = character()
    before = moving_meshes.state()
    steps = convert_active(bpy.context, walk, bone_count=4, iterations=2, as_clips=True, key_tolerance=1.0)
    # Past the first clip, where the stage has steps for each.
    wanted = {"Reading": 4, "Measuring": 10}.get(stage, 1)
    seen = 0
    while seen < wanted:
        seen += next(steps)[1].startswith(stage)
    steps.close()
    assert moving_meshes.state() == before


def test_command_line(tmp_path, capsys):
    character()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    output = tmp_path / "out.blend"
    objects = [part for name in FRAMES for part in ("--object", name)]
    status = command_runs.run(
        "convert", *objects, "--as-clips", "--bones", 6, "--iterations", 3, "--output", output
    )  # fmt: skip
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    for name in FRAMES:
        assert f"E_RMS of {name}" in printed.out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert {"Walk", "Idle", "Run"} <= {action.name for action in bpy.data.actions}


@pytest.fixture
def caches(tmp_path):
    """A saved file with the mesh Horse, and its caches in all formats that this Blender has, each with its positions in
    Horse's space by frame."""
    moving_meshes.fresh_scene(12)
    made, scene = {}, bpy.context.scene
    for seed, (name, kind) in enumerate((("walk", "pc2"), ("idle", "mdd"), ("run", "abc"), ("jump", "usdc"))):
        option = {"abc": "alembic", "usdc": "usd"}.get(kind)
        if option is not None and not getattr(bpy.app.build_options, option):
            continue
        frames, path = range(1, 7 + seed), tmp_path / f"{name}.{kind}"
        ob = clip("Horse", frames, seed)
        made[path] = np.array([local_positions(ob, frame) for frame in frames])
        if option == "alembic":
            scenes.export_cache(path, frames[0], frames[-1])
        elif option == "usd":
            scene.frame_start, scene.frame_end = frames[0], frames[-1]
            bpy.ops.wm.usd_export(filepath=str(path), export_animation=True, export_shapekeys=False)
        else:
            {"pc2": scenes.write_pc2, "mdd": scenes.write_mdd}[kind](path, made[path])
        bpy.data.objects.remove(ob)
    ob = moving_meshes.add_object("Horse", *moving_meshes.grid())
    ob.data.materials.append(bpy.data.materials.new("Coat"))
    # What is active and selected is no part of the character.
    scenes.link(bpy.data.objects.new("Marker", None))
    # Other frames than the caches have.
    scene.frame_start, scene.frame_end = 1, 3
    shot = tmp_path / "horse.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    return shot, made


def test_long_names_of_cache_files(caches, tmp_path, capsys):
    """Names are cut as this Blender does, between letters; the report is of the mesh."""
    walk, idle, *_ = caches[1]
    long = [path.rename(tmp_path / f"{path.stem}{'ö' * 90}{path.suffix}") for path in (walk, idle)]
    output, solved = (tmp_path / name for name in ("out.blend", "solved.blend"))
    given = ("--object", "Horse", "--clips", *long, "--bones", 2, "--iterations", 1)
    assert command_runs.run("convert", *given, "--output", output) == 0
    assert ["Object", "Horse"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    given = ("--input", output, "--object", "Horse_skinned", "--clip", long[0], "--output", solved)
    assert command_runs.run("solve-transforms", *given) == 0
    bpy.ops.wm.open_mainfile(filepath=str(solved))
    rig = bpy.data.objects["Horse_rig"]
    names = [track.strips[0].action.name for track in rig.animation_data.nla_tracks]
    room = bpy.types.ID.bl_rna.properties["name"].length_max - 1
    assert sorted(names) == sorted(path.stem.encode()[:room].decode(errors="ignore") for path in long)
    assert rig.animation_data.action.name == next(name for name in names if name.startswith("walk"))


def test_cache_files_on_the_command_line(caches, tmp_path, capsys):
    _, made = caches
    output = tmp_path / "out.blend"
    given = ("--object", "Horse", "--clips", *made, "--bones", 12, "--influences", 8, "--iterations", 5)
    assert command_runs.run("convert", *given, "--output", output) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    skinned, rig = bpy.data.objects["Horse_skinned"], bpy.data.objects["Horse_rig"]
    assert result_of(bpy.data.objects["walk"]).rig == rig
    assert [track.name for track in rig.animation_data.nla_tracks] == [path.stem for path in made]
    assert [each.name for each in skinned.data.materials] == ["Coat"]
    own = None
    for path, expected in made.items():
        play_clip(rig, [skinned], path.stem)
        found = np.array([local_positions(skinned, frame) for frame in range(1, len(expected) + 1)])
        own = found if own is None else own
        others = [np.abs(other[:6] - expected[:6]).max() for name, other in made.items() if name != path]
        assert np.abs(found - expected).max() < 0.2 * min(others)
    # The importer's objects and the scene's frames are as they were.
    assert {ob.name for ob in bpy.data.objects if ob.type != "ARMATURE"} == {
        "Horse", "Horse_skinned", "Marker", *(path.stem for path in made)
    }  # fmt: skip
    assert bpy.context.scene.frame_end == 3
    # As the user left it, whatever Blender's importers select.
    assert bpy.context.view_layer.objects.active == bpy.data.objects["Marker"]
    assert {ob.name for ob in bpy.context.selected_objects} == {"Horse", "Marker"}

    # The motion of one clip alone, for the bones and weights of all, is at least as good.
    path, expected = next(iter(made.items()))
    given = ("--input", output, "--object", "Horse_skinned", "--kind", "AFFINE")
    solved = tmp_path / "solved.blend"
    assert command_runs.run("solve-transforms", *given, "--clip", path, "--output", solved) == 0
    assert f'in the action "{path.stem}"' in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(solved))
    skinned, rig = bpy.data.objects["Horse_skinned"], bpy.data.objects["Horse_rig"]
    assert rig.animation_data.action.name == path.stem
    assert sorted(track.name for track in rig.animation_data.nla_tracks) == sorted(each.stem for each in made)
    assert conversions() == [rig]
    again = np.array([local_positions(skinned, frame) for frame in range(1, len(expected) + 1)])
    errors = [np.linalg.norm(each - expected) for each in (again, own)]
    assert errors[0] < 1.01 * errors[1]
    assert command_runs.run("solve-transforms", *given, "--clip", path, "--target", "Horse", "--overwrite") == 2
    source = [*given[:3], "Horse", "--clip", path, "--output", tmp_path / "no.blend"]
    assert command_runs.run("solve-transforms", *source) == 1
    refusals.assert_says(capsys.readouterr().err, 'Name its result: --object "Horse_skinned"')


def test_a_further_clip_changes_no_other(caches, tmp_path):
    """Residual shapes are off in the new one alone; an action on no track stays in the file, and a linked one of the
    clip's name as it is."""
    walk, idle, *_ = caches[1]
    output, solved, library = (tmp_path / f"{name}.blend" for name in ("out", "solved", "library"))
    given = ("--object", "Horse", "--clips", walk, idle, "--bones", 3, "--iterations", 3, "--residual-shapes", 2)
    assert command_runs.run("convert", *given, "--output", output) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    skinned, rig = bpy.data.objects["Horse_skinned"], bpy.data.objects["Horse_rig"]
    own = skinned.shape_key_add(name="Own", from_mix=False)
    own.value = 0.5
    expected = [local_positions(skinned, frame) for frame in range(1, 7)]
    loose = bpy.data.actions.new("loose")
    loose.use_fake_user = True
    bpy.data.libraries.write(str(library), {loose}, fake_user=True)
    loose.use_fake_user = False
    actions.assign_action(rig, loose)
    with bpy.data.libraries.load(str(library), link=True) as (_, data):
        data.actions = ["loose"]
    (linked,) = data.actions
    bpy.data.objects["Marker"].animation_data_create().action = linked
    loose.name, trot = "unkept", tmp_path / "loose.mdd"
    trot.write_bytes(idle.read_bytes())
    bpy.ops.wm.save_mainfile()

    given = ("--input", output, "--object", "Horse_skinned", "--clip", trot, "--output", solved)
    assert command_runs.run("solve-transforms", *given) == 0
    bpy.ops.wm.open_mainfile(filepath=str(solved))
    skinned, rig = bpy.data.objects["Horse_skinned"], bpy.data.objects["Horse_rig"]
    assert "unkept" in bpy.data.actions
    assert bpy.data.objects["loose"]["skinning_character"] == "Horse"
    blocks = skinned.data.shape_keys.key_blocks
    assert [blocks[name].value for name in ("Residual Offset", "Residual 1", "Residual 2", "Own")] == [0, 0, 0, 0.5]
    for name in ("walk", "loose", "walk"):
        play_clip(rig, [skinned], name)
        found = [local_positions(skinned, frame) for frame in range(1, 7)]
        assert np.allclose(found, expected, atol=1e-5) == (name == "walk")
        assert blocks["Residual Offset"].value == (name == "walk")


@pytest.mark.parametrize("name", ["Horse", "walk"], ids=["another character", "the clip itself"])
def test_only_clips_of_the_same_character_are_replaced(caches, tmp_path, capsys, name):
    shot, made = caches
    moving_meshes.add_object("walk", *moving_meshes.grid())["skinning_character"] = "Cow"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    given = ("--object", name, "--clips", next(iter(made)), "--output", tmp_path / "out.blend")
    assert command_runs.run("convert", *given) == 1
    refusals.assert_says(capsys.readouterr().err, 'There is an object "walk" in the file already')


def test_cache_files_that_do_not_fit(caches, tmp_path, capsys):
    shot, _ = caches
    walk = tmp_path / "walk.pc2"
    output = tmp_path / "out.blend"

    def refused_with(text, *clips, name="Horse"):
        bpy.ops.wm.open_mainfile(filepath=str(shot))
        assert command_runs.run("convert", "--object", name, "--clips", *clips, "--output", output) != 0
        refusals.assert_says(capsys.readouterr().err, text)
        assert not output.exists()

    refused_with("There is no cache file", walk, tmp_path / "trot.pc2")
    (tmp_path / "clips.abc").mkdir()
    refused_with("clips.abc has no cache files", walk, tmp_path / "clips.abc")
    (tmp_path / "walk.txt").write_text("steps")
    refused_with("walk.txt is not a cache file", tmp_path / "walk.txt")
    (tmp_path / "walk.mdd").write_bytes(walk.read_bytes())
    refused_with('Two cache files have the name "walk"', walk, tmp_path / "walk.mdd")
    # Tracks have room for no more than the beginning.
    long = [tmp_path / f"{'ö' * 31}{ending}.pc2" for ending in ("x1", "x2")]
    for path in long:
        path.write_bytes(walk.read_bytes())
    refused_with('Two cache files have the name "öö', *long)
    (tmp_path / "trot.mdd").write_bytes(b"")
    refused_with("is not in the MDD format", tmp_path / "trot.mdd")
    (tmp_path / "Horse.pc2").write_bytes(walk.read_bytes())
    refused_with('There is an object "Horse" in the file already', tmp_path / "Horse.pc2")
    if bpy.app.build_options.alembic:
        (tmp_path / "broken.abc").write_bytes(b"0" * 99)
        refused_with("the file is damaged", tmp_path / "broken.abc")
        moving_meshes.fresh_scene(6)
        bpy.data.objects.remove(clip("Horse", range(1, 7), 1))
        moving_meshes.waving_grid(columns=5, rows=4)
        scenes.export_cache(tmp_path / "flag.abc", 1, 6)
        refused_with("flag.abc has no moving mesh with the", tmp_path / "flag.abc")
