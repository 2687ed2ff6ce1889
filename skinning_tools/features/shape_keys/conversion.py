# SPDX-License-Identifier: GPL-3.0-or-later
"""From shape keys to a measured rig: the generator that operator and command line drive."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import read_attribute
from ...blender.bodies import stretch_of
from ...blender.data_blocks import is_alive, remove_living
from ...blender.figures import Figure, Result
from ...blender.preconditions import object_label, unmet
from ...blender.records import FACE, write_record
from ...blender.skin_reader import armature_modifier, bone_matrices
from ...blender.temporary_scene import temporary_scene
from ...blender.wording import listed
from .animation import HandedOver, hand_over
from .body import Body, check_body, read_body
from .faces import FaceRecord
from .reading import ShapeKeys, check_shape_keys, read_shape_keys
from .rig_writer import FaceRig, write_rig
from .settings import ShapeKeySettings

if TYPE_CHECKING:
    from ...core.shape_rig import Shapes

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
    """Generator: make a skinned copy whose bones replace the shape keys of the active mesh; returns a FaceConversion.

    given: of ``ShapeKeySettings``. The source stays as it is. All or nothing. Raises SkinningError.
    """
    from ...core.shape_rig import Settings, Shapes, solve_shapes

    begin = time.perf_counter()
    settings = ShapeKeySettings(**given)
    mesh_object = check_shape_keys(context, active)
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
    source, name = read_shape_keys(mesh_object), mesh_object.name
    body = read_body(source)
    if body is None:
        shapes = Shapes(source.rest, source.deltas, source.triangles, object_label(mesh_object))
    else:
        face = source.rest[body.vertices], body.face_deltas(source.deltas), body.face_triangles()
        shapes = Shapes(*face, object_label(mesh_object))
    solving = background.run_in_worker(lambda progress: solve_shapes(shapes, solver, progress))
    shape_rig = yield from background.part_of(solving, _READ, _SOLVED)
    if not is_alive(mesh_object):
        raise unmet("REMOVED", object=f'object "{name}"')
    yield _SOLVED, "Writing the rig"
    rig = write_rig(context, source, shape_rig, body)
    done, made = False, list(rig.data_blocks)
    try:
        record = yield from background.part_of(_measured(context, source, body, rig), _WRITTEN, 1.0)
        record = replace(record, share=shape_rig.motion_share, source=name, made=rig.object.name)
        write_record(rig.object, FACE, record)
        # Measured first: sliders that are animated do not stay where they are set.
        handed_over = hand_over(source, rig, body, made) if settings.animation else HandedOver()
        done = True
    finally:
        if not done:
            remove_living(made)
    notes = [*source.notes]
    if settings.symmetric and shape_rig.partners is None:
        notes.append(_asymmetry_note(source, shapes))
    return FaceConversion(name, rig, record, handed_over, time.perf_counter() - begin, tuple(notes))


def _asymmetry_note(source: ShapeKeys, shapes: "Shapes") -> str:
    """What keeps the face from being solved symmetrically."""
    from ...core.shape_rig import unpaired_sliders

    names = [source.sliders[index].name for index in unpaired_sliders(shapes.rest, shapes.deltas)]
    if names:
        return f"solved without Symmetric, as no shape key is the mirror image in X of these: {listed(names)}"
    return f"solved without Symmetric, as {object_label(source.mesh_object)} is not symmetric in X"


def _measured(
    context: bpy.types.Context, source: ShapeKeys, body: Body | None, rig: FaceRig
) -> background.Steps[FaceRecord]:
    """Generator: each slider at 1 in a scene beside the user's, and none at all. A body stays in its pose."""
    from ...core.deform import skin_frame
    from ...core.deform.surface import normal_errors

    stretch = stretch_of(source.mesh_object)
    distances, turns = [], []
    others = [m for m in rig.object.modifiers if m.show_viewport and m.type != "ARMATURE"]
    for modifier in others:
        modifier.show_viewport = False
    try:
        with temporary_scene(context.scene, [rig.armature, rig.object]) as scene:
            view_layer = scene.view_layers[0]

            def played() -> np.ndarray:
                rig.armature.update_tag()
                view_layer.update()
                evaluated = rig.object.evaluated_get(view_layer.depsgraph)
                return read_attribute(evaluated.data, "position").astype(np.float64)

            neutral = played()
            skin = replace(body.skin, object=rig.object, armature=rig.armature) if body is not None else None
            pose = bone_matrices(skin, view_layer.depsgraph) if skin is not None else None

            def posed(points: np.ndarray) -> np.ndarray:
                if skin is None or pose is None:
                    return points
                return skin_frame(points, skin.bones, skin.weights, pose, _method(rig.object))

            resting = float(np.linalg.norm((neutral - posed(source.rest)) @ stretch.T, axis=1).max())
            for number, (name, delta) in enumerate(zip(rig.slider_names, source.deltas, strict=True)):
                rig.armature[name] = 1.0
                wanted, got = posed(source.rest + delta), played()
                rig.armature[name] = 0.0
                away = np.linalg.norm((got - wanted) @ stretch.T, axis=1)
                distances.append((away.mean(), away.max()))
                angles = normal_errors(got @ stretch.T, wanted @ stretch.T, source.triangles)
                turns.append(np.quantile(angles, 0.9) if len(angles) else 0.0)
                yield number / len(source.sliders), "Measuring the result"
            played()
    finally:
        for modifier in others:
            if is_alive(modifier):
                modifier.show_viewport = True
    means, largest = np.transpose(distances)
    worst = int(np.argmax(largest))
    return FaceRecord(
        bone_count=len(rig.bone_names),
        slider_count=len(source.sliders),
        vertex_count=len(source.rest),
        mean=float(means.mean()),
        largest=float(largest[worst]),
        worst_slider=source.sliders[worst].name,
        normals=float(np.mean(turns)),
        neutral=resting,
    )


def _method(mesh_object: bpy.types.Object) -> str:
    """How Blender blends the bones of a body."""
    modifier = armature_modifier(mesh_object)
    return "DQS" if modifier is not None and modifier.use_deform_preserve_volume else "LBS"
