# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of a conversion's settings: those of the extension, the user's own, in the menu and on the command line."""

import re

import bpy
import pytest

from skinning_tools import command_line
from skinning_tools.core.decomposition import Settings
from skinning_tools.core.errors import BadSettings
from skinning_tools.features.convert.panel import SKINNING_PT_conversion_presets, SKINNING_PT_convert_animation
from skinning_tools.features.convert.settings import PRESETS, PresetSettings, SolverSettings
from skinning_tools.features.shots.work import convert_arguments
from skinning_tools.ui.command_line.common import UsageError
from tests.blender import moving_meshes, panel_recorder

pytestmark = pytest.mark.usefixtures("extension")

SHIPPED_NAMES = ["Cloth", "Creature", "Face", "Game Rigid"]


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setenv("BLENDER_USER_SCRIPTS", str(tmp_path))
    return moving_meshes.fresh_scene()


def options(*arguments):
    return command_line.parser().parse_args(["convert", "--object", "Flag", "--overwrite", *arguments])


def test_the_extension_brings_some(scene):
    assert list(PRESETS.files()) == SHIPPED_NAMES


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_each_preset_is_complete_and_can_be_solved(scene, name):
    values = PRESETS.read(PRESETS.find(name))
    assert set(values) == set(PresetSettings.declared)
    # Raises where a value makes no sense.
    Settings(**{key: values[key] for key in SolverSettings.declared})
    chosen = scene.skinning_conversion
    assert bpy.ops.skinning.apply_conversion_preset(filepath=str(PRESETS.find(name))) == {"FINISHED"}
    assert {key: getattr(chosen, key) for key in PresetSettings.declared} == values


def test_presets_differ(scene):
    assert len({tuple(sorted(PRESETS.read(path).items())) for path in PRESETS.files().values()}) == len(SHIPPED_NAMES)
    assert PRESETS.read(PRESETS.find("game_rigid"))["bone_kind"] == "RIGID"


def test_a_preset_of_the_users(scene, tmp_path):
    chosen = scene.skinning_conversion
    chosen.bone_count, chosen.bone_kind, chosen.root_bone = 77, "SCALED", True
    assert bpy.ops.skinning.add_conversion_preset(name="My Flags") == {"FINISHED"}
    path = tmp_path / "presets" / "skinning" / "convert_animation" / "My_Flags.py"
    assert path.is_file()
    assert set(PRESETS.files()) == {*SHIPPED_NAMES, "My Flags"}
    values = PRESETS.read(PRESETS.find("my flags"))
    assert (values["bone_count"], values["bone_kind"], values["root_bone"]) == (77, "SCALED", True)
    chosen.bone_count = 5
    bpy.ops.skinning.apply_conversion_preset(filepath=str(path))
    assert chosen.bone_count == 77
    assert options("--preset", "My Flags").bones == 77
    bpy.ops.skinning.add_conversion_preset(name="My Flags", remove_name=True)
    assert not path.exists()
    assert list(PRESETS.files()) == SHIPPED_NAMES


def test_those_of_the_extension_stay(scene):
    before = sorted(PRESETS.shipped.iterdir())
    for name in ("Cloth", "Game_Rigid"):
        assert bpy.ops.skinning.add_conversion_preset(name=name, remove_name=True) == {"CANCELLED"}
    assert sorted(PRESETS.shipped.iterdir()) == before


def test_on_the_command_line(scene):
    values = PRESETS.read(PRESETS.find("Face"))
    given = options("--preset", "Face")
    assert (given.bones, given.residual_shapes, given.root_bone) == (values["bone_count"], 10, True)
    assert given.no_rest_pose is False
    for arguments in (("--preset=Face", "--bones=7"), ("--bones=7", "--preset=Face")):
        given = options(*arguments)
        assert (given.bones, given.residual_shapes) == (7, 10)


@pytest.mark.parametrize(
    "given",
    ["bones=20", "kind=AFFINE", "influences=4", "iterations=15", "residual-shapes=0", "key-tolerance=0"],
)
def test_given_options_override_the_preset_even_if_they_equal_the_default(scene, tmp_path, given):
    chosen = scene.skinning_conversion
    chosen.bone_count, chosen.bone_kind, chosen.max_influences, chosen.iterations = 7, "RIGID", 3, 9
    chosen.residual_shapes, chosen.key_tolerance, chosen.smoothness = 2, 0.5, 0.25
    assert bpy.ops.skinning.add_conversion_preset(name="Other") == {"FINISHED"}
    name = given.split("=")[0].replace("-", "_")
    without, default = getattr(options("--preset=Other"), name), getattr(options(), name)
    assert without != default
    for arguments in ((f"--{given}", "--preset=Other"), ("--preset=Other", f"--{given}")):
        found = options(*arguments)
        assert getattr(found, name) == default
        assert type(getattr(found, name)) is type(default)


