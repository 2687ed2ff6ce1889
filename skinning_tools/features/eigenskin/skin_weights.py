# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Examples: weights of the skin of which the corrections leave less, before they are built."""

from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...blender import background
from ...blender.bone_weights import notes_on_users, read_bone_weights, write_bone_weights
from ...blender.character import character_of
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_attributes_writable, check_unchanged, object_label
from ...core.errors import BadScene
from ...ui.boundary import Checked
from ...ui.jobs import SkinningJob
from ...ui.settings import Settings
from .build import check_examples_enabled
from .examples import read_examples, read_rig
from .half_rotation import check_kept
from .settings import BuildSettings

# Where the settings leave the number of components open.
_COMPONENTS = 3


class WeightSettings(Settings, stored="skinning_eigenskin", kept_by="armature"):
    components = BuildSettings.components


@dataclass(frozen=True)
class Fitted(Result):
    """vertex_count: of the vertices whose weights changed. before, after: what components of each joint leave of the
    examples, root mean square in the mesh's units. components: their number."""

    object_name: str
    vertex_count: int
    components: int
    before: float
    after: float
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        left = self.after / self.before if self.before > 0 else 1.0
        return [
            Figure("Object", self.object_name),
            Figure("Vertices changed", self.vertex_count),
            Figure("Components", self.components),
            Figure("Error beside them", left, "{:.1%}", line=f"{self.components} components leave {left:.0%} as much"),
        ]


def check_fittable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene with the reason if weights cannot be fitted. Cheap enough for a panel."""
    mesh_object = character_of(context, active)
    check_attributes_writable(mesh_object)
    check_examples_enabled(mesh_object)
    check_kept(mesh_object, False)


def fit_to_examples(
    context: bpy.types.Context, active: bpy.types.Object | None, components: int = 0
) -> background.Steps:
    """Generator: fit the weights of the mesh for the active object to its enabled examples; yields (fraction, stage),
    returns a Fitted. components: of each joint, that will correct the mesh. Raises SkinningError, and then changes
    nothing."""
    from ...core.eigenskin import corrected_weights

    check_fittable(context, active)
    mesh_object, count = character_of(context, active), components or _COMPONENTS
    skin, rig = read_rig(context, mesh_object)
    stored = read_bone_weights(mesh_object, skin.armature, skin.bone_names)
    if not (~stored.locked[stored.bones] & (stored.weights > 0)).any():
        raise BadScene(
            f"All vertex groups to fit of {object_label(mesh_object)} are locked. Unlock some in the mesh's "
            "vertex groups"
        )
    rig = replace(rig, bones=stored.bones, weights=stored.weights)
    examples = read_examples(mesh_object, rig)
    weights, errors = yield from background.run_in_worker(
        lambda progress: corrected_weights(rig, examples, count, locked=stored.locked, progress=progress)
    )
    check_unchanged(mesh_object, len(rig.rest))
    changed = np.flatnonzero(np.any(weights != rig.weights, axis=1))
    if len(changed):
        write_bone_weights(mesh_object, stored, rig.bones[changed], weights[changed], changed)
        mesh_object.data.update()
    notes = tuple(notes_on_users(mesh_object)) if len(changed) else ()
    return Fitted(mesh_object.name, len(changed), count, float(errors[0]), float(errors.min()), notes)


class SKINNING_OT_eigenskin_fit_weights(Checked, SkinningJob, bpy.types.Operator):
    """Fit the weights of the skin to the examples, so that fewer shape keys correct what is left. Build or rebuild \
afterward"""

    bl_idname = "skinning.eigenskin_fit_weights"
    bl_label = "Fit Weights to Examples"

    settings = WeightSettings
    require = staticmethod(check_fittable)
    work = staticmethod(fit_to_examples)


registry = [SKINNING_OT_eigenskin_fit_weights]
