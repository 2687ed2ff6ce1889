# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-blocks: whether one that Python holds is still there, and copies that stand on their own."""

import bpy


def is_alive(block: bpy.types.bpy_struct) -> bool:
    """False where the user, an undo or another file has removed the data-block."""
    try:
        return bool(block.name)
    except ReferenceError:
        return False


def local_copy(object: bpy.types.Object) -> bpy.types.Object:
    """A copy of an object, in no scene, that is no library override, though the object may be one.

    Blender would give an override back, when the file is read again, what was taken off it: its modifiers, for one.
    """
    copy = object.copy()
    if copy.override_library is not None:
        copy.make_local(clear_liboverride=True)
    return copy


def clear_shape_keys(object: bpy.types.Object) -> None:
    """Take all shape keys off the object's mesh.

    Blender before 5.0 counts a user too many of the keys of a mesh that Python has copied. They would stay in the file
    without their mesh, and Blender crashes where anything looks at them.
    """
    keys = object.data.shape_keys
    object.shape_key_clear()
    if keys is not None and is_alive(keys):
        bpy.data.batch_remove([keys])


def joined_name(stem: str, ending: str) -> str:
    """``stem`` and ``ending``, where Blender has room for 63 bytes. Too long a stem is cut."""
    return stem.encode()[: 63 - len(ending.encode())].decode(errors="ignore") + ending


def with_ending(name: str, ending: str) -> str:
    """``name``, an underscore and ``ending``, cut so that Blender's number and the longest ending fit after it."""
    # One byte is the C string's end, and Blender's numbers want room too.
    room = bpy.types.ID.bl_rna.properties["name"].length_max - 1 - len("_skinning.000")
    return f"{name.encode()[:room].decode(errors='ignore')}_{ending}"
