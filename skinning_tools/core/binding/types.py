# SPDX-License-Identifier: GPL-3.0-or-later
"""The skin and the skeleton that binding works on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ..bone_order import depths
from ..errors import BadMesh, BadSettings
from ..geometry import diagonal

# Vertices closer than this share of the diagonal are one place: float32 rounds positions to about a tenth of it.
WELDING_DISTANCE = 1e-6


def weld(points: np.ndarray, radius: float) -> np.ndarray:
    """(n,) int64 the place of each of ``points`` (n, 3), numbered 0 … in the order of their first points.

    Points within ``radius`` of each other are at one place, and so is a chain of such points.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    exact, of_exact = np.unique(points, axis=0, return_inverse=True)
    of_exact = of_exact.reshape(-1)  # numpy 2.0 returns another shape
    near = cKDTree(exact).query_pairs(radius, output_type="ndarray")
    links = sparse.coo_matrix((np.ones(len(near), bool), (near[:, 0], near[:, 1])), shape=(len(exact),) * 2)
    group = connected_components(links, directed=False)[1][of_exact]
    first = np.unique(group, return_index=True)[1]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


@dataclass(frozen=True, eq=False)
class Body:
    """A mesh at rest: rest (N, 3) float64, triangles (T, 3), edges (E, 2); any of the latter two may be empty.

    others (T, 3): the triangle that replaces each triangle if its quad is cut along the other diagonal, wound alike; by
    default, and where there is no quad, the triangle itself. Both diagonals count equally: which of them a mesh has is
    chance, and differs between the two sides of a symmetric mesh. Vertices at the same place are welded: ``place`` (N,)
    is the place of each vertex, of W places. Graphs and components are of places, so that seams do not tear. Edges are
    the given ones and the sides of all triangles. Raises BadMesh without vertices, on positions that are not numbers
    and on indices out of range.
    """

    rest: np.ndarray
    triangles: np.ndarray
    edges: np.ndarray
    others: np.ndarray = None  # type: ignore[assignment] # __post_init__ makes it an array

    def __post_init__(self) -> None:
        if self.others is None:
            object.__setattr__(self, "others", self.triangles)
        columns = {"rest": (3, np.float64), "triangles": (3, np.int64), "edges": (2, np.int64), "others": (3, np.int64)}
        for name, (width, dtype) in columns.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=dtype).reshape(-1, width))
        if len(self.rest) == 0:
            raise BadMesh("The mesh has no vertices")
        wrong = ~np.isfinite(self.rest).all(axis=1)
        if wrong.any():
            raise BadMesh(f"Vertex {int(np.argmax(wrong))} of the mesh has a position that is not a number")
        for name in ("triangles", "edges", "others"):
            indices = getattr(self, name)
            if indices.size and (indices.min() < 0 or indices.max() >= len(self.rest)):
                raise BadMesh(f"The {name} of the mesh refer to vertices that it does not have")
        if len(self.others) != len(self.triangles):
            raise BadMesh("The mesh must have as many other triangles as triangles")

    @cached_property
    def diagonal(self) -> float:
        """Length of the diagonal of the box around all vertices; 0 where they are all at one place."""
        return diagonal(self.rest)

    @cached_property
    def place(self) -> np.ndarray:
        """(N,) int64: the place of each vertex, 0 … W − 1, in the order of their first vertices."""
        return weld(self.rest, WELDING_DISTANCE * self.diagonal)

    @cached_property
    def first_vertices(self) -> np.ndarray:
        """(W,) the first vertex at each place."""
        return np.unique(self.place, return_index=True)[1]

    @cached_property
    def points(self) -> np.ndarray:
        """(W, 3) float64 positions of the places."""
        return self.rest[self.first_vertices]

    @cached_property
    def place_triangles(self) -> np.ndarray:
        """(T', 3) triangles of places, without those that have a place twice and without repetitions."""
        return self.place[self.triangles[self._solid]]

    @cached_property
    def place_others(self) -> tuple[np.ndarray, np.ndarray]:
        """(U, 3) the ``others`` of places where they differ, and (U,) their rows in ``place_triangles``."""
        others = self.place[self.others[self._solid]]
        different = (np.sort(others, axis=1) != np.sort(self.place_triangles, axis=1)).any(axis=1)
        rows = np.flatnonzero(different & _have_area(others))
        return others[rows], rows

    @cached_property
    def shares(self) -> np.ndarray:
        """(T' + U,) how much each of ``place_triangles`` and then ``place_others`` counts: 1, or a half for two that
        replace each other."""
        others, rows = self.place_others
        result = np.ones(len(self.place_triangles) + len(others))
        result[rows] = result[len(self.place_triangles) :] = 0.5
        return result

    @cached_property
    def _solid(self) -> np.ndarray:
        """(T',) the rows of ``triangles`` that ``place_triangles`` come from."""
        solid = np.flatnonzero(_have_area(self.place[self.triangles]))
        corners = np.sort(self.place[self.triangles[solid]], axis=1)
        return solid[np.sort(np.unique(corners, axis=0, return_index=True)[1])]

    @cached_property
    def place_edges(self) -> np.ndarray:
        """(E', 2) pairs of different places joined by an edge or a triangle's side, each once, first < second."""
        sides = [each[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2) for each in (self.triangles, self.others)]
        pairs = np.sort(self.place[np.concatenate([self.edges, *sides])], axis=1)
        keys = np.unique(pairs[pairs[:, 0] != pairs[:, 1]] @ [len(self.points), 1])
        return np.column_stack(np.divmod(keys, len(self.points)))

    @cached_property
    def edge_lengths(self) -> np.ndarray:
        """(E',) lengths of ``place_edges``."""
        first, second = self.place_edges.T
        return np.linalg.norm(self.points[first] - self.points[second], axis=1)

    @cached_property
    def edge_graph(self) -> sparse.csr_matrix:
        """(W, W) symmetric, the lengths of ``place_edges``."""
        first, second = self.place_edges.T
        half = sparse.coo_matrix((self.edge_lengths, (first, second)), shape=(len(self.points),) * 2)
        return (half + half.T).tocsr()

    @cached_property
    def place_components(self) -> np.ndarray:
        """(W,) int: the connected part of each place, 0 …"""
        return connected_components(self.edge_graph, directed=False)[1]

    @cached_property
    def components(self) -> np.ndarray:
        """(N,) int: the connected part of each vertex, 0 …; parts that touch in a vertex's place are one."""
        return self.place_components[self.place]


