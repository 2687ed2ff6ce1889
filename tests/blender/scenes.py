# SPDX-License-Identifier: GPL-3.0-or-later
"""Small scenes for tests: an empty start, moving meshes, caches, and what Blender itself says about them."""

import struct

import bpy
import numpy as np

from skinning_tools.blender.bone_selection import selectable


def empty_scene() -> None:
    """Blender with factory settings and an empty file."""
    bpy.ops.wm.read_factory_settings(use_empty=True)


def home() -> bpy.types.Collection:
    """Where the objects of samples are kept: two collections deep in the scene, as artists have them.

    Objects right in the scene are the exception: nothing else uses them there.
    """
    collection = bpy.context.scene.collection
    for name in ("Cast", "Hero"):
        inner = collection.children.get(name)
        if inner is None:
            inner = bpy.data.collections.new(name)
            collection.children.link(inner)
        collection = inner
    return collection


def link(object) -> bpy.types.Object:
    """Link an object to the scene, make it active and selected, and evaluate it."""
    home().objects.link(object)
    bpy.context.view_layer.objects.active = object
    object.select_set(True)
    bpy.context.view_layer.update()
    return object


def moved_to(name: str, *objects) -> bpy.types.Collection:
    """The objects in a new collection of the scene, and in no other."""
    collection = bpy.data.collections.new(name)
    bpy.context.scene.collection.children.link(collection)
    for ob in objects:
        for old in ob.users_collection:
            old.objects.unlink(ob)
        collection.objects.link(ob)
    bpy.context.view_layer.update()
    return collection


def layer_collection(name: str, inside=None) -> bpy.types.LayerCollection:
    """The layer collection of a collection, at any depth in the scene."""
    inside = inside or bpy.context.view_layer.layer_collection
    found = (layer_collection(name, each) for each in inside.children)
    return inside if inside.name == name else next((each for each in found if each is not None), None)


def deforming_parent(object, rig) -> np.ndarray:
    """Let ``rig`` deform the object as its parent in place of a modifier, and leave it where it is: (4, 4) in the
    world."""
    place = np.array(object.matrix_world)
    object.modifiers.clear()
    object.parent, object.parent_type = rig, "ARMATURE"
    object.matrix_parent_inverse = rig.matrix_world.inverted()
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(object.matrix_world), place, atol=1e-5)
    return place


def mesh_object(vertices, faces=(), edges=(), name="Flag") -> bpy.types.Object:
    """An object in the scene with a mesh of the given parts."""
    mesh = bpy.data.meshes.new(f"{name} mesh")
    mesh.from_pydata([tuple(map(float, vertex)) for vertex in vertices], list(edges), [tuple(face) for face in faces])
    return link(bpy.data.objects.new(name, mesh))


def grid(columns=4, rows=3, name="Flag") -> bpy.types.Object:
    """A flat grid of quads, one unit apart, in the xy plane."""
    vertices = [(x, y, 0) for y in range(rows + 1) for x in range(columns + 1)]
    faces = [
        (corner, corner + 1, corner + columns + 2, corner + columns + 1)
        for y in range(rows)
        for corner in range(y * (columns + 1), y * (columns + 1) + columns)
    ]
    return mesh_object(vertices, faces, name=name)


def wave(object, **settings) -> bpy.types.Modifier:
    """A modifier that moves every vertex in every frame."""
    modifier = object.modifiers.new("Wave", "WAVE")
    for name, value in ({"time_offset": -100.0, "height": 0.7, "width": 2.0, "narrowness": 1.1} | settings).items():
        setattr(modifier, name, value)
    return modifier


def key_property(owner, path: str, values: dict[int, object]) -> None:
    """Key a property, {frame: value}; the last value stays set."""
    for frame, value in values.items():
        setattr(owner, path, value)
        owner.keyframe_insert(path, frame=frame)


