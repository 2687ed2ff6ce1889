# SPDX-License-Identifier: GPL-3.0-or-later
"""Center-of-rotation skinning of a frame range as plain Blender data: shape keys or a point cache, in every version.

The result is a copy of the object; the object itself does not change. On the copy, shape keys or cache replace
everything up to the Armature modifier, and the later modifiers keep working. If a cache replaces an earlier one of the
object, the copy that plays it is kept and plays the new cache.
"""

import itertools
import os
import secrets
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.attributes import read_attribute, write_attribute
from ...blender.before_armature import check_vertex_count, remove_modifiers, unskinned_copy
from ...blender.center_records import remove_centers
from ...blender.data_blocks import clear_shape_keys, local_copy, remove_living, with_ending
from ...blender.local_collections import collections_beside
from ...blender.look_ups import is_in
from ...blender.point_cache import CACHE, cache_owner, point_cache
from ...blender.preconditions import object_label
from ...blender.records import checksum
from ...blender.skin_reader import Skin, bone_matrices, check_even_scale, read_skin
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.written_files import Target, WrittenFiles, folded, identity
from ...core.errors import BadPath, BadScene
from ...core.memory import check_available
from . import baking
from .cache_players import add_player, earlier_copies, play_anew
from .modifier import remove_data

ENDING = "crs"

# Positions are held twice while they become shape keys: as an array and in the mesh.
_SHAPE_KEY_BYTES = 2 * 3 * np.dtype(np.float32).itemsize

# Identifies a file that has not been saved yet.
_SESSION = f"unsaved {secrets.token_hex(8)}"
# Bytes: the limit of some encrypted file systems.
_LONGEST_NAME = 140
_ANOTHER = "Choose another path"


@dataclass(frozen=True)
class Playback:
    """A finished copy. path: of its point cache, None for shape keys. notes: what Blender left out. again: whether the
    copy is from an earlier bake."""

    source_name: str
    object: bpy.types.Object
    frame_count: int
    path: Path | None = None
    notes: tuple[str, ...] = ()
    again: bool = False

    def summary(self) -> str:
        """The result in one line."""
        noun = "shape key" if self.path is None else "frame"
        count = f"{self.frame_count:,} {noun}{'s' if self.frame_count != 1 else ''}"
        where = count if self.path is None else f"{count} in {self.path}"
        player = f"{'now ' if self.again else ''}played by {object_label(self.object)}"
        return "; ".join([f"{self.source_name}: {where}, {player}", *self.notes])


def to_shape_keys(
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
) -> background.Steps:
    """Generator: a copy of the object with a shape key per frame, each keyed to 1 at its frame and 0 at the others.

    Yields (fraction, stage), returns a Playback. Frames: the scene's range if None, including the last one.
    """
    numbers, skin, centers = _prepared(context, mesh_object, frame_start, frame_end, frame_step)
    vertex_count = len(skin.rest)
    check_available(
        len(numbers) * vertex_count * _SHAPE_KEY_BYTES,
        f"The shape keys of {object_label(mesh_object)} ({vertex_count} vertices, {len(numbers)} frames)",
    )
    frames = np.empty((len(numbers), vertex_count, 3), np.float32)
    omissions = Omissions(context, [mesh_object], numbers, same_vertices=True)
    with _copied(mesh_object) as copy:
        with closing(_skinned_frames(context, skin, centers, numbers, omissions)) as skinned:
            for row, positions in enumerate(skinned):
                frames[row] = positions
                yield 0.9 * (row + 1) / len(numbers), f"Deforming frame {numbers[row]}"
        yield 0.9, "Writing the shape keys"
        _write_shape_keys(context.scene, copy, skin.rest, frames, numbers)
        _link_beside(context, mesh_object, copy)
    return Playback(mesh_object.name, copy, len(numbers), notes=texts_of(omissions.finish()))


