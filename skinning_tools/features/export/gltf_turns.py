# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations and scales of a written glTF file, as engines can interpolate them.

Blender's exporter takes the matrix of each frame apart on its own. Where an axis of a bone passes through zero, as the
thin one of a piece of cloth does all the time, it writes three negative scales and half a turn, and where two axes do,
half a turn alone: engines turn the bone between the two frames. The same matrices have rotations that go on from frame
to frame, with negative scales along these axes alone.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...core.affine_chain import least_turns

# The file's header, and the length and kind of each of its two chunks: JSON, and what it refers to.
_HEADER, _CHUNK = struct.Struct("<4sII"), struct.Struct("<I4s")
_FLOAT = 5126
# The cosine of half of what a bone may turn from frame to frame without being looked at.
_QUARTER_TURN = np.sqrt(0.5)
# Where no mirroring begins or ends, two axes have passed through zero if both scales are less than this share of the
# third, and else the bone has turned.
_THIN = 0.5


def keep_turns_short(path: Path) -> None:
    """Exchange half turns of nodes for negative scales in the .glb file at ``path``, which plays the same at its
    frames. Raises OSError."""
    file, changed = _File(path.read_bytes()), False
    for animation in file.content.get("animations", ()):
        for rotation, scale in _samplers(animation):
            turned, scaled = file.values(rotation), file.values(scale)
            if not _turns_far(turned):
                continue
            # glTF has the real part last.
            real_first = np.roll(turned, 1, axis=1).astype(np.float64)
            kept, signs = least_turns(real_first[:, None], real_first[0], _may_be_off(scaled)[:, None])
            file.replace(scale, scaled * signs[:, 0])
            file.replace(rotation, np.roll(kept[:, 0], -1, axis=1))
            changed = True
    if changed:
        path.write_bytes(file.data())


def _samplers(animation: dict[str, Any]) -> Iterator[tuple[dict, dict]]:
    """The samplers of rotation and scale of each node that has both, at the same times."""
    nodes: dict[int, dict[str, dict]] = {}
    for channel in animation["channels"]:
        target = channel["target"]
        nodes.setdefault(target.get("node", -1), {})[target["path"]] = animation["samplers"][channel["sampler"]]
    for node in nodes.values():
        if "rotation" not in node or "scale" not in node:
            continue
        rotation, scale = node["rotation"], node["scale"]
        # The exporter samples every frame. Splines, which it writes otherwise, have tangents beside the values.
        linear = rotation.get("interpolation", "LINEAR") == scale.get("interpolation", "LINEAR") == "LINEAR"
        if linear and rotation["input"] == scale["input"]:
            yield rotation, scale


def _turns_far(rotation: np.ndarray) -> bool:
    cosines = np.abs(np.einsum("fi,fi->f", rotation[1:], rotation[:-1]))
    return bool((cosines < _QUARTER_TURN).any())


def _may_be_off(scale: np.ndarray) -> np.ndarray:
    """(F, 4) where rotations may be half a turn off from those of the frame before, about no axis and x, y, z; for
    scales (F, 3)."""
    mirrored = np.prod(scale, axis=1) < 0
    sizes = np.abs(scale)
    # For each axis, the larger one of the two others.
    others = np.stack([np.maximum(sizes[:, axis - 2], sizes[:, axis - 1]) for axis in range(3)], axis=1)
    thin = others < _THIN * sizes
    allowed = np.zeros((len(scale), 4), bool)
    allowed[:, 0] = True
    allowed[1:, 1:] = (thin[1:] & thin[:-1]) | (mirrored[1:] != mirrored[:-1])[:, None]
    return allowed


class _File:
    """A .glb file, whose samplers have plain floats, as Blender writes them."""

    def __init__(self, data: bytes):
        length, _ = _CHUNK.unpack_from(data, _HEADER.size)
        start = _HEADER.size + _CHUNK.size
        self.content: dict[str, Any] = json.loads(data[start : start + length])
        self._binary = bytearray(data[start + length + _CHUNK.size :])
        samplers = (each for animation in self.content.get("animations", ()) for each in animation["samplers"])
        self._users = Counter(sampler["output"] for sampler in samplers)

    def values(self, sampler: dict) -> np.ndarray:
        """The rows of a sampler's output."""
        accessor, start = self._place(sampler["output"])
        width = {"VEC3": 3, "VEC4": 4}[accessor["type"]]
        return np.frombuffer(self._binary, "<f4", accessor["count"] * width, start).reshape(-1, width).copy()

    def replace(self, sampler: dict, values: np.ndarray) -> None:
        """Give a sampler another output of the same size; others that have had the same one keep it."""
        data, index = values.astype("<f4").tobytes(), sampler["output"]
        if self._users[index] == 1:
            _, start = self._place(index)
            self._binary[start : start + len(data)] = data
            return
        self._users[index] -= 1
        views, accessors = self.content["bufferViews"], self.content["accessors"]
        views.append({"buffer": 0, "byteLength": len(data), "byteOffset": len(self._binary)})
        accessors.append({**accessors[index], "bufferView": len(views) - 1, "byteOffset": 0})
        sampler["output"] = len(accessors) - 1
        self._binary += data

    def data(self) -> bytes:
        """The file's bytes."""
        self.content["buffers"][0]["byteLength"] = len(self._binary)
        text = json.dumps(self.content, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 4)
        chunks = _CHUNK.pack(len(text), b"JSON") + text + _CHUNK.pack(len(self._binary), b"BIN\0") + self._binary
        return _HEADER.pack(b"glTF", 2, _HEADER.size + len(chunks)) + chunks

    def _place(self, index: int) -> tuple[dict, int]:
        """An accessor, and where its numbers begin."""
        accessor = self.content["accessors"][index]
        assert accessor["componentType"] == _FLOAT
        view = self.content["bufferViews"][accessor["bufferView"]]
        return accessor, view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
