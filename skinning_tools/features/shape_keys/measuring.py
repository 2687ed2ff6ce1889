# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a written face is from its shape keys, as Blender plays it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import read_attribute
from ...blender.bodies import stretch_of
from ...blender.data_blocks import is_alive
from ...blender.skin_reader import Skin, armature_modifier, bone_matrices
from ...blender.temporary_scene import temporary_scene
from .faces import FaceRecord
from .parts import FaceParts, Part
from .rig_writer import FaceRig


@dataclass(frozen=True)
class _Posed:
    """A part and its skinned ``object`` in a pose of their body. pose (P, 3, 4): of the bones of ``skin``, both None
    without a body. stretch (3, 3): to distances in the world."""

    part: Part
    object: bpy.types.Object
    skin: Skin | None
    pose: np.ndarray | None
    stretch: np.ndarray

    def wanted(self, slider: str) -> np.ndarray:
        """(N, 3): where the shape key has the vertices, "" for the neutral."""
        from ...core.deform import skin_frame

        keys = self.part.keys
        place = next((place for place, each in enumerate(keys.sliders) if each.name == slider), None)
        points = keys.rest if place is None else keys.rest + keys.deltas[place]
        if self.skin is None or self.pose is None:
            return points
        return skin_frame(points, self.skin.bones, self.skin.weights, self.pose, _method(self.object))

    def played(self, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
        return read_attribute(self.object.evaluated_get(depsgraph).data, "position").astype(np.float64)

    def away(self, got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """(N,) distances in the world."""
        return np.linalg.norm((got - wanted) @ self.stretch.T, axis=1)

    def turned(self, got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Degrees, of the normals."""
        from ...core.deform.surface import normal_errors

        return normal_errors(got @ self.stretch.T, wanted @ self.stretch.T, self.part.keys.triangles)


def measured(context: bpy.types.Context, source: FaceParts, rig: FaceRig) -> background.Steps[FaceRecord]:
    """Generator: each slider at 1 in a scene beside the user's, and none at all. A body stays in its pose."""
    distances, turns = [], []
    with _deformed_by_bones(rig.objects), temporary_scene(context.scene, [rig.armature, *rig.objects]) as scene:
        view_layer = scene.view_layers[0]
        depsgraph = _updated(rig, view_layer)
        posed = [_posed(part, ob, rig, depsgraph) for part, ob in zip(source.parts, rig.objects, strict=True)]
        resting = max(float(each.away(each.played(depsgraph), each.wanted("")).max()) for each in posed)
        for number, (slider, name) in enumerate(zip(source.sliders, rig.slider_names, strict=True)):
            rig.armature[name] = 1.0
            depsgraph = _updated(rig, view_layer)
            pairs = [(each, each.played(depsgraph), each.wanted(slider.name)) for each in posed]
            rig.armature[name] = 0.0
            away = [each.away(got, wanted) for each, got, wanted in pairs]
            distances.append((np.concatenate(away).mean(), [each.max() for each in away]))
            angles = np.concatenate([each.turned(got, wanted) for each, got, wanted in pairs])
            turns.append(np.quantile(angles, 0.9) if len(angles) else 0.0)
            yield number / len(source.sliders), "Measuring the result"
        _updated(rig, view_layer)
    largest = np.array([each for _, each in distances])
    worst, worst_part = np.unravel_index(int(np.argmax(largest)), largest.shape)
    several = len(source.parts) > 1
    return FaceRecord(
        bone_count=len(rig.bone_names),
        slider_count=len(source.sliders),
        vertex_count=sum(len(part.keys.rest) for part in source.parts),
        mean=float(np.mean([mean for mean, _ in distances])),
        largest=float(largest.max()),
        worst_slider=source.sliders[worst].name,
        normals=float(np.mean(turns)),
        neutral=resting,
        mesh_count=len(source.parts),
        worst_mesh=source.parts[worst_part].mesh_object.name if several else "",
    )


@contextmanager
def _deformed_by_bones(objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Hide the modifiers that do something else."""
    others = [m for ob in objects for m in ob.modifiers if m.show_viewport and m.type != "ARMATURE"]
    for modifier in others:
        modifier.show_viewport = False
    try:
        yield
    finally:
        for modifier in others:
            if is_alive(modifier):
                modifier.show_viewport = True


def _updated(rig: FaceRig, view_layer: bpy.types.ViewLayer) -> bpy.types.Depsgraph:
    rig.armature.update_tag()
    view_layer.update()
    return view_layer.depsgraph


def _posed(part: Part, ob: bpy.types.Object, rig: FaceRig, depsgraph: bpy.types.Depsgraph) -> _Posed:
    skin = replace(part.body.skin, object=ob, armature=rig.armature) if part.body is not None else None
    pose = bone_matrices(skin, depsgraph) if skin is not None else None
    return _Posed(part, ob, skin, pose, stretch_of(part.mesh_object))


def _method(mesh_object: bpy.types.Object) -> str:
    """How Blender blends the bones of a body."""
    modifier = armature_modifier(mesh_object)
    return "DQS" if modifier is not None and modifier.use_deform_preserve_volume else "LBS"