def shape_keys(object, count=3, seed=1) -> list[bpy.types.ShapeKey]:
    """A basis and ``count`` key blocks with random offsets, all at value 0; returns the latter."""
    random = np.random.default_rng(seed)
    object.shape_key_add(name="Basis", from_mix=False)
    basis = np.array([vertex.co for vertex in object.data.vertices], dtype=np.float32)
    blocks = []
    for index in range(count):
        block = object.shape_key_add(name=f"Key {index + 1}", from_mix=False)
        offsets = random.normal(size=basis.shape).astype(np.float32)
        block.points.foreach_set("co", (basis + offsets).ravel())
        block.value = 0.0
        blocks.append(block)
    bpy.context.view_layer.update()
    return blocks


def evaluated_positions(object) -> np.ndarray:
    """(N, 3) float32: what the viewport shows at the current frame."""
    vertices = object.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.vertices
    positions = np.empty((len(vertices), 3), np.float32)
    vertices.foreach_get("co", positions.ravel())
    return positions


def world_positions(object) -> np.ndarray:
    """(N, 3) where the viewport shows the vertices at the current frame, in the world."""
    evaluated = object.evaluated_get(bpy.context.evaluated_depsgraph_get())
    matrix = np.array(evaluated.matrix_world)
    return evaluated_positions(object) @ matrix[:3, :3].T + matrix[:3, 3]


def played(object, numbers) -> np.ndarray:
    """(F, N, 3) float32: what the viewport shows at each of the frames; the current frame stays as it was."""
    scene = bpy.context.scene
    frame, subframe = scene.frame_current, scene.frame_subframe
    positions = []
    for number in numbers:
        scene.frame_set(number)
        positions.append(evaluated_positions(object))
    scene.frame_set(frame, subframe=subframe)
    return np.array(positions)


def select_bones(armature, *names) -> None:
    """Select these bones alone."""
    for owner in selectable(armature):
        owner.select = owner.name in names


def overridden(objects, path) -> dict[str, bpy.types.Object]:
    """Library overrides of the objects as a character of another file, ``path``, in a new scene; by their types."""
    character = bpy.data.collections.new("Character")
    for ob in objects:
        character.objects.link(ob)
    bpy.data.libraries.write(str(path), {character}, fake_user=True)
    empty_scene()
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.collections = ["Character"]
    instance = link(bpy.data.objects.new("Character", None))
    instance.instance_type, instance.instance_collection = "COLLECTION", wanted.collections[0]
    made = wanted.collections[0].override_hierarchy_create(
        bpy.context.scene, bpy.context.view_layer, reference=instance, do_fully_editable=True
    )
    bpy.context.view_layer.update()
    return {ob.type: ob for ob in made.all_objects}


