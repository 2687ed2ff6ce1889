# SPDX-License-Identifier: GPL-3.0-or-later
"""From shape keys to a measured rig: the generator that operator and command line drive."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import bpy

from ...blender import background
from ...blender.data_blocks import is_alive, remove_living
from ...blender.figures import Figure, Result
from ...blender.preconditions import unmet
from ...blender.records import FACE, write_record
from ...blender.wording import listed
from .animation import HandedOver, hand_over
from .body import check_body
from .faces import FaceRecord
from .measuring import measured
from .parts import FaceParts, Group, read_parts
from .reading import check_faces, faces_meant, meshes_for
from .rig_writer import FaceRig, write_rig
from .settings import ShapeKeySettings

if TYPE_CHECKING:
    from ...core.shape_rig import Settings, ShapeRig

_READ, _SOLVED, _WRITTEN = 0.02, 0.9, 0.93


@dataclass(frozen=True)
class FaceConversion(Result):
    """A finished conversion. rig: what was written."""

    source_name: str
    rig: FaceRig
    record: FaceRecord
    handed_over: HandedOver
    seconds: float
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        return [Figure("Object", self.source_name), *self.record.figures(), *self.handed_over.figures()]


def convert_shape_keys(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[FaceConversion]:
    """Generator: make a skinned copy whose bones replace the shape keys of the active mesh, or of all selected meshes
    of a face; returns a FaceConversion.

    given: of ``ShapeKeySettings``. The sources stay as they are. All or nothing. Raises SkinningError.
    """
    settings = ShapeKeySettings(**given)
    meshes, notes = faces_meant(context, active, settings.selected_objects)
    return (yield from _convert(context, meshes, settings, notes))


def convert_named(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], **given: Any
) -> background.Steps[FaceConversion]:
    """``convert_shape_keys`` of these objects together; the first one has precedence."""
    return (yield from _convert(context, meshes_for(context, objects), ShapeKeySettings(**given)))


def _convert(
    context: bpy.types.Context,
    meshes: Sequence[bpy.types.Object | None],
    settings: ShapeKeySettings,
    notes: tuple[str, ...] = (),
) -> background.Steps[FaceConversion]:
    from ...core.shape_rig import Settings

    begin = time.perf_counter()
    checked = check_faces(meshes)
    for mesh_object in checked:
        check_body(mesh_object)
    solver = Settings(
        settings.bone_count,
        settings.bone_kind,
        settings.max_influences,
        settings.surface,
        settings.sparsity,
        settings.symmetric,
        settings.quality,
    )
    yield 0.0, "Reading the shape keys"
    source, names = read_parts(context, checked), [mesh_object.name for mesh_object in checked]
    shape_rigs = yield from background.part_of(_solved(source, solver), _READ, _SOLVED)
    for mesh_object, name in zip(checked, names, strict=True):
        if not is_alive(mesh_object):
            raise unmet("REMOVED", object=f'object "{name}"')
    yield _SOLVED, "Writing the rig"
    rig = write_rig(context, source, shape_rigs)
    done, made = False, list(rig.data_blocks)
    try:
        record = yield from background.part_of(measured(context, source, rig), _WRITTEN, 1.0)
        motions = sum(each.motion_count for each in shape_rigs)
        record = replace(record, share=motions / (len(rig.slider_names) * len(rig.bone_names)))
        for number, (name, face, ob) in enumerate(zip(names, checked, rig.objects, strict=True)):
            library = face.library.name if face.library is not None else ""
            write_record(ob, FACE, replace(record, source=name, library=library, made=ob.name, part=number))
        # Measured first: sliders that are animated do not stay where they are set.
        handed_over = hand_over(source, rig, made) if settings.animation else HandedOver()
        done = True
    finally:
        if not done:
            remove_living(made)
    notes = *notes, *(note for part in source.parts for note in part.keys.notes), *handed_over.notes()
    if settings.symmetric:
        # A single bone, as of an eye, has nothing to mirror.
        asymmetric = [each.partners is None and each.bone_count > 1 for each in shape_rigs]
        notes = *notes, *map(_asymmetry_note, compress(source.groups, asymmetric))
    return FaceConversion(names[0], rig, record, handed_over, time.perf_counter() - begin, notes)


def _solved(source: FaceParts, solver: "Settings") -> background.Steps[list["ShapeRig"]]:
    """Generator: the bones of each group, which share those that are asked for."""
    from ...core.shape_rig import share_bones, solve_shapes

    shapes = [group.shapes for group in source.groups]
    counts = share_bones(shapes, solver.bone_count) if len(shapes) > 1 else [solver.bone_count]
    sizes = [len(each.rest) * count for each, count in zip(shapes, counts, strict=True)]
    found = []
    for number, each in enumerate(shapes):
        work = partial(solve_shapes, each, replace(solver, bone_count=counts[number]))
        begin, end = (sum(sizes[:last]) / sum(sizes) for last in (number, number + 1))
        found.append((yield from background.part_of(background.run_in_worker(work), begin, end)))
    return found


def _asymmetry_note(group: Group) -> str:
    """What keeps a group from being solved symmetrically."""
    from ...core.shape_rig import unpaired_sliders

    shapes = group.shapes
    names = [group.sliders[index].name for index in unpaired_sliders(shapes.rest, shapes.deltas)]
    if names:
        return f"solved without Symmetric, as no shape key is the mirror image in X of these: {listed(names)}"
    return f"solved without Symmetric, as {shapes.name} is not symmetric in X"
