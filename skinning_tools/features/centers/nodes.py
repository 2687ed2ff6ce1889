# SPDX-License-Identifier: GPL-3.0-or-later
"""The node group that deforms a mesh about centers of rotation, from Blender's own nodes.

One point per bone holds the bone's present transform; each vertex samples the points of the bones that it follows, by
stored indices. So the work at a vertex depends on its influences, not on the number of bones.
The rule is that of core.deform (Le & Hodgins 2016): rotations blend as quaternions on one side, stretches linearly.
"""

from collections.abc import Sequence

import bpy

from ...blender.node_builder import NodeBuilder, new_tree
from .following import followed

# A matrix attribute at each vertex has 16 numbers: this many bone indices, and as many weights.
SLOTS_PER_ATTRIBUTE = 8

_MATRIX, _TURN = "crs_matrix", "crs_turn"

# Bones per nested group: each change of a group takes Blender time in proportion to its size.
_GROUP_SIZE = 32

# Relative to the largest stretch: smaller ones count as zero in single precision.
_FLAT = 1e-6

# As NEARLY_ZERO of core.quaternions: bones half a turn apart keep their signs.
_HALF_TURN = 1e-6


def build_tree(
    name: str, bone_names: Sequence[str], slot_count: int, center_attribute: str, influence_attributes: Sequence[str]
) -> bpy.types.NodeTree:
    """A new group with the inputs Geometry, Armature and Factor (1 about the centers, 0 by linear blending).

    Vertices store bones as indices into ``bone_names``; the index after the last one is an identity bone.
    """
    with new_tree(name) as build:
        _add_interface(build.tree)
        entry = build.add("NodeGroupInput")
        position = build.add("GeometryNodeInputPosition").outputs["Position"]
        center = build.attribute(center_attribute, "FLOAT_VECTOR")
        present = followed(build, entry.outputs["Geometry"], center.outputs["Attribute"], position)
        # Without its attribute a vertex has no center: then it moves by linear blending.
        center = build.switch(center.outputs["Exists"], position, present)
        points = _all_points(build, entry.outputs["Armature"], bone_names)
        slots, exist = _influences(build, influence_attributes, slot_count)
        deformed = _deformed(build, points, slots, position, center, entry.outputs["Factor"])
        followers = build.add("FunctionNodeBooleanMath", exist, _has_influences(build, slots), operation="AND")
        moved = build.add("GeometryNodeSetPosition", entry.outputs["Geometry"], followers.outputs["Boolean"], deformed)
        build.add("NodeGroupOutput", moved.outputs["Geometry"])
    return build.tree


def _add_interface(tree: bpy.types.GeometryNodeTree) -> None:
    tree.is_modifier = True
    interface = tree.interface
    interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    interface.new_socket("Armature", in_out="INPUT", socket_type="NodeSocketObject")
    factor = interface.new_socket("Factor", in_out="INPUT", socket_type="NodeSocketFloat")
    factor.description = (
        "1 deforms about centers of rotation, 0 by linear blending as the Armature modifier does. "
        "Use a vertex group or another attribute to set it for each vertex"
    )
    factor.subtype = "FACTOR"
    factor.min_value, factor.max_value, factor.default_value = 0.0, 1.0, 1.0


def _all_points(
    build: NodeBuilder, armature: bpy.types.NodeSocketObject, bone_names: Sequence[str]
) -> bpy.types.NodeSocket:
    """A point per bone and one identity point, with two matrices each.

    The first takes the rest pose to the present one, in the space of the modified object. The second has the stretch of
    the first in its linear part and the quaternion of its rotation (x, y, z, w) in its last column.
    """
    still = build.add("GeometryNodePoints", 1).outputs["Points"]
    parts = [build.stored(still, _MATRIX, "FLOAT4X4", build.add("FunctionNodeCombineTransform").outputs["Transform"])]
    for start in reversed(range(0, len(bone_names), _GROUP_SIZE)):
        names = bone_names[start : start + _GROUP_SIZE]
        group = build.add("GeometryNodeGroup", node_tree=_bone_group(f"Bones {start + 1}–{start + len(names)}", names))
        build.link(armature, group.inputs["Armature"])
        parts.append(group.outputs["Geometry"])
    join = build.add("GeometryNodeJoinGeometry")
    for part in parts:
        # The last link comes first.
        build.link(part, join.inputs["Geometry"])
    return build.stored(
        join.outputs["Geometry"], _TURN, "FLOAT4X4", _turn(build, build.attribute(_MATRIX, "FLOAT4X4").outputs[0])
    )


