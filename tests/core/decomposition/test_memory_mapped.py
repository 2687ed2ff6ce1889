# SPDX-License-Identifier: GPL-3.0-or-later
"""Sequences that stay on disk: solved piece by piece, with the same result as those in memory."""

import tracemalloc

import numpy as np
import pytest

from skinning_tools.core import threads
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose

FRAMES = 300


@pytest.fixture(scope="module")
def sequence(tmp_path_factory):
    """Function from a number of vertices to a mapped file of smooth motion."""
    folder = tmp_path_factory.mktemp("mapped")

    def mapped(count, mode="r"):
        path = folder / f"{count}.npy"
        if not path.exists():
            place = np.random.default_rng(0).random((count, 3), dtype=np.float32)
            frames = np.lib.format.open_memmap(path, "w+", np.float32, (FRAMES, count, 3))
            for frame in range(FRAMES):
                frames[frame] = place + 0.1 * np.sin(5 * place[:, ::-1] + 0.1 * frame)
            frames.flush()
        return np.load(path, mmap_mode=mode)

    return mapped


@pytest.mark.parametrize("kind", ["AFFINE", "RIGID"])
def test_the_answer_is_the_same(sequence, kind):
    settings = Settings(bone_count=4, bone_kind=kind, iterations=2)
    mapped, loaded = (decompose(Animation(sequence(3000, mode), []), settings) for mode in ("r", None))
    for part in ("rest", "transforms", "bones", "weights"):
        np.testing.assert_array_equal(getattr(mapped, part), getattr(loaded, part))
    assert (mapped.e_rms, mapped.max_error) == (loaded.e_rms, loaded.max_error)


@pytest.mark.parametrize("kind", ["AFFINE", "RIGID"])
def test_memory_does_not_grow_with_the_file(sequence, kind, monkeypatch):
    # With several, the peak depends on which of them have a block at the same moment.
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    settings = Settings(bone_count=4, bone_kind=kind, iterations=2)
    peaks = []
    # With this number of vertices, every block is whole.
    for count in (10_000, 20_000):
        tracemalloc.start()
        try:
            decompose(Animation(sequence(count), []), settings)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.2 * (sequence(20_000).nbytes - sequence(10_000).nbytes)
