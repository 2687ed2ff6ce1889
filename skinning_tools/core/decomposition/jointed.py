# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones of a skeleton, solved again so that joints do not slip (after Le & Deng 2014).

A bone j turns about its joint h_j, which its parent carries: M_j v = B_j (v − h_j) + M_parent h_j. Two steps lower the
same error in turn: rotations, joints and the motion of the roots for given weights, all at once (see joint_steps);
weights and rest pose for given motion, as in any solve, within the limits of posing.
"""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..body_surface import BodySurface
from ..bone_order import parents_first
from ..dense import one_blas_thread
from ..geometry import diagonal
from ..grouping import members
from ..joint_hierarchy import JointHierarchy
from ..progress import Progress, checkpoint, ignore, span
from ..strongest import strongest_bones, strongest_first
from .bone_kinds import StiffBones
from .bone_model import BoneModel
from .idle_influences import without_idle_influences
from .joint_slips import held_parents, joint_slips
from .moving_joints import MovingJoints, places_of
from .near_weights import PoseLimits, counted, squared_error, unseen_error, vertex_errors
from .reduction import AnimationMatrix, Reduction, reduce_animation
from .removals import with_heirs
from .skeleton_solve import WORTH_IT, begun, finished
from .smooth_solution import smooth_solution
from .sweeps import collect_equations, sweep_vertices, vertex_blocks
from .transforms import NormalEquations, from_rows, to_rows
from .types import Decomposition, Settings
from .vertex_step import VertexState, best_single_bones, improve_vertices, single_bones

# The first rounds, for two in five iterations, know some vertices only, at least so many and of each bone. Without
# limits of posing, which are for the second half of them, a round has so many steps of bones and joints, else one. The
# last rounds know all vertices.
_SAMPLE, _LEAST_OF_BONE, _FIRST_STEPS = 1500, 12, 2
_LAST_ROUNDS = 12
# Steps of bones and joints after the last rounds.
_LAST_STEPS = 2
# Bones are left out if that adds no more than this share of the squared error, or what nobody sees at their vertices.
_IDLE = 0.01
# The share of the squared error by which each joint may raise it to be in the body.
_INSIDE = 0.005
# How far motion is extrapolated along its last change, while that lowers the error.
_EXTRAPOLATION = 0.4
# What reducing the animation may lose: a share of the error of free bones, at least so much of the unit ball.
_REDUCTION, _LEAST_LOST = 0.1, 1e-6
# Sweeps over vertices that start anew, in which their bones come together.
_FRESH_SWEEPS = 2
# Rounds of bones that may leave their joints.
_SLIPPING_ROUNDS = 8
_STAGE = "Joints"


@one_blas_thread()
def solve_jointed(
    animation: Animation,
    free: Decomposition,
    hierarchy: JointHierarchy,
    settings: Settings,
    progress: Progress = ignore,
    importance: np.ndarray | None = None,
    slip: float = 0.0,
) -> tuple[Decomposition, JointHierarchy]:
    """Bones, weights and rest pose again, with the bones of ``free`` held together by the joints of ``hierarchy``.

    free: rigid bones. Each bone but the roots only rotates about its joint; the joints find their best positions,
    and the hierarchy that is returned has them, with slips of 0. A bone whose joint slips by more than the size of
    what hangs from it, and not only slightly, becomes a root, such as one of vertices without weights, which stand
    still at one place. On a symmetric body, joints mirror each other in the end. Weights stay within
    near_weights.PoseLimits. Bones that are no vertex's strongest, and carry no such bone, are left out where others do
    as well, and so are idle influences. settings: of the iterations, the rest pose, smoothness and residual shapes.
    slip: how far, as a share of the rest pose's diagonal, a bone may leave its joint in the end; with more than 0, the
    joints are not held. importance (N,): as for ``decompose``. All frames count alike, and so do large and small
    errors, whatever the emphasis. Raises BadSettings (importances that are no such numbers), Cancelled.
    """
    hierarchy = replace(hierarchy, parents=held_parents(free, hierarchy))
    matrix, state, motion, heads = begun(animation, free, hierarchy, importance)
    # E_RMS is in thousandths of the unit ball.
    lost = max(_REDUCTION * 1e-3 * free.e_rms, _LEAST_LOST)
    reduction = reduce_animation(matrix, lost, progress=span(progress, 0.0, 0.1))
    kind, skeleton = StiffBones(matrix, reduction, scaled=False), MovingJoints(heads, hierarchy.parents)
    solve = _JointedSolve(kind, state, motion, skeleton, settings.optimize_rest_pose, animation.triangles)
    plane, partners = (hierarchy.plane - matrix.means[0][0]) / matrix.radius, hierarchy.partners
    rounds, sample = -(-2 * settings.iterations // 5), solve.on_sample(matrix, reduction)
    sample.improve(rounds // 2, span(progress, 0.1, 0.26), steps=_FIRST_STEPS, limited=False)
    skeleton.mirror(partners, plane)
    sample.improve(rounds - rounds // 2, span(progress, 0.26, 0.42))
    sample.move()
    sample.draw_into_body(solve.surface())
    solve.motion = sample.motion
    solve.fit_vertices(span(progress, 0.42, 0.46))
    solve.start_vertices_anew(span(progress, 0.46, 0.5))
    partners = solve.leave_idle_bones_out(partners, plane)
    solve.improve(_LAST_ROUNDS, span(progress, 0.5, 0.7))
    partners = solve.leave_idle_bones_out(partners, plane)
    if settings.smoothness:
        solve.smooth(matrix, animation.triangles, settings.smoothness, span(progress, 0.7, 0.8))
    solve.move()
    solve.draw_into_body(solve.surface())
    # The joints have moved, and from here on they do not.
    solve.limit()
    solve.move(joints=False)
    if slip:
        solve.slide(slip, span(progress, 0.8, 0.85))
    solve.leave_idle_influences_out(span(progress, 0.85, 0.88))
    if slip:
        # The rest pose has moved once more.
        solve.slip(slip)
    skeleton = solve.skeleton
    result = finished(animation, matrix, free, solve.state, solve.motion, settings, span(progress, 0.88, 1.0))
    joints = matrix.points_to_object_space(skeleton.heads)
    slips = joint_slips(result.transforms, skeleton.parents, joints) if slip else np.zeros(skeleton.count)
    jointed = JointHierarchy(skeleton.parents, joints, slips, partners, hierarchy.plane, held=not slip)
    return result, jointed


class _JointedSolve:
    """Vertices, motion (F, P, 3, 4) and joints of a skeleton, improved in turn, in solver units."""

    def __init__(
        self,
        kind: StiffBones,
        state: VertexState,
        motion: np.ndarray,
        skeleton: MovingJoints,
        optimize: bool,
        triangles: np.ndarray | None = None,
    ):
        """kind: of rigid bones, with the vertices' data; optimize: whether the rest pose is solved for, too; triangles
        (T, 3): of the surface, if it is known and has any."""
        self.kind, self.state, self.motion, self.skeleton = kind, state, motion, skeleton
        self._optimize, self._triangles = optimize, triangles
        # What is next to what stays, whatever the rest pose becomes.
        self._found_surface = self.surface()
        model = self._model()
        norm = squared_error(model, state, kind.source) - self._equations().squared_error(to_rows(motion))
        self._squared_norm = norm

    def on_sample(self, matrix: AnimationMatrix, reduction: Reduction) -> "_JointedSolve":
        """The same solve with some of the vertices only, on the same ``skeleton``, whose joints both move."""
        chosen, share = _sample(self.state, self.skeleton.count)
        kind, few = self.kind.on(matrix.of_vertices(chosen), reduction.of_vertices(chosen)), self.state.of(chosen)
        few.importance = share if few.importance is None else share * few.importance
        return _JointedSolve(kind, few, self.motion, self.skeleton, self._optimize)

    def surface(self) -> BodySurface | None:
        """Of the present rest pose, if it has one."""
        if self._triangles is None or not len(self._triangles):
            return None
        return BodySurface(self.state.points[:, :3], self._triangles)

    def draw_into_body(self, surface: BodySurface | None) -> None:
        """Joints outside the ``surface`` move into it where that costs little, and stay there."""
        if surface is not None:
            equations = self._equations()
            most = _INSIDE * max(equations.squared_error(to_rows(self.motion)) + self._squared_norm, 0.0)
            self.motion = self.skeleton.draw_into_body(equations, self.motion, surface, most)

    def start_vertices_anew(self, progress: Progress) -> None:
        """Weights from the best bone of each vertex on, where that comes closer than the present ones: these go back to
        free bones, which moved otherwise."""
        model, state, source = self._model(), self.state, self.kind.source
        for part in vertex_blocks(len(state.points)):
            data, points = source.rows(part), state.points[part].copy()
            fresh = single_bones(points, best_single_bones(model, data, points), state.bones.shape[1])
            for _ in range(_FRESH_SWEEPS):
                errors = improve_vertices(model, data, fresh, slice(None), optimize_rest_pose=self._optimize)
            better = np.flatnonzero(errors < vertex_errors(model, state.of(part), data))
            state.put(part.start + better, fresh.of(better))
            checkpoint(progress, part.stop / len(state.points), _STAGE)

    def leave_idle_bones_out(self, partners: np.ndarray | None, plane: float) -> np.ndarray | None:
        """Remove bones that are no vertex's strongest and carry no such bone, if others do as well for their vertices,
        and each only together with its mirror image; ``partners`` without them."""
        state, skeleton = self.state, self.skeleton
        room = _IDLE * squared_error(self._model(), state, self.kind.source)
        kept, bearing = np.ones(skeleton.count, bool), skeleton.bearing(strongest_bones(state.bones, state.weights))
        order = parents_first(skeleton.parents)[::-1]
        for bone in order:
            image = bone if partners is None or partners[bone] < 0 else partners[bone]
            both = [each for each in order if each in (bone, image)]
            staying = kept.copy()
            staying[both] = False
            if not kept[bone] or bearing[both].any() or np.isin(both, skeleton.parents[staying]).any():
                continue
            former, loss, count = state.copy(), 0.0, 0
            for each in both:
                vertices, others, added = self._without(each)
                state.put(vertices, others)
                loss, count = loss + added, count + len(vertices)
            if loss <= max(room, unseen_error(len(self.motion)) * count):
                room, kept[both] = room - max(loss, 0.0), False
            else:
                state.put(slice(None), former)
        bones, weights = strongest_first(state.bones, state.weights, int(kept.sum()))
        self.state = replace(state, bones=(np.cumsum(kept) - 1)[bones].astype(np.int32), weights=weights)
        self.motion, self.skeleton = self.motion[:, kept], skeleton.only(kept)
        partners = None if partners is None else places_of(partners, kept)
        self.skeleton.mirror(partners, plane)
        return partners

    def _without(self, bone: int) -> tuple[np.ndarray, VertexState, float]:
        """The vertices (n,) of a bone, fitted to their other bones and to its parent, and the error that this adds."""
        state, model, parent = self.state, self._model(), self.skeleton.parents[bone]
        vertices = np.flatnonzero(((state.bones == bone) & (state.weights > 0)).any(axis=1))
        mine = state.of(vertices)
        heirs = np.isin(np.arange(model.bone_count), np.append(mine.bones[mine.weights > 0], parent))
        heirs[bone] = False
        if not len(vertices) or not heirs.any():
            return vertices, mine, np.inf if len(vertices) else 0.0
        data = self.kind.source.rows(vertices)
        others, errors = with_heirs(heirs, model, model.data_products(data), mine)
        return vertices, others, counted(errors - vertex_errors(model, mine, data), mine)

    def smooth(self, matrix: AnimationMatrix, triangles: np.ndarray, amount: float, progress: Progress) -> None:
        """Smooth weights, within the limits of posing, and the motion for them."""

        def follow(equations: NormalEquations, rows: np.ndarray) -> np.ndarray:
            return to_rows(self.skeleton.moved(equations, from_rows(rows), 1, joints=False))

        self.motion, self.state = smooth_solution(matrix, triangles, self.motion, follow, self.state, amount, progress)
        self.limit()

    def improve(self, rounds: int, progress: Progress, *, steps: int = 1, limited: bool = True) -> None:
        """At most so many rounds: ``steps`` of motion and joints, then vertices; if ``limited``, within the limits of
        posing.

        Vertices are fitted to the motion extrapolated along its last change, but not in the last round; where that does
        not lower the error, they are fitted to the motion as it was.
        """
        factor, lowest = _EXTRAPOLATION, np.inf
        before: np.ndarray | None = None
        former: VertexState | None = None
        for number in range(rounds):
            equations, heads, last = self._equations(), self.skeleton.heads, number == rounds - 1
            motion = self.skeleton.moved(equations, self.motion, steps)
            error = equations.squared_error(to_rows(motion)) + self._squared_norm
            if before is not None and former is not None and error > lowest:
                self.state.put(slice(None), former)
                self.skeleton.heads, self.motion, former = heads, before, None
                factor *= 0.5
            else:
                last |= error > (1.0 - WORTH_IT) * lowest
                # The first weights need not be within the limits.
                lowest, former, self.motion = error if number else np.inf, None, motion
                if before is not None and not last:
                    former = self.state.copy()
                    self.motion = self.skeleton.extrapolated(motion, motion - before, factor)
                before = motion
            part = span(progress, number / rounds, (number + 1) / rounds)
            (self._fit_limited if limited else self.fit_vertices)(part)
            if last:
                break

    def move(self, *, joints: bool = True) -> None:
        """Better motion, and joints, for the present vertices."""
        self.motion = self.skeleton.moved(self._equations(), self.motion, _LAST_STEPS, joints=joints)

    def slide(self, share: float, progress: Progress) -> None:
        """Motion and vertices in turn, where bones may leave their joints by up to a share of the diagonal, which the
        rest pose changes."""
        for number in range(_SLIPPING_ROUNDS + 1):
            if number:
                self._fit_limited(span(progress, (number - 1) / _SLIPPING_ROUNDS, number / _SLIPPING_ROUNDS))
            self.slip(share)

    def slip(self, share: float) -> None:
        """Better motion, where bones may leave their joints by up to a share of the present rest pose's diagonal."""
        most = share * diagonal(self.state.points[:, :3])
        self.motion = self.skeleton.slid(self._equations(), self.motion, most)

    def fit_vertices(self, progress: Progress) -> None:
        """Better vertices for the present motion, in a sweep without limits."""
        source, optimize = self.kind.source, self._optimize
        sweep_vertices(self._model(), self.state, source, progress, _STAGE, optimize_rest_pose=optimize)

    def limit(self, former: VertexState | None = None) -> None:
        """Weights of all vertices within the limits of posing; ``former``: see PoseLimits.keep."""
        source, optimize = self.kind.source, self._optimize
        given = self._model(), self.state, source
        limits = self._limits()
        limits.keep(*given, optimize_rest_pose=optimize, former=former, at_any_cost=True)
        if self._found_surface is not None:
            limits.gather(*given, self._found_surface, optimize_rest_pose=optimize)

    def leave_idle_influences_out(self, progress: Progress) -> None:
        """See the module ``idle_influences``."""
        given, optimize = (self._model(), self.state, self.kind.source, self._limits()), self._optimize
        self.state = without_idle_influences(*given, optimize_rest_pose=optimize, progress=progress)

    def _fit_limited(self, progress: Progress) -> None:
        former = self.state.copy()
        self.fit_vertices(progress)
        self.limit(former)

    def _limits(self) -> PoseLimits:
        return PoseLimits(self.skeleton.parents, self.skeleton.heads, len(self.motion))

    def _model(self) -> BoneModel:
        return self.kind.model(to_rows(self.motion))

    def _equations(self) -> NormalEquations:
        return self.kind.of_source(collect_equations(self.state, self.kind.source, self.skeleton.count))


def _sample(state: VertexState, bone_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n,) of each bone, evenly from the list, and how many (n,) each of them stands for, in the mean 1."""
    share = min(1.0, _SAMPLE / len(state.points))
    chosen, stands_for = [], []
    for mine in members(strongest_bones(state.bones, state.weights), bone_count):
        count = min(len(mine), max(_LEAST_OF_BONE, int(np.ceil(share * len(mine)))))
        chosen.append(mine[np.linspace(0, max(len(mine) - 1, 0), count).astype(int)])
        stands_for.append(np.full(count, len(mine) / max(count, 1)))
    share = np.concatenate(stands_for)
    return np.concatenate(chosen), share / share.mean()
