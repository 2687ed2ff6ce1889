# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that bring baked centers to where the mesh at rest is now, as Object > Apply and edits move it, not them.

Blender moves positions and shape keys then, no other attributes. So the mesh keeps a copy of the positions that the
centers belong to, and Blender itself hands the present ones to the nodes, before shape keys and modifiers, as
``rest_position``. The linear map that takes the copy to the present ones best, by least squares, turns and scales the
way from each vertex to its center. A sum over all vertices hardly minds an edit of some.
"""

import numpy as np

from ..records import RESERVED
from .node_builder import NodeBuilder

# The copy: positions of the mesh at rest that its centers belong to.
REST = f"{RESERVED}rest"

# What Blender calls the present ones, where an object's ``add_rest_position_attribute`` is set.
_PRESENT = "rest_position"

# Added along all axes, as a share of the mesh's spread: along one that the mesh does not have, nothing is to be known.
_FLOOR = 1e-6

# Vertices that are further from where the map has them (mean of squares, as a share of the spread) were moved each by
# itself, so that no map tells of their centers.
_MOST_LEFT = 0.05**2


def write_rest(mesh) -> None:
    """Keep the positions that the centers of a mesh belong to, which are its present ones."""
    positions = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.attributes["position"].data.foreach_get("vector", positions)
    if REST not in mesh.attributes:
        mesh.attributes.new(REST, "FLOAT_VECTOR", "POINT")
    mesh.attributes[REST].data.foreach_set("vector", positions)


def remove_rest(mesh) -> None:
    """Take them off a mesh, where it has any."""
    if REST in mesh.attributes:
        mesh.attributes.remove(mesh.attributes[REST])


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
        return build.add("ShaderNodeSeparateXYZ", mean(squares)).outputs["X"]

    before = build.vector("SUBTRACT", baked, mean(baked))
    now = build.vector("SUBTRACT", present, mean(present))
    before_axes = build.add("ShaderNodeSeparateXYZ", before).outputs
    sums = [[mean(build.scaled(side, axis)) for axis in before_axes] for side in (before, now)]
    diagonal = [build.add("ShaderNodeSeparateXYZ", column).outputs[row] for row, column in enumerate(sums[0])]
    spread = build.math("ADD", build.math("ADD", diagonal[0], diagonal[1]), diagonal[2])
    size = mean_square(now)
    scale = build.math("SQRT", build.math("DIVIDE", size, spread))
    squares, products = _matrix(build, sums[0], spread, 1.0), _matrix(build, sums[1], spread, scale)
    linear = build.product(products, build.add("FunctionNodeInvertMatrix", squares).outputs["Matrix"])

    def moved(field):
        return build.add("FunctionNodeTransformDirection", field, linear).outputs["Direction"]

    left = mean_square(build.vector("SUBTRACT", now, moved(before)))
    fits = build.math("LESS_THAN", left, build.math("MULTIPLY_ADD", size, _MOST_LEFT, 1e-30))
    carried = build.vector("ADD", present, moved(build.vector("SUBTRACT", center, baked)))
    # One number for the whole mesh, not a field: where nothing was edited Blender leaves out all of the above.
    edited = build.math("GREATER_THAN", mean_square(build.vector("SUBTRACT", present, baked)), 0.0)
    return _switch(build, edited, center, _switch(build, fits, position, carried))


def _matrix(build: NodeBuilder, columns, spread, scale):
    """3 × 3 of the ``columns``, as shares of the spread, with the floor at a scale."""
    values = []
    for row, column in enumerate(columns):
        floor = build.scaled(tuple(_FLOOR * (row == axis) for axis in range(3)), scale)
        share = build.vector("ADD", build.vector("DIVIDE", column, build.xyz(spread, spread, spread)), floor)
        values += [*build.add("ShaderNodeSeparateXYZ", share).outputs, 0.0]
    return build.add("FunctionNodeCombineMatrix", *values, 0.0, 0.0, 0.0, 1.0).outputs["Matrix"]


def _switch(build: NodeBuilder, choice, otherwise, where):
    return build.add("GeometryNodeSwitch", choice, otherwise, where, input_type="VECTOR").outputs["Output"]
