# SPDX-License-Identifier: GPL-3.0-or-later
"""The extension's own records in custom properties. Users and scripts may change them, so every read is checked."""

import hashlib
import zlib
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, ClassVar, Protocol, TypeVar

import bpy
import numpy as np

# The names of the extension's attributes and custom properties begin like this.
RESERVED = "skinning_"

# The parts of an EigenSkin on a mesh.
EIGENSKIN = "skinning_eigenskin"

# A mesh whose bones do what shape keys did.
FACE = "skinning_shape_keys"

# For each type of a field: the type that Blender returns, and the conversion to the value.
_STORED: dict[type, tuple] = {str: (str, str), bool: ((bool, int), bool), int: (int, int), float: ((float, int), float)}

# Checksums in earlier versions, by their number of digits.
_EARLIER = {8: "crc32", 40: "sha1"}


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=_Dataclass)


def write_record(owner: bpy.types.bpy_struct, key: str, record: _Dataclass) -> None:
    """Store a dataclass whose fields are of the types str, bool, int, float, and tuples of one of them."""
    values = asdict(record)
    owner[key] = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_record(owner: bpy.types.bpy_struct, key: str, kind: type[Record]) -> Record | None:
    """The record of type ``kind`` that ``write_record`` stored in the data-block ``owner``; None if there is none.

    A value that is missing or of another type makes the whole None, unless the field has a default: an older version of
    the extension may lack the field. Additional values are ignored: a newer version may have stored them.
    """
    values = stored_values(owner, key)
    return record_of(values, kind) if values is not None else None


def stored_values(owner: bpy.types.bpy_struct, key: str) -> dict | None:
    """A group of custom properties as plain values; None if ``owner`` has none of that name."""
    stored = owner.get(key)
    return stored.to_dict() if hasattr(stored, "to_dict") else None


def record_of(values: dict, kind: type[Record]) -> Record | None:
    """A ``kind`` with the fields in ``values``; None if a field without a default is missing, or of another type."""
    stored = [field for field in fields(kind) if field.name in values or field.default is MISSING]
    try:
        return kind(**{field.name: _value(values[field.name], field.type) for field in stored})
    except (KeyError, TypeError):
        return None


def _value(value: Any, kind: Any) -> Any:
    """``value`` as ``kind``. Raises TypeError if it is of another type."""
    members = getattr(kind, "__args__", None)
    if members is not None:
        if not isinstance(value, list):
            raise TypeError(type(value))
        return tuple(_value(member, members[0]) for member in value)
    accepted, make = _STORED[kind]
    if not isinstance(value, accepted):
        raise TypeError(type(value))
    return make(value)


def checksum(*parts: str | np.ndarray, kind: str = "sha256") -> str:
    """A text that changes when the parts change. An array counts by its bytes, not its shape."""
    content = b"".join(
        part.encode(errors="surrogateescape") if isinstance(part, str) else np.ascontiguousarray(part).tobytes()
        for part in parts
    )
    if kind == "crc32":
        return f"{zlib.crc32(content):08x}"
    return hashlib.new(kind, content, usedforsecurity=False).hexdigest()


def has_checksum(stored: str, *parts: str | np.ndarray) -> bool:
    """Whether ``stored`` is the checksum of the parts, from this or an earlier version of the extension."""
    return stored == checksum(*parts, kind=_EARLIER.get(len(stored), "sha256"))


def has_eigenskin(ob: bpy.types.Object | None) -> bool:
    """Whether the object's mesh seems to have an EigenSkin."""
    return ob is not None and ob.type == "MESH" and EIGENSKIN in ob.data
