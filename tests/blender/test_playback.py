# SPDX-License-Identifier: GPL-3.0-or-later
"""What Blender plays back after a conversion, against what the solver promised, on a captured animation.

Source and result are evaluated by this test itself, in world space, and not by the extension's own measuring.
"""

import bpy
import numpy as np
import pytest

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import Settings, decompose, skin_frame
from tests.blender import moving_meshes, scenes

pytestmark = pytest.mark.usefixtures("extension")

# Every fourth frame of the sequence is enough.
FRAME_STEP = 4


@pytest.fixture
def horse(shared_data):
    data = np.load(shared_data("horse_gallop.npz"))
    return data["frames"][::FRAME_STEP], data["triangles"]


def shape_key_object(frames, triangles) -> bpy.types.Object:
    ob = moving_meshes.add_object("Horse", frames[0], triangles.tolist())
    moving_meshes.key_each_frame(ob, frames[1:], 2)
    return ob


def alembic_object(frames, triangles, folder) -> bpy.types.Object:
    shape_key_object(frames, triangles)
    path = folder / "horse.abc"
    scenes.export_cache(path, 1, len(frames))
    moving_meshes.fresh_scene(frame_end=len(frames))
    return scenes.import_cache(path)


@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
@pytest.mark.parametrize("source", ["shape keys", "alembic"])
def test_blender_plays_what_the_solver_promised(horse, source, kind, tmp_path):
    if source == "alembic" and not bpy.app.build_options.alembic:
        pytest.skip("built without Alembic")
    frames, triangles = horse
    moving_meshes.fresh_scene(frame_end=len(frames))
    make = shape_key_object if source == "shape keys" else alembic_object
    ob = make(frames, triangles, *([tmp_path] if source == "alembic" else []))
    bpy.context.view_layer.objects.active = ob
    ob.location, ob.rotation_euler, ob.scale = (3, -2, 1), (0.3, 0.5, -1), (2, 2, 2)
    numbers = range(1, len(frames) + 1)
    played = scenes.played(ob, numbers)

    assert bpy.ops.skinning.convert_animation(bone_count=20, bone_kind=kind, iterations=6) == {"FINISHED"}
    result = bpy.data.objects[f"{ob.name}_skinned"]
    promised = decompose(Animation(played, triangles), Settings(bone_count=20, bone_kind=kind, iterations=6))

    scale = unit_scale(played)
    in_core, in_blender = ErrorMeter(scale, played.shape[1]), ErrorMeter(scale, played.shape[1])
    result_positions = scenes.played(result, numbers)
    for row, positions in enumerate(played):
        skinned = skin_frame(promised.rest, promised.bones, promised.weights, promised.transforms[row])
        in_core.add(positions, skinned)
        in_blender.add(positions, result_positions[row])
        scene_frame = numbers[row]
        expected = moving_meshes.world_positions(ob, scene_frame)
        seen = moving_meshes.world_positions(result, scene_frame)
        world_error = np.linalg.norm(seen - expected, axis=1).max()
        assert world_error <= 2 * np.linalg.norm(result_positions[row] - positions, axis=1).max() + 1e-4
    np.testing.assert_allclose(in_blender.frame_e_rms, in_core.frame_e_rms, rtol=0.01)
    assert result["skinning_e_rms"] == pytest.approx(in_blender.e_rms, rel=1e-3)
    assert result["skinning_max_error"] == pytest.approx(in_blender.max_error, rel=1e-2)
    assert result["skinning_bone_count"] == 20
