# SPDX-License-Identifier: GPL-3.0-or-later
"""T-intersections: which vertices are found, on which meshes none is, and that they do open."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.tears import t_intersections
from skinning_tools.core.binding.types import Body
from skinning_tools.core.deform import skin_frame

from ..skinned_shapes import about
from . import bodies
from .bodies import NO_EDGES, bar, chain


def with_t():
    """A strip: to the left a face with the long edge 0, 1; to the right two faces that meet on it in vertex 2."""
    rest = [[2, 0, 0], [2, 2, 0], [2, 0.7, 0], [0, 0, 0], [0, 2, 0], [4, 0, 0], [4, 0.7, 0], [4, 2, 0]]
    quads = [[3, 0, 1, 4], [0, 5, 6, 2], [2, 6, 7, 1]]
    triangles = [corner for a, b, c, d in quads for corner in ([a, b, c], [a, c, d])]
    return Body(np.array(rest, float), np.array(triangles), NO_EDGES)


@pytest.mark.parametrize("seed", range(3))
def test_the_vertex_on_the_long_edge_is_found(seed):
    """Wherever and however large the mesh is, and also where positions are those of single precision."""
    body = with_t()
    turn = Rotation.random(random_state=seed).as_matrix() * 10.0 ** (3 * seed - 3)
    moved = (body.rest @ turn.T + 10.0 ** (3 * seed - 3)).astype(np.float32)
    np.testing.assert_array_equal(t_intersections(Body(moved, body.triangles, NO_EDGES)), [2])


def test_all_vertices_at_that_place_are_found():
    body = with_t()
    triangles = body.triangles.copy()
    triangles[4:][triangles[4:] == 2] = 8
    both = Body(np.vstack([body.rest, body.rest[2]]), triangles, NO_EDGES)
    np.testing.assert_array_equal(t_intersections(both), [2, 8])


def test_meshes_without_any():
    torn = bar(12, 4)
    torn = Body(torn.rest[torn.triangles].reshape(-1, 3), np.arange(torn.triangles.size).reshape(-1, 3), NO_EDGES)
    # Closed, open, and split at each face; and nothing but vertices.
    for body in (bar(), bodies.sheet(), torn, Body(np.zeros((3, 3)), np.zeros((0, 3), int), NO_EDGES)):
        assert not len(t_intersections(body))
    # A sliver, whose corner is nearly on the edge opposite.
    flat = Body(np.array([[0, 0, 0], [2, 0, 0], [1, 1e-4, 0.0]]), np.array([[0, 1, 2]]), NO_EDGES)
    assert not len(t_intersections(flat))


def test_the_surface_opens_there_whatever_the_weights():
    """Bent about the long edge's side, bound by ourselves."""
    body, skeleton = with_t(), chain(2)
    bones, weights = bind(body, skeleton, "DELAUNAY")
    joint = skeleton.heads[1]
    turned = about(Rotation.from_euler("yz", [60, 40], degrees=True).as_matrix(), joint)
    posed = skin_frame(body.rest, bones, weights, np.stack([np.eye(3, 4), turned]))
    edge = posed[1] - posed[0]
    off = posed[2] - posed[0]
    off -= edge * (off @ edge) / (edge @ edge)
    assert np.linalg.norm(off) > 1e-3
