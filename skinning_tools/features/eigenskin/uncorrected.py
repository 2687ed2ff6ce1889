# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh as its modifiers shape it, without shape keys: what an EigenSkin's examples are to be read from.

Shape keys stay on top of the corrections that are built from the examples, so they must not be part of these; and the
corrections of an earlier build would teach a rig their own error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...blender.data_blocks import is_alive
from .record import eigenskin_record, own_keys

# A value that moves nothing.
_OFF = 1e-4


@dataclass
class Uncorrected:
    """What ``uncorrected`` leaves out. corrected: the mesh has an EigenSkin; preserved: names of the Armature modifiers
    that preserve volume again, as before it was built; keys: names of other shape keys that were on."""

    corrected: bool = False
    preserved: tuple[str, ...] = ()
    keys: dict[str, None] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """For the user."""
        found = []
        if self.corrected:
            with_volume = f', with Preserve Volume in "{self.preserved[0]}" as before' if self.preserved else ""
            found.append(f"read without the corrections{with_volume}")
        if self.keys:
            names = ", ".join(f'"{name}"' for name in list(self.keys)[:4])
            more = f" and {len(self.keys) - 4} more" if len(self.keys) > 4 else ""
            found.append(
                f"read without the shape keys {names}{more}, which stay on top of the corrections; "
                "to teach one, choose Shape Key as the shape's source"
            )
        return tuple(found)


@contextmanager
def uncorrected(context, object, source) -> Iterator[Uncorrected]:
    """Show ``source`` without shape keys and with the volume preserved as before an EigenSkin was built, where it has
    the mesh of ``object``; other meshes stay as they are. Afterwards all is as before, and evaluated."""
    result = Uncorrected()
    if source.data != object.data:
        yield result
        return
    record = eigenskin_record(source)
    view_layer = context.view_layer
    pinned, active = source.show_only_shape_key, source.active_shape_key_index
    turned = []
    if record is not None:
        result.corrected = True
        turned = [
            modifier
            for modifier in source.modifiers
            if modifier.type == "ARMATURE"
            and (source.name, modifier.name) in record.turned_off
            and not modifier.use_deform_preserve_volume
        ]
        result.preserved = tuple(modifier.name for modifier in turned)
    names = [modifier.name for modifier in turned]
    try:
        note_keys(result, source, view_layer.depsgraph)
        if source.data.shape_keys is not None:
            # Of all ways the one that animation, drivers and muting of the keys have no say in.
            source.show_only_shape_key, source.active_shape_key_index = True, 0
        for modifier in turned:
            modifier.use_deform_preserve_volume = True
        view_layer.update()
        yield result
    finally:
        if is_alive(source):
            for name in names:
                if name in source.modifiers:
                    source.modifiers[name].use_deform_preserve_volume = False
            if source.data.shape_keys is not None:
                source.show_only_shape_key, source.active_shape_key_index = pinned, active
            if is_alive(view_layer):
                view_layer.update()


def note_keys(result: Uncorrected, source, depsgraph) -> None:
    """Add to what is left out the shape keys of ``source``, but for an EigenSkin's, that are on in the depsgraph."""
    key = source.data.shape_keys
    if key is None:
        return
    record = eigenskin_record(source)
    own = {block.name for block in own_keys(source.data, record)} if record is not None else set()
    for block in key.evaluated_get(depsgraph).key_blocks[1:]:
        if block.name not in own and not block.mute and abs(block.value) > _OFF:
            result.keys[block.name] = None
