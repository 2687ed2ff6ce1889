# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's flag: Blender's own cloth in the wind, its Alembic cache, and the scene that plays it."""

from math import pi, radians, sin

import bpy
import numpy as np

from demos.objects import triangles

COLUMNS, ROWS = 60, 40
WIDTH, HEIGHT = 1.8, 1.2
FIRST_FRAME = -49  # fifty frames for the wind to move the flag out of its flat start


def empty_file() -> None:
    """An empty file with 24 frames per second."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 24


def flag_mesh() -> bpy.types.Mesh:
    """A flat flag in the XZ plane, pole side at x = 0, with UVs."""
    u, v = np.meshgrid(np.linspace(0, 1, COLUMNS), np.linspace(0, 1, ROWS))
    points = np.stack([u * WIDTH, np.zeros_like(u), v * HEIGHT], axis=-1).reshape(-1, 3)
    corner = (np.arange(ROWS - 1)[:, None] * COLUMNS + np.arange(COLUMNS - 1)).reshape(-1, 1)
    faces = corner + np.array([0, 1, COLUMNS + 1, COLUMNS])
    mesh = bpy.data.meshes.new("Flag")
    mesh.from_pydata(points.tolist(), [], faces.tolist())
    uvs = np.stack([u, v], axis=-1).reshape(-1, 2)[faces.ravel()].astype(np.float32)
    mesh.uv_layers.new(name="UVMap").data.foreach_set("uv", uvs.ravel())
    mesh.shade_smooth()
    return mesh


def add_cloth(frame_count: int) -> bpy.types.Object:
    """The flag with cloth physics, its pole edge pinned, in a gusty wind; to be simulated by ``simulate``."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, frame_count
    flag = bpy.data.objects.new("Flag", flag_mesh())
    scene.collection.objects.link(flag)
    pinned = flag.vertex_groups.new(name="Pole")
    pinned.add([row * COLUMNS for row in range(ROWS)], 1.0, "REPLACE")

    modifier = flag.modifiers.new("Cloth", "CLOTH")
    modifier.point_cache.frame_start = FIRST_FRAME
    modifier.point_cache.frame_end = frame_count
    cloth = modifier.settings
    cloth.quality = 6
    cloth.mass = 0.18
    cloth.air_damping = 0.5
    cloth.tension_damping = cloth.compression_damping = cloth.shear_damping = 1
    cloth.bending_damping = 0.1
    cloth.tension_stiffness = cloth.compression_stiffness = 12
    cloth.shear_stiffness = 4
    cloth.bending_stiffness = 0.25
    cloth.effector_weights.gravity = 0.4
    cloth.vertex_group_mass = pinned.name

    # The wind blows past the pole and veers; eddies drift along with it, and their waves run down the flag.
    wind = add_field("WIND", (-1.5, -0.3, 0.7), strength=5000, flow=0.2, noise=3, seed=3)
    eddies = add_field("TURBULENCE", (0, -0.6, 0.6), strength=5000, flow=0.2, size=0.6, seed=7)
    for frame in range(FIRST_FRAME, frame_count + 1, 2):
        phase = 2 * pi * frame / 16
        wind.rotation_euler.z = radians(5 + 20 * (sin(phase) + 0.5 * sin(0.37 * phase + 1)))
        wind.keyframe_insert("rotation_euler", index=2, frame=frame)
        eddies.location.x = 0.15 * (frame - FIRST_FRAME)
        eddies.keyframe_insert("location", index=0, frame=frame)
    return flag


def add_field(kind: str, location: tuple[float, float, float], **settings) -> bpy.types.Object:
    """A force field that acts along X; returns the empty that carries it, to be animated."""
    scene = bpy.context.scene
    # An animated object that is itself a field makes Blender complain of a missing rigid body world.
    carrier, empty = (bpy.data.objects.new(name, None) for name in (f"{kind.title()} Carrier", kind.title()))
    carrier.location = location
    empty.parent = carrier
    empty.rotation_euler = radians(90), 0, radians(90)
    for ob in (carrier, empty):
        scene.collection.objects.link(ob)
    bpy.context.view_layer.objects.active = empty
    bpy.ops.object.forcefield_toggle()
    empty.field.type = kind
    for name, value in settings.items():
        setattr(empty.field, name, value)
    return carrier


def simulate(flag: bpy.types.Object, frame_count: int):
    """Step the cloth of ``flag`` through its frames in order; yields the fraction done."""
    frames = range(FIRST_FRAME, frame_count + 1)
    for step, frame in enumerate(frames, start=1):
        bpy.context.scene.frame_set(frame)
        yield step / len(frames)
    # With a bake, the export reads the simulation; otherwise it simulates again.
    with bpy.context.temp_override(object=flag, point_cache=flag.modifiers["Cloth"].point_cache):
        bpy.ops.ptcache.bake_from_cache()


