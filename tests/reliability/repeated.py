# SPDX-License-Identifier: GPL-3.0-or-later
"""Many conversions in one process: its memory and the file's data-blocks after each. Tasks of children.py, where the
number stands for how many."""

import os
from pathlib import Path

import bpy

import skinning_tools
from skinning_tools.blender.conversions import result_of
from skinning_tools.features.convert.result import delete_result
from tests.blender import moving_meshes, scenes

VERTICES_ACROSS = 40, 30
FRAMES = 24
CONVERT = {"bone_count": 8, "iterations": 3}
# After this number of rounds, no further memory should be used for loaded or cached data.
WARM = 20


def prepare(folder: Path) -> None:
    """Called once in each process."""
    skinning_tools.register()


def deleted(count: int, folder: Path) -> dict:
    """The result of each is deleted before the next."""
    source = _source()
    before = _numbers()

    def once() -> None:
        _convert(source)
        delete_result(bpy.context, result_of(bpy.data.objects["Flag_skinned"]))

    return _repeated(once, count) | {"left": _numbers() != before}


def kept(count: int, folder: Path) -> dict:
    """All results stay in the file."""
    source = _source()
    return _repeated(lambda: _convert(source), count) | {"left": False}


def new_files(count: int, folder: Path) -> dict:
    """Each in a reopened file, as on a farm."""
    _source()
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))

    def once() -> None:
        bpy.ops.wm.open_mainfile(filepath=str(path))
        _convert(bpy.data.objects["Flag"])

    return _repeated(once, count) | {"left": False}


def undone(count: int, folder: Path) -> dict:
    """Each is undone before the next, by Blender's undo."""
    _source()
    bpy.ops.ed.undo_push(message="start")
    before = _numbers()

    def once() -> None:
        _convert(bpy.data.objects["Flag"])
        bpy.ops.ed.undo_push(message="converted")
        bpy.ops.ed.undo()

    return _repeated(once, count) | {"left": _numbers() != before}


def refused(count: int, folder: Path) -> dict:
    """No conversion completes: during the work the object is deleted, or the solver fails."""
    from skinning_tools.features.convert.conversion import convert
    from skinning_tools.features.convert.settings import ConvertSettings

    source = _source()
    before = _numbers()
    number = 0

    def once() -> None:
        nonlocal number
        number += 1
        steps = convert(bpy.context, (source,), ConvertSettings(**CONVERT))
        for _ in range(number % 40):
            if next(steps, None) is None:
                # It has come to its end, which is no failure.
                delete_result(bpy.context, result_of(bpy.data.objects["Flag_skinned"]))
                break
        steps.close()

    return _repeated(once, count) | {"left": _numbers() != before}


def _repeated(once, count: int) -> dict:
    """outcome; memory (MB) after the first WARM and after all, and the data-blocks then."""
    megabytes, blocks = [], []
    for _ in range(count):
        once()
        megabytes.append(_resident())
        blocks.append(_numbers())
    warm = min(WARM, count) - 1
    return {
        "outcome": "done",
        "megabytes": [megabytes[0], megabytes[warm], max(megabytes[warm:]), megabytes[-1]],
        "blocks": [blocks[0], blocks[warm], blocks[-1]],
    }


def _source() -> bpy.types.Object:
    moving_meshes.fresh_scene(FRAMES)
    return moving_meshes.waving_grid("Flag", *VERTICES_ACROSS)


def _convert(source) -> None:
    bpy.context.view_layer.objects.active = source
    assert bpy.ops.skinning.convert_animation(**CONVERT) == {"FINISHED"}


def _numbers() -> int:
    return sum(map(len, scenes.data_blocks().values()))


def _resident() -> float:
    """MB of this process that are in memory (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
