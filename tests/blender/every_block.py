# SPDX-License-Identifier: GPL-3.0-or-later
"""One data-block of every kind that Blender has, by the names of the lists in ``bpy.data``.

The table follows from ``bpy.data`` itself: a kind of a later Blender is in it, or fails for want of an entry here.
"""

import wave

import bpy

# Names of a kind, not a separate kind.
_NO_KINDS = {"all_ids"}
# Python cannot make one: only a stroke in a paint mode does. They have neither animation nor targets.
CANNOT_BE_MADE = {"paint_curves"}


def kinds() -> list[str]:
    """The names of the lists in ``bpy.data``."""
    lists = (each for each in bpy.types.BlendData.bl_rna.properties if each.type == "COLLECTION")
    return sorted({each.identifier for each in lists} - _NO_KINDS - CANNOT_BE_MADE)


def block_of(kind: str, folder) -> bpy.types.ID:
    """A data-block of a kind, new where Python can make such; files that it needs are written to ``folder``."""
    made = _SPECIAL.get(kind)
    if made is not None:
        return made(folder)
    blocks = getattr(bpy.data, kind)
    new = blocks.bl_rna.functions["new"]
    given = {each.identifier: _default(each) for each in new.parameters if each.is_required and not each.is_output}
    return blocks.new(**given)


def _default(parameter):
    if parameter.type == "ENUM":
        return parameter.default or parameter.enum_items[0].identifier
    return {"STRING": "Sample", "INT": 4, "POINTER": None}[parameter.type]


def _library(folder):
    mesh = bpy.data.meshes.new("From elsewhere")
    path = str(folder / "library.blend")
    bpy.data.libraries.write(path, {mesh})
    bpy.data.meshes.remove(mesh)
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.meshes = ["From elsewhere"]
    return wanted.meshes[0].library


def _keys(_):
    ob = bpy.data.objects.new("Keyed", bpy.data.meshes.new("Keyed"))
    ob.shape_key_add(name="Basis")
    return ob.data.shape_keys


def _sound(folder):
    path = str(folder / "sound.wav")
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0")
    return bpy.data.sounds.load(path)


def _clip(folder):
    image = bpy.data.images.new("Still", 4, 4)
    image.filepath_raw, image.file_format = str(folder / "still.png"), "PNG"
    image.save()
    return bpy.data.movieclips.load(image.filepath_raw)


def _cache(folder):
    path = folder / "empty.abc"
    path.write_bytes(b"")
    bpy.ops.cachefile.open(filepath=str(path))
    return bpy.data.cache_files[path.name]


_SPECIAL = {
    "cache_files": _cache,
    "fonts": lambda _: bpy.data.fonts.load("<builtin>"),
    "libraries": _library,
    "movieclips": _clip,
    # What kinds of trees there are Blender does not tell here.
    "node_groups": lambda _: bpy.data.node_groups.new("Sample", "ShaderNodeTree"),
    "screens": lambda _: bpy.data.screens[0],
    "shape_keys": _keys,
    "sounds": _sound,
    "window_managers": lambda _: bpy.data.window_managers[0],
    "workspaces": lambda _: bpy.data.workspaces[0],
}
