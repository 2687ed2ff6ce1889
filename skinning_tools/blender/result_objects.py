# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that a conversion makes: their names, where they go, and how a mesh follows its armature."""

from collections.abc import Mapping, Sequence

import bpy
import numpy as np

from .data_blocks import with_ending

# Weights up to this are left out, as Blender's glTF exporter does, so that the exported file plays as measured here.
# The other weights are scaled up, so a vertex moves by at most the sum of the weights left out times the distance
# between the places to which its bones would move it.
_TRACE = 1.001e-4

# On a source that is one clip of a character: the character's name.
CHARACTER = "skinning_character"


def name_for_results(source: bpy.types.Object) -> str:
    """After what the result of a source is called: the character that it is a clip of, else the source itself."""
    noted = source.get(CHARACTER)
    return noted if isinstance(noted, str) and noted else source.name


def free_names(
    name: str, kinds: Mapping[str, Sequence[str]], others: Sequence[str] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The names of a conversion's data-blocks for the object ``name``, and of the skinned objects of ``others``.

    kinds: the collections of bpy.data that get a data-block, by the ending of its name. If a name is in use, all get
    the same number. A name that is too long is shortened before its ending.
    """
    for number in range(1000):
        suffix = f".{number:03}" if number else ""
        names = {ending: f"{with_ending(name, ending)}{suffix}" for ending in kinds}
        skinned = tuple(f"{with_ending(other, 'skinned')}{suffix}" for other in others)
        wanted = [(kind, names[ending]) for ending, found in kinds.items() for kind in found]
        wanted += [("objects", each) for each in skinned]
        if not any(getattr(bpy.data, kind).get((each, None)) for kind, each in wanted):
            return names, skinned
    names = {ending: with_ending(name, ending) for ending in kinds}
    return names, tuple(with_ending(other, "skinned") for other in others)


def new_object(name: str, data: bpy.types.ID | None, made: list) -> bpy.types.Object:
    """An object in no scene, added to ``made``."""
    ob = bpy.data.objects.new(name, data)
    made.append(ob)
    return ob


def without_traces(weights: np.ndarray) -> np.ndarray:
    """Weights (N, K) without those too small to be written; the other weights of the vertex are scaled up."""
    weights = np.where(weights > _TRACE, weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def follow_armature(mesh_object: bpy.types.Object, armature_object: bpy.types.Object) -> bpy.types.ArmatureModifier:
    """Make a mesh object the child of an armature object that deforms it by its vertex groups."""
    mesh_object.parent = armature_object
    modifier = mesh_object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature_object
    modifier.use_vertex_groups = True
    modifier.use_bone_envelopes = False
    modifier.use_deform_preserve_volume = False
    return modifier


def home_collection(context: bpy.types.Context, source: bpy.types.Object) -> bpy.types.Collection:
    """The parent of the result's collection: the source's collection if it is local and shown, else the scene's."""
    waiting = [context.view_layer.layer_collection]
    while waiting:
        layer = waiting.pop()
        waiting += layer.children
        collection = layer.collection
        local = collection.library is None and collection.override_library is None
        if local and not layer.exclude and layer.is_visible and source in collection.objects.values():
            return collection
    return context.scene.collection
