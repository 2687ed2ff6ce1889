# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones that follow the pose by drivers, instead of keyframes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.animation.clips import Clip
from ...blender.helper_bones.driven import make_driven_bones, plan_driven_bones, rounded
from ...blender.helper_bones.records import bone_record
from ...blender.preconditions import object_label, unmet
from ...blender.skeletons import skeleton_of
from ...blender.skin_reader import rest_positions
from ...core.errors import BadScene
from .motion_action import armature_copy
from .parts import Parts
from .readings import RigMotion
from .steps import Reading

if TYPE_CHECKING:
    from ...core.imitation.driven_helpers import DrivenHelper
    from ...core.imitation.skeleton import Skeleton

# Relative to the mesh's diagonal, and to its largest scale.
_MOVED, _UNEVEN = 1e-3, 1e-3


@dataclass(frozen=True, eq=False)
class Drive:
    """What drives helpers. skeleton: the P bones that move the mesh; turns (F, P, 4): their rotations against their
    parents; carriers (P,) bool: the bones that may carry helpers; to_armature (4, 4): from the mesh's space."""

    skeleton: "Skeleton"
    turns: np.ndarray
    carriers: np.ndarray
    to_armature: np.ndarray


def drive_of(parts: Parts, motion: RigMotion, names: Sequence[str], steady: np.ndarray) -> Drive:
    """The joints of the bones ``names``. steady (P,) bool: the bones that neither flatten nor mirror. Helper bones
    drive and carry no others. Raises BadScene where the pose cannot decide."""
    from ...core.imitation.skeleton import relative_turns

    armature = parts.armature
    skeleton = skeleton_of(armature, names)
    helper = np.array([bone_record(armature.data.bones[name]) is not None for name in names])
    skeleton = replace(skeleton, parents=np.where(helper, -1, skeleton.parents))
    if (skeleton.parents < 0).all():
        raise BadScene(
            f'No deforming bone of "{armature.name}" has a deforming parent, so there is no joint that could drive '
            "helper bones. Add them without Driven"
        )
    carriers = steady & ~helper
    if not carriers.any():
        raise BadScene(
            f'Every deforming bone of "{armature.name}" is flat or mirrored in some frame, so none can carry driven '
            "helper bones. Add them without Driven"
        )
    _check_still(parts, motion)
    pose = motion.pose[:, [motion.place[name] for name in names]]
    turns = relative_turns(skeleton, (pose @ np.linalg.inv(skeleton.rest))[:, :, :3])
    return Drive(skeleton, turns, carriers, motion.to_armature[0])


def _check_still(parts: Parts, motion: RigMotion) -> None:
    """Raises BadScene if the mesh moves in its armature's space, or is scaled unevenly there."""
    matrices, rest = motion.to_armature, rest_positions(parts.mesh.data)
    corners = np.array([rest.min(axis=0), rest.max(axis=0)])
    placed = corners @ matrices[:, :3, :3].swapaxes(1, 2) + matrices[:, None, :3, 3]
    if np.abs(placed - placed[0]).max() > _MOVED * np.linalg.norm(placed[0, 1] - placed[0, 0]):
        raise BadScene(
            f'{object_label(parts.mesh)} moves as a whole relative to "{parts.armature.name}", which no pose drives. '
            f'Parent it to "{parts.armature.name}", or add helper bones without Driven'
        )
    sizes = np.linalg.svd(matrices[0, :3, :3], compute_uv=False)
    if sizes[0] - sizes[2] > _UNEVEN * sizes[0]:
        scale = ", ".join(f"{value:.3g}" for value in parts.mesh.matrix_world.to_scale())
        raise unmet("UNEVEN_SCALE", object=parts.mesh, scale=scale)


class DrivenBones:
    """Helpers to add with their drivers. names: of the bones, in the order of ``helpers``, which are in the mesh's
    space."""

    def __init__(
        self,
        context: bpy.types.Context,
        parts: Parts,
        reading: Reading,
        drive: Drive,
        helpers: "Sequence[DrivenHelper]",
    ):
        self._context, self._parts, self._reading = context, parts, reading
        names, parents = reading.weights.names, drive.skeleton.parents
        placed = rounded([helper.within(drive.to_armature) for helper in helpers])
        self._plan = plan_driven_bones(parts.armature, [parts.mesh], names, parents, placed)
        self.names = self._plan.names

    @contextmanager
    def shown(self) -> Iterator[tuple[bpy.types.Object, dict[Clip | None, Clip]]]:
        """A copy of the armature with the helpers, in no scene and removed at the end, and what it plays in each
        clip."""
        chosen = self._reading.chosen

        def add(copy: bpy.types.Object) -> None:
            make_driven_bones(self._context, copy, self._plan)

        with armature_copy(self._parts.armature, add) as copy:
            yield copy, {clip: clip for clip in (*chosen.used, *chosen.others)}

    def apply(self) -> list[str]:
        """Add them to the armature itself; returns a note."""
        make_driven_bones(self._context, self._parts.armature, self._plan)
        return ["drivers move them in every action"]
