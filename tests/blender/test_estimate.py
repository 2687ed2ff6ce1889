# SPDX-License-Identifier: GPL-3.0-or-later
"""The estimate of a conversion's time, memory and size, and its progress."""

from itertools import pairwise
from types import SimpleNamespace

import bpy
import pytest

from skinning_tools.blender.wording import duration_text
from skinning_tools.core import run_time
from skinning_tools.core.decomposition import Settings
from skinning_tools.core.errors import NotEnoughMemory
from skinning_tools.core.run_time import Work, learn_pace, stage_seconds
from skinning_tools.features.convert import estimate
from skinning_tools.features.convert.estimate import spread, work_of, work_of_settings
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, scenes

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def scene(monkeypatch):
    monkeypatch.setattr(run_time, "_pace", {})
    return moving_meshes.fresh_scene()


def seconds(frames=100, vertices=10_000, simulated=0, **given):
    return sum(stage_seconds(Work(frames, vertices, Settings(**given), simulated)).values())


def test_more_work_takes_longer(scene):
    base = seconds()
    assert base > 0
    larger = [
        seconds(frames=200), seconds(vertices=20_000), seconds(simulated=50_000), seconds(bone_count=40),
        seconds(iterations=30), seconds(target_error=1.0), seconds(residual_shapes=5), seconds(smoothness=0.5),
    ]  # fmt: skip
    assert all(each > base for each in larger)
    reduced = stage_seconds(Work(100, 10_000, Settings(), key_tolerance=1.0))
    assert list(reduced) == ["read", "solve", "write", "reduce", "measure"]


def test_the_session_learns_how_fast_the_machine_is(scene):
    work = Work(100, 10_000, Settings())
    expected = stage_seconds(work)
    for _ in range(12):
        learn_pace(stage_seconds(work), {**expected, "solve": 3 * expected["solve"]})
    learned = stage_seconds(work)
    assert learned["solve"] == pytest.approx(3 * expected["solve"], rel=0.01)
    assert learned["read"] == pytest.approx(expected["read"])


def test_what_there_is_to_do(scene):
    flag = moving_meshes.waving_grid()
    work = work_of(bpy.context, [flag], ConvertSettings(frame_start=1, frame_end=20, frame_step=2))
    assert (work.frame_count, work.vertex_count, work.simulated) == (10, 63, 0)
    subdivided = flag.modifiers.new("Subdivision", "SUBSURF")
    bpy.context.view_layer.update()
    work = work_of(bpy.context, [flag], ConvertSettings())
    assert work.frame_count == 8
    assert work.vertex_count == len(scenes.evaluated_positions(flag)) > 63
    subdivided.show_viewport = False
    bar = moving_meshes.twisting_bar()
    bpy.context.view_layer.update()
    assert work_of(bpy.context, [flag, bar], ConvertSettings()).vertex_count == 126


def test_a_simulation_is_played_from_its_start(scene):
    cloth = scenes.grid()
    scenes.cloth(cloth)
    work = work_of(bpy.context, [cloth], ConvertSettings(frame_start=101, frame_end=110))
    assert work.frame_count == 10
    assert work.simulated == 110 * len(cloth.data.vertices)
    without = Work(work.frame_count, work.vertex_count, work.settings)
    assert stage_seconds(work)["read"] > stage_seconds(without)["read"]


def test_the_settings_of_the_panel(scene):
    flag = moving_meshes.waving_grid()
    chosen = scene.skinning_conversion
    assert work_of_settings(bpy.context, [flag], chosen).frame_count == 8
    chosen.use_scene_range, chosen.frame_start, chosen.frame_end, chosen.frame_step = False, 3, 102, 10
    work = work_of_settings(bpy.context, [flag], chosen)
    assert work.frame_count == 10
    told = estimate.estimate(work)
    assert told.needed > 0
    assert told.fits
    assert told.text().startswith("about 1 s, up to ")


def test_estimating_evaluates_nothing(scene):
    flag = moving_meshes.twisting_bar()
    bpy.context.view_layer.update()
    updates = []
    bpy.app.handlers.depsgraph_update_pre.append(lambda *_: updates.append(1))
    try:
        flag.location.x = 1.0
        work_of_settings(bpy.context, [flag], scene.skinning_conversion)
        assert not updates
    finally:
        bpy.app.handlers.depsgraph_update_pre.clear()


def test_a_machine_with_too_little_memory(scene, monkeypatch):
    work = Work(100, 10_000, Settings())
    monkeypatch.setattr("skinning_tools.core.memory.available_memory", lambda: 1_000_000)
    monkeypatch.setattr(estimate, "_free", (-1e9, None))
    assert not estimate.estimate(work).fits
    with pytest.raises(NotEnoughMemory, match="the machine has 1 MB free"):
        estimate.check_memory("the flag", work)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "about 1 s"), (11.6, "about 12 s"), (43, "about 45 s"), (200, "about 3 min"), (7200, "about 2.0 h")],
)
def test_durations_in_words(value, text):
    assert duration_text(value) == text


def shown(steps, foretold):
    """The progress that ``spread`` reports for (seconds passed, stage, fraction)."""
    now = [0.0]

    def stages():
        for passed, name, fraction in steps:
            now[0] = passed
            yield name, fraction, name

    return [fraction for fraction, _ in spread(stages(), foretold, lambda: now[0])]


def test_progress_where_all_is_as_foretold():
    steps = [(0.1 * i, "read", 0.1 * i) for i in range(11)] + [(1 + 0.3 * i, "solve", 0.1 * i) for i in range(11)]
    fractions = shown(steps, {"read": 1.0, "solve": 3.0})
    assert fractions == pytest.approx([passed / 4 for passed, *_ in steps], abs=1e-6)


def test_progress_where_a_simulation_takes_longer_than_foretold():
    steps = [(4.0 * i, "read", 0.1 * i) for i in range(11)] + [(40 + 0.1 * i, "solve", 0.1 * i) for i in range(11)]
    fractions = shown(steps, {"read": 1.0, "solve": 1.0})
    assert fractions == sorted(fractions)
    # Of 41 seconds 40 are the reading: its share of the bar is near that, not the half that was foretold.
    assert fractions[5] == pytest.approx(20 / 41, abs=0.01)
    assert fractions[10] == pytest.approx(40 / 41, abs=0.01)


def test_progress_does_not_move_while_its_stage_does_not():
    """The operator sees by that that it may leave the worker alone."""
    fractions = shown([(0, "solve", 0.0), (1, "solve", 0.5), (2, "solve", 0.5), (3, "solve", 0.5)], {"solve": 2.0})
    assert fractions[1] == fractions[2] == fractions[3] == pytest.approx(0.5)


def test_progress_moves_wherever_its_stage_does():
    """Progress does not go back if the last stage takes longer than estimated."""
    steps = [(0.0, "solve", 0.0), (9.0, "solve", 1.0)] + [(9 + 5 * i, "measure", 0.01 * i) for i in range(20)]
    fractions = shown(steps, {"solve": 9.0, "measure": 0.1})
    assert all(later > earlier for earlier, later in pairwise(fractions))
    assert fractions[-1] <= 1


def test_closing_closes_the_stages():
    closed = SimpleNamespace(value=False)

    def stages():
        try:
            while True:
                yield "solve", 0.0, ""
        finally:
            closed.value = True

    steps = spread(stages(), {"solve": 1.0})
    next(steps)
    steps.close()
    assert closed.value
