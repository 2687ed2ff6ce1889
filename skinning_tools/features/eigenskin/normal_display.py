# SPDX-License-Identifier: GPL-3.0-or-later
"""The corrected normals in Blender's own display: two Geometry Nodes modifiers around the Armature modifier.

The first one gives each vertex two companions, with the same weights, along the tangents of its corrected normal at
rest. The Armature modifier moves them as it moves the surface, so that the tangents between them are those of the
blended matrix, and their cross product is the normal by its inverse transpose. The second one removes the companions,
and sets the normals. The values of the components are inputs of the first one. Drivers of the object set them: when
it is duplicated, its copy reads its own values.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import bpy
import numpy as np

from ...blender.actions import property_path
from ...blender.attributes import remove_attributes, write_attribute
from ...blender.center_records import input_path
from ...blender.drivers import follow_property
from ...blender.look_ups import users_of
from ...blender.node_builder import NodeBuilder, new_tree, remove_tree
from ...blender.normal_modifiers import NORMALS_PROPERTY, is_normals_modifier
from ...blender.skin_reader import armature_modifier
from ...core.geometry import diagonal

# The attribute of the rest pose's unit normals.
BASE_ATTRIBUTE = "skinning_eigenskin_normal"

# Length of the tangents, as a share of the mesh's extent: long enough for single precision, and short enough for
# bones that bend in themselves.
_SHARE = 0.01

# Of a unit vector: from there on, another axis makes a better tangent.
_ALONG = 0.9


def note_on_display(mesh_object: bpy.types.Object) -> str:
    """Why normals cannot be shown on the mesh, "" if they can."""
    if bpy.app.version < (4, 5, 0):
        return "Normals are shown from Blender 4.5 on: here they are attributes for engines alone"
    if armature_modifier(mesh_object) is None:
        return "Normals are shown only below an Armature modifier: they are attributes for engines alone"
    return ""


def show_normals(
    mesh_object: bpy.types.Object, rest: np.ndarray, normals: np.ndarray, names: list[str], values: str
) -> None:
    """Show the normals of the mesh with its corrections.

    rest and normals (N, 3): of the rest pose. names: of the attributes with the components. values: the array property
    of the Key data-block with their values. After an exception nothing is left.
    """
    hide_normals(mesh_object)
    with ExitStack() as undo:
        undo.callback(hide_normals, mesh_object)
        write_attribute(mesh_object.data, BASE_ATTRIBUTE, "FLOAT_VECTOR", normals)
        length = _SHARE * diagonal(rest)
        with new_tree(f"{mesh_object.data.name} Normals Before") as build:
            _write_before(build, names, length)
            modifier = _add(mesh_object, build.tree, 0)
            for index, name in enumerate(names):
                source = f"{property_path(values)}[{index}]"
                follow_property(mesh_object, input_path(modifier, name), mesh_object.data.shape_keys, source)
        with new_tree(f"{mesh_object.data.name} Normals After") as build:
            _write_after(build)
            _add(mesh_object, build.tree, 1)
        undo.pop_all()


def hide_normals(mesh_object: bpy.types.Object) -> None:
    """Remove what ``show_normals`` made, from all objects with the mesh."""
    trees = set()
    for ob, modifier in _modifiers(mesh_object):
        trees.add(modifier.node_group)
        _remove_drivers(ob, modifier)
        ob.modifiers.remove(modifier)
    for tree in trees:
        remove_tree(tree)
    remove_attributes(mesh_object.data, (BASE_ATTRIBUTE,))


def _remove_drivers(ob: bpy.types.Object, modifier: bpy.types.NodesModifier) -> None:
    animation = ob.animation_data
    for curve in list(animation.drivers) if animation is not None else ():
        if curve.data_path.startswith(modifier.path_from_id()):
            animation.drivers.remove(curve)
    if animation is not None and not (len(animation.drivers) or animation.action or len(animation.nla_tracks)):
        ob.animation_data_clear()


def mute_normals(mesh_object: bpy.types.Object, mute: bool) -> None:
    """Turn the modifiers off or on again."""
    for _, modifier in _modifiers(mesh_object):
        modifier.show_viewport = modifier.show_render = not mute


def _modifiers(mesh_object: bpy.types.Object) -> Iterator[tuple[bpy.types.Object, bpy.types.NodesModifier]]:
    for ob in users_of(mesh_object.data):
        for modifier in [each for each in ob.modifiers if is_normals_modifier(each)]:
            yield ob, modifier


def _add(mesh_object: bpy.types.Object, tree: bpy.types.NodeTree, after: int) -> bpy.types.NodesModifier:
    """A modifier with the tree, next to the Armature modifier."""
    tree[NORMALS_PROPERTY] = True
    modifier = mesh_object.modifiers.new(tree.name, "NODES")
    name = modifier.name
    modifier.node_group = tree
    modifier.show_expanded = False
    armature = armature_modifier(mesh_object)
    assert armature is not None
    place = mesh_object.modifiers.find(armature.name)
    mesh_object.modifiers.move(len(mesh_object.modifiers) - 1, place + after)
    return mesh_object.modifiers[name]


def _write_before(build: NodeBuilder, names: list[str], length: float) -> None:
    geometry = _ends(build)
    for name in names:
        socket = build.tree.interface.new_socket(name, in_out="INPUT", socket_type="NodeSocketFloat")
        socket.hide_in_modifier = True
    normal = build.attribute(BASE_ATTRIBUTE, "FLOAT_VECTOR").outputs["Attribute"]
    for name in names:
        correction = build.attribute(name, "FLOAT_VECTOR").outputs["Attribute"]
        normal = build.vector("ADD", normal, build.scaled(correction, geometry.node.outputs[name]))
    normal = build.vector("NORMALIZE", normal)
    steep = build.math("GREATER_THAN", build.math("ABSOLUTE", build.components(normal)["Z"]), _ALONG)
    axis = build.switch(steep, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    tangent = build.vector("NORMALIZE", build.vector("CROSS_PRODUCT", normal, axis))
    other = build.vector("CROSS_PRODUCT", normal, tangent)
    count = build.add("GeometryNodeAttributeDomainSize", geometry).outputs["Point Count"]
    own = build.math("LESS_THAN", build.add("GeometryNodeInputIndex").outputs["Index"], count)
    for direction in (tangent, other):
        geometry = build.add(
            "GeometryNodeExtrudeMesh",
            geometry,
            named={"Selection": own, "Offset": direction, "Offset Scale": length},
            mode="VERTICES",
        ).outputs["Mesh"]
    build.add("NodeGroupOutput", geometry)


def _write_after(build: NodeBuilder) -> None:
    deformed = _ends(build)
    every = build.add("GeometryNodeAttributeDomainSize", deformed).outputs["Point Count"]
    count = build.math("FLOOR", build.math("ADD", build.math("DIVIDE", every, 3.0), 0.5))
    index = build.add("GeometryNodeInputIndex").outputs["Index"]
    added = build.math("LESS_THAN", build.math("SUBTRACT", count, 0.5), index)
    mesh = build.add("GeometryNodeDeleteGeometry", deformed, added, domain="POINT").outputs["Geometry"]
    position = build.add("GeometryNodeInputPosition").outputs["Position"]
    first, second, third = (
        build.sampled(deformed, "FLOAT_VECTOR", position, build.math("MULTIPLY_ADD", count, float(part), index))
        for part in range(3)
    )
    normal = build.vector(
        "CROSS_PRODUCT", build.vector("SUBTRACT", second, first), build.vector("SUBTRACT", third, first)
    )
    shown = build.add("GeometryNodeSetMeshNormal", mesh, mode="FREE", domain="POINT")
    build.link(build.vector("NORMALIZE", normal), shown.inputs["Custom Normal"])
    build.add("NodeGroupOutput", shown.outputs["Mesh"])


def _ends(build: NodeBuilder) -> bpy.types.NodeSocket:
    """Give the group its geometry, in and out, and return the first."""
    build.tree.is_modifier = True
    for side in ("OUTPUT", "INPUT"):
        build.tree.interface.new_socket("Geometry", in_out=side, socket_type="NodeSocketGeometry")
    return build.add("NodeGroupInput").outputs["Geometry"]
