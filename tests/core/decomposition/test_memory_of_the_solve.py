# SPDX-License-Identifier: GPL-3.0-or-later
"""The peak memory of the most demanding solves, each in a separate process, as a peak never falls."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose, memory_estimate
frame_count, vertex_count, noise, settings = {frames}, {vertices}, {noise}, Settings(**{settings})
random = np.random.default_rng(0)
place = random.random((vertex_count, 3), dtype=np.float32)
frames = np.empty((frame_count, vertex_count, 3), np.float32)
for frame in range(frame_count):
    frames[frame] = place + 0.1 * np.sin(5 * place[:, ::-1] + 0.1 * frame)
    frames[frame] += noise * random.standard_normal((vertex_count, 3), dtype=np.float32)
decompose(Animation(frames[:3, :50], []), Settings(bone_count=2, iterations=1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
decompose(Animation(frames, []), settings)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 1 if sys.platform == "darwin" else 1024
print(frames.nbytes, (peak - before) * unit, memory_estimate(frame_count, vertex_count, settings))
"""


@pytest.mark.parametrize(
    ("frames", "vertices", "noise", "settings"),
    [
        pytest.param(300, 20_000, 0.03, {"bone_count": 2, "iterations": 1}, id="noise that no basis captures"),
        pytest.param(6, 60_000, 0.0, {"bone_count": 250, "iterations": 1}, id="cloud of loose vertices"),
    ],
)
def test_peak_is_within_the_estimate_and_the_bound(frames, vertices, noise, settings):
    program = PROGRAM.format(frames=frames, vertices=vertices, noise=noise, settings=settings)
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    frames_bytes, extra, estimate = map(int, printed.split())
    assert extra <= estimate
    # The frames, which are there before; what a reduction keeps of noise, in single precision; and a fixed amount.
    assert frames_bytes + extra <= 2 * frames_bytes + 200e6
