# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-blocks: whether a reference is still valid, copies, and names."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, count

import bpy


def library_of(block: bpy.types.ID) -> bpy.types.Library | None:
    """The file that the block is linked from, itself or as the original of an override; None for one of this file."""
    override = block.override_library
    return block.library if override is None else override.reference.library


def is_alive(block: bpy.types.bpy_struct) -> bool:
    """False if the user, an undo or loading a file has removed the data-block."""
    try:
        return bool(block.name)
    except ReferenceError:
        return False


def remove_living(blocks: Iterable[bpy.types.ID]) -> None:
    """Remove the data-blocks, but for those that the user, an undo or loading a file has removed already."""
    bpy.data.batch_remove([block for block in blocks if is_alive(block)])


def object_again(name: str, uid: int) -> bpy.types.Object | None:
    """The object with the session-wide number ``uid``, which has, or had, that name; None if it is gone."""
    found = bpy.data.objects.get(name)
    if found is None or found.session_uid != uid:
        found = next((candidate for candidate in bpy.data.objects if candidate.session_uid == uid), None)
    return found


def local_copy(ob: bpy.types.Object) -> bpy.types.Object:
    """A copy of an object, in no scene, that is not a library override even if the object is one.

    When the file is loaded again, Blender would restore what was removed from an override, such as its modifiers.
    """
    copy = ob.copy()
    if copy.override_library is not None:
        copy.make_local(clear_liboverride=True)
    return copy


@contextmanager
def temporary_copy(ob: bpy.types.Object, own_data: bool = False) -> Iterator[bpy.types.Object]:
    """A copy of an object, in no scene, that is evaluated even if viewports do not show the object; removed at the end,
    together with its data if these are its own."""
    made: list[bpy.types.ID] = [ob.copy()]
    copy = made[0]
    try:
        copy.hide_viewport = False
        if own_data:
            copy.data = ob.data.copy()
            made.append(copy.data)
        yield copy
    finally:
        remove_living(made)


def clear_shape_keys(ob: bpy.types.Object) -> None:
    """Remove all shape keys of the object's mesh.

    Blender before 5.0 counts one user too many for the keys of a mesh copied in Python. The keys would stay in the file
    without their mesh, and Blender crashes when they are accessed.
    """
    keys = ob.data.shape_keys
    ob.shape_key_clear()
    if keys is not None and is_alive(keys):
        bpy.data.batch_remove([keys])


def joined_name(stem: str, ending: str) -> str:
    """``stem`` and ``ending``, in at most the 63 bytes that Blender allows; a longer stem is cut."""
    return stem.encode()[: 63 - len(ending.encode())].decode(errors="ignore") + ending


def free_name(taken: set[str], stem: str, ending: str = "") -> str:
    """``stem`` and ``ending``, with a number between them if that name is taken; adds the name to ``taken``."""
    endings = chain([ending], (f".{number:03}{ending}" for number in count(1)))
    name = next(name for each in endings if (name := joined_name(stem, each)) not in taken)
    taken.add(name)
    return name


def cut_name(name: str, spare: int = 0) -> str:
    """As much of ``name`` as data-blocks of this Blender have room for, with ``spare`` bytes left. What of a file's
    name is no text becomes question marks."""
    # One byte ends the C string.
    room = bpy.types.ID.bl_rna.properties["name"].length_max - 1 - spare
    return name.encode(errors="replace")[:room].decode(errors="ignore")


def with_ending(name: str, ending: str) -> str:
    """``name``, an underscore and ``ending``, cut so that Blender's number suffix and the longest ending fit."""
    return f"{cut_name(name, len('_skinning.000'))}_{ending}"
