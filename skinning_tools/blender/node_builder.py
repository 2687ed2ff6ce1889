# SPDX-License-Identifier: GPL-3.0-or-later
"""Geometry node trees written as expressions: a node per call, sockets or constants as its inputs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import bpy

_COLUMN_WIDTH, _ROW_HEIGHT = 200.0, 180.0


class NodeBuilder:
    """Adds linked nodes to a node tree. A value is a socket or a socket's default; None leaves the default."""

    def __init__(self, tree: bpy.types.NodeTree):
        self.tree = tree
        self._column: dict[str, int] = {}

    def add(
        self, kind: str, *values: bpy.types.bpy_struct | str | float, named: dict | None = None, **settings: Any
    ) -> bpy.types.Node:
        """A node of type ``kind``: ``settings`` are its properties, ``values`` its inputs in order or by ``named``."""
        node = self.tree.nodes.new(kind)
        for name, value in settings.items():
            setattr(node, name, value)
        self._column[node.name] = 0
        for key, value in [*enumerate(values), *(named or {}).items()]:
            if value is not None:
                self.link(value, node.inputs[key])
        return node

    def link(self, value: bpy.types.bpy_struct | str | float, target: bpy.types.NodeSocket) -> None:
        """Connect ``value`` to the input ``target`` of a node."""
        if not isinstance(value, bpy.types.NodeSocket):
            target.default_value = value
            return
        self.tree.links.new(value, target)
        name = target.node.name
        self._column[name] = max(self._column[name], self._column[value.node.name] + 1)

    def math(self, operation: str, *values: bpy.types.NodeSocketFloat | float) -> bpy.types.NodeSocket:
        return self.add("ShaderNodeMath", *values, operation=operation).outputs["Value"]

    def vector(
        self, operation: str, *values: bpy.types.bpy_struct | tuple[float, float, float]
    ) -> bpy.types.NodeSocket:
        """A vector operation; ``dot`` is the one that returns a number."""
        return self.add("ShaderNodeVectorMath", *values, operation=operation).outputs["Vector"]

    def dot(self, first: bpy.types.NodeSocketVector, second: bpy.types.NodeSocketVector) -> bpy.types.NodeSocket:
        return self.add("ShaderNodeVectorMath", first, second, operation="DOT_PRODUCT").outputs["Value"]

    def scaled(
        self, vector: bpy.types.bpy_struct | Sequence[float], factor: bpy.types.NodeSocketFloat
    ) -> bpy.types.NodeSocket:
        node = self.add("ShaderNodeVectorMath", vector, named={"Scale": factor}, operation="SCALE")
        return node.outputs["Vector"]

    def xyz(
        self, x: bpy.types.NodeSocketFloat, y: float | bpy.types.NodeSocketFloat, z: float | bpy.types.NodeSocketFloat
    ) -> bpy.types.NodeSocket:
        return self.add("ShaderNodeCombineXYZ", x, y, z).outputs["Vector"]

    def components(self, vector: bpy.types.bpy_struct) -> bpy.types.bpy_prop_collection:
        """x, y and z, also by the names "X", "Y" and "Z"."""
        return self.add("ShaderNodeSeparateXYZ", vector).outputs

    def switch(
        self, choice: bpy.types.bpy_struct, otherwise: bpy.types.NodeSocketVector, where: bpy.types.NodeSocketVector
    ) -> bpy.types.NodeSocket:
        """The vector ``where`` the choice is true, else ``otherwise``."""
        return self.add("GeometryNodeSwitch", choice, otherwise, where, input_type="VECTOR").outputs["Output"]

    def attribute(self, name: str, data_type: str) -> bpy.types.Node:
        """The named attribute, with its outputs "Attribute" and "Exists"."""
        return self.add("GeometryNodeInputNamedAttribute", name, data_type=data_type)

    def stored(
        self, geometry: bpy.types.NodeSocketGeometry, name: str, data_type: str, value: bpy.types.NodeSocketMatrix
    ) -> bpy.types.NodeSocket:
        """The geometry with the field ``value`` as a named point attribute."""
        return self.add(
            "GeometryNodeStoreNamedAttribute",
            geometry,
            named={"Name": name, "Value": value},
            data_type=data_type,
            domain="POINT",
        ).outputs["Geometry"]

    def sampled(
        self,
        geometry: bpy.types.NodeSocketGeometry,
        data_type: str,
        value: bpy.types.NodeSocketMatrix,
        index: bpy.types.NodeSocketFloat,
    ) -> bpy.types.NodeSocket:
        """The field ``value`` of the points of ``geometry`` at each index."""
        return self.add("GeometryNodeSampleIndex", geometry, value, index, data_type=data_type).outputs["Value"]

    def product(self, *matrices: bpy.types.NodeSocketMatrix) -> bpy.types.NodeSocket:
        """The product of matrices, from the left."""
        result = matrices[0]
        for matrix in matrices[1:]:
            result = self.add("FunctionNodeMatrixMultiply", result, matrix).outputs["Matrix"]
        return result

    def transposed(self, matrix: bpy.types.NodeSocketMatrix) -> bpy.types.NodeSocket:
        return self.add("FunctionNodeTransposeMatrix", matrix).outputs["Matrix"]

    def inverse(self, matrix: bpy.types.NodeSocketMatrix) -> bpy.types.NodeSocket:
        return self.add("FunctionNodeInvertMatrix", matrix).outputs["Matrix"]

    def directed(self, vector: bpy.types.NodeSocketVector, matrix: bpy.types.NodeSocketMatrix) -> bpy.types.NodeSocket:
        """The vector by the linear part of a matrix."""
        return self.add("FunctionNodeTransformDirection", vector, matrix).outputs["Direction"]

    def diagonal(self, vector: bpy.types.NodeSocketVector) -> bpy.types.NodeSocket:
        """The matrix that scales by a vector."""
        return self.add("FunctionNodeCombineTransform", named={"Scale": vector}).outputs["Transform"]

    def arrange(self) -> None:
        """Place the nodes in columns, inputs left of what they feed."""
        rows: dict[int, int] = defaultdict(int)
        for node in self.tree.nodes:
            column = self._column.get(node.name, 0)
            node.location = (column * _COLUMN_WIDTH, -rows[column] * _ROW_HEIGHT)
            rows[column] += 1


@contextmanager
def new_tree(name: str) -> Iterator[NodeBuilder]:
    """A builder of a new Geometry Nodes group, which is removed again if the block raises an exception."""
    tree = bpy.data.node_groups.new(name, "GeometryNodeTree")
    try:
        build = NodeBuilder(tree)
        yield build
        build.arrange()
    except BaseException:
        remove_tree(tree)
        raise


def remove_tree(tree: bpy.types.GeometryNodeTree) -> None:
    """Remove a group that nothing uses, with the groups in it that nothing else uses; others are left alone."""
    if tree.users:
        return
    inner = {node.node_tree for node in tree.nodes if node.bl_idname == "GeometryNodeGroup"}
    bpy.data.node_groups.remove(tree)
    for group in inner - {None}:
        remove_tree(group)
