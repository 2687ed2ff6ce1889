# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of objects that the extension works on, each with one message.

Each has a code, which the exception carries, so that tests and other programs need not know the wording.
"""

from collections.abc import Iterable

import bpy

from ..core.errors import BadAnimation, BadMesh, BadScene, BadSettings, SkinningError
from .control_points import point_count

# Code: what is wrong, and what to do. Fields take words, or objects, for which their labels are inserted: {armature}
# for a known armature. {remedy}: a sentence, if what to do depends on the work.
TEXTS = {
    # What is chosen
    "NO_ACTIVE_OBJECT": "There is no active object. {remedy}",
    "NOT_A_MESH": "The {object} is not a mesh, its type is {type}. {remedy}",
    "NOT_AN_ARMATURE": "The {object} is not an armature, its type is {type}. {remedy}",
    "NO_ARMATURE": "There is no active armature. Select an armature, or a mesh that one deforms",
    "NO_OBJECT": 'There is no object "{name}" in the scene "{scene}". Objects that fit: {known}',
    "NOT_A_RESULT": "The active object is not part of a conversion{that}. Select the source, the mesh or the rig "
    "of a conversion",
    "NO_BONE": 'The {armature} has no bone "{bone}". Choose another',
    "NO_BONE_SELECTED": "No bone of the {armature} is selected. {remedy}",
    "NO_COUNTERPART": 'The bone "{bone}" has no counterpart "{other}" that {does}. {remedy}',
    "NO_VERTEX_SELECTED": "No vertex of {object} is selected. {remedy}",
    "NO_VERTEX_GROUP": 'The {object} has no vertex group "{group}". Choose another',
    "NO_DEFORMED_MESH": "The {armature} deforms no mesh. {remedy}",
    "SEVERAL_MESHES": "There are several meshes for the {armature}: {names}. Choose one as Mesh in the panel, or make "
    "it active",
    "OTHER_ARMATURE": "The {object} is not deformed by the {armature} as {other} is. Choose meshes of one armature",
    "SEVERAL_ARMATURES": "There are several armatures: {names}. Choose one in the panel, or select only that one with "
    "the mesh",
    "ONE_FRAME": "The range from frame {start} to frame {end} with step {step} has only one frame of {object}; at "
    "least two are needed. Widen the frame range, or choose a smaller step",
    "RANGE_REVERSED": "The frame range{of_object} starts at frame {start}, after its end at frame {end}. Choose an "
    "earlier start or a later end",
    "OUT_OF_RANGE": "{setting} must be {allowed}, not {value}",
    "JOB_RUNNING": "{job} is still running. Wait for it to end, or press Esc to cancel it",
    # Modes, and what the scene shows
    "MODE": "The {object} is in {mode}. Switch to Object Mode",
    "NOT_IN_OBJECT_MODE": "This works in Object Mode only. Switch to it",
    "SHARED_MESH_IN_EDIT_MODE": "The mesh of {object} is being edited through another object that shares it. Leave "
    "Edit Mode there",
    "ARMATURE_IN_EDIT_MODE": "The {armature} is in Edit Mode. Switch it to Object or Pose Mode",
    "TWEAK_MODE": "A strip of {owner} is being edited. Leave Tweak Mode in the Nonlinear Animation editor (Tab)",
    "ARMATURE_AT_REST": "The {armature} shows its rest position. Choose Pose Position in its data properties",
    "NOT_IN_SCENE": 'The {object} is not in the scene "{scene}". Link it into a collection of the scene, or make a '
    "library override if it is part of a linked collection",
    "EXCLUDED": 'The {object} is excluded from the view layer "{view_layer}". Enable its collection in the outliner '
    "(the check box)",
    "HIDDEN": "The {object} is hidden, so Blender does not evaluate its animation. Show it, and its collections, in "
    "the outliner (the eye and the screen)",
    # What may be changed
    "LINKED": "The {block} is linked from another file, so {work}. Change it in its own file, or make it local (Object "
    "> Relations > Make Local > Selected Objects and Data)",
    "OVERRIDDEN": "The {block} is a library override, so {work}. Change it in its own file, or make it local (Object > "
    "Relations > Make Local > Selected Objects and Data)",
    "LINKED_OBJECT": "The {object} is linked from another file, so {work}. Make an editable library override of it "
    "(Object > Library Override > Make), or make it local (Object > Relations > Make Local > Selected Objects)",
    "LINKED_ACTION": 'The action "{action}" of {owner} is linked from another file, so {work}. Make it local, or '
    "choose another",
    "MESH_SHARED": "The {object} shares its mesh with {other}, {meaning}. Give it its own mesh (Object > Relations > "
    "Make Single User > Object & Data)",
    "ATTRIBUTE_OF_ANOTHER_KIND": 'The {object} has an attribute "{attribute}" of another kind. Rename or remove it',
    # The mesh and its scale
    "NO_VERTICES": "The {object} has no vertices. Choose a mesh that has vertices",
    "NO_SIZE": "All vertices of {object} lie at one point at rest. Give it a shape in Edit Mode, or in its first shape "
    "key",
    "OTHER_VERTEX_COUNT": "The {other} has {count:,} vertices, and {object} has {expected:,}. {remedy}",
    "ABSOLUTE_KEYS": "The shape keys of {object} are absolute, so {consequence}. Enable Relative in the mesh's Shape "
    "Keys panel{otherwise}",
    "NO_SCALE": "The {object} has a scale of zero. Set it to another value",
    "NO_SCALE_ALONG": "The {object} has a scale of zero in {axes}. Set it to another value",
    "UNEVEN_SCALE": "The {object} is scaled unevenly ({scale}), so bones shear what they rotate. Apply its scale "
    "(Object > Apply > Scale)",
    # What deforms it
    "NOT_SKINNED": "No armature deforms the {object}. Bind it to one (panel Bind), or add an Armature modifier and "
    "choose its armature",
    "ALREADY_DEFORMED": "The {object} is already deformed by {deformer}. {remedy}",
    "DEFORMED_TWICE": "The {object} is deformed twice: by {first} and by {second}. {remedy}",
    "NO_VERTEX_GROUPS": "The {object} has no vertex groups, so no bone moves it. Parent it to the armature with "
    "Automatic Weights, or assign weights",
    "NO_DEFORMING_BONE": "No bone of the {armature} deforms. Enable Deform in the properties of the bones that should "
    "move the mesh",
    "BONE_DOES_NOT_DEFORM": 'The bone "{bone}" of the {armature} does not deform. Choose one that does',
    "NO_GROUP_OF_A_BONE": "No vertex group of {object} has the name of a deforming bone of the {armature}. Assign "
    "weights, rename the groups like the bones, or enable Deform on the bones",
    "BONE_WITHOUT_WEIGHTS": 'The bone "{bone}" of the {armature} has no weights on any mesh. Bind a mesh first',
    "MODIFIER_DISABLED": 'The modifier "{modifier}" of {object} is disabled in the viewport, so the mesh does not '
    "follow the pose. Enable it",
    "PRESERVES_VOLUME": 'The modifier "{modifier}" of {object} preserves volume, but linear blending is needed. '
    "Disable Preserve Volume in the modifier",
    "NO_CENTERS": "The {object} has no centers of rotation. {remedy}",
    "ROTATES_ABOUT_CENTERS": "The {object} is deformed about centers of rotation, but linear blending is needed. "
    "{remedy}",
    # What has changed while a job worked on it
    "BONE_GONE": 'The {armature} no longer has the bone "{bone}". Start again',
    "EDITED": "The {object} was edited while the job was running. Start again",
    "REMOVED": "The {object} was removed while the job was running. Start again",
}

# For all other codes the exception is BadScene.
ERRORS: dict[str, type[SkinningError]] = {
    "NO_VERTEX_GROUP": BadSettings,
    "ONE_FRAME": BadAnimation,
    "RANGE_REVERSED": BadSettings,
    "NO_SIZE": BadMesh,
    "OTHER_VERTEX_COUNT": BadMesh,
    "OUT_OF_RANGE": BadSettings,
}

# Only these modes replace the evaluated mesh with their own.
UNREADABLE_MODES = {"EDIT": "Edit Mode", "SCULPT": "Sculpt Mode"}


def unmet(code: str, **words: str | int | bpy.types.Object) -> SkinningError:
    """The exception for a failed precondition, with the words and objects for the fields of its text."""
    labels = {"armature": armature_label}
    for place, word in words.items():
        if isinstance(word, bpy.types.Object):
            words[place] = labels.get(place, object_label)(word)
    return ERRORS.get(code, BadScene)(TEXTS[code].format(**words), code)


def object_label(target: bpy.types.Object) -> str:
    """What messages call an object."""
    return f'object "{target.name}"'


def armature_label(armature: bpy.types.Object) -> str:
    """What messages call an armature object."""
    return f'armature "{armature.name}"'


def type_name(target: bpy.types.Object) -> str:
    """What Blender calls the type of an object, such as "Light"."""
    return target.bl_rna.properties["type"].enum_items[target.type].name


def check_type(target: bpy.types.Object | None, remedy: str, kinds: tuple[str, ...] = ("MESH",)) -> None:
    """Raises BadScene if there is no object, or its type is not in ``kinds``, such as MESH, LATTICE, ARMATURE."""
    if target is None:
        raise unmet("NO_ACTIVE_OBJECT", remedy=remedy)
    if target.type not in kinds:
        code = "NOT_A_MESH" if "MESH" in kinds else "NOT_AN_ARMATURE"
        raise unmet(code, object=target, type=type_name(target), remedy=remedy)


def find_object(scene: bpy.types.Scene, name: str, kinds: tuple[str, ...] = ("MESH",)) -> bpy.types.Object:
    """The object of that name, of any type. Raises BadScene, which lists the objects of ``kinds``."""
    found = scene.objects.get(name)
    if found is None:
        known = ", ".join(ob.name for ob in scene.objects if ob.type in kinds) or "none"
        raise unmet("NO_OBJECT", name=name, scene=scene.name, known=known)
    return found


def check_bones(armature: bpy.types.Object, names: Iterable[str], code: str = "NO_BONE") -> None:
    """Raises BadScene if the armature lacks one of the bones. code: BONE_GONE if it had all of them before."""
    missing = next((name for name in names if name not in armature.data.bones), None)
    if missing is not None:
        raise unmet(code, armature=armature, bone=missing)


def check_deforming(armature: bpy.types.Object) -> None:
    """Raises BadScene if no bone of the armature object deforms."""
    if not any(bone.use_deform for bone in armature.data.bones):
        raise unmet("NO_DEFORMING_BONE", armature=armature)


def check_bone_deforms(armature: bpy.types.Object, name: str) -> None:
    """Raises BadScene if that bone does not deform, or does not exist."""
    check_bones(armature, [name])
    if not armature.data.bones[name].use_deform:
        raise unmet("BONE_DOES_NOT_DEFORM", armature=armature, bone=name)


def check_vertex_group(mesh_object: bpy.types.Object, name: str) -> None:
    """Raises BadSettings if the object has no vertex group of that name."""
    if name not in mesh_object.vertex_groups:
        raise unmet("NO_VERTEX_GROUP", object=mesh_object, group=name)


def check_not_tweaked(animation: bpy.types.AnimData | None, owner: str) -> None:
    """Raises BadScene if a strip of the animation is in Tweak Mode, so that its action cannot be edited. owner: of the
    animation."""
    if animation is not None and animation.use_tweak_mode:
        raise unmet("TWEAK_MODE", owner=owner)


def check_posed(armature: bpy.types.Object) -> None:
    """Raises BadScene if the armature shows its rest position instead of its pose."""
    if armature.data.pose_position == "REST":
        raise unmet("ARMATURE_AT_REST", armature=armature)


def check_mode(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene in a mode that hides the evaluated mesh."""
    if mesh_object.mode in UNREADABLE_MODES:
        raise unmet("MODE", object=mesh_object, mode=UNREADABLE_MODES[mesh_object.mode])
    if mesh_object.data.is_editmode:
        raise unmet("SHARED_MESH_IN_EDIT_MODE", object=mesh_object)


