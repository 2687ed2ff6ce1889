# SPDX-License-Identifier: GPL-3.0-or-later
"""The few things that tests read in a .glb file: accessors, and joint matrices as the glTF standard defines them."""

import json
import struct
from dataclasses import dataclass

import numpy as np

_TYPES = {5121: np.uint8, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}


@dataclass(frozen=True)
class GltfFile:
    content: dict
    binary: bytes

    @classmethod
    def read(cls, path) -> "GltfFile":
        data = path.read_bytes()
        length = struct.unpack_from("<I", data, 12)[0]
        return cls(json.loads(data[20 : 20 + length]), data[28 + length :])

    def accessor(self, index: int) -> np.ndarray:
        """(count, width)"""
        accessor = self.content["accessors"][index]
        count, width = accessor["count"], _WIDTHS[accessor["type"]]
        if "bufferView" in accessor:
            values = self._numbers(accessor, accessor["componentType"], count * width).reshape(-1, width)
        else:
            values = np.zeros((count, width), _TYPES[accessor["componentType"]])
        if "sparse" in accessor:
            # Only some rows are in the file, as for shape keys that move few vertices.
            sparse = accessor["sparse"]
            rows = self._numbers(sparse["indices"], sparse["indices"]["componentType"], sparse["count"])
            values = values.copy()
            changed = self._numbers(sparse["values"], accessor["componentType"], sparse["count"] * width)
            values[rows] = changed.reshape(-1, width)
        return values

    def _numbers(self, place: dict, component_type: int, count: int) -> np.ndarray:
        view = self.content["bufferViews"][place["bufferView"]]
        assert "byteStride" not in view, "interleaved"
        start = view.get("byteOffset", 0) + place.get("byteOffset", 0)
        return np.frombuffer(self.binary, _TYPES[component_type], count, start)

    def morph_targets(self) -> np.ndarray:
        """(S, N, 3) displacements of the only primitive's shape keys."""
        (mesh,) = self.content["meshes"]
        targets = mesh["primitives"][0].get("targets", ())
        count = len(self.vertices()["POSITION"])
        return np.array([self.accessor(target["POSITION"]) for target in targets]).reshape(-1, count, 3)

    def vertices(self) -> dict[str, np.ndarray]:
        """The attributes of the only primitive of the only mesh, by their names."""
        (mesh,) = self.content["meshes"]
        (primitive,) = mesh["primitives"]
        return {name: self.accessor(index) for name, index in primitive["attributes"].items()}

    def joint_matrices(self) -> np.ndarray:
        """(P, 4, 4) float64: what the only skin's joints do to positions, as the nodes stand."""
        (skin,) = self.content["skins"]
        nodes = self.content["nodes"]
        parents = {child: index for index, node in enumerate(nodes) for child in node.get("children", ())}

        def to_world(index):
            local = _local_matrix(nodes[index])
            return to_world(parents[index]) @ local if index in parents else local

        inverses = self.accessor(skin["inverseBindMatrices"]).reshape(-1, 4, 4).swapaxes(1, 2)
        return np.array([to_world(joint) for joint in skin["joints"]]) @ inverses.astype(np.float64)


def _local_matrix(node: dict) -> np.ndarray:
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    x, y, z, w = node.get("rotation", (0, 0, 0, 1))
    matrix = np.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    matrix[:3, :3] *= node.get("scale", (1, 1, 1))
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix
