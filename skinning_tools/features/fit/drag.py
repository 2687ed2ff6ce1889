# SPDX-License-Identifier: GPL-3.0-or-later
"""Drag a vertex in a pose: its weights follow, as far as its bones can take it (Mohr, Tokheim & Gleicher 2003).

All positions are in the world. The mouse (``drag_operator``) and the operator's call from a script share this work.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender.bone_weights import BoneWeights, notes_on_users, read_bone_weights, write_bone_weights
from ...blender.data_blocks import is_alive
from ...blender.figures import Figure, Result
from ...blender.fit_poses import bare_skin, check_bent, check_fittable, check_shown, read_pose
from ...blender.preconditions import object_label, unmet
from ...blender.skin_reader import armature_of, bone_matrices, mesh_edges, mesh_triangles
from ...blender.vertex_groups import KeptWeights
from ...core.errors import BadScene
from ...core.geometry import diagonal, transform_points
from .fit import candidates_of
from .posed_copies import fit_target
from .reachable_region import Region, in_world, vertex_region
from .settings import CANDIDATES, DragSettings

if TYPE_CHECKING:
    from ...core.binding.fit import WeightFit

# Relative to the mesh's diagonal: bones that place a vertex closer together than this leave it no room.
_NO_ROOM = 1e-6


@dataclass(frozen=True)
class Dragged(Result):
    """count: number of vertices with new weights; left: remaining distance of vertex ``vertex`` from its target."""

    object_name: str
    vertex: int
    count: int
    left: float
    notes: tuple[str, ...]

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_name),
            Figure("Vertex", self.vertex, line=f"vertex {self.vertex} dragged"),
            Figure("Vertices fitted", self.count),
            Figure("Distance left", self.left, "{:.6g}", length=True),
        ]


def check_draggable(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The mesh whose vertices can be dragged. Raises BadScene with the reason if none can. Cheap enough for a panel."""
    mesh_object = fit_target(context, active)
    check_fittable(context, mesh_object)
    check_shown(context, mesh_object)
    return mesh_object