def check_not_edited(mesh_object: bpy.types.Object, label: str = "") -> None:
    """Raises BadScene if the mesh is in Edit Mode through any object. label: instead of the object's own."""
    if mesh_object.data.is_editmode:
        raise unmet("MODE", object=label or mesh_object, mode=UNREADABLE_MODES["EDIT"])


def check_armature_mode(armature: bpy.types.Object) -> None:
    """Raises BadScene in Edit Mode, in which the armature has no pose."""
    if armature.data.is_editmode:
        raise unmet("ARMATURE_IN_EDIT_MODE", armature=armature)


def check_has_vertices(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if the object's mesh is empty."""
    if not point_count(mesh_object):
        raise unmet("NO_VERTICES", object=mesh_object)


def check_unchanged(mesh_object: bpy.types.Object, vertex_count: int) -> None:
    """Raises BadScene if the mesh's vertices changed during the work on it."""
    if point_count(mesh_object) != vertex_count:
        raise unmet("EDITED", object=mesh_object)


def check_own_mesh(mesh_object: bpy.types.Object, work: str) -> None:
    """Raises BadScene if the object's mesh cannot be changed in this file. work: the consequence, such as "no shape
    keys can be made on it"."""
    what = "lattice" if mesh_object.type == "LATTICE" else "mesh"
    _check_own(mesh_object.data, f"{what} of {object_label(mesh_object)}", work)


def check_attributes_writable(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if attributes cannot be stored in the object's mesh."""
    check_own_mesh(mesh_object, "nothing can be stored in it")


def check_own_armature(armature: bpy.types.Object, work: str) -> None:
    """Raises BadScene if the armature object or its bones cannot be changed in this file; work as above."""
    check_own_object(armature, work)
    _check_own(armature.data, armature_label(armature), work)


def check_own_object(armature: bpy.types.Object, work: str) -> None:
    """Raises BadScene if the armature object, without its bones, cannot be changed in this file; work as above."""
    _check_own(armature, armature_label(armature), work)


def check_movable(target: bpy.types.Object, label: str, work: str) -> None:
    """Raises BadScene if the object cannot be posed, keyed or parented in this file; an editable override can."""
    override = target.override_library
    if target.library is not None or (override is not None and override.is_system_override):
        raise unmet("LINKED_OBJECT", object=label, work=work)


def _check_own(block: bpy.types.ID, label: str, work: str) -> None:
    if foreign(block):
        raise unmet(foreign(block), block=label, work=work)


def foreign(block: bpy.types.ID) -> str:
    """Why a data-block cannot be changed in this file, LINKED or OVERRIDDEN; "" if it can."""
    if block.library is not None:
        return "LINKED"
    return "OVERRIDDEN" if block.override_library is not None else ""


def check_visible(scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, target: bpy.types.Object) -> None:
    """Raises BadScene if Blender does not evaluate the object in the view layer."""
    if target.visible_get(view_layer=view_layer):
        return
    if target not in scene.objects.values():
        raise unmet("NOT_IN_SCENE", object=target, scene=scene.name)
    if target not in view_layer.objects.values():
        raise unmet("EXCLUDED", object=target, view_layer=view_layer.name)
    raise unmet("HIDDEN", object=target)
