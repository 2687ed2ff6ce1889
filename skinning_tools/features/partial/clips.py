# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clips a solve reads, what the target does in each, and the positions and motion of all of them."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.animation.clips import Clip, Companion, clip_of, clips_of, companions_of, playing, strip_clips
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions
from ...blender.animation.used_data import dependencies
from ...blender.attributes import read_attribute
from ...blender.preconditions import check_not_tweaked, object_label, unmet
from ...blender.skin_reader import mesh_triangles
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.wording import listed
from ...core.animation import Animation, check_finite
from ...core.errors import BadAnimation, BadMesh, BadScene, BadSettings
from ...core.geometry import transform_points
from ...core.memory import check_available
from .parts import Parts
from .readings import MotionReader, RigMotion, still, without_armature
from .rest_key import key_muted
from .settings import HelperSettings, WeightSettings

ClipSettings = WeightSettings | HelperSettings
# Further armatures, each with what it plays in each clip.
Added = Sequence[tuple[bpy.types.Object, dict[Clip | None, Clip]]]

_Step = Callable[[bpy.types.Scene], None]

# Modifiers that have an animation of their own, which the armature does not decide.
_OWN_MOTION = {
    "BUILD", "CLOTH", "DYNAMIC_PAINT", "EXPLODE", "FLUID", "MESH_CACHE", "MESH_SEQUENCE_CACHE", "OCEAN",
    "PARTICLE_INSTANCE", "PARTICLE_SYSTEM", "SOFT_BODY", "WAVE",
}  # fmt: skip
# Blender gets a turn after so many seconds.
_TURN = 0.2
# Frames, or clips, that show whether something moves.
_SAMPLES = 5


