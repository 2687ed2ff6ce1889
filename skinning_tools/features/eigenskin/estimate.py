# SPDX-License-Identifier: GPL-3.0-or-later
"""The error at left-out examples, before anything is built, and the next pose that is worth an example."""

from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Quaternion

from ...blender import background
from ...blender.character import character_of
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_bones, object_label
from ...blender.records import read_record, write_record
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from .build import check_examples_enabled
from .example_pose import turn_joint
from .examples import check_storable, example_items, read_examples, read_rig

# On the armature: the last Estimate.
_RECORD = "skinning_eigenskin_estimate"


@dataclass(frozen=True)
class Estimate(Result):
    """error: what the interpolation misses at examples that it does not know, as a share of their displacements.

    worst, worst_error: the example that the others predict worst. joint, rotation (w x y z): the next pose. uids: of
    the examples that were compared.
    """

    object_name: str
    error: float
    worst: str
    worst_error: float
    joint: str
    rotation: tuple[float, ...]
    uids: tuple[str, ...]

    def figures(self) -> list[Figure]:
        axis, angle = Quaternion(self.rotation).to_axis_angle()
        turn = f"{self.joint} {np.degrees(angle):.0f}° about ({axis.x:.2f}, {axis.y:.2f}, {axis.z:.2f})"
        worst = f"{self.worst} ({self.worst_error:.0%})"
        return [
            Figure("Object", self.object_name, panel=""),
            Figure("Error at left-out examples", self.error, "{:.1%}"),
            Figure("Worst example", worst),
            Figure("Next pose", turn),
        ]


def check_estimable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene with the reason if the error cannot be estimated. Cheap enough for a panel."""
    mesh_object = character_of(context, active)
    check_storable(armature_of(mesh_object))
    check_examples_enabled(mesh_object)


def estimate(
    context: bpy.types.Context, active: bpy.types.Object | None, radius: float = 0.0, basis_functions: int = 0
) -> background.Steps:
    """Generator: predict each enabled example from the others; yields (fraction, stage), returns an Estimate, which is
    also stored on the armature. radius and basis_functions: of the build. Raises BadScene, BadExamples."""
    from ...core.eigenskin import left_out_errors

    check_estimable(context, active)
    mesh_object = character_of(context, active)
    skin, rig = read_rig(context, mesh_object)
    examples = read_examples(mesh_object, rig)
    uids = _enabled(skin.armature, mesh_object)
    left_out = yield from background.run_in_worker(
        lambda progress: left_out_errors(rig, examples, radius, progress, basis_functions=basis_functions)
    )
    shares = left_out.missed / np.maximum(left_out.displaced, 1e-300)
    # The largest error, not the largest share: an example that displaces nothing is not a bad one.
    worst = int(np.argmax(left_out.missed))
    found = Estimate(
        mesh_object.name,
        left_out.relative,
        examples.names[left_out.rows[worst]],
        float(shares[worst]),
        rig.joint_names[left_out.joint],
        tuple(left_out.rotation.tolist()),
        uids,
    )
    write_record(skin.armature, _RECORD, found)
    return found


def last_estimate(armature: bpy.types.Object, mesh_object: bpy.types.Object) -> Estimate | None:
    """The last estimate, if the mesh's enabled examples are still the same. Cheap enough for a panel."""
    found = read_record(armature, _RECORD, Estimate)
    return found if found is not None and found.uids == _enabled(armature, mesh_object) else None


def pose_next(context: bpy.types.Context, active: bpy.types.Object | None) -> str:
    """Put the armature into the next pose of the last estimate, and return the result in one line.

    Raises BadScene, also if there is no estimate of the present examples, or the bone does not follow.
    """
    mesh_object = character_of(context, active)
    armature = armature_of(mesh_object)
    found = last_estimate(armature, mesh_object)
    if found is None:
        raise BadScene(
            f"The examples of {object_label(mesh_object)} have changed since their error was estimated, or it was not. "
            "Press Estimate Error first"
        )
    assert armature is not None
    check_bones(armature, [found.joint])
    turn_joint(context, armature, found.joint, np.array(found.rotation))
    return f'{armature.name}: "{found.joint}" posed. Give the mesh its correct shape here, and add the example'


def _enabled(armature: bpy.types.Object, mesh_object: bpy.types.Object) -> tuple[str, ...]:
    return tuple(item.uid for item in example_items(armature, mesh_object) if item.enabled)
