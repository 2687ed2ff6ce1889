# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clips a solve reads, and what else of the target plays in each."""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.animation.clips import Clip, Companion, clip_of, clips_of, companions_of, playing, strip_clips
from ...blender.animation.frame_range import frame_range
from ...blender.animation.used_data import dependencies
from ...blender.preconditions import check_not_tweaked, object_label
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.wording import listed
from ...core.errors import BadScene, BadSettings
from .parts import Parts
from .readings import still, target_positions, without_armature
from .settings import HelperSettings, WeightSettings

ClipSettings = WeightSettings | HelperSettings

# Modifiers that have an animation of their own, which the armature does not decide.
_OWN_MOTION = {
    "BUILD", "CLOTH", "DYNAMIC_PAINT", "EXPLODE", "FLUID", "MESH_CACHE", "MESH_SEQUENCE_CACHE", "OCEAN",
    "PARTICLE_INSTANCE", "PARTICLE_SYSTEM", "SOFT_BODY", "WAVE",
}  # fmt: skip
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
    armature = parts.armature
    every = [] if armature.library is not None else clips_of(armature, settings.frame_step)
    wanted, notes = _wanted(armature, settings, every)
    if not every and not wanted:
        return Chosen((), (), {}, False, ())
    if armature.animation_data is not None:
        check_not_tweaked(armature.animation_data, f'the armature "{armature.name}"')
    everything = [*wanted, *(clip for clip in every if all(clip.action != each.action for each in wanted))]
    used_by_target = dependencies(parts.target)
    companions = _companions(armature, used_by_target, everything)
    taught = yield from _is_taught(context, parts)
    follows = taught or (armature in used_by_target and (yield from _follows(context, parts, everything)))
    moving = {clip for clip in everything if follows or companions[clip]}
    if settings.actions in ("SELECTED", "NLA"):
        _check_moving_along(parts.target, armature, [clip.name for clip in wanted if clip not in moving])
    current = _current(context.scene, armature, settings)
    if settings.actions == "ALL" and len(moving) <= 1 and not (taught and current is None):
        wanted = []
    if not wanted and taught and current is not None:
        wanted = [current]
    used = tuple(clip for clip in wanted if clip in moving or clip is current)
    solved = {clip.action for clip in used} or ({current.action} if current is not None else set())
    left = [clip for clip in everything if clip.action not in solved]
    return Chosen(
        used,
        tuple(clip for clip in left if clip in moving),
        companions,
        taught,
        tuple(sorted(set().union(*(clip.bones for clip in everything)))),
        follows,
        tuple(clip for clip in left if clip not in moving),
        notes,
    )


def _plays_over_range(settings: ClipSettings) -> bool:
    """Whether what plays now is read over a range of frames, not clips over their own."""
    return settings.actions == "CURRENT" or settings.frame_start is not None or settings.frame_end is not None


def _wanted(
    armature: bpy.types.Object, settings: ClipSettings, every: list[Clip]
) -> tuple[list[Clip], tuple[str, ...]]:
    """The clips that the setting Actions names, of ``every`` one of the armature; and notes. Raises BadScene and
    BadSettings if there are none."""
    if settings.actions == "SELECTED":
        return _named(armature, settings.action_names, settings.frame_step), ()
    if settings.actions != "NLA":
        return [] if _plays_over_range(settings) else every, ()
    found, mixed = strip_clips(armature, settings.frame_step)
    if not found:
        raise BadScene(
            f'The armature "{armature.name}" has no NLA strips with keys for its bones. Push actions down in the '
            "Nonlinear Animation editor, or choose other Actions"
        )
    return found, (f"strips that are mixed with others were left out: {listed(mixed)}",) if mixed else ()


def _companions(
    armature: bpy.types.Object, used_by_target: Collection[bpy.types.ID], clips: Sequence[Clip]
) -> dict[Clip | None, list[Companion]]:
    """What else of the target plays in each clip. Raises BadScene where an NLA strip is being edited."""
    owners = [each for each in used_by_target if each != armature and getattr(each, "animation_data", None) is not None]
    companions: dict[Clip | None, list[Companion]] = {clip: companions_of(armature, clip, owners) for clip in clips}
    for owner in {each.owner for found in companions.values() for each in found}:
        check_not_tweaked(owner.animation_data, f'"{owner.name}"')
    return companions


def _check_moving_along(target: bpy.types.Object, armature: bpy.types.Object, lost: Sequence[str]) -> None:
    """Raises BadScene if there are ``lost`` actions, in which the target does not move."""
    if lost:
        raise BadScene(
            f'{object_label(target)} does not move with the actions {listed(lost)} of "{armature.name}". Choose a '
            "target that the armature deforms, or give it NLA tracks of the same names"
        )


def _current(scene: bpy.types.Scene, armature: bpy.types.Object, settings: ClipSettings) -> Clip | None:
    """The armature's present action as a clip, of its own frames or those of the settings or the scene."""
    animation = armature.animation_data
    found = None
    if animation is not None and animation.action is not None:
        found = clip_of(armature, animation.action, settings.frame_step)
    if found is None or not _plays_over_range(settings):
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
        return target_positions(parts, parts.target.evaluated_get(evaluate_frame(scene, round(number))), "")


def _follows(context: bpy.types.Context, parts: Parts, clips: Sequence[Clip]) -> Generator[float, None, bool]:
    """Generator: whether the target's shape, beside its place, depends on the armature."""
    samples = clips[:: max(1, len(clips) // _SAMPLES)]
    for row, clip in enumerate(samples):
        shapes = []
        for each in (None, clip):
            yield 0.5 + 0.5 * row / len(samples)
            with (
                without_armature(parts),
                temporary_scene(context.scene, [parts.target, parts.armature], own_time=True) as scene,
                playing(parts.armature, each, reset=sorted(clip.bones)),
            ):
                evaluated = parts.target.evaluated_get(evaluate_frame(scene, clip.numbers[len(clip.numbers) // 2]))
                shapes.append(target_positions(parts, evaluated, f' in the action "{each.name}"' if each else ""))
        if not still(*shapes):
            return True
    return False