def to_point_cache(
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    filepath: str = "",
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
) -> background.Steps:
    """Generator: a copy of ``mesh_object`` with a Mesh Cache modifier that plays a PC2 file; else as ``to_shape_keys``.

    filepath: of the PC2 file; if empty, it goes beside the .blend file. Raises BadScene if it cannot be written.
    """
    numbers, skin, centers = _prepared(context, mesh_object, frame_start, frame_end, frame_step)
    omissions = Omissions(context, [mesh_object], numbers, same_vertices=True)
    with _copied(mesh_object) as copy:
        path = _cache_path(filepath)
        owner = _owner(mesh_object, path if path.is_dir() else path.parent)
        earlier = earlier_copies(mesh_object, owner)
        target = _cache_target(path, with_ending(mesh_object.name, ENDING), owner, earlier)
        players = earlier.get(identity(target.real), [])
        with (
            point_cache(target, owner, len(skin.rest), len(numbers)) as write,
            closing(_skinned_frames(context, skin, centers, numbers, omissions)) as skinned,
        ):
            for row, positions in enumerate(skinned):
                write(positions)
                yield (row + 1) / len(numbers), f"Deforming frame {numbers[row]}"
        _write_rest(copy, skin.rest)
        players = play_anew(context.scene, players, copy, target.path, numbers)
        shown = next((player for player in players if is_in(context.scene, player)), None)
        if shown is None:
            add_player(context.scene, copy, target.path, numbers)
            _link_beside(context, mesh_object, copy)
        else:
            _remove_copy(copy)
    return Playback(
        mesh_object.name,
        shown or copy,
        len(numbers),
        target.path,
        texts_of(omissions.finish()),
        again=shown is not None,
    )


def _prepared(
    context: bpy.types.Context,
    mesh_object: bpy.types.Object,
    frame_start: int | None,
    frame_end: int | None,
    frame_step: int,
) -> tuple[range, Skin, np.ndarray]:
    numbers = frame_range(context.scene, frame_start, frame_end, frame_step)
    skin = read_skin(context, mesh_object)
    check_even_scale(mesh_object)
    baking.check_fresh(mesh_object)
    return numbers, skin, baking.read_centers(mesh_object)[0]


def _skinned_frames(
    context: bpy.types.Context, skin: Skin, centers: np.ndarray, numbers: range, omissions: Omissions
) -> Generator[np.ndarray]:
    """Positions (N, 3) at each frame: shape keys and modifiers before the armature, then core's skinning."""
    from ...core.deform import skin_frame

    with (
        unskinned_copy(skin.object) as carrier,
        temporary_scene(context.scene, [carrier, skin.armature]) as scene,
    ):
        carried = replace(skin, object=carrier)
        for number in numbers:
            depsgraph = evaluate_frame(scene, number)
            mesh = carrier.evaluated_get(depsgraph).data
            check_vertex_count(skin.object, mesh, number)
            matrices = bone_matrices(carried, depsgraph)
            yield skin_frame(read_attribute(mesh, "position"), skin.bones, skin.weights, matrices, "CRS", centers)
        omissions.look_at_drivers(depsgraph)


@contextmanager
def _copied(mesh_object: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """A copy of the object with its own mesh, without shape keys, armature and modifiers before it; removed on an
    error."""
    made = []
    try:
        mesh = mesh_object.data.copy()
        made.append(mesh)
        copy = local_copy(mesh_object)
        made.append(copy)
        copy.data = mesh
        copy.name = mesh.name = with_ending(mesh_object.name, ENDING)
        if mesh.shape_keys is not None:
            clear_shape_keys(copy)
        remove_data(mesh)
        remove_centers(mesh)
        remove_modifiers(copy, from_armature=False)
        yield copy
    except BaseException:
        remove_living(made)
        raise


def _remove_copy(copy: bpy.types.Object) -> None:
    mesh = copy.data
    bpy.data.objects.remove(copy)
    if mesh.users == 0:
        bpy.data.meshes.remove(mesh)


def _write_rest(copy: bpy.types.Object, rest: np.ndarray) -> None:
    write_attribute(copy.data, "position", "FLOAT_VECTOR", rest)
    copy.data.update()


def _write_shape_keys(
    scene: bpy.types.Scene, copy: bpy.types.Object, rest: np.ndarray, frames: np.ndarray, numbers: range
) -> None:
    _write_rest(copy, rest)
    copy.shape_key_add(name="Basis", from_mix=False)
    for number, positions in zip(numbers, frames, strict=True):
        block = copy.shape_key_add(name=f"Frame {number}", from_mix=False)
        block.points.foreach_set("co", positions.ravel())
    keys = copy.data.shape_keys
    actions.new_action(keys, copy.name)
    container = actions.curve_container(keys)
    times = actions.key_times(scene, np.array(numbers, dtype=np.float64))
    for row, block in enumerate(keys.key_blocks[1:]):
        # Keys fade into each other between frames, and are constant before the first and after the last.
        part = slice(max(row - 1, 0), row + 2)
        values = (np.arange(len(numbers))[part] == row).astype(np.float64)
        path = f'key_blocks["{bpy.utils.escape_identifier(block.name)}"].value'
        actions.write_channels(container, path, values[:, None], times[part], "Frames")


def _owner(mesh_object: bpy.types.Object, folder: Path) -> dict[str, str]:
    """Identifies the mesh among all whose caches may lie in that folder, in the form stored in a cache file.

    Relative to the folder, so that it also holds on another machine.
    """

    def relative(path: str) -> str:
        with suppress(ValueError):  # another drive
            return os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).replace(os.sep, "/")
        return path

    library = mesh_object.library
    return {
        "file": relative(bpy.data.filepath) if bpy.data.filepath else _SESSION,
        "object": mesh_object.name,
        "library": relative(bpy.path.abspath(library.filepath)) if library else "",
    }


