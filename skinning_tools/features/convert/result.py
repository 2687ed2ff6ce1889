# SPDX-License-Identifier: GPL-3.0-or-later
"""A finished conversion: the objects in the same place, its sources, its errors, and how to delete it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import bpy

from ...blender.animation.clips import EARLIER, earlier_actions
from ...blender.clip_tracks import track_strips
from ...blender.conversion_figures import REPORT_PROPERTY, figures_of
from ...blender.conversions import Result, conversions, result_of, rig_of, source_named
from ...blender.data_blocks import is_alive, library_of, with_ending
from ...blender.error_display import HIDDEN
from ...blender.preconditions import foreign, object_label, unmet
from ...blender.visibility import show_hidden
from ...core.errors import BadScene
from .stored_record import note_names

if TYPE_CHECKING:
    from .rig_writer import Rig


def other_results(result: Result) -> list[Result]:
    """The other conversions of the same sources, which lie in the same place."""
    sources, meshes = set(result.sources), set(result.meshes)
    found = [other for ob in conversions() if (other := result_of(ob)) is not None]
    return [other for other in found if sources & set(other.sources) and not meshes & set(other.meshes)]


def in_its_place(result: Result) -> list[bpy.types.Object]:
    """The objects that overlap its meshes: its sources, and their other results."""
    made = (ob for other in other_results(result) for ob in objects_made(other))
    return [*result.sources, *(ob for ob in made if ob.type == "MESH")]


def sources_to_convert(result: Result) -> list[bpy.types.Object]:
    """The objects that the result was made from; the first one gave the armature its name.

    Raises BadScene if one of them was deleted or renamed.
    """
    figures = (result.rig and figures_of(result.rig)) or result.figures
    carrier = result.mesh or result.rig
    more = *result.figures.get("parts", ()), *result.figures.get("clips", ())
    found = {part["source"]: source_named(part, carrier) for part in (figures, *more)}
    missing = [name for name, source in found.items() if source is None]
    library = library_of(carrier)
    if missing and library is not None:
        raise BadScene(
            f'The source "{missing[0]}" of this conversion is not in this file: the result is linked from '
            f"{bpy.path.basename(library.filepath)}. Convert it again in that file, or link the source, too"
        )
    if missing:
        raise BadScene(
            f'The source "{missing[0]}" of this conversion was renamed or deleted. Restore its name, or make the '
            "animated mesh the active object and convert it"
        )
    return list(found.values())


def objects_made(result: Result) -> list[bpy.types.Object]:
    """The objects that the conversion made and that are deleted with it."""
    rig = result.rig
    if rig is None or REPORT_PROPERTY not in rig:
        return [ob for ob in result.meshes if REPORT_PROPERTY in ob]
    # By their armature, not by name: a duplicate of the rig has its own meshes.
    return [
        *(ob for ob in bpy.data.objects if REPORT_PROPERTY in ob and ob.type == "MESH" and rig_of(ob) == rig),
        rig,
    ]


def notes_on_deleting(results: Iterable[Result]) -> list[str]:
    """Notes on other conversions whose sources would be deleted with these results."""
    results = list(results)
    gone = [ob for result in results for ob in objects_made(result)]
    notes = []
    for ob in conversions():
        found = result_of(ob) if ob not in gone else None
        source = ", ".join(each.name for each in found.sources if each in gone) if found is not None else ""
        if source:
            other = ob.name
            notes.append(
                f"{other} was made from {source}, which is deleted: {other} stays but cannot be converted again"
            )
    return notes


def check_deletable(result: Result) -> None:
    """Raise BadScene if the result cannot be deleted in this file."""
    for ob in objects_made(result):
        if foreign(ob):
            raise unmet(foreign(ob), block=object_label(ob), work="the conversion cannot be deleted here")


def delete_result(context: bpy.types.Context, result: Result) -> list[str]:
    """Remove what the conversion made and nothing else uses; returns the names of the objects.

    Sources are never removed. Objects hidden by Show Error are shown again. Objects that the user put into the
    collection, or that share its data, stay. Raises BadScene if the result is linked from another file.
    """
    check_deletable(result)
    objects = objects_made(result)
    names, others = [ob.name for ob in objects], in_its_place(result)
    for ob in objects:
        if ob.type == "MESH":
            show_hidden(context, ob.data, HIDDEN, others)
    homes = {home for ob in objects for home in ob.users_collection}
    data = dict.fromkeys(ob.data for ob in objects)
    animated, clips = [block for ob in objects for block in _animated(ob)], set(clip_names(result.figures))
    motions = dict.fromkeys(block.animation_data.action for block in animated)
    motions |= dict.fromkeys(strip.action for block in animated for strip in track_strips(block, clips))
    earlier = dict.fromkeys(each for action in motions for each in earlier_actions(action))
    bpy.data.batch_remove(objects)
    # Shape keys are removed with their mesh, and only then has their action no users.
    for blocks in (data, motions):
        bpy.data.batch_remove([block for block in blocks if block is not None and block.users == 0])
    for action in earlier:
        # Solves have kept it by a fake user; each is used by the one that replaced it, too.
        if action.library is None and action.asset_data is None and action.users == int(action.use_fake_user):
            bpy.data.actions.remove(action)
    ours = {result.figures.get("collection"), with_ending(result.figures["source"], "skinning")} - {None}
    empty = [home for home in homes if home.name in ours and not home.objects and not home.children]
    bpy.data.batch_remove([home for home in empty if home in bpy.data.collections.values()])
    return names


def replace_result(context: bpy.types.Context, result: Result, rig: "Rig", sources: Sequence[bpy.types.Object]) -> None:
    """Delete the result, and give its names to the ``rig`` that takes its place, of the same ``sources``."""
    meshes = {part.source: part.mesh for part in result.parts}
    # Clips share a mesh.
    pairs = [(made, meshes[source]) for made, source in zip(rig.objects, sources, strict=False)]
    pairs = [(new, old) for new, old in [(rig.armature, result.rig), *pairs] if old is not None]
    blocks = [(new, old, old.name) for made, earlier in pairs for new, old in _blocks_of(made, earlier, result.figures)]
    numbered = {new.name: new for new, _ in pairs}
    delete_result(context, result)
    for new, old, name in blocks:
        # What stays, since others use it, keeps its name.
        if not is_alive(old):
            new.name = name
    _name_slots(numbered)
    if "collection" in result.figures:
        rig.collection.name = result.figures["collection"]
    note_names(rig)


def _name_slots(owners: dict[str, bpy.types.Object]) -> None:
    """Call the slots of the objects' actions, which have the objects' former names, after them."""
    actions = {action for ob in owners.values() for action in _motions(ob, ob[REPORT_PROPERTY]).values()}
    for slot in (slot for action in actions for slot in getattr(action, "slots", ())):
        if slot.name_display in owners:
            slot.name_display = owners[slot.name_display].name


def _blocks_of(
    new: bpy.types.Object, old: bpy.types.Object, figures: dict
) -> Iterator[tuple[bpy.types.ID, bpy.types.ID]]:
    """Data-blocks of a new object, with those of an old one, of the result with ``figures``, whose place they take."""
    yield new, old
    yield new.data, old.data
    earlier = _motions(old, figures)
    for motion, action in _motions(new, new[REPORT_PROPERTY]).items():
        if motion in earlier:
            yield action, earlier[motion]


def _motions(ob: bpy.types.Object, figures: dict) -> dict[tuple[str, str], bpy.types.Action]:
    """The actions of the object and its shape keys, by what plays them and the clip; without clips, the present ones.
    In the place of one that a later solve has made counts the one that it has replaced, unless it was renamed."""
    found: dict[tuple[str, str], bpy.types.Action] = {}
    for owner in _animated(ob):
        played = {clip: strip.action for clip in clip_names(figures) for strip in track_strips(owner, {clip})}
        played = played or {"": owner.animation_data.action}
        for clip, action in played.items():
            if action is None:
                continue
            first = [action, *earlier_actions(action)][-1]
            if EARLIER not in first:
                found[owner.bl_rna.identifier, clip] = first
    return found


def clip_names(figures: dict) -> list[str]:
    """The names of the clips, none if the sources are no clips of one mesh."""
    return [clip["source"] for clip in figures.get("clips", ())]


def worst_clip(figures: dict) -> list[str]:
    """The name of the clip with the largest distance, alone in a list; empty without clips."""
    return [name for name in clip_names(figures) if name == figures.get("worst_clip")]


def frame_errors(figures: dict) -> tuple[list, list, list]:
    """Frame numbers with their E_RMS and largest errors, of clips those of the worst one; empty for figures of an
    earlier version."""
    errors, largest = figures.get("frame_e_rms", []), figures.get("frame_max_error", [])
    if len(errors) != len(largest):
        return [], [], []
    start, step, rows = figures["frame_start"], figures["frame_step"], slice(None)
    row = 0
    for clip in figures.get("clips", ()):
        if clip["source"] in worst_clip(figures):
            start, rows = clip["frame_start"], slice(row, row + clip["frame_count"])
        row += clip["frame_count"]
    return [start + step * row for row in range(len(errors[rows]))], list(errors[rows]), list(largest[rows])


def worst_frame(figures: dict) -> float | None:
    """The frame with the largest distance in world space; in files of older versions, in the space of E_RMS."""
    frames, _, largest = frame_errors(figures)
    return figures.get("worst_frame", frames[largest.index(max(largest))]) if largest else None


def worst_vertex(result: Result) -> tuple[bpy.types.Object, int] | None:
    """The skinned mesh and its vertex that is farthest from the source in the worst frame; None if the meshes have
    changed since they were measured."""
    figures = result.figures
    # Vertices are numbered over all objects, in the order of the conversion.
    names = [part["object"] for part in figures.get("parts", ())] or [figures["object"]]
    known = {figures["object"]: result.mesh} | {mesh.name: mesh for mesh in result.meshes}
    meshes = [mesh for name in names if (mesh := known.get(name)) is not None]
    index = figures.get("worst_vertex")
    count = sum(len(ob.data.vertices) for ob in meshes)
    if index is None or len(meshes) < len(names) or count != figures["vertex_count"]:
        return None
    for ob in meshes:
        if index < len(ob.data.vertices):
            return ob, index
        index -= len(ob.data.vertices)
    return None


def _animated(ob: bpy.types.Object) -> list:
    """The object and its shape keys, if animated."""
    keys = ob.data.shape_keys if ob.type == "MESH" else None
    return [block for block in (ob, keys) if block is not None and block.animation_data is not None]
