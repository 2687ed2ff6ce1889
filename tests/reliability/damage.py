# SPDX-License-Identifier: GPL-3.0-or-later
"""Damages files like disks, networks, full quotas and other programs do. Bytes in, bytes out."""

import struct
from dataclasses import dataclass

import numpy as np

PC2_HEAD, MDD_HEAD = struct.Struct("<12siiffi"), struct.Struct(">ii")
# Fields of a header: name, offset, format.
FIELDS = {
    "PC2": (("version", 12, "<i"), ("points", 16, "<i"), ("start", 20, "<f"), ("step", 24, "<f"), ("frames", 28, "<i")),
    "MDD": (("frames", 0, ">i"), ("points", 4, ">i")),
    "ALEMBIC": (("first offset", 8, "<q"),),
    "BLEND": (),
}
WHOLE_NUMBERS = (0, 1, -1, 2, 255, 2**16, 2**31 - 1, -(2**31))
FLOATS = (0.0, -0.0, -1.0, 1e-45, 1e6, 1e14, -1e16, 1e38, -1e38, float("nan"), float("inf"), float("-inf"))


@dataclass(frozen=True)
class Damaged:
    """label: the damage. data: the file's bytes; None for a folder at its path, or nothing."""

    label: str
    data: bytes | None


def damaged(data: bytes, kind: str, random) -> Damaged:
    """One damage, now and then two, to a sound file. kind: a key of FIELDS. random: a numpy Generator."""
    whats = [_cut, _cut, _flipped, _flipped, _words, _words, _zeros, _doubled, _rare]
    if FIELDS[kind]:
        whats += [_field, _field, _field]
    if kind in ("PC2", "MDD"):
        whats += [_position, _position]
    found = Damaged("", data)
    for what in random.choice(len(whats), 1 if random.random() < 0.85 else 2):
        if found.data:
            more = whats[what](found.data, kind, random)
            found = Damaged(f"{found.label}, {more.label}".removeprefix(", "), more.data)
    return found


def _cut(data, kind, random) -> Damaged:
    ends = [0, 1, 4, 11, 12, 16, 20, 24, 28, 31, 32, 33, len(data) // 2, len(data) - 12, len(data) - 1]
    end = int(random.choice(ends)) if random.random() < 0.6 else int(random.integers(len(data)))
    end = min(max(end, 0), len(data) - 1)
    return Damaged(f"cut to {end} of {len(data)} bytes", data[:end])


def _flipped(data, kind, random) -> Damaged:
    """Bits turned over, in the head or anywhere."""
    reach = min(len(data), 64) if random.random() < 0.3 else len(data)
    places = random.integers(0, 8 * reach, int(random.choice([1, 1, 2, 8, 64])))
    array = np.frombuffer(data, np.uint8).copy()
    for place in places:
        array[place // 8] ^= np.uint8(1 << (place % 8))
    return Damaged(f"bits {sorted(set(places.tolist()))[:6]} flipped", array.tobytes())


def _words(data, kind, random) -> Damaged:
    """A whole number or a float anywhere, in steps of four bytes, as other formats lay them out."""
    if len(data) < 8:
        return _cut(data, kind, random)
    place = 4 * int(random.integers(0, len(data) // 4 - 1))
    order = ">" if kind == "MDD" else "<"
    if random.random() < 0.5:
        value, code = random.choice(FLOATS), "f"
    else:
        value, code = int(random.choice(WHOLE_NUMBERS)), "i"
    return Damaged(f"{value} at {place}", _with(data, place, struct.pack(f"{order}{code}", value)))


def _field(data, kind, random) -> Damaged:
    name, place, code = FIELDS[kind][int(random.integers(len(FIELDS[kind])))]
    size = struct.calcsize(code)
    if len(data) < place + size:
        return _cut(data, kind, random)
    present = struct.unpack_from(code, data, place)[0]
    if code[-1] == "f":
        value = float(random.choice(FLOATS))
    else:
        value = int(random.choice([*WHOLE_NUMBERS, present + 1, present - 1, 2 * present]))
        value = min(max(value, -(2**31)), 2**31 - 1)
    return Damaged(f"{name} {value}", _with(data, place, struct.pack(code, value)))


def _position(data, kind, random) -> Damaged:
    """Numbers of a frame that are NaN, infinite or huge."""
    count = int(random.choice([1, 3, 60]))
    value = float(random.choice(FLOATS))
    order = ">" if kind == "MDD" else "<"
    place = max(len(data) - 12 * int(random.integers(1, 40)), 0)
    patch = struct.pack(f"{order}f", value) * min(count, (len(data) - place) // 4)
    return Damaged(f"{count} floats {value} at {place}", _with(data, place, patch))


def _zeros(data, kind, random) -> Damaged:
    """A block that was never written."""
    start = int(random.integers(len(data)))
    size = int(random.choice([16, 512, len(data)]))
    return Damaged(f"zeros from {start}", _with(data, start, b"\0" * min(size, len(data) - start)))


def _doubled(data, kind, random) -> Damaged:
    """A repeated part, or additional data after the end."""
    start, end = sorted(random.integers(0, len(data), 2).tolist())
    if random.random() < 0.5:
        return Damaged(f"bytes {start} to {end} twice", data[:end] + data[start:end] + data[end:])
    return Damaged(f"{end - start} more bytes", data + data[start:end])


def _rare(data, kind, random) -> Damaged:
    choices = {
        "a folder": None,
        "an empty file": b"",
        "text": b"Not a cache at all\n" * 40,
        "noise": random.bytes(max(len(data), 64)),
        "bytes swapped": np.frombuffer(data[: len(data) // 4 * 4], "<u4").byteswap().tobytes(),
        "other magic": b"XOINTCACHE2\0"[: len(data)] + data[12:],
        "a web page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
    }
    label = str(random.choice(list(choices)))
    return Damaged(label, choices[label])


def _with(data: bytes, place: int, patch: bytes) -> bytes:
    return data[:place] + patch + data[place + len(patch) :]


@dataclass(frozen=True)
class PointCache:
    """The content of a point cache: frames (F, N, 3) float32."""

    frames: np.ndarray


def read_point_cache(data: bytes | None, kind: str) -> PointCache | None:
    """Read by the format's description, not by the code under test; None if the file is incomplete.

    Start and step of a PC2 file and the times of an MDD file are left out, which count only where a modifier goes by
    seconds.
    """
    if not data:
        return None
    if kind == "PC2":
        if len(data) < PC2_HEAD.size:
            return None
        magic, _, points, _, _, frames = PC2_HEAD.unpack_from(data)
        start, dtype = PC2_HEAD.size, "<f4"
        if magic != b"POINTCACHE2\0":
            return None
    else:
        if len(data) < MDD_HEAD.size:
            return None
        frames, points = MDD_HEAD.unpack_from(data)
        start, dtype = MDD_HEAD.size + 4 * frames, ">f4"
    if frames < 1 or points < 1 or len(data) < start + 12 * frames * points:
        return None
    values = np.frombuffer(data, dtype, 3 * frames * points, start)
    return PointCache(values.astype(np.float32).reshape(frames, points, 3))
