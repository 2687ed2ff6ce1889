# SPDX-License-Identifier: GPL-3.0-or-later
"""What a conversion reads where the artist is on a result: the source of that, never the result unless asked for."""

import dataclasses
from dataclasses import dataclass

import bpy
from bpy.app.translations import pgettext_rpt as rpt_

from ...blender import background
from ...blender.animation.several_sources import other_sources
from ...blender.conversion_figures import has_figures
from ...blender.conversions import Result, result_of
from ...blender.data_blocks import is_alive
from ...blender.job_checks import active_object, reason_not_to_work
from ...blender.object_checks import check_object
from ...blender.visibility import make_active, shown_for_good
from ...core.errors import BadScene
from . import conversion
from .result import check_deletable, delete_result, notes_on_deleting, sources_to_convert
from .settings import CONVERT, KEEP, REPLACE, ConvertSettings, settings_of


@dataclass(frozen=True)
class Chosen:
    """sources: what is read; the first is the one that the new result is named after. results: the objects that were
    chosen and are results themselves, in whose place the sources are; earlier: their conversions, once each."""

    sources: tuple[bpy.types.Object, ...]
    results: tuple[bpy.types.Object, ...] = ()
    earlier: tuple[Result, ...] = ()

    def note(self) -> str:
        """What to tell those who have named a result, else ""."""
        if not self.results:
            return ""
        results, sources = (", ".join(ob.name for ob in objects) for objects in (self.results, self.sources))
        text = (
            rpt_("{results} is the result of a conversion: its source is converted, {sources}")
            if len(self.results) == 1
            else rpt_("{results} are results of conversions: their sources are converted, {sources}")
        )
        return text.format(results=results, sources=sources)


def chosen_sources(context, object, selected_objects: bool = False, on_result: str = KEEP) -> Chosen:
    """What converting ``object``, and with ``selected_objects`` the selected meshes, reads; cheap enough for a panel.

    A mesh or rig that a conversion has made stands for all that it was made from, unless on_result is CONVERT.
    Raises BadScene where that is gone, or where something is selected that cannot be converted.
    """
    objects = (object, *other_sources(context, object)) if selected_objects else (object,)
    return sources_of(objects, on_result)


def stands_for_source(context, selected_objects: bool = False) -> bool:
    """Whether the active object, or with ``selected_objects`` a selected mesh, is a result of a conversion."""
    active = active_object(context)
    objects = [active, *(ob for ob in context.view_layer.objects.selected if selected_objects and ob.type == "MESH")]
    return any(ob is not None and has_figures(ob) for ob in objects)


def sources_of(objects, on_result: str = KEEP) -> Chosen:
    """``chosen_sources`` of these objects alone."""
    if on_result == CONVERT:
        return Chosen(tuple(dict.fromkeys(objects)))
    results = tuple(ob for ob in dict.fromkeys(objects) if ob is not None and has_figures(ob))
    earlier = {_key(result): result for result in map(result_of, results)}
    sources = dict.fromkeys(source for ob in objects for source in _sources_of(ob, (ob,)))
    return Chosen(tuple(sources), results, tuple(earlier.values()))


def _key(result: Result):
    return result.rig or result.mesh


def _sources_of(object, passed: tuple) -> list:
    """``object``, or what it was made from where it is a result; of the result of a result the first source."""
    if object is None or not has_figures(object):
        return [object]
    found = []
    for source in sources_to_convert(result_of(object)):
        if source in passed:
            raise BadScene(
                f'The result "{object.name}" has the name of its own source. Make the mesh that moves the active '
                "object, or ask for the result itself"
            )
        found += _sources_of(source, (*passed, source))
    return found


def check_chosen(context, chosen: Chosen) -> None:
    """Raises BadScene with the reason why one of the sources cannot be read. One that the eye hides is shown for it
    where it was reached by its result: the panel's own button has hidden it."""
    for source in chosen.sources:
        check_object(context, source, hidden_by_eye=bool(chosen.earlier))


def reason_not_to_convert(context, selected_objects: bool = False, on_result: str = KEEP) -> str:
    """Why the active object, and with ``selected_objects`` the selected ones, cannot be converted now, or "".

    For poll and panel.
    """
    return reason_not_to_work(
        context,
        lambda context, object: check_chosen(context, chosen_sources(context, object, selected_objects, on_result)),
    )


def convert_active(context, object, **values) -> background.Steps:
    """Generator: convert what the active object, or the selected ones, stand for; returns the Conversion. values: of
    ``ConvertSettings``. Raises SkinningError."""
    settings = ConvertSettings(**values)
    chosen = chosen_sources(context, object, settings.selected_objects, settings.on_result)
    check_chosen(context, chosen)
    return (yield from convert_chosen(context, chosen, settings, settings.on_result == REPLACE))


def convert_again(context, object, replace: bool) -> background.Steps:
    """Generator: convert the sources of an object's conversion as it was, also where one is a result itself: that was
    asked for then. Returns the new Conversion. replace: delete the earlier one then. Raises SkinningError."""
    earlier = result_of(object)
    if earlier is None:
        raise BadScene("The active object is not part of a conversion. Select one of its objects")
    chosen = Chosen(tuple(sources_to_convert(earlier)), earlier=(earlier,))
    check_chosen(context, chosen)
    return (yield from convert_chosen(context, chosen, settings_of(earlier.figures), replace))


def convert_chosen(context, chosen: Chosen, settings: ConvertSettings, replace: bool = False) -> background.Steps:
    """Generator: ``conversion.convert`` of the sources; returns its Conversion.

    Where they stand for results, the new one is active at the end, and the sources are shown. replace: delete those
    earlier results then. Raises SkinningError.
    """
    if replace:
        for result in chosen.earlier:
            check_deletable(result)
    note = chosen.note()
    with shown_for_good(context, chosen.sources if chosen.earlier else ()):
        made = yield from conversion.convert(context, chosen.sources, settings)
    if not chosen.earlier:
        return made
    # Those that it replaces may be the active one; and the user may have deleted them meanwhile.
    make_active(context, made.rig.object)
    replaced = [
        result
        for result in chosen.earlier
        if replace and all(map(is_alive, (*result.meshes, *filter(None, [result.rig]))))
    ]
    notes = *filter(None, [note]), *made.notes, *notes_on_deleting(replaced)
    for result in replaced:
        delete_result(context, result)
    return dataclasses.replace(made, notes=notes)