def drag(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> Dragged:
    """Drag one vertex to a position, with those around it. Raises SkinningError, and then changes nothing."""
    settings = DragSettings(**given)
    posed = PosedMesh.read(context, check_draggable(context, active))
    under_way = Drag(posed, settings.vertex, settings)
    under_way.to(np.array(settings.position, dtype=np.float64))
    return under_way.result()


@dataclass(frozen=True, eq=False)
class PosedMesh:
    """A mesh object in its present pose. matrices (P, 3, 4) of the bones ``before.names``; rest (N, 3) before the
    armature and places (N, 3) after it; edges (E, 2), triangles (T, 3); before: the weights."""

    mesh_object: bpy.types.Object
    matrices: np.ndarray
    rest: np.ndarray
    places: np.ndarray
    edges: np.ndarray
    triangles: np.ndarray
    before: BoneWeights

    @classmethod
    def read(cls, context: bpy.types.Context, mesh_object: bpy.types.Object) -> "PosedMesh":
        """Raises BadScene, BadMesh, BadWeights, also if the pose moves all bones alike."""
        pose = read_pose(context, mesh_object)
        check_bent(mesh_object, pose)
        to_world = _world_of(context, mesh_object)
        if np.linalg.matrix_rank(to_world) < 4:
            raise unmet("NO_SCALE", object=mesh_object)
        rest, places = (transform_points(part, to_world) for part in (pose.rest, pose.shape))
        return cls(
            mesh_object,
            in_world(pose.matrices, to_world),
            rest,
            places,
            mesh_edges(mesh_object.data),
            mesh_triangles(mesh_object.data),
            read_bone_weights(mesh_object, armature_of(mesh_object), pose.bones),
        )

    def is_current(self, context: bpy.types.Context) -> bool:
        """Whether the mesh object still has this pose."""
        armature = armature_of(self.mesh_object)
        if armature is None or len(self.mesh_object.data.vertices) != len(self.rest):
            return False
        depsgraph = context.evaluated_depsgraph_get()
        try:
            matrices = bone_matrices(bare_skin(self.mesh_object, armature, self.before.names), depsgraph)
        except BadScene:
            return False
        now = in_world(matrices, _world_of(context, self.mesh_object))
        return bool(np.abs(now - self.matrices).max() <= _NO_ROOM * max(self.size, np.abs(self.matrices).max()))

    @cached_property
    def size(self) -> float:
        """The diagonal of the mesh."""
        return diagonal(self.rest)

    def weights_of(self, vertex: int) -> np.ndarray:
        """(P,) the weights of a vertex."""
        weights = np.zeros(len(self.before.names))
        np.add.at(weights, self.before.bones[vertex], self.before.weights[vertex])
        return weights

    def candidates(self, vertex: int, which: str) -> np.ndarray | None:
        """Indices of the bones that may get weights of ``vertex``, for the setting ``candidates``; None for its own.
        Raises BadScene if no bone is selected."""
        return candidates_of(self.mesh_object, self.before, np.array([vertex]), which)

    def region(self, vertex: int, which: str) -> Region | None:
        """The reachable region of a vertex with the bones of the setting ``candidates``; None if all are locked.
        Raises BadScene."""
        weights, candidates = self.weights_of(vertex), self.candidates(vertex, which)
        candidates = np.flatnonzero(weights) if candidates is None else candidates
        locked = self.before.locked
        return vertex_region(self.before.names, self.matrices, self.rest[vertex], weights, locked, candidates)


class Drag:
    """A vertex while it is dragged, and those around it. Each step starts from the weights before the drag.

    vertex, vertices (n,): the dragged one and all that follow it; region: of the dragged one, with its target as
    ``place`` and its present place as ``landing``.
    """

    region: Region

    def __init__(self, posed: PosedMesh, vertex: int, settings: DragSettings):
        """Raises BadScene if the vertex does not exist or has no room to move."""
        count, label = len(posed.rest), object_label(posed.mesh_object)
        if vertex >= count:
            raise BadScene(f"There is no vertex {vertex} in {label}: it has {count:,}, counted from 0")
        chosen = dict(each[:2] for each in CANDIDATES)[settings.candidates]
        if settings.candidates in ("OWN", "NEAR") and not posed.before.bound[vertex]:
            raise BadScene(f"No bone moves vertex {vertex} of {label}. Choose other bones than {chosen}")
        region = posed.region(vertex, settings.candidates)
        if region is None:
            raise BadScene(
                f"All vertex groups that may move vertex {vertex} of {label} are locked. Unlock some in the mesh's "
                "vertex groups, or choose other Bones"
            )
        if np.ptp(region.predictions, axis=0).max() <= _NO_ROOM * posed.size:
            raise BadScene(
                f"The bones that may move vertex {vertex} of {label} all put it in the same place, so its weights have "
                f"no effect there. Choose other bones than {chosen}"
            )
        self.vertex, self.region = vertex, replace(region, landing=region.place)
        self._posed, self._settings = posed, settings
        self._candidates = posed.candidates(vertex, settings.candidates)
        self._kept = KeptWeights((), {})
        self._found: WeightFit | None = None
        self.set_radius(settings.radius)

    def set_radius(self, radius: float) -> None:
        """Let the vertices up to ``radius`` away follow; the next step moves them."""
        from ...core.binding.drag import DraggedVertices, vertices_around

        self.put_back()
        posed, before = self._posed, self._posed.before
        self.radius = radius
        vertices, shares = vertices_around(posed.rest, posed.edges, self.vertex, radius)
        follow = posed.before.bound[vertices]
        follow[0] = True
        self.vertices, shares = vertices[follow], shares[follow]
        used = int(np.count_nonzero(before.weights, axis=1).max(initial=1))
        self._problem = DraggedVertices(
            posed.rest[self.vertices],
            posed.places[self.vertices],
            before.bones[self.vertices],
            before.weights[self.vertices],
            posed.matrices,
            shares,
            self._candidates,
            self._settings.max_influences or used,
            before.locked,
        )
        self._kept = KeptWeights.of(posed.mesh_object, self.vertices)

    def to(self, target: np.ndarray, sight: np.ndarray | None = None) -> None:
        """Bring the vertex as close to ``target`` (3,) as it can get; sight (3,): as seen along this direction."""
        posed = self._posed
        self._found = self._problem.to(target, sight)
        self._kept.put_back(posed.mesh_object)
        write_bone_weights(posed.mesh_object, posed.before, self._found.bones, self._found.weights, self.vertices)
        posed.mesh_object.data.update()
        self.region = replace(self.region, place=target, landing=self._found.positions[0, 0])

    def put_back(self) -> None:
        """Give all vertices their former weights, exactly."""
        if self._found is not None and is_alive(self._posed.mesh_object):
            self._kept.put_back(self._posed.mesh_object)
            self._posed.mesh_object.data.update()
        self._found = None

    @property
    def moved(self) -> bool:
        return self._found is not None

    @property
    def start(self) -> np.ndarray:
        """(3,) where the vertex was before the drag."""
        return self._posed.places[self.vertex]

    @property
    def places(self) -> np.ndarray:
        """(n, 3) where ``vertices`` are."""
        return self._posed.places[self.vertices] if self._found is None else self._found.positions[0]

    @property
    def spacing(self) -> float:
        """The mean distance from the vertex to those next to it; 0 if there are none."""
        posed = self._posed
        ends = posed.edges[(posed.edges == self.vertex).any(axis=1)]
        lengths = np.linalg.norm(posed.rest[ends[:, 0]] - posed.rest[ends[:, 1]], axis=1)
        return float(lengths.mean()) if len(ends) else 0.0

    def result(self) -> Dragged:
        left = float(np.linalg.norm(self.region.landing - self.region.place))
        mesh_object = self._posed.mesh_object
        notes = tuple(notes_on_users(mesh_object))
        return Dragged(mesh_object.name, self.vertex, len(self.vertices), left, notes)


def _world_of(context: bpy.types.Context, mesh_object: bpy.types.Object) -> np.ndarray:
    """(4, 4) the present placement of a mesh object."""
    depsgraph = context.evaluated_depsgraph_get()
    return np.array(mesh_object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
