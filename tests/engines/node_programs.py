# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of Node.js that read exported .glb files: Babylon.js, on the processor, and the standard's validator."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.blender.gltf_file import GltfFile
from tests.engines import formats

HERE = Path(__file__).resolve().parent


class ProgramFailed(Exception):
    """The program did not understand the file."""


def missing() -> str | None:
    """Why this machine cannot run them, and what to do; None if it can."""
    if shutil.which("node") is None:
        return "there is no Node.js on this machine (Debian: apt-get install npm)"
    if not (HERE / "node_modules" / "@babylonjs" / "loaders").is_dir():
        return "Babylon.js is not installed (npm ci --ignore-scripts, in tests/engines)"
    return None


def play(path: Path, times) -> tuple[np.ndarray, np.ndarray, dict]:
    """Babylon.js's positions (F, R, 3) at ``times`` in seconds, in Blender's axes; the mesh's vertex (R,) of each row
    by ``formats.VERTEX``; facts: version, bones, morphs, names of clips. Raises ProgramFailed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "positions"
        facts = _run("babylon.mjs", path, json.dumps(list(map(float, times))), output)
        positions = np.fromfile(output, np.float32).reshape(len(times), -1, 3)
    numbers = GltfFile.read(path).vertices()[formats.VERTEX][:, 0].astype(np.int64)
    return formats.to_z_up(positions), numbers, facts


def complaints(path: Path) -> list[dict]:
    """The validator's messages, each with its code, severity (0 error, 1 warning, 2 information, 3 hint) and place."""
    return _run("validate.cjs", path)


def _run(script: str, *arguments):
    """The JSON that the program prints."""
    done = subprocess.run(
        ["node", str(HERE / script), *map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=HERE
    )
    if done.returncode:
        raise ProgramFailed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else script)
    return json.loads(done.stdout)
