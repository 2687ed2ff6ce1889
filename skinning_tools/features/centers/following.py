# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that bring baked centers to where the mesh at rest is now, as Object > Apply and edits move it, not them.

Blender moves positions and shape keys then, no other attributes. So the mesh keeps a copy of the positions that the
centers belong to, and Blender itself hands the present ones to the nodes, before shape keys and modifiers, as
``rest_position``. The linear map that takes the copy to the present ones best, by least squares, turns and scales the
way from each vertex to its center. A sum over all vertices hardly minds an edit of some.
"""

import numpy as np

from ...blender.records import RESERVED
from .node_builder import NodeBuilder

# The copy: positions of the mesh at rest that its centers belong to.
REST = f"{RESERVED}rest"

# What Blender calls the present ones, where an object's ``add_rest_position_attribute`` is set.
_PRESENT = "rest_position"

# An axis of the mesh that has less than this share of its squares is one that the mesh does not have: there rounding is
# all that single precision leaves, and no center lies so far off that the map would have to move it.
_FLAT = 1e-10

# Vertices that are further from where the map has them (mean of squares, as a share of the spread) were moved each by
# itself, so that no map tells of their centers.
_MOST_LEFT = 0.05**2


def followed(build: NodeBuilder, geometry, center, position):
    """The field ``center`` as the mesh is now; ``position``, of linear blending, where that cannot be told.

    The center itself where either of the attributes is missing, as in files of older versions.
    """
    baked, present = build.attribute(REST, "FLOAT_VECTOR"), build.attribute(_PRESENT, "FLOAT_VECTOR")
    exists, baked, present = present.outputs["Exists"], baked.outputs["Attribute"], present.outputs["Attribute"]
    # Vertices that another mesh has brought along by joining have zeros there.
    own = build.math("GREATER_THAN", build.dot(baked, baked), 0.0)
    own = build.add("FunctionNodeBooleanMath", own, exists, operation="AND").outputs["Boolean"]

    def mean(field):
        statistic = build.add("GeometryNodeAttributeStatistic", geometry, own, field, data_type="FLOAT_VECTOR")
        return statistic.outputs["Mean"]

    def mean_square(field):
        squares = build.xyz(build.dot(field, field), 0.0, 0.0)
        return build.components(mean(squares))["X"]

    before = build.vector("SUBTRACT", baked, mean(baked))
    now = build.vector("SUBTRACT", present, mean(present))
    size = mean_square(now)
    # Along the mesh's own axes, each in a unit of its own: single precision does not tell the squares of a thin mesh
    # from rounding along any others.
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
        # A lost axis has only zeros; with a one among them the others can be solved for.
        build.vector("ADD", column, build.scaled(unit, build.math("SUBTRACT", 1.0, has)))
        for column, unit, has in zip(_columns(build, mean, evened, evened), np.eye(3).tolist(), known, strict=True)
    ]
    solved = build.inverse(_matrix(build, squares))
    linear = build.product(_matrix(build, _columns(build, mean, now, evened)), solved, to_even)

    def moved(field):
        return build.directed(field, linear)

    left = mean_square(build.vector("SUBTRACT", now, moved(before)))
    fits = build.math("LESS_THAN", left, build.math("MULTIPLY_ADD", size, _MOST_LEFT, 1e-30))
    carried = build.vector("ADD", present, moved(build.vector("SUBTRACT", center, baked)))
    # One number for the whole mesh, not a field: where nothing was edited Blender leaves out all of the above.
    edited = build.math("GREATER_THAN", mean_square(build.vector("SUBTRACT", present, baked)), 0.0)
    return build.switch(edited, center, build.switch(fits, position, carried))


def _columns(build: NodeBuilder, mean, field, axes) -> list:
    """The means of ``field`` times each component of ``axes``."""
    return [mean(build.scaled(field, axis)) for axis in build.components(axes)]


def _matrix(build: NodeBuilder, columns):
    """3 × 3 of the ``columns``."""
    values = []
    for column in columns:
        values += [*build.components(column), 0.0]
    return build.add("FunctionNodeCombineMatrix", *values, 0.0, 0.0, 0.0, 1.0).outputs["Matrix"]