@dataclass(frozen=True, eq=False)
class Chosen:
    """used: the clips to solve from; others: the rest of the armature's, to measure. Without used ones, the animation
    is read as it plays now. follows: the armature moves the target; taught: the mesh's own modifiers are the target,
    the Armature modifier among them; reset: bones that have no transform in clips without keys for them. unmoved: the
    clips in which the target has nothing to play."""

    used: tuple[Clip, ...]
    others: tuple[Clip, ...]
    companions: dict[Clip | None, list[Companion]]
    taught: bool
    reset: tuple[str, ...]
    follows: bool = False
    unmoved: tuple[Clip, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> list[int]:
        return [len(clip.numbers) for clip in self.used]


def chosen_clips(context: bpy.types.Context, parts: Parts, settings: ClipSettings) -> Generator[float, None, Chosen]:
    """Generator: the clips that ``settings`` ask for; yields fractions, between which everything is as the user left
    it.

    Clips count in which the target moves along: the armature moves it, or it has something to play in them (see
    ``companions_of``). Raises BadScene and BadSettings if none of the wanted ones does.
    """
    armature, step = parts.armature, settings.frame_step
    own_range = settings.frame_start is not None or settings.frame_end is not None
    every = [] if armature.library is not None else clips_of(armature, step)
    notes: list[str] = []
    if settings.actions == "SELECTED":
        wanted = _named(armature, settings.action_names, step)
    elif settings.actions == "NLA":
        wanted, mixed = strip_clips(armature, step)
        if mixed:
            notes.append(f"strips that are mixed with others were left out: {listed(mixed)}")
        if not wanted:
            raise BadScene(
                f'The armature "{armature.name}" has no NLA strips with keys for its bones. Push actions down in the '
                "Nonlinear Animation editor, or choose other Actions"
            )
    else:
        wanted = [] if settings.actions == "CURRENT" or own_range else every
    if not every and not wanted:
        return Chosen((), (), {}, False, ())
    if armature.animation_data is not None:
        check_not_tweaked(armature.animation_data, f'the armature "{armature.name}"')
    everything = [*wanted, *(clip for clip in every if all(clip.action != each.action for each in wanted))]
    keyed = set().union(*(clip.bones for clip in everything))
    used_by_target = dependencies(parts.target)
    playing_too = [
        each for each in used_by_target if each != armature and getattr(each, "animation_data", None) is not None
    ]
    companions: dict[Clip | None, list[Companion]] = {
        clip: companions_of(armature, clip, playing_too) for clip in everything
    }
    for owner in {each.owner for found in companions.values() for each in found}:
        check_not_tweaked(owner.animation_data, f'"{owner.name}"')
    taught = yield from _is_taught(context, parts)
    follows = taught or (armature in used_by_target and (yield from _follows(context, parts, everything)))
    moving = {clip for clip in everything if follows or companions[clip]}
    if wanted and settings.actions in ("SELECTED", "NLA"):
        lost = [clip.name for clip in wanted if clip not in moving]
        if lost:
            raise BadScene(
                f"{object_label(parts.target)} does not move with the actions {listed(lost)} of "
                f'"{armature.name}". Choose a target that the armature deforms, or give it NLA tracks of the same names'
            )
    current = _current(context.scene, armature, settings, own_range or settings.actions == "CURRENT")
    if settings.actions == "ALL" and len(moving) <= 1 and not (taught and current is None):
        wanted = []
    if not wanted and taught and current is not None:
        wanted = [current]
    used = tuple(clip for clip in wanted if clip in moving or clip is current)
    solved = {clip.action for clip in used} or ({current.action} if current is not None else set())
    others = tuple(clip for clip in everything if clip in moving and clip.action not in solved)
    unmoved = tuple(clip for clip in everything if clip not in moving and clip.action not in solved)
    return Chosen(used, others, companions, taught, tuple(sorted(keyed)), follows, unmoved, tuple(notes))


def _current(scene: bpy.types.Scene, armature: bpy.types.Object, settings: ClipSettings, of_scene: bool) -> Clip | None:
    """The armature's present action as a clip. of_scene: over the frames of the settings or the scene, not its own."""
    animation = armature.animation_data
    found = None
    if animation is not None and animation.action is not None:
        found = clip_of(armature, animation.action, settings.frame_step)
    if found is None or not of_scene:
        return found
    numbers = frame_range(scene, settings.frame_start, settings.frame_end, settings.frame_step)
    return Clip(found.action, found.slot, numbers, found.bones)


def _named(armature: bpy.types.Object, text: str, step: int) -> list[Clip]:
    """The clips of that name, or of the names that commas separate."""
    names = [text] if text in bpy.data.actions else [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadSettings("Actions is set to Selected, but no action is named. Name some in Action Names")
    found = []
    for name in dict.fromkeys(names):
        action = bpy.data.actions.get(name)
        if action is None:
            known = listed([clip.name for clip in clips_of(armature)], 8) or "none"
            raise BadScene(f'There is no action "{name}". The actions of "{armature.name}": {known}')
        clip = clip_of(armature, action, step)
        if clip is None:
            raise BadScene(
                f'The action "{name}" has no keys for bones of "{armature.name}", or most of its keys are for bones '
                "that this armature does not have. Choose another action, or the armature that it belongs to"
            )
        found.append(clip)
    return found


def _is_taught(context: bpy.types.Context, parts: Parts) -> Generator[float, None, bool]:
    """Generator: whether the mesh is its own target by modifiers that deform it after the armature, such as Corrective
    Smooth: it has no other animation."""
    if not parts.own:
        return False
    mesh = parts.mesh
    shown = [modifier for modifier in mesh.modifiers if modifier.show_viewport]
    places = [n for n, each in enumerate(shown) if each.type == "ARMATURE" and each.object == parts.armature]
    if not places or places[0] == len(shown) - 1 or any(each.type in _OWN_MOTION for each in shown):
        return False
    keys = mesh.data.shape_keys
    if keys is not None and keys.animation_data is not None:
        return False
    shapes: list[np.ndarray] = []
    for number in np.linspace(context.scene.frame_start, context.scene.frame_end, _SAMPLES):
        yield 0.5 * len(shapes) / _SAMPLES
        with without_armature(parts):
            shapes.append(_shape(context, parts, number))
    return all(still(shape, shapes[0]) for shape in shapes[1:])


def _shape(context: bpy.types.Context, parts: Parts, number: float) -> np.ndarray:
    with temporary_scene(context.scene, [parts.target]) as scene:
        return _positions(parts, parts.target.evaluated_get(evaluate_frame(scene, round(number))), "")


def _follows(context: bpy.types.Context, parts: Parts, clips: Sequence[Clip]) -> Generator[float, None, bool]:
    """Generator: whether the target's shape, beside its place, depends on the armature."""
    samples = clips[:: max(1, len(clips) // _SAMPLES)]
    for row, clip in enumerate(samples):
        shapes = []
        for each in (None, clip):
            yield 0.5 + 0.5 * row / len(samples)
            with (
                without_armature(parts),
                temporary_scene(context.scene, [parts.target, parts.armature]) as scene,
                playing(parts.armature, each, reset=sorted(clip.bones)),
            ):
                evaluated = parts.target.evaluated_get(evaluate_frame(scene, clip.numbers[len(clip.numbers) // 2]))
                shapes.append(_positions(parts, evaluated, f' in the action "{each.name}"' if each else ""))
        if not still(*shapes):
            return True
    return False


def _positions(parts: Parts, evaluated: bpy.types.Object, where: str) -> np.ndarray:
    """(N, 3) float32 of the evaluated target, in its own space. Raises BadMesh if it has other vertices."""
    or_action = ", or leave that action out" if where else ""
    count, expected = len(evaluated.data.vertices), len(parts.mesh.data.vertices)
    if count != expected:
        if parts.own:
            raise BadMesh(
                f"The modifiers of {object_label(parts.mesh)} change its vertices from {expected:,} to {count:,}"
                f"{where}. Disable in the viewport the modifiers that add or remove vertices"
            )
        raise unmet(
            "OTHER_VERTEX_COUNT",
            other=f"target {object_label(parts.target)}{where}",
            count=count,
            object=parts.mesh,
            expected=expected,
            remedy=f"Choose a target with the same vertices in the same order{or_action}",
        )
    positions = np.empty((count, 3), np.float32)
    read_attribute(evaluated.data, "position", positions)
    return positions


class Player:
    """Plays clips in a temporary scene. extra: further armatures, each with what it plays in each clip."""

    def __init__(
        self,
        context: bpy.types.Context,
        parts: Parts,
        chosen: Chosen,
        probe: bpy.types.Object,
        extra: Added = (),
    ):
        self._context, self._parts, self._chosen, self._probe, self._extra = context, parts, chosen, probe, extra

    @contextmanager
    def _playing(self, clip: Clip | None) -> Iterator[None]:
        chosen, parts = self._chosen, self._parts
        with ExitStack() as stack:
            stack.enter_context(key_muted(parts.mesh) if chosen.taught else without_armature(parts))
            stack.enter_context(playing(parts.armature, clip, chosen.companions.get(clip, ()), chosen.reset))
            for armature, clips in self._extra:
                stack.enter_context(playing(armature, clips.get(clip), (), chosen.reset))
            yield

    def play(
        self,
        clips: Sequence[Clip],
        objects: Sequence[bpy.types.Object],
        visit: Callable[[Clip, int, bpy.types.Depsgraph, np.ndarray], None],
    ) -> Generator[float, None, None]:
        """Generator: call ``visit(clip, row, depsgraph, target positions in the mesh's space)`` for each frame of the
        clips; yields fractions. Between two turns everything is as the user left it."""
        pieces: list[tuple[Clip | None, list[_Step]]] = [
            (clip, [partial(self._visit, visit, clip, row) for row in range(len(clip.numbers))]) for clip in clips
        ]
        yield from self._play(pieces, objects)

    def play_poses(
        self, poses: np.ndarray, visit: Callable[[int, bpy.types.Depsgraph, np.ndarray], None]
    ) -> Generator[float, None, None]:
        """Generator: call ``visit(row, depsgraph, target positions)`` for each of the ``poses`` (n, B, 4, 4), the own
        channels of all bones; yields fractions. Nothing plays meanwhile."""
        bones = self._parts.armature.pose.bones

        def take(row: int, scene: bpy.types.Scene) -> None:
            for bone, matrix in zip(bones, poses[row], strict=True):
                bone.matrix_basis = Matrix(matrix)
            depsgraph = evaluate_frame(scene, scene.frame_current)
            visit(row, depsgraph, self._target(depsgraph, "a random pose"))

        yield from self._play([(None, [partial(take, row) for row in range(len(poses))])], ())

    def _visit(
        self,
        visit: Callable[[Clip, int, bpy.types.Depsgraph, np.ndarray], None],
        clip: Clip,
        row: int,
        scene: bpy.types.Scene,
    ) -> None:
        depsgraph = evaluate_frame(scene, clip.numbers[row])
        visit(clip, row, depsgraph, self._target(depsgraph, f'frame {clip.numbers[row]} of the action "{clip.name}"'))

    def _play(
        self,
        pieces: Sequence[tuple[Clip | None, list[_Step]]],
        objects: Sequence[bpy.types.Object],
    ) -> Generator[float, None, None]:
        """Take the steps of each piece, in turns between which the user's state is restored."""
        shown = dict.fromkeys([self._probe, self._parts.target, self._parts.armature, *objects])
        for armature, _ in self._extra:
            shown[armature] = None
        total, done = sum(len(steps) for _, steps in pieces), 0
        try:
            with temporary_scene(self._context.scene, shown) as scene:
                # Clips have frames of their own, however the scene stretches time.
                scene.render.frame_map_old = scene.render.frame_map_new = 100
                for clip, steps in pieces:
                    waiting = steps[::-1]
                    while waiting:
                        begin = time.perf_counter()
                        with self._playing(clip):
                            while waiting and time.perf_counter() - begin < _TURN:
                                waiting.pop()(scene)
                                done += 1
                        yield done / total
        except ReferenceError as error:
            raise unmet("REMOVED", object="mesh, its armature or an action") from error

    def _target(self, depsgraph: bpy.types.Depsgraph, where: str) -> np.ndarray:
        parts = self._parts
        evaluated = parts.target.evaluated_get(depsgraph)
        positions = _positions(parts, evaluated, f" at {where}")
        check_finite(positions, where.removeprefix("frame "), object_label(parts.target))
        if parts.own:
            return positions
        own = np.array(self._probe.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
        try:
            to_mesh = np.linalg.solve(own, np.array(evaluated.matrix_world, dtype=np.float64))
        except np.linalg.LinAlgError:
            raise unmet("NO_SCALE", object=parts.mesh) from None
        if np.array_equal(to_mesh, np.eye(4)):
            return positions
        return transform_points(positions, to_mesh)


def read_clips(
    context: bpy.types.Context,
    parts: Parts,
    chosen: Chosen,
    probe: bpy.types.Object,
    names: Sequence[str],
    omissions: Omissions,
    pose_count: int = 0,
) -> Generator[float, None, tuple[Animation, RigMotion]]:
    """Generator: the target's positions and the motion of the bones ``names``, of all used clips one after the other,
    then of ``pose_count`` random poses mixed of their frames; yields fractions.

    Raises NotEnoughMemory.
    """
    count, vertices = sum(chosen.lengths) + pose_count, len(parts.mesh.data.vertices)
    bones, label = len(parts.armature.pose.bones), object_label(parts.mesh)
    what = f"The frames of {len(chosen.used)} actions of {label} ({vertices} vertices, {count} frames)"
    check_available(count * (12 * vertices + 96 * len(names) + 256 * bones), what)
    frames = np.empty((count, vertices, 3), np.float32)
    found = MotionReader(parts.armature, probe, names)

    def visit(clip: Clip, row: int, depsgraph: bpy.types.Depsgraph, positions: np.ndarray) -> None:
        frames[found.count] = positions
        found.read(depsgraph)
        if row == len(clip.numbers) - 1:
            omissions.look_at_drivers(depsgraph)

    def visit_pose(row: int, depsgraph: bpy.types.Depsgraph, positions: np.ndarray) -> None:
        frames[found.count] = positions
        found.read(depsgraph)

    player = Player(context, parts, chosen, probe)
    yield from player.play(chosen.used, (), visit)
    if pose_count:
        from ...core.decomposition.clip_importance import mixed_poses

        yield from player.play_poses(mixed_poses(found.basis, pose_count), visit_pose)
    numbers = [number for clip in chosen.used for number in clip.numbers] + [chosen.used[0].numbers[0]] * pose_count
    triangles = mesh_triangles(parts.mesh.data)
    return Animation(frames, triangles, np.array(numbers, float), object_label(parts.target)), found.motion()


def check_moving(parts: Parts, chosen: Chosen, frames: np.ndarray) -> None:
    """Raise BadAnimation if the mesh is its own target and stands still in the ``frames`` of all used clips."""
    if parts.own and all(still(positions, frames[0]) for positions in frames[1 : sum(chosen.lengths)]):
        raise BadAnimation(
            f"The {object_label(parts.mesh)} does not move in the actions "
            f"{listed([clip.name for clip in chosen.used])}. Also select the object with the wanted animation, or "
            "choose it as Target"
        )
