# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged PC2, MDD, Alembic and .blend files, each converted: the outcome is a correct animation, or a message. Tasks
of children.py."""

import json
import logging
from functools import cache
from pathlib import Path

import bpy
import numpy as np

import skinning_tools
from skinning_tools import command_line
from skinning_tools.blender.conversions import result_of
from skinning_tools.features.convert.result import delete_result
from tests.blender import moving_meshes, scenes
from tests.reliability.damage import damaged, read_point_cache

CONVERTED, REFUSED = "converted", "refused"
# Our failures: an exception of another kind; an incomplete file accepted as complete; an intact file refused; a result
# that differs from its report; data-blocks left behind.
FAULT, TAKEN, TURNED_AWAY, WRONG, LEFT = "fault", "taken", "turned away", "wrong", "left behind"
FAILURES = (FAULT, TAKEN, TURNED_AWAY, WRONG, LEFT)
FRAMES = range(1, 9)
# Positions up to which an animation has to be converted; beyond, a message will do.
LARGE = 1e6
COLUMNS, ROWS = 4, 3
CONVERT = {"bone_count": 2, "iterations": 1, "max_influences": 2}


def prepare(folder: Path) -> None:
    """Called once in each process."""
    skinning_tools.register()
    logging.getLogger("skinning_tools").addHandler(_faults)


class _Faults(logging.Handler):
    """Tracebacks that the boundary has logged since the last look."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record) -> None:
        self.texts.append(logging.Formatter().format(record))

    def taken(self) -> str:
        texts, self.texts = self.texts, []
        return "\n".join(texts)


_faults = _Faults()


def waving_frames() -> np.ndarray:
    """(F, N, 3) float32 of the grid."""
    rest = moving_meshes.grid(COLUMNS, ROWS)[0]
    frames = np.repeat(rest[None], len(FRAMES), axis=0)
    frames[:, :, 2] = 0.3 * np.sin(2 * frames[:, :, 0] + np.arange(len(FRAMES))[:, None])
    return frames.astype(np.float32)


# Point caches


def point_cache(seed: int, folder: Path) -> dict:
    random = np.random.default_rng(seed)
    kind = "PC2" if seed % 2 else "MDD"
    sound = _sound_cache(kind, folder)
    what = damaged(sound, kind, random)
    path = folder / f"cache_{seed}.{kind.lower()}"
    ob, modifier = _cached_object(folder)
    _put(path, what.data)
    late = random.random() < 0.15
    if late:
        # Damaged while it is being read.
        _put(path, sound)
        worse = _at_frame(int(random.integers(2, 8)), lambda: _put(path, what.data))
    modifier.cache_format, modifier.filepath = kind, str(path)
    modifier.time_mode = "FRAME" if random.random() < 0.8 else str(random.choice(["TIME", "FACTOR"]))
    before = moving_meshes.state()
    try:
        result = _converted(ob)
        told = {"seed": seed, "kind": kind, "damage": what.label + (" while it is read" if late else "")}
        said = read_point_cache(what.data, kind)
        if late and result["outcome"] == CONVERTED:
            result["outcome"] = TAKEN
        elif modifier.time_mode == "FRAME" and not late:
            result = _judged(result, said, ob)
    finally:
        if late:
            bpy.app.handlers.frame_change_pre.remove(worse)
    _put(path, sound)
    if moving_meshes.state() != before:
        result.setdefault("error", "")
        result |= {"outcome": LEFT} if result["outcome"] in (CONVERTED, REFUSED) else {}
        _cached_object.cache_clear()
    _put(path, None, gone=True)
    return told | result


def _judged(result: dict, said, ob) -> dict:
    """``result``, unless the file said something else."""
    whole = said is not None and said.frames.shape[1] == len(ob.data.vertices)
    frames = said.frames[np.minimum(np.arange(len(FRAMES)), len(said.frames) - 1)] if whole else None
    usable = whole and np.isfinite(frames).all()
    if result["outcome"] == CONVERTED and not usable:
        return result | {"outcome": TAKEN}
    if result["outcome"] == REFUSED and usable:
        moves, plain = (frames != frames[0]).any(), np.abs(frames).max() < LARGE
        if moves and plain and np.ptp(frames[0], axis=0).any():
            return result | {"outcome": TURNED_AWAY}
    return result


@cache
def _sound_cache(kind: str, folder: Path) -> bytes:
    path = folder / f"sound.{kind.lower()}"
    (scenes.write_pc2 if kind == "PC2" else scenes.write_mdd)(path, waving_frames())
    return path.read_bytes()


@cache
def _cached_object(folder: Path):
    moving_meshes.fresh_scene(len(FRAMES))
    ob = moving_meshes.add_object("Cached", *moving_meshes.grid(COLUMNS, ROWS))
    return ob, scenes.point_cache(ob, folder / "sound.pc2", "PC2")


def _put(path: Path, data: bytes | None, gone: bool = False) -> None:
    """``data`` as the file; a folder in its place for None, or nothing."""
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)
    elif not gone:
        path.mkdir()


