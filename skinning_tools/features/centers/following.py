# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that make baked centers follow the rest mesh, which Object > Apply and edits move without the centers.

Blender then moves positions and shape keys, but no other attributes. So the mesh keeps a copy of the positions at the
time of the bake, and Blender gives the nodes the present ones, before shape keys and modifiers, as ``rest_position``.
The least-squares linear map from the copy to the present positions turns and scales the vector from each vertex to its
center. A sum over all vertices is hardly affected by edits of a few.
"""

from collections.abc import Callable, Sequence

import bpy
import numpy as np

from ...blender.node_builder import NodeBuilder
from ...blender.records import RESERVED

# The copy: the rest positions at the time of the bake.
REST = f"{RESERVED}rest"

# Blender's name for the present rest positions, available with an object's ``add_rest_position_attribute``.
_PRESENT = "rest_position"

# A mesh axis with less than this share of the sum of squares is ignored: single precision leaves only rounding there,
# and no center lies far enough off for the map to matter.
_FLAT = 1e-10

# Vertices that are farther than this from the map's positions (mean square relative to the spread) were moved
# individually, so that no map gives their centers.
_MOST_LEFT = 0.05**2


def followed(
    build: NodeBuilder,
    geometry: bpy.types.NodeSocketGeometry,
    center: bpy.types.NodeSocketVector,
    position: bpy.types.NodeSocketVector,
) -> bpy.types.NodeSocketVector:
    """The field ``center`` for the present mesh; ``position``, from linear blending, if the center is unknown.

    The unchanged center if either attribute is missing, as in files of older versions.
    """
    baked, present = build.attribute(REST, "FLOAT_VECTOR"), build.attribute(_PRESENT, "FLOAT_VECTOR")
    exists, baked, present = present.outputs["Exists"], baked.outputs["Attribute"], present.outputs["Attribute"]
    # Vertices joined from another mesh have zeros there.
    own = build.math("GREATER_THAN", build.dot(baked, baked), 0.0)
    own = build.add("FunctionNodeBooleanMath", own, exists, operation="AND").outputs["Boolean"]

    def mean(field: bpy.types.NodeSocketVector) -> bpy.types.NodeSocketVector:
        statistic = build.add("GeometryNodeAttributeStatistic", geometry, own, field, data_type="FLOAT_VECTOR")
        return statistic.outputs["Mean"]

    def mean_square(field: bpy.types.NodeSocketVector) -> bpy.types.NodeSocketFloat:
        squares = build.xyz(build.dot(field, field), 0.0, 0.0)
        return build.components(mean(squares))["X"]

    before = build.vector("SUBTRACT", baked, mean(baked))
    now = build.vector("SUBTRACT", present, mean(present))
    size = mean_square(now)
    # Along the mesh's principal axes, each with its own unit: along other axes, single precision cannot distinguish the
    # squares of a thin mesh from rounding.
    per_size = build.math("DIVIDE", 1.0, build.math("SQRT", mean_square(before)))
    shape = build.scaled(before, per_size)
    axes = build.add("FunctionNodeMatrixSVD", _matrix(build, _columns(build, mean, shape, shape))).outputs["V"]
    to_axes = build.transposed(axes)
    along = build.directed(shape, to_axes)
    shares = build.components(mean(build.vector("MULTIPLY", along, along)))
    known = [build.math("GREATER_THAN", share, _FLAT) for share in shares]
    units = [build.math("DIVIDE", has, build.math("SQRT", share)) for has, share in zip(known, shares, strict=True)]
    to_even = build.product(build.diagonal(build.scaled(build.xyz(*units), per_size)), to_axes)
    evened = build.directed(before, to_even)
    squares = [
        # An ignored axis has only zeros; a one on the diagonal lets the others be solved.
        build.vector("ADD", column, build.scaled(unit, build.math("SUBTRACT", 1.0, has)))
        for column, unit, has in zip(_columns(build, mean, evened, evened), np.eye(3).tolist(), known, strict=True)
    ]
    solved = build.inverse(_matrix(build, squares))
    linear = build.product(_matrix(build, _columns(build, mean, now, evened)), solved, to_even)

    def moved(field: bpy.types.NodeSocketVector) -> bpy.types.NodeSocketVectorXYZ:
        return build.directed(field, linear)

    left = mean_square(build.vector("SUBTRACT", now, moved(before)))
    fits = build.math("LESS_THAN", left, build.math("MULTIPLY_ADD", size, _MOST_LEFT, 1e-30))
    carried = build.vector("ADD", present, moved(build.vector("SUBTRACT", center, baked)))
    # One number for the whole mesh, not a field: Blender skips all of the above if nothing was edited.
    edited = build.math("GREATER_THAN", mean_square(build.vector("SUBTRACT", present, baked)), 0.0)
    return build.switch(edited, center, build.switch(fits, position, carried))


def _columns(build: NodeBuilder, mean: Callable, field: bpy.types.bpy_struct, axes: bpy.types.bpy_struct) -> list:
    """The means of ``field`` times each component of ``axes``."""
    return [mean(build.scaled(field, axis)) for axis in build.components(axes)]


def _matrix(build: NodeBuilder, columns: Sequence[bpy.types.NodeSocketVector]) -> bpy.types.NodeSocketMatrix:
    """3 × 3 of the ``columns``."""
    values = []
    for column in columns:
        values += [*build.components(column), 0.0]
    return build.add("FunctionNodeCombineMatrix", *values, 0.0, 0.0, 0.0, 1.0).outputs["Matrix"]
