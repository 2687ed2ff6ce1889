# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of what a conversion makes, from the name of its source."""

import bpy

from ...blender.data_blocks import with_ending

_KINDS = {
    "skinned": ("objects",),
    "rig": ("objects", "armatures"),
    "skinning": ("actions", "collections"),
    "shapes": ("actions",),
}


def free_names(name: str, others=()) -> tuple[dict[str, str], tuple[str, ...]]:
    """Names of what a conversion of the object ``name`` makes, and those of the skinned objects of ``others``.

    All have the same number where one is in use already. Too long a name is shortened at its end, so that what tells
    the new ones apart stays.
    """
    for number in range(1000):
        suffix = f".{number:03}" if number else ""
        names = {ending: f"{with_ending(name, ending)}{suffix}" for ending in _KINDS}
        skinned = tuple(f"{with_ending(other, 'skinned')}{suffix}" for other in others)
        wanted = [(kind, names[ending]) for ending, kinds in _KINDS.items() for kind in kinds]
        wanted += [("objects", each) for each in skinned]
        if not any(getattr(bpy.data, kind).get((each, None)) for kind, each in wanted):
            return names, skinned
    names = {ending: with_ending(name, ending) for ending in _KINDS}
    return names, tuple(with_ending(other, "skinned") for other in others)
