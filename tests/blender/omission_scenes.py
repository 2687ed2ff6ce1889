# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenes of which Blender leaves something out, one for each kind, and similar scenes of which it leaves nothing out.

Each function builds one around the moving mesh "Flag" in an empty scene, in the folder that it is given.
"""

import os
import shutil
from pathlib import Path

import bpy

from tests.blender import scenes

FRAMES = 1, 12
# Not simple and not among what Blender runs without permission.
PYTHON = "bpy.context.scene.frame_current * 0.1"


def flag():
    object = scenes.grid()
    scenes.wave(object)
    return object


def driver(owner, path="location", expression=PYTHON, index=0):
    curve = owner.driver_add(path, index) if index >= 0 else owner.driver_add(path)
    curve.driver.expression = expression
    return curve


def hook(object):
    """An empty that a modifier of the object follows."""
    empty = scenes.link(bpy.data.objects.new("Hook", None))
    modifier = object.modifiers.new("Hook", "HOOK")
    modifier.object = empty
    modifier.vertex_indices_set([0, 1, 2])
    return empty


def reopened(folder, use_scripts=False):
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path), use_scripts=use_scripts)


def target(object, name="Target"):
    """Another mesh that the object shrinks onto."""
    other = scenes.grid(name=name)
    modifier = object.modifiers.new("Shrinkwrap", "SHRINKWRAP")
    modifier.target = other
    return other


def rig(object):
    data = bpy.data.armatures.new("Rig")
    armature = scenes.link(bpy.data.objects.new("Rig", data))
    bpy.ops.object.mode_set(mode="EDIT")
    data.edit_bones.new("Bone").tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    modifier = object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    return armature


# Scripts


def blocked_driver_of_a_modifier(folder):
    driver(flag().modifiers["Wave"], "height", index=-1)
    reopened(folder)


def blocked_driver_of_a_hook(folder):
    driver(hook(flag()))
    reopened(folder)


def blocked_driver_of_a_shape_key(folder):
    object = flag()
    scenes.shape_keys(object)
    driver(object.data.shape_keys.key_blocks[1], "value", index=-1)
    reopened(folder)


def blocked_driver_of_a_bone(folder):
    driver(rig(flag()).pose.bones["Bone"])
    reopened(folder)


def blocked_driver_of_a_constraint(folder):
    object = flag()
    constraint = hook(object).constraints.new("COPY_LOCATION")
    constraint.target = scenes.grid(name="Elsewhere")
    driver(constraint, "influence", index=-1)
    reopened(folder)


def blocked_driver_of_a_parent(folder):
    object = flag()
    parent = scenes.link(bpy.data.objects.new("Parent", None))
    hook(object).parent = parent
    driver(parent)
    reopened(folder)


def blocked_driver_of_nodes(folder):
    tree = moving_nodes(flag())
    driver(tree.nodes["Set Position"].inputs["Offset"], "default_value", index=2)
    reopened(folder)


def blocked_driver_of_a_property(folder):
    """A blocked driver that another, simple driver reads."""
    holder = scenes.link(bpy.data.objects.new("Holder", None))
    holder["lift"] = 0.0
    driver(holder, '["lift"]', index=-1)
    read_property(hook(flag()), "OBJECT", holder, '["lift"]')
    reopened(folder)


def blocked_driver_of_the_scene(folder):
    bpy.context.scene["lift"] = 0.0
    driver(bpy.context.scene, '["lift"]', index=-1)
    read_property(hook(flag()), "SCENE", bpy.context.scene, '["lift"]')
    reopened(folder)


def field(name="Wind"):
    scenes.link(bpy.data.objects.new(name, None))
    bpy.ops.object.forcefield_toggle()
    return bpy.data.objects[name]


def blocked_driver_of_a_force_field(folder):
    scenes.cloth(flag())
    driver(field())
    reopened(folder)


def blocked_driver_of_a_collider(folder):
    scenes.cloth(flag())
    collider = scenes.grid(name="Ground")
    collider.modifiers.new("Collision", "COLLISION")
    driver(collider)
    reopened(folder)


def blocked_driver_of_a_passive_body(folder):
    rigid_body(flag(), 12)
    bpy.context.view_layer.objects.active = scenes.grid(name="Ground")
    bpy.ops.rigidbody.object_add(type="PASSIVE")
    driver(bpy.data.objects["Ground"])
    reopened(folder)


def blocked_handler(folder):
    flag()
    text = bpy.data.texts.new("moves.py")
    text.write("import bpy\nbpy.app.handlers.frame_change_post.append(print)\n")
    text.use_module = True
    reopened(folder)


def moving_nodes(object):
    tree = scenes.geometry_tree()
    move = tree.nodes.new("GeometryNodeSetPosition")
    tree.links.new(tree.nodes["Group Input"].outputs[0], move.inputs["Geometry"])
    tree.links.new(move.outputs["Geometry"], tree.nodes["Group Output"].inputs[0])
    scenes.nodes_modifier(object, tree)
    return tree


def read_property(object, kind, holder, path):
    curve = driver(object, expression="lift")
    variable = curve.driver.variables.new()
    variable.name = "lift"
    variable.targets[0].id_type = kind
    variable.targets[0].id = holder
    variable.targets[0].data_path = path


# Drivers


def driver_with_an_unknown_name(folder):
    driver(hook(flag()), expression="unheard_of() + 1")
    reopened(folder, use_scripts=True)


def driver_that_is_no_python(folder):
    driver(hook(flag()), expression="2 +* 3")
    reopened(folder)


def driver_without_its_object(folder):
    variable = driver(hook(flag()), expression="var").driver.variables.new()
    variable.targets[0].data_path = "location[1]"


def driver_with_a_bad_path(folder):
    object = flag()
    variable = driver(hook(object), expression="var").driver.variables.new()
    variable.targets[0].id, variable.targets[0].data_path = object, "nothing"


def driver_that_divides_by_zero(folder):
    """At a frame within the range."""
    driver(hook(flag()), expression="1 / (frame - 7)")


def driver_of_nothing(folder):
    driver(hook(flag()), expression="frame").data_path = "gone"


def driver_that_averages_nothing(folder):
    curve = driver(hook(flag()), expression="")
    curve.driver.type = "AVERAGE"
    curve.driver.variables.new().targets[0].data_path = "location[1]"


# Libraries


def linked(folder, *, kinds, use):
    """A file that links data-blocks, by ``kinds`` of bpy.data, from another, which is then renamed."""
    library = folder / "library.blend"
    bpy.data.libraries.write(str(library), {getattr(bpy.data, kind)[name] for kind, name in kinds.items()})
    scenes.empty_scene()
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        for kind, name in kinds.items():
            setattr(wanted, kind, [name])
    use(flag(), {kind: getattr(bpy.data, kind)[name] for kind, name in kinds.items()})
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    library.rename(folder / "gone.blend")
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def missing_library_of_a_target(folder):
    scenes.grid(name="Target")

    def use(object, found):
        bpy.context.scene.collection.objects.link(found["objects"])
        object.modifiers.new("Shrinkwrap", "SHRINKWRAP").target = found["objects"]

    linked(folder, kinds={"objects": "Target"}, use=use)


def missing_library_of_nodes(folder):
    scenes.geometry_tree("Deform").use_fake_user = True
    linked(
        folder,
        kinds={"node_groups": "Deform"},
        use=lambda object, found: scenes.nodes_modifier(target(object), found["node_groups"]),
    )


def missing_library_of_an_action(folder):
    moved = scenes.grid(name="Moved")
    scenes.key_property(moved, "location", {1: (0, 0, 0), 9: (0, 0, 1)})
    moved.animation_data.action.name = "Motion"

    def use(object, found):
        hook(object).animation_data_create().action = found["actions"]

    linked(folder, kinds={"actions": "Motion"}, use=use)


def missing_library_of_a_collection(folder):
    collection = bpy.data.collections.new("Forces")
    bpy.context.scene.collection.children.link(collection)

    def use(object, found):
        scenes.cloth(object).settings.effector_weights.collection = found["collections"]

    linked(folder, kinds={"collections": "Forces"}, use=use)


def object_gone_from_its_library(folder):
    missing_library_of_a_target(folder)
    library = folder / "library.blend"
    (folder / "gone.blend").rename(library)
    bpy.ops.wm.open_mainfile(filepath=str(library))
    bpy.data.objects["Target"].name = "Renamed"
    bpy.ops.wm.save_mainfile()
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def missing_library_of_an_override(folder):
    scenes.grid(name="Target")

    def use(object, found):
        override = found["objects"].override_create()
        bpy.context.scene.collection.objects.link(override)
        object.modifiers.new("Shrinkwrap", "SHRINKWRAP").target = override

    linked(folder, kinds={"objects": "Target"}, use=use)


# Files


def picture(path):
    image = bpy.data.images.new("Bumps", 4, 4)
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)


def displaced(object, path, source="FILE", name="Displace"):
    """A Displace modifier whose texture is the picture."""
    first = path if path.exists() else path.parent / "stand_in.png"
    if not first.exists():
        picture(first)
    image = bpy.data.images.load(str(first))
    image.source = source
    texture = bpy.data.textures.new("Bumps", "IMAGE")
    texture.image = image
    modifier = object.modifiers.new(name, "DISPLACE")
    modifier.texture = texture
    image.filepath = str(path)
    return modifier


def missing_image(folder):
    displaced(flag(), folder / "bumps.png")


def damaged_image(folder):
    displaced(flag(), folder / "bumps.png")
    (folder / "bumps.png").write_bytes(b"no picture")
    reopened(folder)


def missing_image_of_a_sequence(folder):
    for number in (1, 2, 3, 4, 6, 7, 8):
        picture(folder / f"bumps_{number:03d}.png")
    user = displaced(flag(), folder / "bumps_001.png", "SEQUENCE").texture.image_user
    user.frame_start, user.frame_duration = 1, 8


def missing_tile(folder):
    object = flag()
    picture(folder / "bumps.1001.png")
    modifier = displaced(object, folder / "bumps.1001.png")
    image = modifier.texture.image
    image.source = "TILED"
    image.filepath = str(folder / "bumps.<UDIM>.png")
    image.tiles.new(1002)


def missing_image_of_nodes(folder):
    object = flag()
    tree = moving_nodes(object)
    node = tree.nodes.new("GeometryNodeImageTexture")
    picture(folder / "bumps.png")
    node.inputs["Image"].default_value = bpy.data.images.load(str(folder / "bumps.png"))
    tree.links.new(node.outputs["Color"], tree.nodes["Set Position"].inputs["Offset"])
    (folder / "bumps.png").unlink()


def missing_image_of_a_weight(folder):
    object = flag()
    object.vertex_groups.new(name="Group").add([0], 1.0, "REPLACE")
    modifier = object.modifiers.new("Edit", "VERTEX_WEIGHT_EDIT")
    modifier.vertex_group = "Group"
    displaced(object, folder / "bumps.png").show_viewport = modifier.show_viewport
    modifier.mask_texture = object.modifiers["Displace"].texture
    object.modifiers.remove(object.modifiers["Displace"])


# Caches


def missing_cache_of_a_target(folder):
    other = target(flag())
    scenes.write_pc2(folder / "target.pc2", [[vertex.co for vertex in other.data.vertices]] * 3)
    scenes.point_cache(other, folder / "target.pc2", "PC2")
    (folder / "target.pc2").unlink()


def cut_cache_of_a_target(folder):
    other = target(flag())
    scenes.write_mdd(folder / "target.mdd", [[vertex.co for vertex in other.data.vertices]] * 3)
    scenes.point_cache(other, folder / "target.mdd", "MDD")
    data = (folder / "target.mdd").read_bytes()
    (folder / "target.mdd").write_bytes(data[:-40])


def missing_cache_of_a_constraint(folder):
    object = flag()
    scenes.export_cache(folder / "moved.abc", *FRAMES)
    scenes.empty_scene()
    moved = scenes.import_cache(folder / "moved.abc")
    file = next(each for each in bpy.data.cache_files)
    moved.name = "Moved"
    object = flag()
    constraint = hook(object).constraints.new("TRANSFORM_CACHE")
    constraint.cache_file, constraint.object_path = file, "/Flag"
    (folder / "moved.abc").unlink()


def short_simulation(folder):
    modifier = scenes.cloth(flag())
    modifier.point_cache.frame_end = 8


def short_simulation_of_a_target(folder):
    modifier = scenes.cloth(target(flag()))
    modifier.point_cache.frame_end = 8


def bake(cache, object, operator="bake"):
    bpy.context.view_layer.update()
    with bpy.context.temp_override(point_cache=cache, object=object, active_object=object):
        if operator == "bake":
            bpy.ops.ptcache.bake(bake=True)
        else:
            bpy.ops.ptcache.bake_from_cache()


def baked(object, first=1, last=12, disk=False):
    cache = scenes.cloth(object).point_cache
    cache.use_disk_cache, cache.frame_start, cache.frame_end = disk, first, last
    bake(cache, object)
    return cache


def simulation_baked_too_short(folder):
    baked(flag(), last=8)


def simulation_baked_too_late(folder):
    baked(flag(), first=4)


def simulation_baked_halfway(folder):
    """Calculated to a frame, then made the bake."""
    object = flag()
    cache = scenes.cloth(object).point_cache
    cache.frame_end = 12
    scenes.played(object, range(1, 6))
    bake(cache, object, "bake_from_cache")


def lost_files_of_a_bake(folder):
    object = flag()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    baked(object, disk=True)
    bpy.ops.wm.save_mainfile()
    shutil.rmtree(folder / "blendcache_shot")
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def some_lost_files_of_a_bake(folder):
    object = flag()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    baked(object, disk=True)
    bpy.ops.wm.save_mainfile()
    next((folder / "blendcache_shot").glob("*_000007_*")).unlink()
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def external(folder, name):
    """Cloth whose frames come from files that another one has made."""
    object = flag()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    cache = baked(object, disk=True)
    (folder / "blendcache_shot").rename(folder / "made")
    cache.use_external = True
    cache.filepath, cache.name, cache.index = f"{folder}{os.sep}made{os.sep}", name, 0


def external_cache_without_files(folder):
    external(folder, "Nobody")


def rigid_body(object, last):
    """A hook that falls."""
    empty = scenes.grid(1, 1, name="Falling")
    modifier = object.modifiers.new("Hook", "HOOK")
    modifier.object = empty
    modifier.vertex_indices_set([0, 1, 2])
    bpy.context.view_layer.objects.active = empty
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add()
    bpy.context.scene.rigidbody_world.point_cache.frame_end = last


def short_rigid_bodies(folder):
    rigid_body(flag(), 8)


def short_soft_body(folder):
    object = flag()
    modifier = object.modifiers.new("Softbody", "SOFT_BODY")
    modifier.point_cache.frame_end = 8


def short_dynamic_paint(folder):
    object = flag()
    modifier = object.modifiers.new("Dynamic Paint", "DYNAMIC_PAINT")
    with bpy.context.temp_override(object=object, active_object=object):
        bpy.ops.dpaint.type_toggle(type="CANVAS")
    surface = modifier.canvas_settings.canvas_surfaces[0]
    surface.surface_type = "WAVE"
    surface.frame_end = 8


def particles_of_another(folder):
    """Copies of the mesh at the particles of another object."""
    emitter = scenes.grid(name="Emitter")
    emitter.modifiers.new("Particles", "PARTICLE_SYSTEM")
    settings = emitter.particle_systems[0].settings
    settings.count, settings.frame_end, settings.lifetime = 3, 1, 6
    modifier = flag().modifiers.new("Instance", "PARTICLE_INSTANCE")
    modifier.object = emitter
    bpy.context.view_layer.update()
    return emitter


def lost_files_of_particles(folder):
    emitter = particles_of_another(folder)
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    cache = emitter.particle_systems[0].point_cache
    cache.use_disk_cache = True
    bake(cache, emitter)
    bpy.ops.wm.save_mainfile()
    shutil.rmtree(folder / "blendcache_shot")
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def liquid_that_is_not_baked(folder):
    domain = target(flag(), "Liquid")
    domain.dimensions = (2, 2, 2)
    modifier = domain.modifiers.new("Fluid", "FLUID")
    modifier.fluid_type = "DOMAIN"
    modifier.domain_settings.domain_type = "LIQUID"
    modifier.domain_settings.cache_type = "ALL"


def nodes_baked_too_short(folder):
    object = flag()
    modifier = scenes.simulation_nodes(object)
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    bake = modifier.bakes[0]
    bake.use_custom_path, bake.directory = True, str(folder / "nodes")
    bake.use_custom_simulation_frame_range, bake.frame_start, bake.frame_end = True, 1, 8
    if hasattr(bake, "bake_target"):
        bake.bake_target = "DISK"
    bpy.ops.object.geometry_node_bake_single(
        session_uid=object.session_uid, modifier_name=modifier.name, bake_id=bake.bake_id
    )


# Renders


def modifier_for_renders_only(folder):
    flag().modifiers.new("Solidify", "SOLIDIFY").show_viewport = False


def modifier_for_the_viewport_only(folder):
    flag().modifiers.new("Solidify", "SOLIDIFY").show_render = False


def modifier_of_a_target_for_renders_only(folder):
    scenes.wave(target(flag())).show_viewport = False


def levels(folder):
    modifier = flag().modifiers.new("Subdivision", "SUBSURF")
    modifier.levels, modifier.render_levels = 1, 3


def steps(folder):
    modifier = flag().modifiers.new("Screw", "SCREW")
    modifier.steps, modifier.render_steps = 4, 9


# Instances


def joined(object, node_type, link):
    """Geometry nodes that join the mesh with what one more node makes. link: (tree, node) to its output."""
    tree = scenes.geometry_tree()
    join = tree.nodes.new("GeometryNodeJoinGeometry")
    node = tree.nodes.new(node_type)
    entry = tree.nodes["Group Input"].outputs[0]
    tree.links.new(entry, join.inputs[0])
    tree.links.new(link(tree, node, entry), join.inputs[0])
    tree.links.new(join.outputs[0], tree.nodes["Group Output"].inputs[0])
    scenes.nodes_modifier(object, tree)
    return tree


def _first_input(tree, node, entry):
    tree.links.new(entry, node.inputs[0])
    return node.outputs[0]


def _on_points(tree, node, entry):
    cube = tree.nodes.new("GeometryNodeMeshCube")
    tree.links.new(cube.outputs[0], node.inputs["Instance"])
    return _first_input(tree, node, entry)


def instances_on_points(folder):
    joined(flag(), "GeometryNodeInstanceOnPoints", _on_points)


def instance_of_an_object(folder):
    other = scenes.grid(name="Other")

    def link(tree, node, entry):
        node.inputs["Object"].default_value, node.inputs["As Instance"].default_value = other, True
        return node.outputs["Geometry"]

    joined(flag(), "GeometryNodeObjectInfo", link)


def instances_of_a_collection(folder):
    collection = bpy.data.collections.new("Trees")
    collection.objects.link(scenes.grid(name="Other"))

    def link(tree, node, entry):
        node.inputs["Collection"].default_value = collection
        return node.outputs["Instances"]

    joined(flag(), "GeometryNodeCollectionInfo", link)


def curves_beside(folder):
    joined(flag(), "GeometryNodeMeshToCurve", _first_input)


def points_beside(folder):
    joined(flag(), "GeometryNodeMeshToPoints", _first_input)


def volume_beside(folder):
    joined(flag(), "GeometryNodeVolumeCube", lambda tree, node, entry: node.outputs[0])


def instances_from_a_frame_on(folder):
    tree = joined(flag(), "GeometryNodeInstanceOnPoints", _on_points)
    node = next(each for each in tree.nodes if each.bl_idname == "GeometryNodeInstanceOnPoints")
    time = tree.nodes.new("GeometryNodeInputSceneTime")
    compare = tree.nodes.new("ShaderNodeMath")
    compare.operation = "GREATER_THAN"
    compare.inputs[1].default_value = 9.5
    tree.links.new(time.outputs["Frame"], compare.inputs[0])
    tree.links.new(compare.outputs[0], node.inputs["Selection"])


def hair(folder):
    object = flag()
    object.modifiers.new("Hair", "PARTICLE_SYSTEM")
    object.particle_systems[0].settings.type = "HAIR"


def particle_objects(folder):
    object = flag()
    other = scenes.grid(name="Other")
    object.modifiers.new("Leaves", "PARTICLE_SYSTEM")
    settings = object.particle_systems[0].settings
    settings.render_type, settings.instance_object = "OBJECT", other


def duplicates(kind):
    object = flag()
    scenes.grid(name="Child").parent = object
    object.instance_type = kind


def children_at_vertices(folder):
    duplicates("VERTS")


def children_at_faces(folder):
    duplicates("FACES")


# What lets scripts run: Blender as a module of Python has no program, and no window.
ADVICE = "--enable-autoexec" if bpy.app.binary_path else "--run-scripts"

# Each with the kind, and words of the note: what it names.
OMISSIONS = {
    blocked_driver_of_a_modifier: ("scripts", 'modifiers["Wave"].height', 'object "Flag"', ADVICE),
    blocked_driver_of_a_hook: ("scripts", "location[0]", 'object "Hook"', PYTHON),
    blocked_driver_of_a_shape_key: ("scripts", 'key_blocks["Key 1"].value', 'shape keys of mesh "Flag mesh"'),
    blocked_driver_of_a_bone: ("scripts", 'pose.bones["Bone"].location[0]', 'object "Rig"'),
    blocked_driver_of_a_constraint: ("scripts", 'constraints["Copy Location"].influence', 'object "Hook"'),
    blocked_driver_of_a_parent: ("scripts", "location[0]", 'object "Parent"'),
    blocked_driver_of_nodes: ("scripts", 'nodes["Set Position"].inputs', '"Nodes"'),
    blocked_driver_of_a_property: ("scripts", '["lift"]', 'object "Holder"'),
    blocked_driver_of_the_scene: ("scripts", '["lift"]', 'scene "Scene"'),
    blocked_driver_of_a_force_field: ("scripts", "location[0]", 'object "Wind"'),
    blocked_driver_of_a_collider: ("scripts", "location[0]", 'object "Ground"'),
    blocked_driver_of_a_passive_body: ("scripts", "location[0]", 'object "Ground"'),
    blocked_handler: ("scripts", 'text "moves.py"', ADVICE),
    driver_with_an_unknown_name: ("drivers", "unheard_of() + 1", 'object "Hook"', "Drivers Editor"),
    driver_that_is_no_python: ("drivers", "2 +* 3", 'object "Hook"'),
    driver_without_its_object: ("drivers", "location[0]", 'object "Hook"'),
    driver_with_a_bad_path: ("drivers", "location[0]", 'object "Hook"'),
    driver_that_divides_by_zero: ("drivers", "1 / (frame - 7)", 'object "Hook"'),
    driver_of_nothing: ("drivers", "gone", 'object "Hook"'),
    driver_that_averages_nothing: ("drivers", "average", 'object "Hook"'),
    missing_library_of_a_target: ("libraries", "library.blend", 'object "Target"', 'object "Flag"', "relocate"),
    missing_library_of_nodes: ("libraries", "library.blend", '"Deform"', 'object "Target"'),
    missing_library_of_an_action: ("libraries", "library.blend", 'action "Motion"', 'object "Hook"'),
    missing_library_of_a_collection: ("libraries", "library.blend", 'collection "Forces"', 'object "Flag"'),
    missing_library_of_an_override: ("libraries", "library.blend", 'object "Target"'),
    object_gone_from_its_library: ("libraries", "library.blend", 'object "Target"', 'object "Flag"', "Relink"),
    missing_image: ("files", "bumps.png", 'object "Flag"', "correct the path"),
    damaged_image: ("files", "bumps.png", 'object "Flag"'),
    missing_image_of_a_sequence: ("files", "bumps_005.png", 'object "Flag"'),
    missing_tile: ("files", "bumps.1002.png", 'object "Flag"'),
    missing_image_of_nodes: ("files", "bumps.png", 'object "Flag"'),
    missing_image_of_a_weight: ("files", "bumps.png", 'object "Flag"'),
    missing_cache_of_a_target: ("caches", "target.pc2", '"Point Cache"', 'object "Target"'),
    cut_cache_of_a_target: ("caches", "target.mdd", '"Point Cache"', 'object "Target"'),
    missing_cache_of_a_constraint: ("caches", "moved.abc", '"Transform Cache"', 'object "Hook"'),
    short_simulation: ("caches", '"Cloth"', 'object "Flag"', "frame 8", "Extend the cache to frame 12"),
    short_simulation_of_a_target: ("caches", '"Cloth"', 'object "Target"', "frame 8"),
    simulation_baked_too_short: ("caches", '"Cloth"', "frame 1 to 8", "Bake it again"),
    simulation_baked_too_late: ("caches", '"Cloth"', "frame 4 to 12", "Bake it again"),
    simulation_baked_halfway: ("caches", '"Cloth"', "5 of 12 frames", "Bake it again"),
    lost_files_of_a_bake: ("caches", '"Cloth"', 'object "Flag"', "on disk", "empty", "restore its files"),
    some_lost_files_of_a_bake: ("caches", '"Cloth"', "11 of 12 frames"),
    external_cache_without_files: ("caches", '"Cloth"', "empty"),
    short_rigid_bodies: ("caches", '"Rigid Body World"', 'object "Falling"', "frame 8"),
    short_soft_body: ("caches", '"Softbody"', 'object "Flag"', "frame 8"),
    short_dynamic_paint: ("caches", '"Dynamic Paint"', 'object "Flag"', "frame 8"),
    liquid_that_is_not_baked: ("caches", '"Fluid"', 'object "Liquid"', "Bake it"),
    nodes_baked_too_short: ("caches", '"Nodes"', 'object "Flag"', "frame 8"),
    modifier_for_renders_only: ("render", '"Solidify"', 'object "Flag"', "in renders only", "Enable it"),
    modifier_for_the_viewport_only: ("render", '"Solidify"', 'object "Flag"', "in the viewport only"),
    modifier_of_a_target_for_renders_only: ("render", '"Wave"', 'object "Target"', "in renders only"),
    levels: ("levels", '"Subdivision"', 'object "Flag"', "viewport, 1", "renders use 3"),
    steps: ("levels", '"Screw"', 'object "Flag"', "viewport, 4", "renders use 9"),
    instances_on_points: ("instances", "instances", '"Nodes"', 'object "Flag"', "Realize Instances"),
    instance_of_an_object: ("instances", "instances", '"Nodes"', 'object "Flag"', "Realize Instances"),
    instances_of_a_collection: ("instances", "instances", '"Nodes"', 'object "Flag"', "Realize Instances"),
    instances_from_a_frame_on: ("instances", "instances", '"Nodes"', 'object "Flag"', "Realize Instances"),
    curves_beside: ("instances", "curves", '"Nodes"', 'object "Flag"', "to a mesh"),
    points_beside: ("instances", "points", '"Nodes"', 'object "Flag"', "to a mesh"),
    volume_beside: ("instances", "volumes", '"Nodes"', 'object "Flag"', "to a mesh"),
    hair: ("instances", '"Hair"', 'object "Flag"'),
    particle_objects: ("instances", '"Leaves"', 'object "Flag"'),
    children_at_vertices: ("instances", "vertices", 'object "Flag"'),
    children_at_faces: ("instances", "faces", 'object "Flag"'),
}  # fmt: skip


# Of which nothing is left out.


def nothing_special(folder):
    flag()


def scripts_that_run(folder):
    driver(hook(flag()))
    reopened(folder, use_scripts=True)


def simple_driver(folder):
    driver(hook(flag()), expression="sin(frame / 3) * 2")
    reopened(folder)


def harmless_python(folder):
    """A driver with a complex expression that Blender runs without permission."""
    driver(hook(flag()), expression="frame ** 2 / 9")
    reopened(folder)


def blocked_driver_of_something_else(folder):
    flag()
    lamp = scenes.link(bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT")))
    driver(lamp)
    driver(lamp.data, "energy", index=-1)
    driver(bpy.context.scene, "gravity")
    reopened(folder)


def blocked_driver_of_the_looks(folder):
    object = flag()
    material = bpy.data.materials.new("Cloth")
    object.data.materials.append(material)
    driver(material, "roughness", index=-1)
    driver(object, "hide_render", index=-1)
    driver(object, "color")
    driver(rig(object), "show_in_front", index=-1)
    reopened(folder)


def blocked_driver_of_a_modifier_that_is_off(folder):
    object = flag()
    off = object.modifiers.new("Bend", "SIMPLE_DEFORM")
    off.show_viewport = off.show_render = False
    driver(off, "factor", index=-1)
    reopened(folder)


def blocked_driver_of_an_unused_target(folder):
    object = flag()
    empty = hook(object)
    modifier = object.modifiers["Hook"]
    modifier.show_viewport = modifier.show_render = False
    driver(empty)
    reopened(folder)


def blocked_driver_of_a_muted_constraint(folder):
    object = flag()
    other = scenes.grid(name="Other")
    driver(other)
    constraint = hook(object).constraints.new("COPY_LOCATION")
    constraint.target, constraint.mute = other, True
    reopened(folder)


def blocked_driver_of_a_bone_shape(folder):
    shape = scenes.grid(name="Widget")
    driver(shape)
    rig(flag()).pose.bones["Bone"].custom_shape = shape
    reopened(folder)


def blocked_driver_of_a_force_field_without_a_simulation(folder):
    flag()
    driver(field())
    reopened(folder)


def blocked_driver_of_a_force_field_beside_a_bake(folder):
    baked(flag())
    driver(field())
    reopened(folder)


def muted_driver(folder):
    driver(hook(flag())).mute = True
    reopened(folder)


def text_of_an_interface(folder):
    """A text as Rigify makes it: registered, blocked, and without effect on any shape."""
    flag()
    text = bpy.data.texts.new("rig_ui.py")
    text.write("import bpy\nclass Panel(bpy.types.Panel): pass\n")
    text.use_module = True
    reopened(folder)


def missing_library_of_something_else(folder):
    scenes.grid(name="Target")
    linked(
        folder,
        kinds={"objects": "Target"},
        use=lambda object, found: bpy.context.scene.collection.objects.link(found["objects"]),
    )


def linked_target(folder):
    scenes.grid(name="Target")
    library = folder / "library.blend"
    bpy.data.libraries.write(str(library), {bpy.data.objects["Target"]})
    scenes.empty_scene()
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = ["Target"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    flag().modifiers.new("Shrinkwrap", "SHRINKWRAP").target = wanted.objects[0]
    reopened(folder)


def missing_image_of_a_material(folder):
    object = flag()
    displaced(object, folder / "bumps.png")
    image = object.modifiers["Displace"].texture.image
    object.modifiers.remove(object.modifiers["Displace"])
    material = bpy.data.materials.new("Cloth")
    if material.node_tree is None:
        material.use_nodes = True
    material.node_tree.nodes.new("ShaderNodeTexImage").image = image
    object.data.materials.append(material)


def missing_image_of_a_modifier_that_is_off(folder):
    modifier = displaced(flag(), folder / "bumps.png")
    modifier.show_viewport = modifier.show_render = False


def image(folder):
    picture(folder / "bumps.png")
    displaced(flag(), folder / "bumps.png")
    reopened(folder)


def packed_image(folder):
    picture(folder / "bumps.png")
    displaced(flag(), folder / "bumps.png").texture.image.pack()
    (folder / "bumps.png").unlink()
    reopened(folder)


def generated_image(folder):
    modifier = displaced(flag(), folder / "bumps.png")
    modifier.texture.image = bpy.data.images.new("Generated", 4, 4)


def image_sequence(folder):
    for number in range(1, 9):
        picture(folder / f"bumps_{number:03d}.png")
    user = displaced(flag(), folder / "bumps_001.png", "SEQUENCE").texture.image_user
    user.frame_start, user.frame_duration = 1, 8


def cyclic_image_sequence(folder):
    for number in range(3, 6):
        picture(folder / f"bumps_{number:03d}.png")
    user = displaced(flag(), folder / "bumps_003.png", "SEQUENCE").texture.image_user
    user.frame_start, user.frame_duration, user.frame_offset, user.use_cyclic = 1, 3, 2, True


def cache_of_a_target(folder):
    other = target(flag())
    scenes.write_pc2(folder / "target.pc2", [[vertex.co for vertex in other.data.vertices]] * 3)
    scenes.point_cache(other, folder / "target.pc2", "PC2")


def missing_cache_that_is_off(folder):
    missing_cache_of_a_target(folder)
    modifier = bpy.data.objects["Target"].modifiers["Point Cache"]
    modifier.show_viewport = modifier.show_render = False


def simulation(folder):
    scenes.cloth(flag())


def simulation_nodes(folder):
    scenes.simulation_nodes(flag())


def current_bake(folder):
    baked(flag())
    reopened(folder)


def current_bake_on_disk(folder):
    object = flag()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    baked(object, disk=True)
    bpy.ops.wm.save_mainfile()
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def bake_from_before_zero(folder):
    baked(flag(), first=-9)
    reopened(folder)


def bake_on_disk_from_before_zero(folder):
    object = flag()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    baked(object, first=-9, disk=True)
    bpy.ops.wm.save_mainfile()
    bpy.ops.wm.open_mainfile(filepath=str(folder / "shot.blend"))


def external_cache(folder):
    external(folder, b"Flag".hex().upper())


def rigid_bodies(folder):
    rigid_body(flag(), 12)


def short_simulation_of_something_else(folder):
    flag()
    scenes.cloth(scenes.grid(name="Other")).point_cache.frame_end = 8


def modifier_that_is_off(folder):
    modifier = flag().modifiers.new("Solidify", "SOLIDIFY")
    modifier.show_viewport = modifier.show_render = False


def same_levels(folder):
    modifier = flag().modifiers.new("Subdivision", "SUBSURF")
    modifier.levels = modifier.render_levels = 1


def realized_instances(folder):
    tree = joined(flag(), "GeometryNodeInstanceOnPoints", _on_points)
    realize = tree.nodes.new("GeometryNodeRealizeInstances")
    join = tree.nodes["Join Geometry"]
    tree.links.new(join.outputs[0], realize.inputs[0])
    tree.links.new(realize.outputs[0], tree.nodes["Group Output"].inputs[0])


def instances_of_another_object(folder):
    flag()
    joined(scenes.grid(name="Other"), "GeometryNodeInstanceOnPoints", _on_points)


def child(folder):
    scenes.grid(name="Child").parent = flag()


def emitter_without_a_shape(folder):
    object = flag()
    object.modifiers.new("Sparks", "PARTICLE_SYSTEM")


COMPLETE = [
    nothing_special, scripts_that_run, simple_driver, harmless_python, blocked_driver_of_something_else,
    blocked_driver_of_the_looks, blocked_driver_of_a_modifier_that_is_off, blocked_driver_of_an_unused_target,
    blocked_driver_of_a_muted_constraint, blocked_driver_of_a_bone_shape,
    blocked_driver_of_a_force_field_without_a_simulation, blocked_driver_of_a_force_field_beside_a_bake,
    muted_driver, text_of_an_interface, missing_library_of_something_else, linked_target,
    missing_image_of_a_material, missing_image_of_a_modifier_that_is_off, image, packed_image, generated_image,
    image_sequence, cyclic_image_sequence, cache_of_a_target, missing_cache_that_is_off, simulation,
    simulation_nodes, current_bake, bake_from_before_zero, bake_on_disk_from_before_zero, current_bake_on_disk,
    external_cache, rigid_bodies, short_simulation_of_something_else, particles_of_another, modifier_that_is_off,
    same_levels, realized_instances, instances_of_another_object, child, emitter_without_a_shape,
]  # fmt: skip


def build(scene, folder: Path):
    """The object that moves, in the scene that the function ``scene`` makes."""
    scenes.empty_scene()
    scene(folder)
    bpy.context.view_layer.update()
    return bpy.data.objects["Flag"]
