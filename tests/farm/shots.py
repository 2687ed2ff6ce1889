# SPDX-License-Identifier: GPL-3.0-or-later
"""Shots for the tests of many machines: small files, and the command that starts Blender for them."""

import os
import shlex
import shutil
import stat
import sys
from pathlib import Path

import bpy
import numpy as np

from tests.blender import moving_meshes, scenes

MODULE = Path(__file__).with_name("blender_module.py")


def make_shots(folder: Path, count: int, broken: tuple[int, ...] = ()) -> list[Path]:
    """Files "shot_01.blend" ... with a moving mesh "Flag"; those with numbers in ``broken`` are truncated."""
    folder.mkdir()
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    first = folder / "shot_01.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(first), compress=False)
    content = first.read_bytes()
    paths = [folder / f"shot_{number:02}.blend" for number in range(1, count + 1)]
    for number, path in enumerate(paths, 1):
        path.write_bytes(content[: len(content) // 2] if number in broken else content)
    return paths


def make_clips(folder: Path, names: tuple[str, ...], broken: str) -> None:
    """A file "horse.blend" with a mesh at rest, and caches of it in "clips", of which one is no cache; the first is
    also in "range"."""
    moving_meshes.fresh_scene()
    for each in ("clips", "range"):
        (folder / each).mkdir()
    rest = np.array(moving_meshes.grid()[0], np.float64)
    moving_meshes.add_object("Horse", *moving_meshes.grid())
    for seed, name in enumerate(names, 1):
        frames = np.repeat(rest[None], 6, axis=0)
        frames[:, :, 2] += 0.3 * np.sin(np.arange(6)[:, None] + seed * rest[:, 0])
        scenes.write_pc2(folder / "clips" / f"{name}.pc2", frames)
    (folder / "clips" / f"{broken}.pc2").write_bytes(b"cut short")
    shutil.copy(folder / "clips" / f"{names[0]}.pc2", folder / "range")
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "horse.blend"))


def blender_program(folder: Path) -> str:
    """This Blender's program; for a Python module, a program in ``folder`` that replaces it."""
    if bpy.app.binary_path:
        return bpy.app.binary_path
    program = folder / "blender"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(MODULE))} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def one_thread() -> dict[str, str]:
    """The environment for one of several parallel programs."""
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
