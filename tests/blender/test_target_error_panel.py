# SPDX-License-Identifier: GPL-3.0-or-later
"""Target Error through the operator: the fewest bones, what the panel shows of the search, and its picture."""

import re
import struct
import zlib

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender import conversion_figures
from skinning_tools.blender.conversions import result_of
from skinning_tools.blender.figures import rows_of_panel
from skinning_tools.core.curve_picture import HEIGHT, WIDTH, curve_picture
from skinning_tools.core.decomposition.target_error import CurvePoint
from skinning_tools.features.convert import conversion
from skinning_tools.features.convert.figures import figures_of_record
from skinning_tools.features.convert.panel import curve_rows
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, refusals, scenes

pytestmark = pytest.mark.usefixtures("extension")


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 20, "iterations": 5} | given)


def test_the_fewest_bones_and_the_curve(scene):
    source = moving_meshes.waving_grid()
    assert convert(target_error=1.0) == {"FINISHED"}
    skinned = bpy.data.objects["Flag_skinned"]
    count = skinned["skinning_bone_count"]
    assert 1 < count < 20
    assert skinned["skinning_e_rms"] <= 1.0
    for ob in (source, skinned, bpy.data.objects["Flag_rig"]):
        curve = result_of(ob).figures["curve"]
        assert curve["bone_count"] == sorted(curve["bone_count"])
        errors = dict(zip(curve["bone_count"], curve["e_rms"], strict=True))
        solved = {n for n, exact in zip(curve["bone_count"], curve["solved"], strict=True) if exact}
        assert {count - 1, count} <= solved
        assert errors[count - 1] > 1.0 >= errors[count]
    bpy.context.view_layer.objects.active = source
    convert(bone_count=count - 1)
    assert bpy.data.objects["Flag_skinned.001"]["skinning_e_rms"] > 1.0


def test_a_missed_target_is_reported(scene):
    moving_meshes.waving_grid()
    assert convert(bone_count=3, target_error=0.01) == {"FINISHED"}
    skinned = bpy.data.objects["Flag_skinned"]
    assert skinned["skinning_bone_count"] == 3
    rows = dict(rows_of_panel(figures_of_record(result_of(skinned).figures)))
    assert rows["E_RMS"].endswith("(target 0.01 missed)")
    steps = conversion.convert(bpy.context, [bpy.data.objects["Flag"]], _settings(3, 0.01))
    assert "(target 0.01 not reached with up to 3 bones)" in scenes.drain(steps)[0].summary()


def test_without_a_target_there_is_no_curve(scene):
    moving_meshes.waving_grid()
    convert(bone_count=4)
    figures = result_of(bpy.data.objects["Flag_skinned"]).figures
    assert "curve" not in figures
    assert curve_rows(figures) == []
    names = [name for name, _ in rows_of_panel(figures_of_record(figures))]
    assert names == ["Bones", "Vertices", "Frames", "E_RMS", "Largest Error", "Normals"]


def test_rows_of_the_panel(scene):
    curve = {"bone_count": [1, 8, 12], "e_rms": [8.0, 2.0, 1.0], "solved": [0, 1, 1]}
    rows = curve_rows({"curve": curve, "bone_count": 12})
    assert rows == [
        ("1 bone", 1.0, "about 8", False),
        ("8 bones", 0.25, "2", False),
        ("12 bones", 0.125, "1", True),
    ]
    nothing = {"bone_count": [3], "e_rms": [0.0], "solved": [1]}
    assert curve_rows({"curve": nothing, "bone_count": 3})[0][1] == 0


def test_figures_of_shapes_and_keys_are_shown(scene):
    moving_meshes.waving_grid()
    convert(bone_count=4, residual_shapes=2, key_tolerance=5.0)
    figures = result_of(bpy.data.objects["Flag_skinned"]).figures
    rows = dict(rows_of_panel(figures_of_record(figures)))
    assert rows["Residual Shapes"] == "2"
    assert rows["Keys"] == f"{figures['keys']['after']:,} of {figures['keys']['before']:,}"