def reopened(path) -> None:
    """Save the file, and read it again."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))


def drain(generator):
    """The return value of a generator, and the list of the values that it yields."""
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as end:
            return end.value, steps


def data_blocks() -> dict[str, list[str]]:
    """Names of all data-blocks in the file, by collection."""
    collections = [prop.identifier for prop in bpy.data.bl_rna.properties if prop.type == "COLLECTION"]
    return {name: sorted(block.name_full for block in getattr(bpy.data, name)) for name in collections}


def ui_state() -> tuple:
    """Where the user is: frame, active object, its mode and the selection."""
    scene, view_layer = bpy.context.scene, bpy.context.view_layer
    active = view_layer.objects.active
    return (
        scene.frame_current,
        scene.frame_subframe,
        active and active.name,
        active and active.mode,
        sorted(ob.name for ob in view_layer.objects if ob.select_get()),
    )


def write_pc2(path, frames) -> None:
    """``frames`` (F, N, 3) as a PC2 point cache whose first sample belongs to frame 0."""
    frames = np.asarray(frames, dtype="<f4")
    head = struct.pack("<12siiffi", b"POINTCACHE2\0", 1, frames.shape[1], 0.0, 1.0, len(frames))
    path.write_bytes(head + frames.tobytes())


def write_mdd(path, frames, fps=24.0) -> None:
    """``frames`` (F, N, 3) as an MDD point cache."""
    frames = np.asarray(frames)
    times = np.arange(len(frames)) / fps
    head = struct.pack(">ii", len(frames), frames.shape[1])
    path.write_bytes(head + times.astype(">f4").tobytes() + frames.astype(">f4").tobytes())


def point_cache(object, path, kind: str, first_frame=1) -> bpy.types.Modifier:
    """A Mesh Cache modifier that plays the file from ``first_frame`` on."""
    modifier = object.modifiers.new("Point Cache", "MESH_CACHE")
    modifier.cache_format = kind
    modifier.filepath = str(path)
    modifier.frame_start = first_frame
    bpy.context.view_layer.update()
    return modifier


def geometry_tree(name="Nodes") -> bpy.types.NodeTree:
    """A geometry node group with one geometry in and out, not connected."""
    tree = bpy.data.node_groups.new(name, "GeometryNodeTree")
    for direction in ("INPUT", "OUTPUT"):
        tree.interface.new_socket("Geometry", in_out=direction, socket_type="NodeSocketGeometry")
    tree.nodes.new("NodeGroupInput")
    tree.nodes.new("NodeGroupOutput")
    return tree


def nodes_modifier(object, tree) -> bpy.types.Modifier:
    modifier = object.modifiers.new("Nodes", "NODES")
    modifier.node_group = tree
    bpy.context.view_layer.update()
    return modifier


def simulation_nodes(object, lift=0.1) -> bpy.types.Modifier:
    """Geometry nodes with a simulation zone that lifts the mesh by ``lift`` a frame."""
    tree = geometry_tree("Simulation")
    entry, end = tree.nodes["Group Input"], tree.nodes["Group Output"]
    zone_in = tree.nodes.new("GeometryNodeSimulationInput")
    zone_out = tree.nodes.new("GeometryNodeSimulationOutput")
    zone_in.pair_with_output(zone_out)
    move = tree.nodes.new("GeometryNodeSetPosition")
    move.inputs["Offset"].default_value = (0.0, 0.0, lift)
    tree.links.new(entry.outputs["Geometry"], zone_in.inputs["Geometry"])
    tree.links.new(zone_in.outputs["Geometry"], move.inputs["Geometry"])
    tree.links.new(move.outputs["Geometry"], zone_out.inputs["Geometry"])
    tree.links.new(zone_out.outputs["Geometry"], end.inputs["Geometry"])
    return nodes_modifier(object, tree)


def cloth(object, pinned=(0, 1)) -> bpy.types.Modifier:
    """Cloth that hangs from the ``pinned`` vertices."""
    group = object.vertex_groups.new(name="pinned")
    group.add(list(pinned), 1.0, "REPLACE")
    modifier = object.modifiers.new("Cloth", "CLOTH")
    modifier.settings.vertex_group_mass = "pinned"
    bpy.context.view_layer.update()
    return modifier


def import_cache(path) -> bpy.types.Object:
    """Import an Alembic or USD file into the scene; returns its first mesh object, made active."""
    if path.suffix == ".abc":
        bpy.ops.wm.alembic_import(filepath=str(path), as_background_job=False)
    else:
        bpy.ops.wm.usd_import(filepath=str(path))
    object = next(ob for ob in bpy.context.scene.objects if ob.type == "MESH")
    bpy.context.view_layer.objects.active = object
    bpy.context.view_layer.update()
    return object


def export_cache(path, first: int, last: int) -> None:
    """Write the scene's animation from frame ``first`` to ``last`` to an Alembic or USD file. Skips the test where
    Blender cannot."""
    if path.suffix == ".abc" and not bpy.app.build_options.alembic:
        import pytest

        pytest.skip("built without Alembic")
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = first, last
    if path.suffix == ".abc":
        bpy.ops.wm.alembic_export(filepath=str(path), start=first, end=last, as_background_job=False)
    else:
        bpy.ops.wm.usd_export(filepath=str(path), export_animation=True)
