# SPDX-License-Identifier: GPL-3.0-or-later
"""The shaders' inputs: vertices of a skin, bones of a frame, uniforms of a view."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import gpu
import numpy as np

from ...core import quaternions
from ...core.deform import METHODS, strongest_influences
from ...core.rotations import polar_decomposition
from .shaders import BONES_PER_ROW, MOST_GROUPS, centers_inputs, surface_inputs

MOST_INFLUENCES = 4 * MOST_GROUPS


@dataclass(frozen=True, eq=False)
class VertexData:
    """The arrays of a skin for the vertex shader.

    origin (3,): the middle of the mesh, to which the others are relative, so that single precision suffices wherever
    the mesh lies. rest, normals, centers (N, 3) float32, bones (N, K) uint32, weights (N, K) float32 with K a multiple
    of four; triangles (T, 3); centered (C,): the vertices with a center of rotation. crowded: the number of vertices
    with more influences than a vertex shader accepts (MOST_INFLUENCES), which keep the strongest.
    """

    origin: np.ndarray
    rest: np.ndarray
    normals: np.ndarray
    centers: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    triangles: np.ndarray
    centered: np.ndarray
    crowded: int

    @classmethod
    def of(
        cls,
        rest: np.ndarray,
        normals: np.ndarray,
        triangles: np.ndarray,
        bones: np.ndarray,
        weights: np.ndarray,
        centers: np.ndarray | None = None,
        valid: np.ndarray | None = None,
    ) -> "VertexData":
        """Make it from core's arrays; ``normals`` (N, 3) at rest. A vertex without a center is its own center."""
        origin = 0.5 * (rest.min(axis=0) + rest.max(axis=0))
        crowded = int(np.count_nonzero(np.count_nonzero(weights, axis=1) > MOST_INFLUENCES))
        bones, weights = packed(bones, weights)
        if centers is None or valid is None:
            centers, valid = rest, np.zeros(len(rest), bool)
        return cls(
            origin,
            (rest - origin).astype(np.float32),
            np.asarray(normals, np.float32),
            (np.where(valid[:, None], centers, rest) - origin).astype(np.float32),
            bones,
            weights,
            np.ascontiguousarray(triangles, np.int32),
            np.flatnonzero(valid),
            crowded,
        )

    @property
    def groups(self) -> int:
        """The number of groups of four influences."""
        return self.bones.shape[1] // 4

    def attributes(self, chosen: slice | np.ndarray = slice(None)) -> dict[str, np.ndarray]:
        """The arrays by the names of the shaders' inputs."""
        arrays = {"rest": self.rest, "normal": self.normals, "center": self.centers}
        for group in range(self.groups):
            four = slice(4 * group, 4 * group + 4)
            arrays |= {f"bones_{group}": self.bones[:, four], f"weights_{group}": self.weights[:, four]}
        return {name: np.ascontiguousarray(array[chosen]) for name, array in arrays.items()}

    @cached_property
    def surface_batch(self) -> gpu.types.GPUBatch:
        vertices = vertex_buffer(surface_inputs(self.groups), self.attributes())
        return gpu.types.GPUBatch(
            type="TRIS", buf=vertices, elem=gpu.types.GPUIndexBuf(type="TRIS", seq=self.triangles)
        )

    @cached_property
    def center_batches(self) -> tuple[gpu.types.GPUBatch, gpu.types.GPUBatch]:
        """Points at the centers, and lines to their vertices; requires that a vertex has a center."""
        attributes = self.attributes(np.repeat(self.centered, 2))
        del attributes["normal"]
        attributes["at_center"] = np.tile(np.array([1, 0], np.float32), len(self.centered))
        vertices = vertex_buffer(centers_inputs(self.groups), attributes)
        ends = np.arange(0, 2 * len(self.centered), 2, dtype=np.int32)
        points = gpu.types.GPUBatch(type="POINTS", buf=vertices, elem=gpu.types.GPUIndexBuf(type="POINTS", seq=ends))
        return points, gpu.types.GPUBatch(type="LINES", buf=vertices)


