# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold of objects before the extension can work on them, each worded once.

Each has a code, which the exception carries: tests, and programs that call the extension, need not know the wording.
"""

import bpy

from ..core.errors import BadScene

# Code: what is wrong, and what to do. object, armature: with their names, as object_label and armature_label have them.
TEXTS = {
    "MODE": "The {object} is in {mode}. Switch to Object Mode",
    "SHARED_MESH_IN_EDIT_MODE": "The mesh of {object} is being edited through another object that shares it. Leave "
    "Edit Mode there",
    "ARMATURE_IN_EDIT_MODE": "The {armature} is in Edit Mode. Switch it to Object or Pose Mode",
    "NO_VERTICES": "The {object} has no vertices. Choose a mesh that has some",
    "NO_SCALE": "The {object} has a scale of zero. Set it to another value",
    "NO_SCALE_ALONG": "The {object} has a scale of zero in {axes}. Set it to another value",
    "NO_ARMATURE": "There is no active armature. Select an armature, or a mesh that one deforms",
    "LINKED_MESH": "The mesh of {object} is linked from another file, so {work}. Do it in the mesh's own file, or make "
    "it local (Object > Relations > Make Local > Selected Objects and Data)",
    "OVERRIDDEN_MESH": "The mesh of {object} is a library override, so {work}. Do it in the mesh's own file, or make "
    "it local (Object > Relations > Make Local > Selected Objects and Data)",
    "LINKED_ARMATURE": "The {armature} is linked from another file, so {work}. Do it in the armature's own file, or "
    "make it local (Object > Relations > Make Local > Selected Objects and Data)",
    "OVERRIDDEN_ARMATURE": "The {armature} is a library override, so {work}. Do it in the armature's own file, or "
    "make it local (Object > Relations > Make Local > Selected Objects and Data)",
    "NOT_IN_SCENE": 'The {object} is not in the scene "{scene}". Link it into a collection of the scene, or make a '
    "library override if it is part of a linked collection",
    "EXCLUDED": 'The {object} is excluded from the view layer "{view_layer}". Enable its collection in the outliner '
    "(the check box)",
    "HIDDEN": "The {object} is hidden, so Blender does not evaluate its animation. Show it, and its collections, in "
    "the outliner (the eye and the screen)",
}

# Only these modes replace the evaluated mesh by one of their own.
UNREADABLE_MODES = {"EDIT": "Edit Mode", "SCULPT": "Sculpt Mode"}


def unmet(code: str, **words: str) -> BadScene:
    """The exception for a precondition that does not hold, with the words that its text has places for."""
    return BadScene(TEXTS[code].format(**words), code)


def object_label(object: bpy.types.Object) -> str:
    """What messages call an object."""
    return f'object "{object.name}"'


def armature_label(armature: bpy.types.Object) -> str:
    """What messages call an armature object."""
    return f'armature "{armature.name}"'


def check_mode(object: bpy.types.Object) -> None:
    """Raises BadScene in a mode that hides the evaluated mesh."""
    if object.mode in UNREADABLE_MODES:
        raise unmet("MODE", object=object_label(object), mode=UNREADABLE_MODES[object.mode])
    if object.data.is_editmode:
        raise unmet("SHARED_MESH_IN_EDIT_MODE", object=object_label(object))


def check_armature_mode(armature: bpy.types.Object) -> None:
    """Raises BadScene in Edit Mode, in which the armature has no pose."""
    if armature.data.is_editmode:
        raise unmet("ARMATURE_IN_EDIT_MODE", armature=armature_label(armature))


def check_has_vertices(object: bpy.types.Object) -> None:
    """Raises BadScene where the object's mesh is empty."""
    if not object.data.vertices:
        raise unmet("NO_VERTICES", object=object_label(object))


def check_own_mesh(object: bpy.types.Object, work: str) -> None:
    """Raises BadScene where the object's mesh cannot be changed here. work: what cannot be done, such as "no shape keys
    can be made on it"."""
    if foreign(object.data):
        raise unmet(f"{foreign(object.data)}_MESH", object=object_label(object), work=work)


def check_attributes_writable(object: bpy.types.Object) -> None:
    """Raises BadScene where attributes cannot be stored in the object's mesh."""
    check_own_mesh(object, "nothing can be stored in it")


def check_own_armature(armature: bpy.types.Object, work: str) -> None:
    """Raises BadScene where the armature object or its bones cannot be changed here; work as above."""
    check_own_object(armature, work)
    if foreign(armature.data):
        raise unmet(f"{foreign(armature.data)}_ARMATURE", armature=armature_label(armature), work=work)


def check_own_object(armature: bpy.types.Object, work: str) -> None:
    """Raises BadScene where the armature object cannot be changed here, whatever its bones are; work as above."""
    if foreign(armature):
        raise unmet(f"{foreign(armature)}_ARMATURE", armature=armature_label(armature), work=work)


def foreign(block: bpy.types.ID) -> str:
    """Why a data-block cannot be changed in this file, LINKED or OVERRIDDEN; "" where it can."""
    if block.library is not None:
        return "LINKED"
    return "OVERRIDDEN" if block.override_library is not None else ""


def check_visible(scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, object: bpy.types.Object) -> None:
    """Raises BadScene where Blender does not evaluate the object in the view layer."""
    if object.visible_get(view_layer=view_layer):
        return
    label = object_label(object)
    if object not in scene.objects.values():
        raise unmet("NOT_IN_SCENE", object=label, scene=scene.name)
    if object not in view_layer.objects.values():
        raise unmet("EXCLUDED", object=label, view_layer=view_layer.name)
    raise unmet("HIDDEN", object=label)
