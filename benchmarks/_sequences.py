# SPDX-License-Identifier: GPL-3.0-or-later
"""The animations for comparing decompositions: those of ../shared/data, and cloth made by Blender."""

import importlib.metadata
import importlib.util
import os
from pathlib import Path

import numpy as np
from _process import in_own_process  # beside this file

from skinning_tools.core.animation import Animation

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
# Simulated once for each version of Blender; delete the folder to simulate again.
_KEPT = ROOT / "build" / "benchmarks"

# Sequence and bones, as in table 2 of Kavan et al. 2010.
CAPTURED = (("elastic_cow", 18), ("horse_collapse", 6), ("samba", 30), ("horse_gallop", 30))
CLOTH = (("flag", 32), ("flag", 100), ("skirt", 22), ("skirt", 50))


def available() -> list[tuple[str, int]]:
    """The sequences, with bone counts, that this checkout has or can make; prints which are missing."""
    found = []
    if DATA.is_dir():
        found += CAPTURED
    else:
        print("The captured sequences are left out: ../shared/data is not next to the checkout.")
    if importlib.util.find_spec("bpy") is not None:
        found += CLOTH
    else:
        print("Cloth is left out: there is no bpy here. Run this with build.py.")
    return found


def path(name: str) -> Path:
    """The file of a sequence; simulates missing cloth."""
    if name not in dict(CLOTH):
        return DATA / f"{name}.npz"
    file = _KEPT / f"{name}_blender_{importlib.metadata.version('bpy')}.npz"
    if not file.is_file():
        print(f"Simulating the {name} (minutes, once)", flush=True)
        frames, triangles = in_own_process(_simulate, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, frames=frames, triangles=triangles)
    return file


def read(file: Path, name: str) -> Animation:
    with np.load(file) as data:
        return Animation(data["frames"], data["triangles"], name=name)


def captured(name: str) -> Animation:
    return read(path(name), name)


def _simulate(name: str):
    # Blender's idle threads spin, which on a busy machine takes processor time from working ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import _cloth

    return {"flag": _cloth.flag, "skirt": _cloth.skirt}[name]()