def packed(bones: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bones (N, K) uint32, weights (N, K) float32 with K a multiple of four, MOST_INFLUENCES at most."""
    bones, weights = strongest_influences(bones, weights, MOST_INFLUENCES)
    count, influences = bones.shape
    width = 4 * max(1, -(-influences // 4))
    padded_bones, padded_weights = np.zeros((count, width), np.uint32), np.zeros((count, width), np.float32)
    padded_bones[:, :influences], padded_weights[:, :influences] = bones, weights
    return padded_bones, padded_weights


def vertex_buffer(inputs: Iterable[tuple[str, str]], attributes: dict[str, np.ndarray]) -> gpu.types.GPUVertBuf:
    layout = gpu.types.GPUVertFormat()
    for kind, name in inputs:
        whole = kind == "UVEC4"
        layout.attr_add(
            id=name,
            comp_type="U32" if whole else "F32",
            len=1 if kind == "FLOAT" else int(kind[-1]),
            fetch_mode="INT" if whole else "FLOAT",
        )
    buffer = gpu.types.GPUVertBuf(layout, len(next(iter(attributes.values()))))
    for name, values in attributes.items():
        buffer.attr_fill(name, values)
    return buffer


def bone_texels(matrices: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """(rows, width, 4) float32 of the bone texture: each bone's matrix, about ``origin``, and its rotation.

    matrices (P, 3, 4) in the mesh's space.
    """
    linear = matrices[..., :3]
    turns = quaternions.canonical(quaternions.from_matrices(polar_decomposition(linear)[0]))
    rows = -(-len(matrices) // BONES_PER_ROW)
    texels = np.zeros((rows * BONES_PER_ROW, 4, 4), np.float32)
    texels[: len(matrices), :3, :3] = linear
    texels[: len(matrices), :3, 3] = matrices[..., 3] + linear @ origin - origin
    texels[: len(matrices), 3] = np.roll(turns, -1, axis=-1)
    return texels.reshape(rows, BONES_PER_ROW * 4, 4)


def bone_texture(matrices: np.ndarray, origin: np.ndarray) -> gpu.types.GPUTexture:
    """The only data sent to the GPU for a new pose."""
    texels = bone_texels(matrices, origin)
    rows, width, _ = texels.shape
    data = gpu.types.Buffer("FLOAT", texels.size, texels.ravel())
    return gpu.types.GPUTexture((width, rows), format="RGBA32F", data=data)


def surface_uniforms(
    to_world: np.ndarray,
    view: np.ndarray,
    projection: np.ndarray,
    origin: np.ndarray,
    method: str,
    compared: str | None = None,
    color: tuple[float, ...] = (0.8, 0.8, 0.8, 1.0),
    options: tuple[float, ...] = (0.0, 0.0, 1.0, 1.0),
) -> gpu.types.GPUUniformBuf:
    """The uniform block of one column.

    to_world, view, projection (4, 4) float64. compared: a second method, to color by the distance between the two.
    options: of the surface (in front of everything, flat faces, distance at the color scale's end, perspective); of the
    centers (–, –, point size in pixels, –).
    """
    to_world = to_world @ translation(origin)
    to_view = view @ to_world
    normal_to_view = np.eye(4)
    normal_to_view[:3, :3] = np.linalg.pinv(to_view[:3, :3]).T
    own = METHODS.index(method)
    other = own if compared is None else METHODS.index(compared)
    block = np.empty(76, np.float32)
    # GLSL stores matrices by columns.
    for place, matrix in enumerate((projection @ to_view, to_view, normal_to_view, to_world)):
        block[16 * place : 16 * place + 16] = matrix.T.ravel()
    block[64:68], block[68:72], block[72:] = color, options, (own, other, compared is not None, 0)
    return gpu.types.GPUUniformBuf(gpu.types.Buffer("FLOAT", len(block), block))


def translation(vector: np.ndarray) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = vector
    return matrix