def _at_frame(number: int, act):
    """Call ``act`` once, when the scene reaches a frame; returns the handler."""

    def handler(scene, *_):
        nonlocal act
        if scene.frame_current == number and act is not None:
            act, once = None, act
            once()

    bpy.app.handlers.frame_change_pre.append(handler)
    return handler


# Alembic


def alembic(seed: int, folder: Path) -> dict:
    random = np.random.default_rng(seed)
    ob, sound = _alembic_object(folder)
    what = damaged(sound, "ALEMBIC", random)
    path = folder / f"cache_{seed}.abc"
    _put(path, what.data)
    ob.modifiers[0].cache_file.filepath = str(path)
    before = moving_meshes.state()
    result = {"seed": seed, "kind": "ALEMBIC", "damage": what.label} | _converted(ob)
    if moving_meshes.state() != before:
        result["outcome"] = LEFT if result["outcome"] in (CONVERTED, REFUSED) else result["outcome"]
        _alembic_object.cache_clear()
    _put(path, None, gone=True)
    return result


@cache
def _alembic_object(folder: Path):
    moving_meshes.fresh_scene(len(FRAMES))
    path = folder / "sound.abc"
    scenes.write_pc2(folder / "source.pc2", waving_frames())
    ob = moving_meshes.add_object("Source", *moving_meshes.grid(COLUMNS, ROWS))
    scenes.point_cache(ob, folder / "source.pc2", "PC2")
    scenes.export_cache(path, FRAMES[0], FRAMES[-1])
    moving_meshes.fresh_scene(len(FRAMES))
    return scenes.import_cache(path), path.read_bytes()


# .blend files


def blend_file(seed: int, folder: Path) -> dict:
    """Convert by the command line, as on a render farm."""
    random = np.random.default_rng(seed)
    compressed = seed % 4 == 0
    what = damaged(_sound_blend(folder, compressed), "BLEND", random)
    path, output, report = (folder / name for name in (f"shot_{seed}.blend", "out.blend", "report.json"))
    _put(path, what.data)
    output.unlink(missing_ok=True)
    told = {"seed": seed, "kind": "BLEND", "damage": what.label}
    arguments = ["convert", "--input", path, "--object", "Flag", "--bones", "2", "--iterations", "1", "--quiet"]
    code = command_line.main([str(argument) for argument in (*arguments, "--output", output, "--report", report)])
    said = json.loads(report.read_text("utf-8"))
    _put(path, None, gone=True)
    left = sorted(entry.name for entry in folder.iterdir() if "part" in entry.name or entry.suffix == ".tmp")
    fault = _faults.taken()
    if fault or "bug in Skinning Tools" in said["message"]:
        return told | {"outcome": FAULT, "error": fault or said["message"]}
    if code not in (0, 1, 2) or said["exit_code"] != code or output.exists() != (code == 0) or left:
        return told | {"outcome": WRONG, "error": f"exit code {code}, {said}, left {left}"}
    if code != 0:
        return told | {"outcome": REFUSED, "message": said["message"]}
    if not np.isfinite(said["figures"]["e_rms"] if said["figures"]["e_rms"] is not None else np.nan):
        return told | {"outcome": WRONG, "error": str(said["figures"])}
    return told | {"outcome": CONVERTED}


@cache
def _sound_blend(folder: Path, compressed: bool) -> bytes:
    moving_meshes.fresh_scene(len(FRAMES))
    moving_meshes.waving_grid(columns=COLUMNS, rows=ROWS)
    path = folder / "sound.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True, compress=compressed)
    return path.read_bytes()


# Conversion


def _converted(ob) -> dict:
    """The outcome of a conversion of the object; checks the result and deletes it."""
    bpy.context.view_layer.objects.active = ob
    try:
        bpy.ops.skinning.convert_animation(**CONVERT)
    except RuntimeError as error:
        fault = _faults.taken()
        if fault or "bug in Skinning Tools" in str(error):
            return {"outcome": FAULT, "error": fault or str(error)}
        return {"outcome": REFUSED, "message": str(error).strip()}
    finally:
        _faults.texts.clear()
    skinned = bpy.data.objects[f"{ob.name}_skinned"]
    wrong = _wrong_figures(ob, skinned)
    made = result_of(skinned)
    if made is None:
        return {"outcome": WRONG, "error": f"figures that cannot be read, {wrong}"}
    delete_result(bpy.context, made)
    bpy.context.view_layer.objects.active = ob
    ob.select_set(True)
    return {"outcome": WRONG, "error": wrong} if wrong else {"outcome": CONVERTED}


def _wrong_figures(source, skinned) -> str:
    """The failure; "" if the result is where the report says."""
    expected, found = (scenes.played(each, FRAMES).astype(np.float64) for each in (source, skinned))
    told = float(skinned["skinning_report"]["largest_distance"])
    if not np.isfinite(found).all() or not np.isfinite(told):
        return f"not finite, {told:g} told"
    if expected.shape != found.shape:
        return f"{found.shape} in place of {expected.shape}"
    largest = float(np.linalg.norm(found - expected, axis=-1).max())
    # Positions are of single precision.
    rounding = 1e-5 * float(np.abs(expected).max())
    return "" if abs(told - largest) <= 1e-4 * largest + rounding else f"{told:g} told, it is {largest:g}"
