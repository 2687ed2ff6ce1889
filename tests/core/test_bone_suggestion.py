# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of bones that an animation asks for."""

import numpy as np
import pytest

from skinning_tools.core.animation import Animation
from skinning_tools.core.bone_suggestion import LEAST, suggest_bone_count
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.errors import BadMesh


def bumps(count: int, frame_count: int = 16, vertex_count: int = 3000) -> np.ndarray:
    """A cloud of points in which ``count`` places move up and down, each by its own time."""
    random = np.random.default_rng(1)
    rest = random.uniform(-1, 1, (vertex_count, 3))
    centers = random.uniform(-1, 1, (count, 3))
    shapes = np.exp(-20 * ((rest[:, None] - centers) ** 2).sum(axis=2))
    times = random.normal(size=(frame_count, count))
    times[0] = 0
    frames = np.repeat(rest[None], frame_count, axis=0)
    frames[..., 2] += times @ shapes.T
    return frames.astype(np.float32)


def test_each_motion_asks_for_a_bone():
    assert [suggest_bone_count(bumps(count)) for count in (2, 4, 8)] == [2, 4, 8]
    assert suggest_bone_count(bumps(8), "RIGID") == 12


def test_motion_of_one_bone_needs_no_other():
    random = np.random.default_rng(2)
    rest = random.normal(size=(500, 3))
    frames = np.array(
        [rest @ (np.eye(3) + 0.3 * random.normal(size=(3, 3))) + random.normal(size=3) for _ in range(16)]
    )
    assert suggest_bone_count(frames) == LEAST


@pytest.mark.parametrize("factor", [0.01, 1000.0])
def test_size_does_not_matter(factor):
    frames = bumps(6)
    assert suggest_bone_count(factor * frames) == suggest_bone_count(frames)


def test_many_vertices_count_as_few():
    assert suggest_bone_count(bumps(6, vertex_count=20_000)) == 6


def test_the_suggestion_is_worth_something():
    """The suggestion leaves an error of the intended size, and fewer bones leave much more."""
    frames = bumps(8, frame_count=40)
    count = suggest_bone_count(frames[::3])
    animation = Animation(frames, np.zeros((0, 3), np.int32))

    def e_rms(bones: int) -> float:
        return decompose(animation, Settings(bone_count=bones)).e_rms

    assert e_rms(count) < 5 < e_rms(count // 4)


def test_a_mesh_without_size():
    with pytest.raises(BadMesh):
        suggest_bone_count(np.zeros((4, 10, 3)))
