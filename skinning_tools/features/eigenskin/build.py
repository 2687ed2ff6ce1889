# SPDX-License-Identifier: GPL-3.0-or-later
"""Build EigenSkin: from an armature's examples to driven shape keys on the mesh, and their error."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background, error_display
from ...blender.attributes import remove_attributes, write_attribute
from ...blender.bodies import stretch_of
from ...blender.center_records import native_modifier
from ...blender.character import character_of
from ...blender.figures import Figure, Result
from ...blender.lengths import length_text
from ...blender.preconditions import check_unchanged, object_label, unmet
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from ...core.progress import Progress
from .examples import example_items, new_bones, read_examples, read_rig
from .half_rotation import bones_made, check_kept, plan_bones, remove_bones_of, without_bones
from .normal_display import note_on_display
from .record import Record, eigenskin_record, painted_masks
from .writer import Written, check_writable, remove_eigenskin, write_eigenskin

if TYPE_CHECKING:
    from ...core.eigenskin import EigenSkinSettings
    from ...core.eigenskin.model import EigenSkin, ExampleErrors

# Point attributes: each vertex's largest distance from the examples' shapes in world space; see ``length_of_unit``.
ERROR_BEFORE, ERROR_AFTER = "skinning_eigenskin_before", "skinning_eigenskin_after"


@dataclass(frozen=True)
class Built(Result):
    """A finished build, and the seconds that the user waited. worst: (example's name, vertex, distance in world space).
    added_count: number of examples read before the build. half_bone_count: half-rotation bones that were made."""

    object_name: str
    example_count: int
    written: Written
    relative_error: float
    worst: tuple[str, int, float]
    notes: tuple[str, ...]
    seconds: float
    added_count: int = 0
    half_bone_count: int = 0

    def figures(self) -> list[Figure]:
        name, vertex, distance = self.worst
        worst = {"vertex": vertex, "example": name, "distance": distance}
        length = length_text(bpy.context.scene, distance, 3)
        return [
            Figure("Object", self.object_name),
            *([Figure("Examples added", self.added_count)] if self.added_count else []),
            Figure("Examples", self.example_count),
            Figure("Shape keys", self.written.shape_key_count),
            Figure("Supports", self.written.support_count),
            *([Figure("Half-rotation bones added", self.half_bone_count)] if self.half_bone_count else []),
            Figure("Error left", self.relative_error, "{:.4f}", line=f"error left {self.relative_error:.1%}"),
            Figure(
                "Worst vertex",
                worst,
                "{vertex} in {example}, {distance:.6g}",
                line=f"worst vertex {vertex} in {name}, {length}",
            ),
        ]


def check_buildable(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The mesh for the active object. Raises BadScene with the reason if its corrections cannot be built. Cheap enough
    for a panel."""
    mesh_object = character_of(context, active)
    if native_modifier(mesh_object) is not None:
        remedy = "Remove the Center of Rotation modifier first. Examples that you took from it stay"
        raise unmet("ROTATES_ABOUT_CENTERS", object=mesh_object, remedy=remedy)
    check_writable(mesh_object)
    check_examples_enabled(mesh_object)
    return mesh_object


def check_examples_enabled(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if the mesh has no enabled examples."""
    items = example_items(armature_of(mesh_object), mesh_object)
    if not items:
        raise BadScene(
            f"The {object_label(mesh_object)} has no examples. Pose its armature, give the mesh its correct shape "
            "there, and add that as an example (+ beside the list)"
        )
    if not any(item.enabled for item in items):
        raise BadScene(
            f"All {len(items)} examples of {object_label(mesh_object)} are disabled. Enable some in the list"
        )


def checked_settings(**settings: Any) -> "EigenSkinSettings":
    """Raises BadSettings."""
    from ...core.eigenskin import EigenSkinSettings

    chosen = EigenSkinSettings(**settings)
    chosen.check()
    return chosen


def build(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    normals: bool = False,
    half_rotation: bool = False,
    show_normals: bool = False,
    **settings: Any,
) -> background.Steps:
    """Generator: build the corrections of the mesh for the active object, replacing earlier ones; yields (fraction,
    stage), returns a Built.

    half_rotation: add half-rotation bones. normals: correct them, too; show_normals: show that in Blender. settings: of
    core.eigenskin.EigenSkinSettings. The computation runs in a worker; the mesh is written at the end, all or nothing.
    Raises SkinningError for problems that the user can fix.
    """
    from ...core import eigenskin as core
    from ...core.deform import vertex_normals

    begin = time.perf_counter()
    mesh_object, normals = check_buildable(context, active), normals or show_normals
    check_kept(mesh_object, half_rotation)
    chosen = checked_settings(**settings)
    skin, rig = read_rig(context, mesh_object)
    examples = read_examples(mesh_object, rig, normals)
    painted, stretch = painted_masks(mesh_object), stretch_of(mesh_object)
    before = eigenskin_record(mesh_object)
    plan = plan_bones(mesh_object, skin, rig, examples.rotations) if half_rotation else None
    unhelped = without_bones(mesh_object, skin, rig)
    used = [item.uid for item in example_items(skin.armature, mesh_object) if item.enabled]

    def work(progress: Progress) -> "tuple[EigenSkin, ExampleErrors]":
        surface = vertex_normals(skin.rest, skin.triangles) if normals else None
        helped = plan.applied(examples) if plan is not None else (rig, examples)
        model = core.build_eigenskin(*helped, chosen, painted=painted, rest_surface_normals=surface, progress=progress)
        return model, core.example_errors(*helped, model, stretch, (unhelped, examples))

    model, errors = yield from background.run_in_worker(work)
    check_unchanged(mesh_object, len(rig.rest))
    hidden = note_on_display(mesh_object) if show_normals else ""
    shown = vertex_normals(skin.rest, skin.triangles) if show_normals and not hidden else None
    with bones_made(context, plan) as numbers:
        written = write_eigenskin(mesh_object, skin.armature, rig, model, normals, numbers, shown)
    _store_errors(mesh_object, skin.armature, used, errors)
    return Built(
        mesh_object.name,
        len(examples.names),
        written,
        errors.relative,
        _farthest(examples.names, errors),
        (
            *model.notes,
            *(plan.notes() if plan is not None else ()),
            *_note_on_bones(mesh_object),
            *_note_on_keyframes(before),
            *notes_on_modifiers(mesh_object),
            *([hidden] if hidden else []),
        ),
        time.perf_counter() - begin,
        half_bone_count=len(numbers),
    )


def _farthest(names: Sequence[str], errors: "ExampleErrors") -> tuple[str, int, float]:
    """The example, of ``names``, with the vertex that is farthest from its shape, that vertex, and the distance."""
    worst = int(np.argmax(errors.worst_distance))
    return names[worst], int(errors.worst_vertex[worst]), float(errors.worst_distance[worst])


def show_heat_map(mesh_object: bpy.types.Object, shown: str) -> error_display.Scale:
    """Color the mesh by its distance from the examples, ``shown`` BEFORE or AFTER, and return the scale of the colors.

    Both use the same scale, from the distances before. Raises BadScene if the distances are missing.
    """
    names = {"BEFORE": ERROR_BEFORE, "AFTER": ERROR_AFTER}
    if any(name not in mesh_object.data.attributes for name in names.values()):
        raise BadScene(
            f"The {object_label(mesh_object)} has lost the distances from its examples. Build EigenSkin again"
        )
    unit = length_of_unit(mesh_object)
    if unit is None:
        raise BadScene(
            f"The distances of {object_label(mesh_object)} from its examples were measured by an earlier version, in "
            "the mesh's own units, and its scale is uneven. Build EigenSkin again"
        )
    scale = error_display.Scale.of(error_display.read_errors(mesh_object.data, ERROR_BEFORE))
    return error_display.add_error_colors(mesh_object, names[shown], scale, unit)


def length_of_unit(mesh_object: bpy.types.Object) -> float | None:
    """The length in world space of one unit of the stored distances from the examples.

    Earlier versions measured in object space. None if the length is unknown: an uneven scale changes each distance by a
    different factor, and a scale of zero makes all of them zero.
    """
    record = eigenskin_record(mesh_object)
    if record is None or record.world_units:
        return 1.0
    try:
        stretch = stretch_of(mesh_object)
    except BadScene:
        return None
    return float(stretch[0, 0]) if np.array_equal(stretch, np.eye(3) * stretch[0, 0]) else None


def remove(context: bpy.types.Context, mesh_object: bpy.types.Object) -> int:
    """Remove the corrections from the mesh, with the distances from the examples, and their half-rotation bones, whose
    number it returns. The examples stay."""
    # First the step that may fail.
    count = remove_bones_of(context, mesh_object)
    remove_eigenskin(mesh_object)
    error_display.remove_error_colors(mesh_object)
    _forget_errors(mesh_object, armature_of(mesh_object))
    return count


def _store_errors(
    mesh_object: bpy.types.Object, armature: bpy.types.Object, used: list[str], errors: "ExampleErrors"
) -> None:
    """Store the errors for the panel and the heat map. used: the examples' identifiers, in order."""
    _forget_errors(mesh_object, armature)
    rows = {uid: row for row, uid in enumerate(used)}
    for item in example_items(armature, mesh_object):
        row = rows.get(item.uid)
        if row is not None:
            item.error_before, item.error_after = float(errors.before[row]), float(errors.after[row])
            item.worst_vertex, item.worst_distance = int(errors.worst_vertex[row]), float(errors.worst_distance[row])
    for name, values in ((ERROR_BEFORE, errors.per_vertex_before), (ERROR_AFTER, errors.per_vertex_after)):
        write_attribute(mesh_object.data, name, "FLOAT", values)


def _forget_errors(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Remove the errors that the last build measured."""
    for item in example_items(armature, mesh_object) if armature is not None else ():
        for name in ("error_before", "error_after", "worst_vertex", "worst_distance"):
            item.property_unset(name)
    remove_attributes(mesh_object.data, (ERROR_BEFORE, ERROR_AFTER))


def _note_on_bones(mesh_object: bpy.types.Object) -> list[str]:
    """A note on bones that the examples do not have."""
    names = new_bones(mesh_object)
    return [f"{', '.join(names)}: missing in some examples, in which these bones follow their parents"] if names else []


def _note_on_keyframes(before: Record | None) -> list[str]:
    """A note if a new build removed the keyframes of the last one."""
    return ["The keyframes of the last build were removed: bake again for export"] if before and before.baked else []


def notes_on_modifiers(mesh_object: bpy.types.Object) -> list[str]:
    """Notes on what deforms the mesh besides the Armature modifier, in addition to the corrections."""
    found = [
        modifier.name
        for modifier in mesh_object.modifiers
        if modifier.show_viewport and modifier.type in {"CORRECTIVE_SMOOTH", "CLOTH", "SOFT_BODY", "SURFACE_DEFORM"}
    ]
    return [f'"{name}" still deforms the mesh: turn it off to see only the corrections' for name in found]
