# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs of a solve: a mesh, its armature and the target, by name or selection."""

from dataclasses import dataclass

import bpy

from ...blender.character import chosen_mesh
from ...blender.conversions import result_of
from ...blender.job_checks import reason_not_to_work
from ...blender.look_ups import selected_in
from ...blender.object_checks import check_object
from ...blender.preconditions import check_own_mesh, check_type, find_object, object_label, unmet
from ...blender.skin_reader import armature_of, meshes_of
from ...blender.wording import names_text
from ...core.errors import BadScene
from .part_checks import check_armature, check_mesh


@dataclass(frozen=True, eq=False)
class Parts:
    """mesh: the object with the weights; armature: whose bones deform it; target: the object with the wanted animation,
    ``mesh`` itself for its own animation."""

    mesh: bpy.types.Object
    armature: bpy.types.Object
    target: bpy.types.Object

    @property
    def own(self) -> bool:
        """Whether the mesh's own animation is the target."""
        return self.target == self.mesh


def parts_of(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    armature_name: str = "",
    target_name: str = "",
    *,
    weighted: bool,
    writes_weights: bool = True,
) -> Parts:
    """The parts for the active object: a mesh, or an armature with the mesh in the panel's field, a selected mesh
    or the mesh that it deforms.

    The armature: by name, else the active or selected one, else the mesh's own. The target: by name, else the other
    selected mesh, else the source of the conversion that made the mesh, else the mesh's own animation. weighted: the
    mesh must have weights; writes_weights: the solve changes them, so the mesh must be local to this file. Cheap
    enough for a panel. Raises BadScene.
    """
    check_type(active, "Select the mesh that bones are to move", ("MESH", "ARMATURE"))
    assert active is not None
    target = _named(context, target_name, "MESH") if target_name else None
    mesh = _mesh(context, active, target) if active.type == "ARMATURE" else active
    armature = armature_meant(context, active, armature_name)
    if writes_weights:
        check_own_mesh(mesh, "its weights cannot be changed")
    target = target or _target(context, mesh)
    check_mesh(context, mesh, armature, weighted)
    check_armature(armature)
    check_object(context, target, hidden_by_eye=True)
    return Parts(mesh, armature, target)


def reason_not_to_solve(context: bpy.types.Context, *, weighted: bool, writes_weights: bool = True) -> str:
    """Text for the panel: why a solve with the scene's settings cannot start; "" if it can."""
    settings = context.scene.skinning_partial
    return reason_not_to_work(
        context,
        lambda context, active: parts_of(
            context, active, settings.armature, settings.target, weighted=weighted, writes_weights=writes_weights
        ),
    )


def _named(context: bpy.types.Context, name: str, kind: str) -> bpy.types.Object:
    found = find_object(context.scene, name, (kind,))
    check_type(found, "Choose another object", (kind,))
    return found


def _selected(context: bpy.types.Context, kind: str) -> list:
    return [ob for ob in selected_in(context.view_layer) if ob.type == kind]


def _mesh(context: bpy.types.Context, armature: bpy.types.Object, target: bpy.types.Object | None) -> bpy.types.Object:
    chosen = chosen_mesh(context, armature)
    if chosen is not None:
        return chosen
    selected = [ob for ob in _selected(context, "MESH") if ob != target]
    deformed = meshes_of(armature, context.view_layer)
    for choice in ([ob for ob in selected if ob in deformed], selected, deformed):
        if len(choice) == 1:
            return choice[0]
    if not selected and not deformed:
        raise unmet("NO_DEFORMED_MESH", armature=armature, remedy="Select the mesh, too")
    raise unmet("SEVERAL_MESHES", armature=armature, names=names_text(selected or deformed))


def armature_meant(context: bpy.types.Context, active: bpy.types.Object | None, name: str) -> bpy.types.Object:
    """The armature with that name, else ``active`` itself or the selected armature, else the one that deforms it.

    Cheap enough for a panel. Raises BadScene.
    """
    if name:
        return _named(context, name, "ARMATURE")
    if active is None:
        raise unmet("NO_ARMATURE")
    if active.type == "ARMATURE":
        return active
    selected = _selected(context, "ARMATURE")
    if len(selected) == 1:
        return selected[0]
    own = armature_of(active)
    if own is not None:
        return own
    if selected:
        raise unmet("SEVERAL_ARMATURES", names=names_text(selected))
    raise BadScene(
        f"No armature is chosen for {object_label(active)}. Select one together with the mesh, or choose it as Armature"
    )


def _target(context: bpy.types.Context, mesh: bpy.types.Object) -> bpy.types.Object:
    others = [ob for ob in _selected(context, "MESH") if ob != mesh]
    if len(others) > 1:
        count = len(mesh.data.vertices)
        others = [ob for ob in others if len(ob.data.vertices) == count]
        if len(others) != 1:
            raise BadScene(
                f"Several other meshes are selected. Select only the one whose animation {object_label(mesh)} should "
                "follow, or choose it as Target"
            )
    if others:
        return others[0]
    result = result_of(mesh)
    if result is None or result.mesh != mesh:
        return mesh
    if result.source is None:
        name = result.figures["source"]
        raise BadScene(
            f'The source "{name}" of {object_label(mesh)} is not in this file under that name. Restore it or its name, '
            "link it from the file of the mesh, or choose an object with the wanted animation as Target"
        )
    return result.source
