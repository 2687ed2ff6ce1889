# SPDX-License-Identifier: GPL-3.0-or-later
"""The skin and the skeleton that binding works on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ..errors import BadMesh, BadSettings

# Vertices closer than this share of the diagonal are one place: float32 rounds positions to about a tenth of it.
WELDING_DISTANCE = 1e-6


def weld(points: np.ndarray, radius: float) -> np.ndarray:
    """(n,) int64 which place each of ``points`` (n, 3) is at, 0 … in the order of their first points.

    Points within ``radius`` of each other are at one place, and so are chains of such points.
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

    others (T, 3): what stands in place of each triangle where its quad is cut along the other diagonal, wound like it;
    the triangle itself where there is no other way, which is the default. Both ways count alike: which one a mesh has
    is chance, and not the same on both sides of a symmetric mesh.
    Vertices at the same place are welded: ``place`` (N,) tells which of the W places each vertex has, and graphs and
    components are of places, so that seams do not tear. Edges are those given and the sides of all triangles.
    Raises BadMesh without vertices, on positions that are no numbers and on indices that are not there.
    """

    rest: np.ndarray
    triangles: np.ndarray
    edges: np.ndarray
    others: np.ndarray = None  # type: ignore[assignment] # __post_init__ makes it an array

    def __post_init__(self):
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
                raise BadMesh(f"The mesh has {name} with vertices that it does not have")
        if len(self.others) != len(self.triangles):
            raise BadMesh("The mesh has not as many other triangles as triangles")

    @cached_property
    def diagonal(self) -> float:
        """Length of the diagonal of the box around all vertices; 0 where they are all at one place."""
        return float(np.linalg.norm(np.ptp(self.rest, axis=0)))

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
        """(U, 3) the ``others`` of places where they differ, and (U,) of which of ``place_triangles`` they are."""
        others = self.place[self.others[self._solid]]
        different = (np.sort(others, axis=1) != np.sort(self.place_triangles, axis=1)).any(axis=1)
        rows = np.flatnonzero(different & _have_area(others))
        return others[rows], rows

    @cached_property
    def shares(self) -> np.ndarray:
        """(T' + U,) how much each of ``place_triangles`` and then ``place_others`` counts: 1, or for two in the same
        place a half."""
        others, rows = self.place_others
        result = np.ones(len(self.place_triangles) + len(others))
        result[rows] = result[len(self.place_triangles) :] = 0.5
        return result

    @cached_property
    def _solid(self) -> np.ndarray:
        """(T',) the triangles that ``place_triangles`` are of."""
        solid = np.flatnonzero(_have_area(self.place[self.triangles]))
        corners = np.sort(self.place[self.triangles[solid]], axis=1)
        return solid[np.sort(np.unique(corners, axis=0, return_index=True)[1])]

    @cached_property
    def place_edges(self) -> np.ndarray:
        """(E', 2) pairs of different places that an edge or a triangle's side joins, each once, first < second."""
        sides = [each[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2) for each in (self.triangles, self.others)]
        pairs = np.sort(self.place[np.concatenate([self.edges, *sides])], axis=1)
        return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)

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


def _have_area(triangles: np.ndarray) -> np.ndarray:
    """(T,) bool: triangles (T, 3) whose corners are three different places."""
    a, b, c = triangles.T
    return (a != b) & (b != c) & (c != a)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Deforming bones in the mesh's space: heads, tails (P, 3) float64, parents (P,) int64 with −1 for none, names.

    Parents are deforming bones, too: where the armature has others between, the nearest deforming ancestor.
    Raises BadSettings without bones, on positions that are no numbers, parents that are not there and loops.
    """

    heads: np.ndarray
    tails: np.ndarray
    parents: np.ndarray
    names: tuple[str, ...] = ()

    def __post_init__(self):
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
        ancestor = self.parents
        for _ in range(count):
            if (ancestor < 0).all():
                return
            ancestor = np.where(ancestor < 0, -1, self.parents[ancestor])
        if (ancestor >= 0).any():
            raise BadSettings(f"Bone {self.names[int(np.argmax(ancestor >= 0))]} is its own ancestor")

    def __len__(self) -> int:
        return len(self.heads)

    @cached_property
    def lengths(self) -> np.ndarray:
        """(P,) lengths of the bones; may be zero."""
        return np.linalg.norm(self.tails - self.heads, axis=1)