def _bone_group(name: str, bone_names: Sequence[str]) -> bpy.types.NodeTree:
    """A group from an Armature to a point per bone with the first of its matrices."""
    with new_tree(name) as build:
        build.tree.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
        build.tree.interface.new_socket("Armature", in_out="INPUT", socket_type="NodeSocketObject")
        armature = build.add("NodeGroupInput").outputs["Armature"]
        bones = [
            build.add("GeometryNodeBoneInfo", armature, named={"Bone Name": bone}, transform_space="RELATIVE").outputs
            for bone in bone_names
        ]
        index = build.add("GeometryNodeInputIndex").outputs["Index"]
        pose, rest = (_by_index(build, index, [bone[output] for bone in bones]) for output in ("Pose", "Rest Pose"))
        points = build.add("GeometryNodePoints", len(bone_names)).outputs["Points"]
        matrices = build.product(pose, build.inverse(rest))
        build.add("NodeGroupOutput", build.stored(points, _MATRIX, "FLOAT4X4", matrices))
    return build.tree


def _by_index(
    build: NodeBuilder, index: bpy.types.NodeSocketInt, matrices: Sequence[bpy.types.NodeSocketMatrix]
) -> bpy.types.NodeSocket:
    """The matrices by index."""
    node = build.add("GeometryNodeIndexSwitch", data_type="MATRIX")
    while len(node.index_switch_items) < len(matrices):
        node.index_switch_items.new()
    for place, value in enumerate([index, *matrices]):
        build.link(value, node.inputs[place])
    return node.outputs["Output"]


def _turn(build: NodeBuilder, matrix: bpy.types.NodeSocketMatrix) -> bpy.types.NodeSocket:
    """Stretch and rotation of ``matrix`` by its polar decomposition, in one matrix.

    As in core.rotations: if the matrix mirrors, all stretches are negative; if it also flattens, the lost axis is
    reversed.
    """
    parts = build.add("FunctionNodeMatrixSVD", matrix).outputs
    left, right = parts["U"], build.transposed(parts["V"])
    sizes = build.components(parts["S"])
    determinant = build.add("FunctionNodeMatrixDeterminant", build.product(left, right)).outputs["Determinant"]
    mirrors = build.math("LESS_THAN", determinant, 0.0)
    solid = build.math("GREATER_THAN", sizes["Z"], build.math("MULTIPLY", sizes["X"], _FLAT))
    sign = build.math("MULTIPLY_ADD", mirrors, -2.0, 1.0)
    solid_sign = build.math("MULTIPLY_ADD", build.math("MULTIPLY", mirrors, solid), -2.0, 1.0)
    signs = build.xyz(solid_sign, solid_sign, sign)
    rotation = build.product(left, build.diagonal(signs), right)
    stretch = build.product(parts["V"], build.diagonal(build.vector("MULTIPLY", parts["S"], signs)), right)

    turned = build.add("FunctionNodeSeparateTransform", rotation).outputs["Rotation"]
    quaternion = build.add("FunctionNodeRotationToQuaternion", turned).outputs
    columns = build.add("FunctionNodeSeparateMatrix", stretch).outputs
    values = [columns[place] if place % 4 < 3 else 0.0 for place in range(12)]
    values += _canonical(build, [quaternion[name] for name in "XYZW"])
    return build.add("FunctionNodeCombineMatrix", *values).outputs["Matrix"]


def _canonical(build: NodeBuilder, quaternion: Sequence[bpy.types.NodeSocketFloat]) -> list[bpy.types.NodeSocket]:
    """x, y, z, w with the sign that core.quaternions.canonical gives them."""
    leading = 0.0
    x, y, z, w = quaternion
    for component in (w, x, y, z):
        # 1, 0 or −1, with doubling weights: the first nonzero one outweighs all others.
        above = build.math("GREATER_THAN", component, _HALF_TURN)
        below = build.math("LESS_THAN", component, -_HALF_TURN)
        leading = build.math("MULTIPLY_ADD", leading, 2.0, build.math("SUBTRACT", above, below))
    sign = build.math("MULTIPLY_ADD", build.math("LESS_THAN", leading, 0.0), -2.0, 1.0)
    return [build.math("MULTIPLY", component, sign) for component in quaternion]


