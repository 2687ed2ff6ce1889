# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned character as a file for an engine, read again and compared with the scene."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.kept_values import animated_values_kept
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.animation.used_data import dependencies
from ...blender.character import armature_at, mesh_meant
from ...blender.conversions import result_of
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_visible
from ...blender.skin_reader import check_skinned, meshes_of
from ...blender.temporary_scene import take_own_time
from ...blender.visibility import leave_mode
from ...blender.wording import counted, listed
from ...blender.written_files import Kind, Target, claim_named
from ...core.errors import BadPath, BadScene, SkinningError
from .clips import FileClip, file_clips, strips_in_turn
from .comparison import Comparison
from .comparison import compare as compare_file
from .engines import ENGINES, FORMATS, Engine, Format
from .morph_values import playable, unplayable_keys
from .notes import distance_text, notes_on, notes_on_comparison
from .scenes import scene_to_export, shown_in_window
from .settings import OF_ENGINE

_REPLACE = "Choose another file, or switch Replace File on (--overwrite)"

# Size and time of change of the files that this session has exported, by their paths.
_exported: dict[Path, tuple[int, int]] = {}


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


EXPORTED = Kind("exported file", lambda path: _exported.get(path) == _state(path))


@dataclass(frozen=True)
class Exported(Result):
    """A written file. compared: None if it was not read again."""

    name: str
    path: Path
    engine: Engine
    file_format: Format
    mesh_count: int
    frame_count: int
    clips: tuple[str, ...]
    compared: Comparison | None
    seconds: float
    notes: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        figures = [
            Figure("Object", self.name),
            Figure("File", str(self.path), line=f'"{self.path.name}" exported for {self.engine.label}'),
            Figure("Format", self.file_format.label, line=""),
            Figure("Meshes", self.mesh_count, line=""),
            Figure("Frames", self.frame_count),
        ]
        if self.clips:
            figures.append(Figure("Clips", len(self.clips), line=f"{len(self.clips)} clips: {listed(self.clips)}"))
        if self.compared is not None:
            within = distance_text(bpy.context.scene, self.compared.largest)
            figures += [
                Figure(
                    "Largest distance",
                    self.compared.largest,
                    "{:.6g}",
                    line=f"plays within {within} in Blender's importer",
                ),
                Figure("Largest distance half-way between frames", self.compared.half_way, "{:.6g}", line=""),
                *(
                    Figure(f'Largest distance, "{clip}"', value, "{:.6g}", line="", group=("clips", clip))
                    for clip, value in self.compared.by_clip.items()
                ),
            ]
        return figures


