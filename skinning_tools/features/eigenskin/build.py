# SPDX-License-Identifier: GPL-3.0-or-later
"""Build EigenSkin: from an armature's examples to driven shape keys on the mesh, and how near they come."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background, error_display
from ...blender.bodies import stretch_of
from ...blender.center_records import native_modifier
from ...blender.character import character_of
from ...blender.lengths import length_text
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_of
from ...blender.wording import counted
from ...core.errors import BadScene
from .examples import example_items, new_bones, read_examples, read_rig
from .record import eigenskin_record, painted_masks
from .writer import Written, check_writable, remove_eigenskin, write_eigenskin

if TYPE_CHECKING:
    from ...core.eigenskin import EigenSkinSettings

# Point attributes: each vertex' largest distance from the examples' shapes, in the world; see ``length_of_unit``.
ERROR_BEFORE, ERROR_AFTER = "skinning_eigenskin_before", "skinning_eigenskin_after"


@dataclass(frozen=True)
class Built:
    """A finished build, and the seconds that the user waited for it. worst: (example's name, vertex, distance in the
    world). added_count: how many examples were read before it."""

    object_name: str
    example_count: int
    written: Written
    relative_error: float
    worst: tuple[str, int, float]
    notes: tuple[str, ...]
    seconds: float
    added_count: int = 0

    def summary(self, scene) -> str:
        """The result in one line."""
        name, vertex, distance = self.worst
        shown = length_text(scene, distance, 3)
        parts = [
            f"{self.object_name}: {counted(self.written.shape_key_count, 'shape key')} on "
            f"{counted(self.written.support_count, 'support')}, {self.relative_error:.1%} of the error at "
            f"{counted(self.example_count, 'example')} left "
            f"(worst {shown}, vertex {vertex} in {name}), {self.seconds:.1f} s",
            *self.notes,
        ]
        return ". ".join(parts)


def check_buildable(context, object) -> bpy.types.Object:
    """The mesh that is meant by ``object``. Raises BadScene with the reason why corrections cannot be built for it.
    Cheap enough for a panel."""
    object = character_of(context, object)
    if native_modifier(object) is not None:
        raise BadScene(
            f"The {object_label(object)} is deformed about centers of rotation. EigenSkin corrects linear blending: "
            "remove the Center of Rotation modifier first. Examples that you took from it stay"
        )
    check_writable(object)
    items = example_items(armature_of(object), object)
    if not items:
        raise BadScene(
            f"The {object_label(object)} has no examples. Pose its armature, give the mesh its right shape there, and "
            "add that as an example (+ beside the list)"
        )
    if not any(item.enabled for item in items):
        raise BadScene(f"All {len(items)} examples of {object_label(object)} are disabled. Enable some in the list")
    return object


def checked_settings(**settings) -> "EigenSkinSettings":
    """Raises BadSettings."""
    from ...core.eigenskin import EigenSkinSettings

    chosen = EigenSkinSettings(**settings)
    chosen.check()
    return chosen


def build(context, object, normals: bool = False, **settings) -> background.Steps:
    """Generator: build the corrections of the mesh that is meant by ``object`` from its examples, in place of those it
    has; yields (fraction, stage), returns a Built.

    settings: of core.eigenskin.EigenSkinSettings. The computation runs in a worker; the mesh is written at the end, all
    or nothing. Raises SkinningError for all that the user can mend.
    """
    from ...core import eigenskin as core
    from ...core.deform import vertex_normals

    begin = time.perf_counter()
    object = check_buildable(context, object)
    chosen = checked_settings(**settings)
    skin, rig = read_rig(context, object)
    examples = read_examples(object, rig, skin.armature, normals=normals)
    painted, stretch = painted_masks(object), stretch_of(object)
    before = eigenskin_record(object)
    used = [item.uid for item in example_items(skin.armature, object) if item.enabled]

    def work(progress):
        surface = vertex_normals(skin.rest, skin.triangles) if normals else None
        model = core.build_eigenskin(
            rig, examples, chosen, painted=painted, rest_surface_normals=surface, progress=progress
        )
        return model, core.example_errors(rig, examples, model, stretch)

    model, errors = yield from background.run_in_worker(work)
    if len(object.data.vertices) != len(rig.rest):
        raise BadScene(f"The {skin.label} was edited while its corrections were being built. Start again")
    written = write_eigenskin(object, skin.armature, rig, model, normals=normals)
    _store_errors(object, skin.armature, used, errors)
    worst = int(np.argmax(errors.worst_distance))
    return Built(
        object.name,
        len(examples.names),
        written,
        errors.relative,
        (examples.names[worst], int(errors.worst_vertex[worst]), float(errors.worst_distance[worst])),
        (*model.notes, *_note_on_bones(object), *_note_on_keyframes(before), *notes_on_modifiers(object)),
        time.perf_counter() - begin,
    )


def show_heat_map(object, shown: str) -> error_display.Scale:
    """Color the mesh by its distance from the examples, ``shown`` BEFORE or AFTER, and return the scale of the colors.

    Both have the same, that of the distances before. Raises BadScene where the distances are gone.
    """
    names = {"BEFORE": ERROR_BEFORE, "AFTER": ERROR_AFTER}
    if any(name not in object.data.attributes for name in names.values()):
        raise BadScene(f"The {object_label(object)} has lost the distances from its examples. Build EigenSkin again")
    unit = length_of_unit(object)
    if unit is None:
        raise BadScene(
            f"The distances of {object_label(object)} from its examples were measured by an earlier version, in the "
            "mesh's own units, and its scale is uneven. Build EigenSkin again"
        )
    scale = error_display.Scale.of(error_display.read_errors(object.data, ERROR_BEFORE))
    return error_display.add_error_colors(object, names[shown], scale, unit)


def length_of_unit(object) -> float | None:
    """What one unit of the stored distances from the examples is in the world.

    Earlier versions measured in the mesh's own space. None where these cannot be told, as a scale that is uneven
    changes each distance by another factor, and one of zero changes all to nothing.
    """
    record = eigenskin_record(object)
    if record is None or record.world_units:
        return 1.0
    try:
        stretch = stretch_of(object)
    except BadScene:
        return None
    return float(stretch[0, 0]) if np.array_equal(stretch, np.eye(3) * stretch[0, 0]) else None


def remove(object) -> None:
    """Take the corrections off the mesh, with the distances from the examples. The examples stay."""
    remove_eigenskin(object)
    error_display.remove_error_colors(object)
    _forget_errors(object, armature_of(object))


def _store_errors(object, armature, used: list[str], errors) -> None:
    """Keep the errors where the panel and the heat map find them. used: the examples' identifiers, in their order."""
    _forget_errors(object, armature)
    rows = {uid: row for row, uid in enumerate(used)}
    for item in example_items(armature, object):
        row = rows.get(item.uid)
        if row is not None:
            item.error_before, item.error_after = float(errors.before[row]), float(errors.after[row])
            item.worst_vertex, item.worst_distance = int(errors.worst_vertex[row]), float(errors.worst_distance[row])
    for name, values in ((ERROR_BEFORE, errors.per_vertex_before), (ERROR_AFTER, errors.per_vertex_after)):
        attribute = object.data.attributes.new(name, "FLOAT", "POINT")
        attribute.data.foreach_set("value", np.ascontiguousarray(values, np.float32))


def _forget_errors(object, armature) -> None:
    """Take away what the last build has measured."""
    for item in example_items(armature, object) if armature is not None else ():
        for name in ("error_before", "error_after", "worst_vertex", "worst_distance"):
            item.property_unset(name)
    for name in (ERROR_BEFORE, ERROR_AFTER):
        if name in object.data.attributes:
            object.data.attributes.remove(object.data.attributes[name])


def _note_on_bones(object) -> list[str]:
    """Which bones the examples were made without."""
    names = new_bones(object)
    return [f"{', '.join(names)}: unknown to some examples, where parents are followed"] if names else []


def _note_on_keyframes(before) -> list[str]:
    """What a new build does to the keyframes of the last one."""
    return ["The keyframes of the last build were removed: bake again for export"] if before and before.baked else []


def notes_on_modifiers(object) -> list[str]:
    """What deforms the mesh beside the Armature modifier, so that corrections come on top of it."""
    found = [
        modifier.name
        for modifier in object.modifiers
        if modifier.show_viewport and modifier.type in {"CORRECTIVE_SMOOTH", "CLOTH", "SOFT_BODY", "SURFACE_DEFORM"}
    ]
    return [f'"{name}" still deforms the mesh: switch it off to see the corrections alone' for name in found]