def test_figures_of_an_earlier_version_are_shown(scene):
    """Its record has none of the newer settings."""
    moving_meshes.waving_grid()
    convert(bone_count=4)
    figures = result_of(bpy.data.objects["Flag_skinned"]).figures
    for name in ("target_error", "residual_shapes", "method"):
        del figures["settings"][name]
    del figures["normals"]
    assert len(rows_of_panel(figures_of_record(figures))) == 5


@pytest.mark.parametrize("target", [-1.0, float("nan")])
def test_targets_that_make_no_sense(scene, target):
    moving_meshes.waving_grid()
    before = moving_meshes.state()
    with pytest.raises(RuntimeError, match="Target Error must be"):
        convert(target_error=target)
    assert moving_meshes.state() == before


def test_cancelled_in_the_search_it_leaves_nothing(scene):
    source = moving_meshes.waving_grid()
    before = moving_meshes.state()
    steps = conversion.convert(bpy.context, [source], _settings(20, 1.0))
    assert any(fraction > 0.2 and text.startswith("Solving") for fraction, text in steps)
    steps.close()
    assert moving_meshes.state() == before


def test_the_published_method_is_selectable(scene):
    moving_meshes.waving_grid()
    convert(bone_count=5)
    bpy.context.view_layer.objects.active = bpy.data.objects["Flag"]
    convert(bone_count=5, method="KAVAN2010", surface=0.5)
    results = [bpy.data.objects[name] for name in ("Flag_skinned", "Flag_skinned.001")]
    assert [ob["skinning_report"]["settings"]["method"] for ob in results] == ["STANDARD", "KAVAN2010"]
    expected = "Emphasis and Surface have no effect with the method of Kavan et al. 2010"
    assert [expected in ob["skinning_report"].get("notes", []) for ob in results] == [False, True]
    # Either may come closer on a grid that two shapes move: the standard one gives up to one per mille of error for
    # steady motion between the keys.
    standard, published = (ob["skinning_e_rms"] for ob in results)
    assert max(standard, published) < 1
    assert abs(standard - published) > 0.01
    bpy.context.view_layer.objects.active = bpy.data.objects["Flag"]
    with pytest.raises(RuntimeError, match="affine bones, not rigid"):
        convert(method="KAVAN2010", bone_kind="RIGID")


def test_a_surface_that_changed_nothing_is_reported(scene):
    """Without faces there are no normals to bring closer."""
    moving_meshes.waving_grid()
    convert(bone_count=3, surface=1.0)
    moving_meshes.add_waving_keys(moving_meshes.add_object("Dust", moving_meshes.grid()[0]))
    convert(bone_count=3, surface=1.0)
    notes = [
        list(bpy.data.objects[name]["skinning_report"].get("notes", [])) for name in ("Flag_skinned", "Dust_skinned")
    ]
    assert notes == [[], ["Surface changed nothing: normals came no closer within the error that it allows"]]


# The command line


@pytest.fixture
def shot(tmp_path):
    return moving_meshes.saved_flag(tmp_path / "shot.blend")


def run(*arguments) -> int:
    return command_line.main(["convert", "--object", "Flag", "--iterations", "5", *map(str, arguments)])


def test_the_command_line_saves_the_curve(shot, tmp_path, capsys):
    picture = tmp_path / "curve.png"
    status = run(
        "--target-error", 1, "--curve", picture, "--residual-shapes", 2, "--key-tolerance", 2,
        "--output", tmp_path / "out.blend",
    )  # fmt: skip
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    skinned = bpy.data.objects["Flag_skinned"]
    count = skinned["skinning_bone_count"]
    assert re.search(rf"^{count} bones +[\d.]+$", printed.out, re.MULTILINE)
    assert re.search(r"^Keys +\d+ of \d+$", printed.out, re.MULTILINE)
    assert str(picture) in printed.out
    assert len(skinned.data.shape_keys.key_blocks) == 4
    image = bpy.data.images.load(str(picture))
    assert tuple(image.size) == (WIDTH, HEIGHT)