def played_frames(ob: bpy.types.Object, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Step through the frames in order, for cloth: (F, N, 3) float32 of the frames from 1 on, world space, and
    triangles (T, 3)."""
    kept = []
    for frame in range(first, last + 1):
        bpy.context.scene.frame_set(frame)
        if frame >= 1:
            kept.append(positions(ob, bpy.context.evaluated_depsgraph_get()))
    mesh = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    return np.array(kept, np.float32), triangles(mesh)


def write_cache(flag: bpy.types.Object, path: str) -> None:
    """The simulated flag as an Alembic file."""
    for ob in bpy.context.scene.objects:
        ob.select_set(ob is flag)
    scene = bpy.context.scene
    bpy.ops.wm.alembic_export(
        filepath=path, start=scene.frame_start, end=scene.frame_end, selected=True, as_background_job=False
    )


def open_cache(path: str, frame_count: int) -> bpy.types.Object:
    """A new file in which the Alembic file's flag plays; the flag is active and selected."""
    empty_file()
    bpy.ops.wm.alembic_import(filepath=path, as_background_job=False)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, frame_count
    scene.frame_set(1)
    flag = next(ob for ob in scene.objects if ob.type == "MESH")
    flag.name = "Flag"
    flag.data.materials.clear()
    flag.data.materials.append(fabric())
    for ob in scene.objects:
        ob.select_set(ob is flag)
    bpy.context.view_layer.objects.active = flag
    return flag


def add_view(middle: float) -> None:
    """A camera that sees flags around x = ``middle``, and a sun, for a first look and a first render."""
    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.lens = 60
    camera.location = middle, -9.0, 0.4
    camera.rotation_euler = radians(90), 0, 0
    sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    sun.data.energy = 3
    sun.rotation_euler = radians(50), 0, radians(-30)
    for ob in (camera, sun):
        scene.collection.objects.link(ob)
    scene.camera = camera


def positions(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(N, 3) evaluated vertex positions of ``ob`` at the current frame, world space."""
    evaluated = ob.evaluated_get(depsgraph)
    points = np.empty((len(evaluated.data.vertices), 3), dtype=np.float32)
    evaluated.data.attributes["position"].data.foreach_get("vector", points.ravel())
    matrix = np.array(evaluated.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def fabric() -> bpy.types.Material:
    """Checked cloth with a band across, which lets some light through: every fold and every slip would show."""
    material = bpy.data.materials.new("Fabric")
    material.use_nodes = True
    nodes, links = material.node_tree.nodes, material.node_tree.links
    shader = nodes["Principled BSDF"]
    shader.inputs["Roughness"].default_value = 0.65
    shader.inputs["Sheen Weight"].default_value = 0.25
    coordinates = nodes.new("ShaderNodeTexCoord")
    checks = nodes.new("ShaderNodeTexChecker")
    checks.inputs["Scale"].default_value = 1.0
    checks.inputs["Color1"].default_value = (0.60, 0.045, 0.030, 1)
    checks.inputs["Color2"].default_value = (0.80, 0.110, 0.050, 1)
    scale = nodes.new("ShaderNodeMapping")
    scale.inputs["Scale"].default_value = (18, 12, 1)
    # Half a check in depth keeps the plane off the boundary between two layers of the checker.
    scale.inputs["Location"].default_value = (0, 0, 0.5)
    separate = nodes.new("ShaderNodeSeparateXYZ")
    along = nodes.new("ShaderNodeMath")
    along.operation = "SUBTRACT"
    band = nodes.new("ShaderNodeMath")
    band.operation = "COMPARE"
    band.inputs[1].default_value, band.inputs[2].default_value = 0.0, 0.13
    mix = nodes.new("ShaderNodeMixRGB")
    mix.inputs["Color2"].default_value = (0.86, 0.80, 0.68, 1)
    translucent = nodes.new("ShaderNodeBsdfTranslucent")
    blend = nodes.new("ShaderNodeMixShader")
    blend.inputs[0].default_value = 0.22
    links.new(coordinates.outputs["UV"], scale.inputs["Vector"])
    links.new(scale.outputs["Vector"], checks.inputs["Vector"])
    links.new(coordinates.outputs["UV"], separate.inputs["Vector"])
    links.new(separate.outputs["X"], along.inputs[0])
    links.new(separate.outputs["Y"], along.inputs[1])
    links.new(along.outputs[0], band.inputs[0])
    links.new(band.outputs[0], mix.inputs["Fac"])
    links.new(checks.outputs["Color"], mix.inputs["Color1"])
    links.new(mix.outputs["Color"], shader.inputs["Base Color"])
    links.new(mix.outputs["Color"], translucent.inputs["Color"])
    links.new(shader.outputs[0], blend.inputs[1])
    links.new(translucent.outputs[0], blend.inputs[2])
    links.new(blend.outputs[0], nodes["Material Output"].inputs["Surface"])
    return material
