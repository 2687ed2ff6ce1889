# SPDX-License-Identifier: GPL-3.0-or-later
"""The README's first command, shortened: its result works without the extension."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 12

# Run in a separate Blender without the extension.
OPEN_AND_MEASURE = """
import json, os, sys
import bpy
import numpy as np
bpy.ops.wm.open_mainfile(filepath=sys.argv[1])
scene, depsgraph = bpy.context.scene, bpy.context.evaluated_depsgraph_get()
distances, travel, first = [], 0.0, None
for frame in range(scene.frame_start, scene.frame_end + 1):
    scene.frame_set(frame)
    points = []
    for name in ("Flag", "Flag_skinned"):
        evaluated = bpy.data.objects[name].evaluated_get(depsgraph)
        points.append(np.array([evaluated.matrix_world @ vertex.co for vertex in evaluated.data.vertices]))
    difference = points[1] - points[0]
    distances.append(float(np.linalg.norm(difference - difference.mean(axis=0), axis=1).max()))
    first = points[1] if first is None else first
    travel = max(travel, float(np.linalg.norm(points[1] - first, axis=1).max()))
result = {
    "frames": [scene.frame_start, scene.frame_end], "distances": distances, "travel": travel,
    "caches": [cache.filepath for cache in bpy.data.cache_files],
    "bones": sum(bone.use_deform for bone in bpy.data.armatures[0].bones),
    "texts": len(bpy.data.texts), "extension": "skinning_tools" in sys.modules,
}
print("RESULT " + json.dumps(result), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo printed, and the folder it wrote to, moved after it ended: nothing may know its old place."""
    folder = tmp_path_factory.mktemp("demo")
    command = [
        sys.executable,
        "demos/flag.py",
        "--frames",
        str(FRAMES),
        "--samples",
        "1",
        "--output",
        str(folder / "a"),
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, (folder / "a").rename(folder / "b")


def test_everything_is_there(demo):
    _, folder = demo
    assert {path.name for path in folder.iterdir()} == {"flag.blend", "flag.abc", "flag.glb", "flag.png", "error.png"}


def test_terminal_shows_stages_and_figures(demo):
    output, _ = demo
    for text in ("[1/8] Simulating", "[8/8] Rendering", "E_RMS", "largest error", "all stages"):
        assert text in output


def test_file_plays_without_the_extension(demo):
    _, folder = demo
    command = [sys.executable, "-c", OPEN_AND_MEASURE, str(folder / "flag.blend")]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    found = json.loads(next(line for line in result.stdout.splitlines() if line.startswith("RESULT "))[7:])
    assert found["caches"] == ["//flag.abc"]
    assert found["frames"] == [1, FRAMES]
    assert found["bones"] == 24
    assert not found["texts"]
    assert not found["extension"]
    # The flag moves, and the rig follows its cache far more closely than it moves.
    assert found["travel"] > 0.1
    assert max(found["distances"]) < 0.25 * found["travel"]


def test_glb_has_skin_and_animation(demo):
    _, folder = demo
    data = (folder / "flag.glb").read_bytes()
    magic, _, _, length, kind = struct.unpack("<4sIII4s", data[:20])
    assert (magic, kind) == (b"glTF", b"JSON")
    content = json.loads(data[20 : 20 + length])
    assert len(content["skins"]) == 1
    assert len(content["animations"]) == 1
    assert "JOINTS_0" in content["meshes"][0]["primitives"][0]["attributes"]


def test_pictures_are_pictures(demo):
    matplotlib_image = pytest.importorskip("matplotlib.image")
    _, folder = demo
    for name in ("flag.png", "error.png"):
        picture = matplotlib_image.imread(folder / name)
        assert min(picture.shape[:2]) > 300
        assert picture[..., :3].std() > 0.03, "one plain color"