def test_many_shots_get_the_same(scene):
    """Each shot's own command line has all options, whichever of them came from where."""
    arguments = ["convert-shots", "in", "--output", "out", "--object", "Flag", "--preset", "Face", "--smoothness", "0"]
    whole = convert_arguments(command_line.parser().parse_args(arguments))
    given = options(*whole)
    assert (given.bones, given.residual_shapes, given.smoothness) == (40, 10, 0.0)


def test_a_preset_that_is_not_there(scene):
    with pytest.raises(
        UsageError, match=r'There is no preset "Hair"\. The presets are: Cloth, Creature, Face, Game Rigid'
    ):
        options("--preset", "Hair")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"settings.bone_count = (", "line 1 is damaged"),
        (b"settings.bone_count = 4\nsettings.iterations = = 5", "line 2 is damaged"),
        (b"settings.bone_count = 1" + b"0" * 5000, "line 1 is damaged"),
        (b"settings.bone_count = 4\0", "is damaged"),
        (b"settings.bone_kind = '\xff'", "is damaged"),
        (b"\xff\xfes\0e\0t\0", "is damaged"),
        (b"settings.bone_count = " + b"(" * 5000, "is damaged"),
        (b"settings.bone_count = " + b"-" * 100_000 + b"1", "is damaged|line 1 is not a plain value"),
        (b"\n\nsettings.bone_count = int(4)", "line 3 is not a plain value"),
        (b"settings.bone_count = open('x')", "line 1 is not a plain value"),
        (b"settings.bone_count = many", "line 1 is not a plain value"),
        (b"settings.bone_count = 2 * 3", "line 1 is not a plain value"),
        (b"settings.bone_count = {[]: 1}", "line 1 is not a plain value"),
        (b"settings.bone_count = {[1]}", "line 1 is not a plain value"),
        (b"settings.bone_count = -'a'", "line 1 is not a plain value"),
        (b"settings.frame_start = 5", "sets frame_start"),
    ],
)
def test_a_damaged_preset(scene, tmp_path, content, reason):
    path = tmp_path / "Bad.py"
    path.write_bytes(content)
    with pytest.raises(BadSettings, match=reason) as caught:
        PRESETS.read(path)
    # In words, and none of Python's own.
    assert not re.search("ast|malformed|codec|syntax|unhashable|Errno", str(caught.value).replace(str(path), ""))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# settings.bone_count = 4",
        "import os",
        "bone_count = 4",
        "preset.bone_count = 4",
        "bpy.context.scene.skinning_conversion.bone_count = 4",
        "settings['bone_count'] = 4",
        "settings.bone_count += 4",
        "settings = {'bone_count': 4}",
        "if True:\n    settings.bone_count = 4",
        '{"settings": {"bone_count": 4}}',
    ],
)
def test_a_preset_without_settings(scene, tmp_path, capsys, text):
    before = chosen_values()
    path = tmp_path / "presets" / PRESETS.subdir / "Empty.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    reason = r"The preset .*Empty\.py has no conversion settings\. Save it again, or delete it"
    with pytest.raises(RuntimeError, match=reason):
        bpy.ops.skinning.apply_conversion_preset(filepath=str(path))
    assert chosen_values() == before
    assert "Settings of the preset" not in capsys.readouterr().out
    with pytest.raises(UsageError, match=reason):
        options("--preset", "Empty")


def test_a_preset_that_an_editor_has_marked(scene, tmp_path):
    path = tmp_path / "Mine.py"
    path.write_text("settings.bone_count = 77\n", encoding="utf-8-sig")
    assert PRESETS.read(path) == {"bone_count": 77}


# Taken over into the panel


def written(folder, **values) -> str:
    path = folder / "Mine.py"
    path.write_text("".join(f"settings.{name} = {value!r}\n" for name, value in values.items()))
    return str(path)