def test_the_command_line_reports_what_it_does_instead(shot, tmp_path, capsys):
    assert run("--bones", 4, "--residual-shapes", 9, "--output", tmp_path / "out.blend") == 0
    assert re.search(r"^Note +8 residual shapes instead of 9: there cannot", capsys.readouterr().out, re.MULTILINE)


def test_the_command_line_has_the_published_method(shot, tmp_path):
    assert run("--bones", 4, "--method", "kavan2010", "--output", tmp_path / "out.blend") == 0
    report = bpy.data.objects["Flag_skinned"][conversion_figures.REPORT_PROPERTY].to_dict()
    assert report["settings"]["method"] == "KAVAN2010"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--curve", "curve.png"], 2, "needs --target-error"),
        (["--target-error", "0", "--curve", "curve.png"], 2, "needs --target-error"),
        (["--target-error", "1", "--curve", "curve.jpg"], 2, "must name a .png file"),
        (["--target-error", "1", "--curve", "nowhere/curve.png"], 2, "there is no folder"),
        (["--residual-shapes", "-1"], 1, "OUT_OF_RANGE at least 0 … -1"),
        (["--key-tolerance", "-1"], 1, "OUT_OF_RANGE Key Tolerance … at least 0 … -1"),
        (["--target-error", "inf"], 2, "inf is not a usable number"),
        (["--key-tolerance", "nan"], 2, "nan is not a usable number"),
        (["--method", "magic"], 2, "invalid choice"),
        (["--method", "kavan2010", "--kind", "rigid"], 1, "affine bones, not rigid"),
    ],
)
def test_bad_arguments(shot, tmp_path, monkeypatch, capsys, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    before = moving_meshes.state()
    assert run(*arguments, "--output", tmp_path / "out.blend") == status
    refusals.assert_says(capsys.readouterr().err, message)
    assert moving_meshes.state() == before
    assert not list(tmp_path.glob("*.png"))


# The picture


def pixels(data: bytes) -> np.ndarray:
    """(rows, columns, 3) of a PNG file, its checksums looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, parts = 8, {}
    while position < len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        assert struct.unpack_from(">I", data, position + 8 + length)[0] == zlib.crc32(name + body)
        parts[name] = body
        position += 12 + length
    width, height = struct.unpack_from(">II", parts[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def discs(image, color) -> np.ndarray:
    """(n, 2): columns and rows of the pixels of a color."""
    return np.argwhere((image == color).all(axis=2))[:, ::-1]


def test_the_picture_shows_a_falling_curve_and_the_answer():
    curve = (8, 3.7, False), (28, 0.73, True), (29, 0.66, True), (32, 0.57, False)
    points = [CurvePoint(*point) for point in curve]
    image = pixels(curve_picture(points, 0.7, 29))
    assert image.shape == (HEIGHT, WIDTH, 3)
    answer = discs(image, (220, 90, 40)).mean(axis=0)
    line = discs(image, (60, 110, 190))
    left, right = line[line[:, 0] < answer[0] - 200], line[line[:, 0] > answer[0] + 5]
    assert left[:, 1].min() < answer[1] - 200
    assert right[:, 1].max() > answer[1]
    target = discs(image, (130, 130, 136))
    middle = np.median(target[:, 1])
    assert line[:, 1].min() < middle < answer[1]


@pytest.mark.parametrize(
    "points",
    [
        [CurvePoint(1, 0.0, True)],
        [CurvePoint(1, 90.0, True), CurvePoint(2, 1e-9, True)],
        [CurvePoint(count, 100.0 / count, True) for count in range(1, 400)],
    ],
)
@pytest.mark.parametrize("target", [1e-6, 1.0, 1e6])
def test_any_curve_can_be_drawn(points, target):
    image = pixels(curve_picture(points, target, points[-1].bone_count))
    assert len(discs(image, (220, 90, 40))) > 20


def _settings(count, target):
    return ConvertSettings(bone_count=count, iterations=5, target_error=target)