def _influences(
    build: NodeBuilder, attributes: Sequence[str], slot_count: int
) -> tuple[list[tuple[bpy.types.NodeSocketFloat, bpy.types.NodeSocketFloat]], bpy.types.NodeSocketBool]:
    """(index, weight) of each slot, and whether the vertex has the attributes."""
    slots, exist = [], None
    for attribute in attributes:
        node = build.attribute(attribute, "FLOAT4X4")
        exist = exist or node.outputs["Exists"]
        values = build.add("FunctionNodeSeparateMatrix", node.outputs["Attribute"]).outputs
        slots += [(values[slot], values[SLOTS_PER_ATTRIBUTE + slot]) for slot in range(SLOTS_PER_ATTRIBUTE)]
    return slots[:slot_count], exist


def _has_influences(
    build: NodeBuilder, slots: Sequence[tuple[bpy.types.NodeSocketFloat, bpy.types.NodeSocketFloat]]
) -> bpy.types.NodeSocket:
    """False at vertices joined from another mesh, which have only zeros."""
    total = 0.0
    for _, weight in slots:
        total = build.math("ADD", total, weight)
    return build.math("GREATER_THAN", total, 0.0)


def _deformed(
    build: NodeBuilder,
    points: bpy.types.NodeSocketGeometry,
    slots: Sequence[tuple[bpy.types.NodeSocketFloat, bpy.types.NodeSocketFloat]],
    position: bpy.types.NodeSocketVector,
    center: bpy.types.NodeSocketVector,
    factor: bpy.types.NodeSocketFloatFactor,
) -> bpy.types.NodeSocket:
    """The deformed position: the center by linear blending, plus the turned and stretched offset from it."""
    matrix_field = build.attribute(_MATRIX, "FLOAT4X4").outputs["Attribute"]
    turn_field = build.attribute(_TURN, "FLOAT4X4").outputs["Attribute"]
    offset = build.vector("SUBTRACT", position, center)
    base = linear = stretched = (0.0, 0.0, 0.0)
    axis, real = None, None
    for index, weight in slots:
        matrix = build.sampled(points, "FLOAT4X4", matrix_field, index)
        turn = build.sampled(points, "FLOAT4X4", turn_field, index)
        at_center = build.add("FunctionNodeTransformPoint", center, matrix).outputs["Vector"]
        base = build.vector("MULTIPLY_ADD", at_center, weight, base)
        along = build.directed(offset, matrix)
        linear = build.vector("MULTIPLY_ADD", along, weight, linear)
        stretch = build.directed(offset, turn)
        stretched = build.vector("MULTIPLY_ADD", stretch, weight, stretched)
        x, y, z, w = build.add("FunctionNodeSeparateMatrix", turn).outputs[12:16]
        own_axis = build.xyz(x, y, z)
        if axis is None:
            axis, real = build.scaled(own_axis, weight), build.math("MULTIPLY", w, weight)
            continue
        # The sign of the quaternion that agrees with the sum so far, CRS equation 5.
        agreement = build.math("MULTIPLY_ADD", real, w, build.dot(axis, own_axis))
        length = build.math("SQRT", build.math("MULTIPLY_ADD", real, real, build.dot(axis, axis)))
        opposed = build.math("LESS_THAN", agreement, build.math("MULTIPLY", length, -_HALF_TURN))
        sign = build.math("MULTIPLY_ADD", opposed, -2.0, 1.0)
        signed = build.math("MULTIPLY", sign, weight)
        axis = build.vector("MULTIPLY_ADD", own_axis, signed, axis)
        real = build.math("MULTIPLY_ADD", w, signed, real)
    turned = _rotated(build, stretched, axis, real)
    mixed = build.add("ShaderNodeMix", data_type="VECTOR", named={"Factor": factor}, clamp_factor=True)
    vectors = [socket for socket in mixed.inputs if socket.type == "VECTOR" and socket.name in ("A", "B")]
    for value, socket in zip((linear, turned), vectors, strict=True):
        build.link(value, socket)
    result = next(socket for socket in mixed.outputs if socket.type == "VECTOR")
    return build.vector("ADD", base, result)


def _rotated(
    build: NodeBuilder,
    vector: bpy.types.NodeSocketVector,
    axis: bpy.types.NodeSocketVector,
    real: bpy.types.NodeSocketFloat,
) -> bpy.types.NodeSocket:
    """``vector`` turned by the quaternion (real, axis) of any length: v + 2 a × (a × v + r v) / |q|²."""
    inner = build.vector("MULTIPLY_ADD", vector, real, build.vector("CROSS_PRODUCT", axis, vector))
    squared = build.math("MULTIPLY_ADD", real, real, build.dot(axis, axis))
    outer = build.scaled(build.vector("CROSS_PRODUCT", axis, inner), build.math("DIVIDE", 2.0, squared))
    return build.vector("ADD", vector, outer)