def _cache_target(path: Path, name: str, owner: dict[str, str], earlier: Collection[tuple]) -> Target:
    """The file for the cache: never another object's cache, nor one that is played and not among the ``earlier`` ones.
    name: base name for a file in a folder. Raises BadScene."""
    files = WrittenFiles()
    files.keep_scene(replaced=earlier)
    if path.is_dir():
        return _free_target(files, path, name, owner)
    target = files.claim(path, CACHE, _ANOTHER)
    if not _is_free_for(target, owner):
        raise BadScene(
            f"The point cache cannot be saved to {path}: it has the motion of another object or file. "
            f"{_ANOTHER}, or remove that file"
        )
    return target


def _free_target(files: WrittenFiles, folder: Path, name: str, owner: dict[str, str]) -> Target:
    """A free file name in a folder, or that of an earlier cache of the same object. Raises BadScene."""
    stem = bpy.path.clean_name("_".join(filter(None, (Path(bpy.data.filepath).stem, name))))
    taken = {folded(name): name for name in os.listdir(folder)}
    for number in itertools.count(1):
        name = _short(stem, f"_{number}.pc2" if number > 1 else ".pc2")
        found = taken.get(folded(name))
        if found in (name, None):
            with suppress(BadPath):
                target = files.claim(folder / name, CACHE, _ANOTHER, check=False)
                if found is not None:
                    target.check()
                if _is_free_for(target, owner):
                    break
    target.check_folder()
    return target


def _is_free_for(target: Target, owner: dict[str, str]) -> bool:
    return not target.real.exists() or target.real.stat().st_size == 0 or cache_owner(target.real) == owner


def _short(stem: str, ending: str) -> str:
    """A file name short enough for all file systems. A few digits stand for what is cut off."""
    name = f"{stem}{ending}"
    if len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
        return name
    digits = checksum(stem)[:8]
    kept = stem.encode("utf-8", "surrogateescape")[: _LONGEST_NAME - len(ending) - len(digits) - 1]
    return f"{kept.decode('utf-8', 'ignore')}_{digits}{ending}"


def _cache_path(filepath: str) -> Path:
    """The path of a .pc2 file, or of a folder for it. Raises BadScene."""
    blend = bpy.data.filepath
    if not filepath:
        if not blend:
            raise BadScene("Save the .blend file first to write the point cache beside it, or choose a path")
        return Path(blend).parent
    if filepath.startswith("//") and not blend:
        raise BadScene(f"The path {filepath} is relative to the .blend file. Save that first, or choose another path")
    path = Path(os.path.normpath(bpy.path.abspath(filepath)))
    if path.is_dir():
        return path
    if not path.parent.is_dir() or filepath.endswith(("/", os.sep)):
        raise BadScene(f"There is no folder for the point cache: {path.parent}. Make it, or choose another path")
    return path.with_name(path.name + ".pc2") if path.suffix.lower() != ".pc2" else path


def _link_beside(context: bpy.types.Context, mesh_object: bpy.types.Object, copy: bpy.types.Object) -> None:
    """Link the copy to the local collections of the object, or else to the scene's collection."""
    for home in collections_beside(context, mesh_object):
        home.objects.link(copy)
    # A copy of a selected object is selected too, which takes effect once the view layer is updated.
    context.view_layer.update()
    if copy.name in context.view_layer.objects:
        copy.select_set(False, view_layer=context.view_layer)
