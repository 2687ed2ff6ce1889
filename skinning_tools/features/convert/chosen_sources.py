# SPDX-License-Identifier: GPL-3.0-or-later
"""What a conversion reads: where the active object is a result, its source, and the result only if asked for."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import bpy

from ...blender import background
from ...blender.animation.several_sources import other_sources
from ...blender.conversion_figures import has_figures
from ...blender.conversions import Result, result_of
from ...blender.data_blocks import is_alive
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.object_checks import check_object
from ...blender.preconditions import unmet
from ...blender.visibility import make_active, shown_for_good
from ...core.errors import BadScene
from . import conversion
from .clips import check_clip_names
from .result import check_deletable, delete_result, notes_on_deleting, replace_result, sources_to_convert
from .settings import CONVERT, REPLACE, ConvertSettings, SkinningConversionSettings, settings_of

# What is to be converted: the settings of a call, or those of the scene.
Meant = ConvertSettings | SkinningConversionSettings


@dataclass(frozen=True)
class Chosen:
    """sources: the objects to read; the first one names the new result. results: the chosen objects that are results
    themselves, which the sources replace. earlier: their conversions, each once."""

    sources: tuple[bpy.types.Object, ...]
    results: tuple[bpy.types.Object, ...] = ()
    earlier: tuple[Result, ...] = ()

    def note(self) -> str:
        """Tell users who chose a result that its source is converted; "" if they chose none."""
        if not self.results:
            return ""
        results, sources = (", ".join(ob.name for ob in objects) for objects in (self.results, self.sources))
        if len(self.results) == 1:
            return f"{results} is the result of a conversion: its source is converted, {sources}"
        return f"{results} are results of conversions: their sources are converted, {sources}"


def chosen_sources(context: bpy.types.Context, active: bpy.types.Object | None, meant: Meant) -> Chosen:
    """The sources to read when converting ``active``, or the selected meshes if ``meant``, the settings, say so; cheap
    enough for a panel.

    A mesh or rig made by a conversion stands for all sources of that conversion, unless the settings' on_result is
    CONVERT. Raises BadScene if these are gone, or if a selected object cannot be converted.
    """
    several = meant.selected_objects or meant.as_clips
    objects = (active, *other_sources(context, active)) if several else (active,)
    chosen = sources_of(objects, meant.on_result)
    if meant.as_clips:
        check_clip_names(chosen.sources)
    return chosen


def stands_for_source(context: bpy.types.Context, meant: Meant) -> bool:
    """Whether the active object, or a selected mesh if these are converted, is a result of a conversion."""
    active, selected_objects = active_object(context), meant.selected_objects or meant.as_clips
    objects = [active, *(ob for ob in context.view_layer.objects.selected if selected_objects and ob.type == "MESH")]
    return any(ob is not None and has_figures(ob) for ob in objects)


def sources_of(objects: Iterable[bpy.types.Object | None], on_result: str) -> Chosen:
    """``chosen_sources`` for these objects only."""
    if on_result == CONVERT:
        return Chosen(tuple(dict.fromkeys(objects)))
    results = tuple(ob for ob in dict.fromkeys(objects) if ob is not None and has_figures(ob))
    earlier = {_key(result): result for result in map(result_of, results) if result is not None}
    sources = dict.fromkeys(source for ob in objects for source in _sources_of(ob, (ob,)))
    return Chosen(tuple(sources), results, tuple(earlier.values()))


def _key(result: Result) -> bpy.types.Object:
    return result.rig or result.mesh


def _sources_of(ob: bpy.types.Object | None, passed: tuple) -> list:
    """``ob``, or its sources if it is a result; for the result of a result, the original source."""
    if ob is None or not has_figures(ob):
        return [ob]
    result, found = result_of(ob), []
    assert result is not None
    for source in sources_to_convert(result):
        if source in passed:
            raise BadScene(
                f'The result "{ob.name}" has the name of its own source. Make the animated mesh the active '
                "object, or convert the result itself"
            )
        found += _sources_of(source, (*passed, source))
    return found


def check_chosen(context: bpy.types.Context, chosen: Chosen) -> None:
    """Raise BadScene with the reason if a source cannot be read. A hidden source that was found through its result is
    shown for the check: the panel's own button has hidden it."""
    for source in chosen.sources:
        check_object(context, source, hidden_by_eye=bool(chosen.earlier))


def reason_not_to_convert(context: bpy.types.Context, meant: Meant) -> str:
    """Why the active object, or the selection if it is meant, cannot be converted now; "" if it can.

    For poll and panel.
    """
    return reason_not_to_work(
        context, lambda context, active: check_chosen(context, chosen_sources(context, active, meant))
    )


def convert_active(context: bpy.types.Context, active: bpy.types.Object | None, **values: Any) -> background.Steps:
    """Generator: convert the sources of the active object or the selection; returns the Conversion. values: of
    ``ConvertSettings``. Raises SkinningError."""
    settings = ConvertSettings(**values)
    chosen = chosen_sources(context, active, settings)
    check_chosen(context, chosen)
    return (yield from convert_chosen(context, chosen, settings, settings.on_result == REPLACE))


def convert_again(context: bpy.types.Context, active: bpy.types.Object | None, replace: bool) -> background.Steps:
    """Generator: repeat the conversion that an object belongs to, with the same settings and sources, even if a source
    is a result itself. Returns the new Conversion. replace: delete the earlier one at the end. Raises
    SkinningError."""
    earlier = result_of(active)
    if earlier is None:
        raise unmet("NOT_A_RESULT", that="")
    chosen = Chosen(tuple(sources_to_convert(earlier)), earlier=(earlier,))
    check_chosen(context, chosen)
    return (yield from convert_chosen(context, chosen, settings_of(earlier.figures), replace))


def convert_chosen(
    context: bpy.types.Context, chosen: Chosen, settings: ConvertSettings, replace: bool
) -> background.Steps:
    """Generator: ``conversion.convert`` of the sources; returns its Conversion.

    If the sources replace chosen results, the sources are shown and the new result is active at the end. replace:
    delete these earlier results at the end. Raises SkinningError.
    """
    if replace:
        for result in chosen.earlier:
            check_deletable(result)
    note = chosen.note()
    with shown_for_good(context, chosen.sources if chosen.earlier else ()):
        made = yield from conversion.convert(context, chosen.sources, settings)
    if not chosen.earlier:
        return made
    # The active object may be among the replaced results; and the user may have deleted them meanwhile.
    make_active(context, made.rig.object)
    replaced = [
        result
        for result in chosen.earlier
        if replace and all(map(is_alive, (*result.meshes, *filter(None, [result.rig]))))
    ]
    notes = *filter(None, [note]), *made.notes, *notes_on_deleting(replaced)
    if len(replaced) == 1 and set(replaced[0].sources) == set(chosen.sources):
        replace_result(context, replaced.pop(), made.rig, chosen.sources)
    for result in replaced:
        delete_result(context, result)
    return dataclasses.replace(made, notes=notes)