def joined(*bodies: Body) -> Body:
    """Several bodies as one, their vertices in the order of the bodies."""
    starts = np.cumsum([0] + [len(body.rest) for body in bodies[:-1]])
    parts = zip(bodies, starts, strict=True)
    rows = [(body.rest, body.triangles + at, body.edges + at, body.others + at) for body, at in parts]
    return Body(*(np.concatenate(each) for each in zip(*rows, strict=True)))


def _have_area(triangles: np.ndarray) -> np.ndarray:
    """(T,) bool: triangles (T, 3) whose corners are three different places."""
    a, b, c = triangles.T
    return (a != b) & (b != c) & (c != a)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Deforming bones in the mesh's space: heads, tails (P, 3) float64, parents (P,) int64 with −1 for none, names.

    local_axes (P, 3, 3): the bones' local axes at rest, unit columns; None if unknown.
    Parents are deforming bones, too: the nearest deforming ancestor where the armature has other bones between.
    Raises BadSettings without bones, on positions that are not numbers, on parents out of range and on loops.
    """

    heads: np.ndarray
    tails: np.ndarray
    parents: np.ndarray
    names: tuple[str, ...] = ()
    local_axes: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("heads", "tails"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64).reshape(-1, 3))
        count = len(self.heads)
        object.__setattr__(self, "parents", np.asarray(self.parents, dtype=np.int64).reshape(-1))
        object.__setattr__(self, "names", tuple(self.names) or tuple(f"Bone {i}" for i in range(count)))
        if count == 0:
            raise BadSettings("The armature has no deforming bones. Check Deform in the properties of its bones")
        if not len(self.tails) == len(self.parents) == len(self.names) == count:
            raise BadSettings("Heads, tails, parents and names of the bones differ in number")
        wrong = ~(np.isfinite(self.heads) & np.isfinite(self.tails)).all(axis=1)
        if wrong.any():
            raise BadSettings(f"Bone {self.names[int(np.argmax(wrong))]} has a position that is not a number")
        if self.parents.min() < -1 or self.parents.max() >= count:
            raise BadSettings("A bone has a parent that is not among the bones")
        depths(self.parents, self.names)

    def __len__(self) -> int:
        return len(self.heads)

    @cached_property
    def axes(self) -> np.ndarray:
        """(P, 3) from the head of each bone to its tail."""
        return self.tails - self.heads

    @cached_property
    def lengths(self) -> np.ndarray:
        """(P,) lengths of the bones; may be zero."""
        return np.linalg.norm(self.axes, axis=1)
