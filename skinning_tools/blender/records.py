# SPDX-License-Identifier: GPL-3.0-or-later
"""What the extension notes in custom properties for itself. Anybody may have changed them: they are read with care."""

from dataclasses import MISSING, Field, asdict, fields
from typing import Any, ClassVar, Protocol, TypeVar

import bpy

# What the extension keeps on data-blocks, attributes and custom properties, has names that begin so.
RESERVED = "skinning_"

# What an EigenSkin on a mesh consists of.
EIGENSKIN = "skinning_eigenskin"

# What Blender gives back for each type of a field, and what makes the value of it.
_STORED = {str: (str, str), bool: ((bool, int), bool), int: (int, int), float: ((float, int), float)}


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=_Dataclass)


def write_record(owner, key: str, record: _Dataclass) -> None:
    """Store a dataclass whose fields are of the types str, bool, int, float, and tuples of one of them."""
    values = asdict(record)
    owner[key] = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_record(owner, key: str, kind: type[Record]) -> Record | None:
    """What ``write_record`` has stored in the data-block ``owner``, a ``kind``; None where that is not there.

    A value that is missing or of another type makes the whole None, unless the field has a default: an older version of
    the extension may not have known it. Additional ones are left alone: a newer version may have stored them.
    """
    stored = owner.get(key)
    if not hasattr(stored, "to_dict"):
        return None
    return record_of(stored.to_dict(), kind)


def record_of(values: dict, kind: type[Record]) -> Record | None:
    """The ``kind`` whose fields ``values`` has; None where one without a default is missing, or of another type."""
    stored = [field for field in fields(kind) if field.name in values or field.default is MISSING]
    try:
        return kind(**{field.name: _value(values[field.name], field.type) for field in stored})
    except (KeyError, TypeError):
        return None


def _value(value, kind):
    """``value`` as ``kind``. Raises TypeError where it is of another type."""
    members = getattr(kind, "__args__", None)
    if members is not None:
        if not isinstance(value, list):
            raise TypeError(type(value))
        return tuple(_value(member, members[0]) for member in value)
    accepted, make = _STORED[kind]
    if not isinstance(value, accepted):
        raise TypeError(type(value))
    return make(value)


def has_eigenskin(object: bpy.types.Object | None) -> bool:
    """Whether there is an EigenSkin on the object's mesh, by all appearances."""
    return object is not None and object.type == "MESH" and EIGENSKIN in object.data
