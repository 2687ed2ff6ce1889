# SPDX-License-Identifier: GPL-3.0-or-later
"""Like tests/core/properties.py, for weights and results made from them."""

import numpy as np

from skinning_tools.core.binding.bind import METHODS, bind
from skinning_tools.core.binding.bulge import add_soft_bone, soft_region
from skinning_tools.core.binding.compression import STEPS, compress_weights, positional_error
from skinning_tools.core.binding.fit import bone_predictions, fit_weights, reachable_hull
from skinning_tools.core.binding.rogue import remove_rogue_weights, rogue_islands
from skinning_tools.core.binding.smoothing import smooth_weights
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.rotation_centers import bake_rotation_centers
from tests.core import random_inputs as inputs
from tests.core.properties import assert_convex, unless_refused


def binding_does_not_depend_on_units(random):
    body, skeleton = inputs.body(random), inputs.skeleton(random)
    most = int(random.integers(1, 5))
    options = {"method": str(random.choice(METHODS)), "max_influences": most, "whole_parts": random.random() < 0.5}
    limits = random.uniform(0, 3, len(skeleton)) if random.random() < 0.3 else None
    bones, weights = bind(body, skeleton, distance_limits=limits, **options)
    assert_convex(bones, weights, len(skeleton), most)
    assert (weights.sum(axis=1) > 0).all()
    factor = float(random.choice([2.0**-20, 2.0**-7, 2.0**7, 2.0**20]))
    body = Body(factor * body.rest, body.triangles, body.edges)
    skeleton = Skeleton(factor * skeleton.heads, factor * skeleton.tails, skeleton.parents)
    limits = None if limits is None else factor * limits
    other_bones, other = bind(body, skeleton, distance_limits=limits, **options)
    np.testing.assert_array_equal(other_bones, bones)
    np.testing.assert_allclose(other, weights, atol=1e-9)


def weight_tools_keep_rows_convex(random):
    body, skeleton = inputs.body(random), inputs.skeleton(random)
    count = len(skeleton)
    bones, weights = inputs.weights(random, len(body.rest), count)
    before = weight_matrix(bones, weights, count).toarray()
    nothing = smooth_weights(body, bones, weights, count, strength=0.0)
    np.testing.assert_array_equal(weight_matrix(*nothing, count).toarray(), before)
    locked = random.random(count) < 0.2
    smooth = smooth_weights(body, bones, weights, count, strength=float(random.random()), locked=locked)
    assert_convex(*smooth, count)
    has, had = smooth[1].any(axis=1), weights.any(axis=1)
    assert (has | ~had).all()
    # Only from the other vertices of its place, as a seam is closed, may one get weights that had none.
    assert np.isin(body.place, body.place[had])[has].all()
    islands = rogue_islands(body, skeleton, bones, weights)
    clean = remove_rogue_weights(body, skeleton, bones, weights, islands, locked)
    assert_convex(clean.bones, clean.weights, count)
    assert [island.size for island in islands] == sorted(island.size for island in islands)
    for after in (smooth, (clean.bones, clean.weights)):
        matrix = weight_matrix(*after, count).toarray()
        np.testing.assert_allclose(matrix[:, locked], before[:, locked], atol=1e-12)
    region = soft_region(body, body.rest[int(random.integers(len(body.rest)))], float(random.uniform(0.01, 3)))
    assert ((region >= 0) & (region <= 1)).all()
    carrier = None if random.random() < 0.5 else int(random.integers(count))
    soft = add_soft_bone(bones, weights, count, region, strength=float(random.random()), carrier=carrier)
    assert_convex(*soft, count + 1, 4)


def compressing_twice_is_compressing_once(random):
    vertex_count, bone_count = int(random.integers(1, 40)), int(random.integers(1, 8))
    bones, weights = inputs.weights(random, vertex_count, bone_count)
    bits, most = int(random.choice([8, 16])), int(random.integers(1, 5))
    once = compress_weights(bones, weights, bits=bits, max_influences=most, threshold=float(random.uniform(0, 0.2)))
    assert_convex(once.bones, once.weights, bone_count, most)
    assert set(once.steps.astype(int).sum(axis=1).tolist()) <= {0, STEPS[bits]}
    twice = compress_weights(once.bones, once.weights, bits=bits, max_influences=most)
    for rows in ("bones", "steps"):
        np.testing.assert_array_equal(getattr(twice, rows), getattr(once, rows))
    rest, matrices = random.normal(size=(vertex_count, 3)), inputs.transforms(random, 3, bone_count)
    error = positional_error(rest, (bones, weights), (once.bones, once.weights), matrices)
    assert 0 <= error.mean <= error.largest * (1 + 1e-12)
    assert np.isfinite(error.largest)


def fitted_weights_come_no_farther_than_before(random):
    bone_count, vertex_count = int(random.integers(1, 6)), int(random.integers(1, 30))
    rest = random.normal(size=(vertex_count, 3))
    bones, weights = inputs.weights(random, vertex_count, bone_count)
    weights[0, 0] += not weights.any()
    rest, bones, weights = (values[weights.any(axis=1)] for values in (rest, bones, weights))
    matrices = inputs.transforms(random, int(random.integers(1, 4)), bone_count)
    present = np.array([skin_frame(rest, bones, weights, each) for each in matrices])
    targets = present + random.choice([0.0, 0.1, 3.0]) * random.normal(size=present.shape)
    fit = unless_refused(fit_weights, rest, bones, weights, matrices, targets)
    if fit is None:
        return
    assert_convex(fit.bones, fit.weights, bone_count, 4)
    before, after = np.linalg.norm(present - targets, axis=(0, 2)), np.linalg.norm(fit.residuals, axis=0)
    # It may give up a little of the distance for weights nearer to those of before.
    spread = np.abs(matrices).max() * (1 + np.abs(rest).max(initial=0))
    assert (after <= before + 1e-3 * spread).all()
    for vertex in rest[:3]:
        hull, edges = reachable_hull(bone_predictions(vertex, np.arange(bone_count), matrices[0]))
        assert np.isfinite(hull).all()
        assert edges.max(initial=-1) < len(hull)


def centers_follow_the_mesh(random):
    """Turned, moved, in other units and its vertices in another order: each center goes along."""
    body = inputs.body(random)
    if np.linalg.matrix_rank(body.rest - body.rest[0], tol=1e-6) < 2:
        return  # on a line, where rounding alone gives faces an area
    bones, weights = inputs.weights(random, len(body.rest), int(random.integers(1, 5)))
    found = unless_refused(bake_rotation_centers, body.rest, body.triangles, bones, weights)
    order = random.permutation(len(body.rest))
    rotation, scale, offset = inputs.similarity(random)
    moved = scale * (body.rest[order] @ rotation.T + offset)
    triangles = np.argsort(order)[body.triangles]
    other = unless_refused(bake_rotation_centers, moved, triangles, bones[order], weights[order])
    assert (found is None) == (other is None)
    if found is None:
        return
    centers, valid = found
    assert np.isfinite(centers).all()
    np.testing.assert_array_equal(other[1], valid[order])
    expected = scale * (centers[order].astype(float) @ rotation.T + offset)
    size = scale * (np.abs(body.rest).max() + np.abs(offset).max())
    np.testing.assert_allclose(other[0], expected, atol=1e-5 * size)


PROPERTIES = (
    binding_does_not_depend_on_units,
    weight_tools_keep_rows_convex,
    compressing_twice_is_compressing_once,
    fitted_weights_come_no_farther_than_before,
    centers_follow_the_mesh,
)