def check_exportable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raises BadScene with the reason if there is no character to export. Cheap enough for a panel."""
    check_skinned(context, first_mesh(context, active))


def plays_apart(active: bpy.types.Object | None, engine: str) -> bool:
    """Whether the engine may keep apart what the bones of the conversion of ``active`` need together. Cheap enough for
    a panel."""
    result = result_of(active)
    return ENGINES[engine].apart and result is not None and result.figures["settings"]["bone_kind"] == "AFFINE"


def first_mesh(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object | None:
    """The active mesh, or the result if it is a conversion's source; of an active armature its first visible mesh, or
    the one that ``mesh_meant`` finds."""
    if active is None or active.type != "ARMATURE":
        result = result_of(active) if armature_at(active) is None else None
        return result.mesh if result is not None and result.mesh is not None else active
    return next(iter(_visible(context, active)), None) or mesh_meant(context, active)


def _visible(context: bpy.types.Context, armature: bpy.types.Object) -> list[bpy.types.Object]:
    layer = context.view_layer
    return [ob for ob in meshes_of(armature, layer) if ob.visible_get(view_layer=layer) and len(ob.data.vertices)]


def character(context: bpy.types.Context, active: bpy.types.Object | None) -> list[bpy.types.Object]:
    """The armature of the active object and all visible meshes that it deforms, the active one first. Raises
    BadScene."""
    first = first_mesh(context, active)
    check_skinned(context, first)
    armature = armature_at(first)
    assert first is not None
    assert armature is not None
    others = [ob for ob in _visible(context, armature) if ob != first]
    return [armature, first, *others]


def select_character(context: bpy.types.Context, active: bpy.types.Object | None) -> str:
    """Select the objects that an export needs, and nothing else, for Blender's own exporters; the armature becomes
    active. Returns the line to report."""
    objects = character(context, active)
    armature, layer = objects[0], context.view_layer
    if armature not in layer.objects.values():
        check_visible(context.scene, layer, armature)
    leave_mode(context)
    for ob in layer.objects:
        ob.select_set(ob in objects, view_layer=layer)
    layer.objects.active = armature
    return f"{armature.name}: selected with {counted(len(objects) - 1, 'mesh', 'meshes')} for an export"


def export(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    filepath: str,
    engine: str = "OTHER",
    file_format: str = OF_ENGINE,
    all_clips: bool = True,
    compare: bool = True,
    replace: bool = False,
) -> background.Steps:
    """Generator: write the character of ``active`` to ``filepath`` with the settings of docs/export_settings.md; yields
    (fraction, stage), returns Exported.

    all_clips: write the actions on muted NLA tracks, too, each over its own frames, if the format can hold several and
    the armature plays an action alone; else the present animation over the scene's frame range.

    Shape keys with drivers, or with values outside of 0 to 1, are written with keyframes between 0 and 1. compare: read
    the file again, and measure how far its mesh is from the scene's. Changes nothing in the scene. Raises BadScene,
    BadPath.
    """
    begin = time.perf_counter()
    chosen = ENGINES[engine]
    written = FORMATS[chosen.format if file_format == OF_ENGINE else file_format]
    target = _claimed(filepath, written, replace)
    objects = character(context, active)
    armature, *meshes = objects
    frames = range(context.scene.frame_start, context.scene.frame_end + 1)
    omissions = Omissions(context, [], frames, objects)
    with animated_values_kept(context, dependencies(*objects)):
        clips = file_clips(armature, meshes) if all_clips and written.clips else []
        writing = _write(context, objects, chosen, written, target, frames, clips)
        clips = yield from background.part_of(writing, 0.0, 0.3)
        _exported[target.real] = _state(target.real)
        notes, compared = notes_on(armature, meshes, chosen, written, all_clips, bool(clips)), None
        if compare:
            comparing = compare_file(context, meshes, target.path, written, frames, clips)
            try:
                compared = yield from background.part_of(comparing, 0.3, 1.0, "Comparing")
            except SkinningError as error:
                notes.append(f"not compared: {error}")
            else:
                notes += notes_on_comparison(context, armature, compared, chosen, written)
    return Exported(
        armature.name,
        target.path,
        chosen,
        written,
        len(meshes),
        sum(len(each.clip.numbers) for each in clips) or len(frames),
        tuple(each.name for each in clips),
        compared,
        time.perf_counter() - begin,
        (*notes, *texts_of(omissions.finish())),
    )


def _claimed(filepath: str, file_format: Format, replace: bool) -> Target:
    """The file to write. Raises BadScene, BadPath."""
    if not file_format.available:
        raise BadScene(
            f"This Blender cannot write and read {file_format.label}. Enable its add-on, or choose another format"
        )
    ending, path = file_format.ending, Path(filepath)
    if path.suffix.lower() not in ("", ending):
        raise BadPath(f"Names of {file_format.label} files end in {ending}. Correct the name {path.name}")
    if filepath and not path.suffix:
        # Importers find files by their ending.
        filepath += ending
    return claim_named(filepath, EXPORTED, ending, _REPLACE, replace or None)


def _write(
    context: bpy.types.Context,
    objects: Sequence[bpy.types.Object],
    engine: Engine,
    file_format: Format,
    target: Target,
    frames: Sequence[int],
    clips: list[FileClip],
) -> background.Steps[list[FileClip]]:
    """Generator: write the file; returns the clips that are in it, none of them where shape keys need other keyframes,
    which are those of the present animation alone. objects: as from ``character``. Raises BadScene."""
    armature, *meshes = objects
    roots = [parent for parent in _parents(armature) if parent.type == "EMPTY"]
    changes = (engine.changes if file_format is FORMATS[engine.format] else {}) | {
        "export_influence_nb": engine.influences,
        "export_animation_mode": "ACTIVE_ACTIONS" if _plays_action(armature) else "SCENE",
    }
    in_turn: AbstractContextManager = nullcontext()
    with scene_to_export(context, [*objects, *roots], armature.name) as scene:
        reading = unplayable_keys(meshes, scene, frames)
        unplayable = yield from background.part_of(reading, 0.0, 0.6, "Reading shape keys")
        yield 0.6, "Exporting"
        clips = [] if unplayable else clips
        if clips:
            take_own_time(scene)
            changes |= file_format.clips
            in_turn = strips_in_turn(armature, clips, frames[0]) if file_format.in_turn else in_turn
        times = actions.key_times(context.scene, np.array(frames, dtype=np.float64))
        in_window = shown_in_window(context, scene)
        with playable(unplayable, times), in_turn, in_window, target.part(file_format.ending) as part:
            try:
                file_format.save(part, **changes)
            except (RuntimeError, OSError) as error:
                raise target.failed(getattr(error, "strerror", None) or error) from error
    return clips


def _parents(ob: bpy.types.Object) -> Iterator[bpy.types.Object]:
    while ob.parent is not None:
        ob = ob.parent
        yield ob


def _plays_action(armature: bpy.types.Object) -> bool:
    """Whether the armature's own action is all that moves it, so that an exporter may sample that alone. With tracks,
    even muted ones, the exporter would play their actions, too, whose poses stay at bones without keyframes."""
    animation = armature.animation_data
    return animation is not None and animation.action is not None and not len(animation.nla_tracks)
