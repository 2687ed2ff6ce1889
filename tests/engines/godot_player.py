# SPDX-License-Identifier: GPL-3.0-or-later
"""Godot imports an exported .glb file and poses its bones; the file's own vertices follow them.

Its editor imports a file into a project first. Its server has no drawing and keeps no vertices, so that the last step,
the sum over influences, is here.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.blender.gltf_file import GltfFile
from tests.engines import formats

HERE = Path(__file__).resolve().parent
PROGRAM = "godot3-server"
# Godot resamples animations when it imports them: at the file's own rate, and without leaving out keyframes.
_IMPORT = """[remap]
importer="scene"
[params]
animation/fps={fps}
animation/optimizer/enabled=false
"""


class PlayerFailed(Exception):
    """Godot did not understand the file."""


def missing() -> str | None:
    """Why this machine cannot play files in Godot, and what to do; None if it can."""
    if shutil.which(PROGRAM) is None:
        return f"there is no {PROGRAM} on this machine (Debian: apt-get install {PROGRAM})"
    return None


def play(path: Path, times, fps: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Positions (F, R, 3) at ``times`` in seconds, in Blender's axes; the mesh's vertex (R,) of each row by
    ``formats.VERTEX``; facts: version, bones, morphs, names of clips. fps: of the file's keyframes. Raises
    PlayerFailed."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "project.godot").write_text("config_version=4\n")
        shutil.copyfile(path, project / "sample.glb")
        (project / "sample.glb.import").write_text(_IMPORT.format(fps=fps))
        (project / "job.json").write_text(json.dumps({"file": "sample.glb", "times": list(map(float, times))}))
        shutil.copyfile(HERE / "godot.gd", project / "godot.gd")
        said = _godot(project, "--editor", "--quit")
        # Without a scene, the program would wait for ever.
        if not list(project.glob(".import/*.scn")):
            raise PlayerFailed(said)
        said = _godot(project, "-s", "godot.gd")
        if not (project / "played.json").exists():
            raise PlayerFailed(said)
        played = json.loads((project / "played.json").read_text())
    file = GltfFile.read(path)
    return _skinned(file, played["frames"]), file.vertices()[formats.VERTEX][:, 0].astype(np.int64), played["facts"]


def _skinned(file: GltfFile, frames: list[dict]) -> np.ndarray:
    """Linear blend skinning by the matrices, after the shape keys."""
    vertices, names = file.vertices(), file.content["meshes"][0].get("extras", {}).get("targetNames", [])
    matrices = np.array([frame["matrices"] for frame in frames]).reshape(len(frames), -1, 3, 4)
    shapes = np.array([[frame["shapes"][name] for name in names] for frame in frames]).reshape(len(frames), -1)
    moved = vertices["POSITION"] + np.einsum("fs,snj->fnj", shapes, file.morph_targets())
    points = np.concatenate([moved, np.ones((*moved.shape[:2], 1))], axis=-1)
    placed = np.zeros_like(moved)
    for joint, weight in zip(vertices["JOINTS_0"].T, vertices["WEIGHTS_0"].T.astype(np.float64), strict=True):
        placed += weight[:, None] * np.einsum("fnij,fnj->fni", matrices[:, joint], points)
    return formats.to_z_up(placed)


def _godot(project: Path, *arguments: str) -> str:
    done = subprocess.run([PROGRAM, "--path", str(project), *arguments], capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr
