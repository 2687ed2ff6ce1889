# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of animated properties that the user has changed and not keyed: Blender replaces them when it plays."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import bpy

from .. import actions
from ..data_blocks import is_alive

# The path of a custom property.
_CUSTOM = re.compile(r'(.*)\["((?:[^"\\]|\\.)*)"\]')


@contextmanager
def animated_values_kept(context: bpy.types.Context, blocks: Iterable[bpy.types.ID]) -> Iterator[None]:
    """Context after which all animated properties of local data-blocks have their values again, also those that the
    user has changed and not keyed: Blender writes the values of an action into them where it plays in the window, and
    where it was assigned again."""
    # By paths: what a property belongs to may be made anew meanwhile.
    kept = [
        (block, path, value)
        for block in blocks
        for path in _animated_paths(block)
        if (value := _value(block, path)) is not None
    ]
    try:
        yield
    finally:
        # What waits for this would undo the values.
        context.view_layer.update()
        for block, path, value in kept:
            if is_alive(block) and _value(block, path) not in (None, value):
                owner, name = _owner_and_name(block, path)
                if name in owner.bl_rna.properties:
                    setattr(owner, name, value)
                else:
                    owner[name] = value


def _animated_paths(block: bpy.types.ID) -> set[str]:
    animation = getattr(block, "animation_data", None)
    if animation is None or block.library is not None:
        return set()
    return {curve.data_path for curve in (*actions.existing_curves(block), *actions.strip_curves(animation))}


def _owner_and_name(block: bpy.types.ID, path: str) -> tuple[Any, str]:
    """What has the property of that path, None if it does not exist; and the property's name."""
    custom = _CUSTOM.fullmatch(path)
    before, name = custom.groups() if custom else path.rpartition(".")[::2]
    owner = None
    with contextlib.suppress(ValueError):
        owner = block.path_resolve(before) if before else block
    return owner if isinstance(owner, bpy.types.bpy_struct) else None, bpy.utils.unescape_identifier(name)


def _value(block: bpy.types.ID, path: str) -> Any:
    """The present value of the property, None if it does not exist."""
    owner, name = _owner_and_name(block, path)
    value: Any = None
    # Rigs from earlier versions of Blender have curves for properties that are no more.
    with contextlib.suppress(TypeError):
        if owner is not None:
            value = getattr(owner, name, None) if name in owner.bl_rna.properties else owner.get(name)
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value