def chosen_values() -> dict:
    chosen = bpy.context.scene.skinning_conversion
    return {name: getattr(chosen, name) for name in PresetSettings.declared}


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_the_menu_is_one_undo_step(scene, name):
    bpy.context.preferences.edit.use_global_undo = True
    scene.skinning_conversion.bone_count = 77
    before = chosen_values()
    bpy.ops.ed.undo_push(message="Before")
    # True: push an undo step at the end, as the interface does and scripts do not.
    apply = getattr(bpy.ops, SKINNING_PT_conversion_presets.preset_operator.split(".")[0])
    apply = getattr(apply, SKINNING_PT_conversion_presets.preset_operator.split(".")[1])
    assert apply("EXEC_DEFAULT", True, filepath=str(PRESETS.find(name))) == {"FINISHED"}
    applied = chosen_values()
    assert applied != before
    bpy.ops.ed.undo()
    assert chosen_values() == before
    bpy.ops.ed.redo()
    assert chosen_values() == applied


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("bone_count", 0, 1),
        ("bone_count", -5, 1),
        ("max_influences", 0, 1),
        ("iterations", 0, 1),
        ("residual_shapes", -1, 0),
        ("smoothness", 1.5, 1.0),
        ("smoothness", -0.5, 0.0),
        ("target_error", -1.0, 0.0),
        ("key_tolerance", -1, 0.0),
    ],
)
def test_a_value_beyond_a_settings_range(scene, tmp_path, capsys, name, value, taken):
    assert bpy.ops.skinning.apply_conversion_preset(filepath=written(tmp_path, **{name: value})) == {"FINISHED"}
    assert chosen_values()[name] == taken
    label = scene.skinning_conversion.bl_rna.properties[name].name
    assert f"{label}: {value:g} is out of range and was set to {taken:g}" in capsys.readouterr().out


@pytest.mark.parametrize("value", [0.1, 0.3, 1 / 3])
def test_rounding_of_a_value_is_not_reported(scene, tmp_path, capsys, value):
    bpy.ops.skinning.apply_conversion_preset(filepath=written(tmp_path, smoothness=value, key_tolerance=1))
    assert "out of range" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bone_kind", "SOFT"), ("bone_kind", 3), ("method", ""), ("bone_count", "many"), ("bone_count", 2.5),
        ("bone_count", 10**40), ("bone_count", None), ("smoothness", "soft"), ("root_bone", "yes"), ("root_bone", [1]),
    ],
)  # fmt: skip
def test_an_invalid_value_of_a_setting(scene, tmp_path, name, value):
    """Nothing changes, including what the file sets before the error."""
    before = chosen_values()
    values = {"iterations": 99, name: value}
    with pytest.raises(RuntimeError, match=r"is not a valid value for [\w ]+\. Save the preset again, or delete it"):
        bpy.ops.skinning.apply_conversion_preset(filepath=written(tmp_path, **values))
    assert chosen_values() == before


@pytest.mark.parametrize("text", ["settings.bone_count = (", "import os", "settings.frame_start = 5", ""])
def test_nothing_of_a_file_is_run(scene, tmp_path, text):
    before = chosen_values()
    path = tmp_path / "Bad.py"
    path.write_text(f"{text}\nopen({str(tmp_path / 'run')!r}, 'w')\n")
    with pytest.raises(RuntimeError, match="The preset"):
        bpy.ops.skinning.apply_conversion_preset(filepath=str(path))
    assert chosen_values() == before
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "reason"), [("gone.py", "was deleted or renamed. Choose another one"), ("", "cannot be read: Is a dir")]
)
def test_a_file_that_is_not_there(scene, tmp_path, name, reason):
    with pytest.raises(RuntimeError, match="The preset") as caught:
        bpy.ops.skinning.apply_conversion_preset(filepath=str(tmp_path / name))
    assert reason in str(caught.value)
    assert "Errno" not in str(caught.value)


def test_more_residual_shapes_than_the_source_allows(scene, capsys):
    """The preset says ten, and there are eight frames: eight are made, which panel and report say."""
    moving_meshes.waving_grid()
    bpy.ops.skinning.apply_conversion_preset(filepath=str(PRESETS.find("Face")))
    note = "8 residual shapes instead of 10: there cannot be more shapes than frames"
    assert note in panel_recorder.drawn(SKINNING_PT_convert_animation).texts
    given = {"bone_count": 4, "iterations": 3, "residual_shapes": scene.skinning_conversion.residual_shapes}
    assert bpy.ops.skinning.convert_animation(**given) == {"FINISHED"}
    assert note in capsys.readouterr().out
    # With the basis and the offset.
    assert len(bpy.data.objects["Flag_skinned"].data.shape_keys.key_blocks) == 10
