# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of a conversion frame by frame, their picture, the worst frame, and the scale of the error colors."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from skinning_tools.blender.conversions import result_of
from skinning_tools.blender.error_display import Scale, error_colors, read_errors, shown_scale
from skinning_tools.blender.lengths import length_text
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.core.curve_picture import FRAMES_SIZE, frames_picture, sweeps_picture
from skinning_tools.features.convert import worst_mark
from skinning_tools.features.convert.error_legend import scale_in_view
from skinning_tools.features.convert.figures import figures_of_record
from skinning_tools.features.convert.result import frame_errors, worst_frame
from tests.blender import moving_meshes, scenes, several_scenes

pytestmark = pytest.mark.usefixtures("extension")

BLUE, ORANGE = (100, 160, 240), (240, 140, 80)


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 3, "iterations": 5} | given)


def test_each_frames_error_is_kept(scene):
    source = moving_meshes.waving_grid()
    convert(bone_count=1, frame_start=2, frame_end=8, frame_step=2)
    skinned = bpy.data.objects["Flag_skinned"]
    numbers, e_rms, largest = frame_errors(result_of(skinned).figures)
    assert numbers == [2, 4, 6, 8]
    numbers = [int(number) for number in numbers]
    expected = [moving_meshes.world_positions(source, frame) for frame in numbers]
    meter = ErrorMeter(unit_scale(np.array(expected[:1])), len(expected[0]))
    for frame, positions in zip(numbers, expected, strict=True):
        meter.add(positions, moving_meshes.world_positions(skinned, frame))
    np.testing.assert_allclose(e_rms, meter.frame_e_rms, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(largest, meter.frame_max_error, rtol=1e-3, atol=1e-3)
    assert np.ptp(largest) > 0.1


def test_the_error_after_each_sweep_is_kept_and_reported(scene):
    moving_meshes.waving_grid()
    convert(iterations=5)
    figures = result_of(bpy.data.objects["Flag_skinned"]).figures
    history = list(figures["history"])
    assert len(history) >= 5
    # Reduced coordinates, of the bones alone: nearly the error that was measured, and falling.
    assert history[0] > history[-1] == pytest.approx(figures["e_rms"], rel=0.05)
    (told,) = [figure for figure in figures_of_record(figures) if figure.key == "e_rms_after_each_sweep"]
    assert told.value == history
    assert told.text.split(", ")[0] == f"{history[0]:.4g}"
    # Earlier versions did not keep it.
    assert "e_rms_after_each_sweep" not in [figure.key for figure in figures_of_record(figures | {"history": []})]


def test_the_picture_of_the_sweeps_falls_with_the_error():
    curve = rows_of(sweeps_picture([8.0, 4.0, 2.0, 1.0, 1.0]), BLUE)
    columns = sorted(curve)
    # Downward is less; half the error is the same step everywhere.
    steps = [curve[columns[round(share * (len(columns) - 1))]] for share in (0.02, 0.25, 0.5, 0.75, 0.98)]
    assert np.diff(steps)[1:3] == pytest.approx(np.diff(steps)[1], rel=0.1)
    assert steps[4] - steps[3] < 0.2 * (steps[3] - steps[2])
    assert sweeps_picture([3.0]).shape == sweeps_picture([0.0, 0.0]).shape == (FRAMES_SIZE[1], FRAMES_SIZE[0], 3)


@pytest.mark.parametrize("earlier", [False, True])
def test_the_worst_frame(scene, earlier):
    moving_meshes.waving_grid()
    convert()
    for name in ("Flag_skinned", "Flag_rig") if earlier else ():
        del bpy.data.objects[name]["skinning_report"]["worst_frame"]
    numbers, _, largest = frame_errors(result_of(bpy.data.objects["Flag"]).figures)
    worst = numbers[int(np.argmax(largest))]
    assert worst != scene.frame_current
    assert bpy.ops.skinning.show_worst_frame() == {"FINISHED"}
    assert scene.frame_current == worst


def test_figures_of_an_earlier_version_have_no_worst_frame(scene):
    moving_meshes.waving_grid()
    convert()
    for name in ("Flag_skinned", "Flag_rig"):
        del bpy.data.objects[name]["skinning_report"]["frame_max_error"]
        del bpy.data.objects[name]["skinning_report"]["frame_e_rms"]
    assert worst_frame(result_of(bpy.data.objects["Flag_rig"]).figures) is None
    assert not bpy.ops.skinning.show_worst_frame.poll()


def rows_of(picture, color) -> dict[int, float]:
    """The mean row of a color in each column that has it, within the axes."""
    near = (np.abs(picture.astype(int) - color).max(axis=-1) < 30) & (np.arange(len(picture)) > 40)[:, None]
    return {column: float(np.flatnonzero(near[:, column]).mean()) for column in np.flatnonzero(near.any(axis=0))}


def test_the_picture_shows_both_curves():
    frames = np.arange(101)
    e_rms = np.where(frames < 50, 1.0, 2.0)
    picture = frames_picture(frames, e_rms, 8.0 * np.ones(101))
    assert picture.shape == (FRAMES_SIZE[1], FRAMES_SIZE[0], 3)
    mean, largest = rows_of(picture, BLUE), rows_of(picture, ORANGE)
    columns = sorted(mean)
    early, late = mean[columns[len(columns) // 4]], mean[columns[3 * len(columns) // 4]]
    top = largest[columns[len(columns) // 4]]
    # Logarithmic: from 1 to 2 is a third of the way from 1 to 8. Rows count from the top.
    assert early - late == pytest.approx((early - top) / 3, abs=2)


@pytest.mark.parametrize("count", [1, 2, 5000])
def test_any_number_of_frames_has_a_picture(count):
    errors = np.ones(count)
    errors[count // 2] = 50.0
    picture = frames_picture(np.arange(count), errors, 2 * errors)
    if count > 2:
        # A single bad frame among thousands is seen.
        rows = rows_of(picture, BLUE).values()
        assert max(rows) - min(rows) > 100


def test_no_error_at_all_has_a_picture():
    assert frames_picture([1, 2], [0.0, 0.0], [0.0, 0.0]).shape[2] == 3


def context(**view):
    space = SimpleNamespace(
        overlay=SimpleNamespace(show_overlays=view.get("overlays", True)),
        shading=SimpleNamespace(type="SOLID", color_type=view.get("color_type", "VERTEX")),
    )
    return SimpleNamespace(
        space_data=space, view_layer=bpy.context.view_layer, selected_objects=bpy.context.selected_objects
    )


def test_the_report_says_what_the_colors_mean(scene, capsys):
    moving_meshes.waving_grid()
    convert()
    bpy.ops.skinning.show_error()
    red, largest = (length_text(scene, length, 3) for length in shown_scale(bpy.data.objects["Flag_skinned"]))
    assert red != largest
    meaning = f"blue: no error; red: {red} or more (99th percentile); largest error: {largest}"
    assert f"Flag_skinned: {meaning}\n" in capsys.readouterr().out


def test_the_scale_says_what_is_red(scene):
    moving_meshes.waving_grid()
    convert()
    skinned = bpy.data.objects["Flag_skinned"]
    assert scale_in_view(context()) is None
    bpy.ops.skinning.show_error()
    errors = np.sort(read_errors(skinned.data))
    # Of 63 vertices one may be above: red begins with the next.
    expected = pytest.approx((errors[-2], errors[-1]))
    assert shown_scale(skinned) == expected
    for active in (skinned, bpy.data.objects["Flag_rig"]):
        bpy.context.view_layer.objects.active = active
        assert scale_in_view(context()) == expected
    assert scale_in_view(context(overlays=False)) is None
    assert scale_in_view(context(color_type="MATERIAL")) is None
    # A changed note on one object does not affect others.
    skinned.data["skinning_error_red"], skinned.data["skinning_active_color"] = "text", 2.5
    assert scale_in_view(context()) is None
    bpy.ops.skinning.show_error()
    assert shown_scale(skinned) is None
    assert not [key for key in skinned.data.keys() if key.startswith("skinning_")]  # noqa: SIM118


def outliers(count: int, worst: int, factor: float) -> np.ndarray:
    """Errors of which ``worst`` are ``factor`` times the others'."""
    errors = np.linspace(0.5, 1.0, count)
    errors[:worst] *= factor
    return errors


@pytest.mark.parametrize(("count", "worst"), [(3, 1), (10, 1), (63, 1), (100, 1), (1000, 1), (1000, 9), (5000, 50)])
@pytest.mark.parametrize("factor", [10.0, 1e6])
def test_a_few_large_errors_do_not_fade_the_other_colors(count, worst, factor):
    """Without them the colors of the rest would be the same, but for the rank that is red."""
    errors = outliers(count, worst, factor)
    scale = Scale.of(errors)
    assert 0.5 <= scale.red <= 1.0
    assert scale.largest == errors.max()
    colors = error_colors(errors, scale.red)
    np.testing.assert_array_equal(colors[:worst], [[1, 0, 0, 1]] * worst)
    # No more than one in a hundred are cut off, or one where there are fewer.
    assert (errors > scale.red).sum() <= max(1, 0.01 * count)


@pytest.mark.parametrize(
    ("errors", "red"),
    [
        ([], 0.0),
        ([0.0, 0.0], 0.0),
        ([3.0], 3.0),
        ([2.0] * 5, 2.0),
        # Of two neither is the odd one.
        ([1.0, 100.0], 100.0),
        ([100.0, 1.0, 0.0, 0.0], 100.0),
        ([0.0] * 5000 + [5.0, 4.0], 5.0),
        ([1.0, 2.0, 100.0], 2.0),
        # What a correction has not touched does not count.
        ([0.0] * 5000 + [1.0, 2.0, 3.0], 2.0),
        ([1e-9] * 5000 + [1.0, 2.0, 3.0], 2.0),
    ],
)
def test_scales_of_special_errors(errors, red):
    assert Scale.of(np.array(errors)) == (red, max(errors, default=0.0))


def farthest(source, mesh, frames=range(1, 9)) -> tuple[int, int]:
    """Frame and vertex of the largest distance in the world, by what Blender shows."""
    positions = [[moving_meshes.world_positions(ob, frame) for frame in frames] for ob in (source, mesh)]
    distances = np.linalg.norm(np.subtract(*positions), axis=2)
    row, vertex = np.unravel_index(distances.argmax(), distances.shape)
    return frames[row], int(vertex)


@pytest.mark.parametrize("active", ["Flag", "Flag_skinned", "Flag_rig"])
@pytest.mark.parametrize("residual_shapes", [0, 2])
def test_the_worst_vertex_is_marked(scene, active, residual_shapes):
    source = moving_meshes.waving_grid()
    convert(residual_shapes=residual_shapes)
    skinned = bpy.data.objects["Flag_skinned"]
    frame, vertex = farthest(source, skinned)
    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    before, selection = scenes.data_blocks(), scenes.ui_state()[1:]
    keys = [sorted(block.keys()) for block in (scene, skinned, skinned.data, bpy.context.window_manager)]
    bpy.ops.skinning.show_worst_frame()
    found, mark = worst_mark.marked(bpy.context)
    assert (found, mark.vertex, mark.frame, scene.frame_current) == (skinned, vertex, frame, frame)
    expected = moving_meshes.world_positions(skinned, frame)[vertex]
    np.testing.assert_allclose(worst_mark.place_of(bpy.context, found, mark), expected, atol=1e-6)
    # Nothing of it is in the file.
    assert (scenes.data_blocks(), scenes.ui_state()[1:]) == (before, selection)
    assert [sorted(block.keys()) for block in (scene, skinned, skinned.data, bpy.context.window_manager)] == keys
    # At another frame it says nothing; and the button takes it away.
    scene.frame_set(frame + 1)
    assert worst_mark.marked(bpy.context) is None
    scene.frame_set(frame)
    assert worst_mark.marked(bpy.context, result_of(skinned)) is not None
    bpy.ops.skinning.show_worst_frame()
    assert worst_mark.marked(bpy.context) is None


def test_linked_results_are_told_from_local_objects_of_their_names(scene, tmp_path):
    moving_meshes.waving_grid()
    convert()
    bpy.ops.skinning.show_error()
    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), set(scene.objects), fake_user=True)
    scene = moving_meshes.fresh_scene()
    moving_meshes.twisting_bar("Flag_skinned")
    with bpy.data.libraries.load(str(path), link=True) as (there, wanted):
        wanted.objects = there.objects
    for ob in wanted.objects:
        scene.collection.objects.link(ob)
    linked = {ob.name: ob for ob in wanted.objects}
    several_scenes.select(linked["Flag_rig"])
    assert scale_in_view(context()) == shown_scale(linked["Flag_skinned"]) is not None
    bpy.ops.skinning.show_worst_frame()
    found, _ = worst_mark.marked(bpy.context)
    assert found == linked["Flag_skinned"]


def decimate(mesh) -> None:
    mesh.modifiers.new("Fewer", "DECIMATE").ratio = 0.5


def subdivide(mesh) -> None:
    mesh.modifiers.new("Finer", "SUBSURF").levels = 2


def mirror(mesh) -> None:
    mesh.modifiers.new("Mirrored", "MIRROR").use_mirror_merge = False


def mask(mesh) -> None:
    mesh.modifiers.new("Part", "MASK").vertex_group = mesh.vertex_groups[0].name


def build(mesh) -> None:
    modifier = mesh.modifiers.new("Built", "BUILD")
    modifier.frame_start, modifier.frame_duration = 100, 10


@pytest.mark.parametrize("change", [decimate, subdivide, mirror, mask, build])
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("residual_shapes", [0, 2])
def test_the_mark_stays_where_a_modifier_changes_the_numbers_of_vertices(scene, change, where, residual_shapes):
    moving_meshes.waving_grid()
    convert(residual_shapes=residual_shapes)
    skinned, rig = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    bpy.ops.skinning.show_worst_frame()
    found, mark = worst_mark.marked(bpy.context)
    rig.location, rig.rotation_euler, rig.scale = (0.3, -1.0, 2.0), (0.4, 0.1, 0.8), (2.0, 2.0, 2.0)
    bpy.context.view_layer.update()
    expected = scenes.world_positions(skinned)[mark.vertex]
    change(skinned)
    if where == "before":
        skinned.modifiers.move(len(skinned.modifiers) - 1, 0)
    bpy.context.view_layer.update()
    count = len(skinned.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.vertices)
    assert count != len(skinned.data.vertices)
    np.testing.assert_allclose(worst_mark.place_of(bpy.context, found, mark), expected, atol=1e-5)


@pytest.mark.parametrize("scale", [(1, 1, 1), (0.05, 1, 1), (1, 1, 0.02), (1, 0.02, 0.02), (0.02, 0.02, 1)])
def test_the_worst_is_so_in_the_world(scene, scale):
    source = moving_meshes.waving_grid()
    source.scale = scale
    bpy.context.view_layer.update()
    convert(frame_start=1, frame_end=10)
    skinned = bpy.data.objects["Flag_skinned"]
    bpy.ops.skinning.show_worst_frame()
    mark = worst_mark.marked(bpy.context)[1]
    assert (mark.frame, mark.vertex) == farthest(source, skinned, range(1, 11))
    assert read_errors(skinned.data).argmax() == mark.vertex


def test_the_worst_vertex_of_several_objects(scene):
    sources = several_scenes.character()
    several_scenes.convert()
    meshes = several_scenes.skinned_of(*sources)
    distances = [
        np.linalg.norm(several_scenes.played([source], frame) - several_scenes.played([mesh], frame), axis=1)
        for frame in several_scenes.FRAMES
        for source, mesh in zip(sources, meshes, strict=True)
    ]
    largest = [each.max() for each in distances]
    place = int(np.argmax(largest))
    for active in (*meshes, bpy.data.objects["Body_rig"], *sources):
        worst_mark.clear_mark()
        several_scenes.select(active)
        bpy.ops.skinning.show_worst_frame()
        found, mark = worst_mark.marked(bpy.context)
        assert (found, mark.vertex) == (meshes[place % 3], int(distances[place].argmax()))


@pytest.mark.parametrize("how", ["edited", "deleted", "hidden", "another of its name", "new file", "earlier version"])
def test_a_mark_belongs_to_its_object(scene, how):
    moving_meshes.waving_grid()
    convert()
    skinned, rig = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    bpy.context.view_layer.objects.active = rig
    if how == "earlier version":
        for ob in (rig, skinned):
            del ob["skinning_report"]["worst_vertex"]
    bpy.ops.skinning.show_worst_frame()
    if how == "edited":
        skinned.data.clear_geometry()
    elif how == "deleted":
        bpy.data.objects.remove(skinned)
    elif how == "hidden":
        skinned.hide_set(True)
    elif how == "another of its name":
        skinned.name = "Was"
        moving_meshes.add_object("Flag_skinned", *moving_meshes.grid())
    elif how == "new file":
        frame = scene.frame_current
        moving_meshes.fresh_scene().frame_set(frame)
        moving_meshes.add_object("Flag_skinned", *moving_meshes.grid())
    found = worst_mark.marked(bpy.context)
    assert (found and found[0]) == (skinned if how == "another of its name" else None)
    if how == "edited":
        # It still goes to the frame.
        bpy.context.scene.frame_set(1)
        assert bpy.ops.skinning.show_worst_frame() == {"FINISHED"}
        assert worst_mark.marked(bpy.context) is None


@pytest.mark.parametrize("active", ["Flag", "Flag_rig"])
@pytest.mark.parametrize("how", ["compare", "eye", "viewport", "collection", "excluded", "collection off", "shown"])
def test_a_hidden_mesh_is_reported_and_marked_once_it_is_shown(scene, capfd, how, active):
    moving_meshes.waving_grid()
    convert()
    skinned, home = bpy.data.objects["Flag_skinned"], bpy.data.collections.new("Home")
    scene.collection.children.link(home)
    for other in skinned.users_collection:
        other.objects.unlink(skinned)
    home.objects.link(skinned)
    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    in_layer = bpy.context.view_layer.layer_collection.children["Home"]

    def hide(hidden):
        if how == "compare":
            bpy.ops.skinning.compare_result(show="SOURCE" if hidden else "RESULT")
        elif how == "eye":
            skinned.hide_set(hidden)
        elif how == "viewport":
            skinned.hide_viewport = hidden
        elif how == "collection":
            in_layer.hide_viewport = hidden
        elif how == "excluded":
            in_layer.exclude = hidden
        elif how == "collection off":
            home.hide_viewport = hidden
        bpy.context.view_layer.update()

    hide(True)
    capfd.readouterr()
    assert bpy.ops.skinning.show_worst_frame() == {"FINISHED"}
    said = capfd.readouterr().out
    assert "is farthest off" in said
    assert ("Flag_skinned is hidden: the mark appears once you show it" in said) == (how != "shown")
    assert (worst_mark.marked(bpy.context) is None) == (how != "shown")
    hide(False)
    assert worst_mark.marked(bpy.context)[0] == skinned


def test_objects_hidden_by_the_error_colors_are_shown_again_as_before(scene):
    """Source and other results lie in the same place; objects that were hidden before stay hidden."""
    source = moving_meshes.waving_grid()
    convert()
    convert(bone_count=2)
    names = "Flag", "Flag_skinned", "Flag_skinned.001"
    for shown in ("SOURCE", "RESULT", "BOTH"):
        bpy.context.view_layer.objects.active = bpy.data.objects["Flag_rig"]
        for name in names:
            bpy.data.objects[name].hide_set(False)
        bpy.ops.skinning.compare_result(show=shown)
        if shown == "BOTH":
            bpy.data.objects["Flag_skinned.001"].hide_set(False)
        before = [bpy.data.objects[name].visible_get() for name in names]
        bpy.ops.skinning.show_error()
        assert [bpy.data.objects[name].visible_get() for name in (names[0], names[2])] == [False, False]
        bpy.ops.skinning.show_error()
        assert [bpy.data.objects[name].visible_get() for name in names] == before
    assert not [key for key in bpy.data.objects["Flag_skinned"].data.keys() if key.startswith("skinning_")]  # noqa: SIM118
    assert source.visible_get()


def converted_three_times():
    """The source and the three meshes made from it; the error colors of the last hide the others, but the first."""
    source = moving_meshes.waving_grid()
    for _ in range(3):
        convert()
    meshes = [bpy.data.objects[f"Flag_skinned{suffix}"] for suffix in ("", ".001", ".002")]
    meshes[0].hide_set(True)
    bpy.context.view_layer.objects.active = meshes[2]
    bpy.ops.skinning.show_error()
    assert [ob.visible_get() for ob in (source, *meshes)] == [False, False, False, True]
    return source, *meshes


@pytest.mark.parametrize("active", ["Flag_skinned.002", "Flag_rig.002"])
@pytest.mark.parametrize("how", ["delete", "again", "convert"])
def test_a_deleted_result_shows_the_objects_that_its_error_colors_hid(scene, active, how):
    source, first, second, third = converted_three_times()
    uid = third.session_uid
    several_scenes.select(bpy.data.objects[active])
    if how == "delete":
        bpy.ops.skinning.delete_result()
    elif how == "again":
        bpy.ops.skinning.convert_again(replace=True)
    else:
        convert(on_result="REPLACE")
    assert uid not in [ob.session_uid for ob in bpy.data.objects]
    assert [ob.visible_get() for ob in (source, first, second)] == [True, False, True]
    made = source if how == "delete" else bpy.data.objects["Flag_skinned.002"]
    assert (bpy.context.view_layer.objects.active, bpy.context.selected_objects) == (made, [made])


@pytest.mark.parametrize("note", [None, "text", {"objects": 3}])
def test_error_colors_of_an_earlier_version_show_the_source_again(scene, note):
    """They have noted nothing."""
    source, first, second, mesh = converted_three_times()
    second.hide_set(False)
    if note is None:
        del mesh.data["skinning_error_hidden"]
    else:
        mesh.data["skinning_error_hidden"] = note
    bpy.ops.skinning.show_error()
    assert [ob.visible_get() for ob in (source, first, second, mesh)] == [True, False, True, True]


@pytest.mark.parametrize("how", ["toggle", "delete"])
@pytest.mark.parametrize(
    ("renamed", "reopened"),
    [
        *((renamed, "never") for renamed in ("source", "mesh", "both", "swapped", "deleted")),
        *((renamed, reopened) for renamed in ("mesh", "deleted") for reopened in ("before", "after")),
    ],
)
def test_renamed_objects_are_shown_again(scene, tmp_path, renamed, reopened, how):
    source, first, second, _ = converted_three_times()

    def reopen():
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))

    if reopened == "before":
        reopen()
    source, first, second = (bpy.data.objects[name] for name in ("Flag", "Flag_skinned", "Flag_skinned.001"))
    if renamed in {"source", "both"}:
        source.name = "Banner"
    if renamed in {"mesh", "both"}:
        second.name = "Second"
    elif renamed == "swapped":
        second.name = "Third"
        first.name = "Flag_skinned.001"
    elif renamed == "deleted":
        bpy.data.objects.remove(first)
    names = source.name, second.name
    if reopened == "after":
        reopen()
    bpy.context.view_layer.objects.active = bpy.data.objects["Flag_skinned.002"]
    bpy.ops.skinning.show_error() if how == "toggle" else bpy.ops.skinning.delete_result()
    assert [bpy.data.objects[name].visible_get() for name in names] == [True, True]
