# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks for what Blender has not evaluated; each yields texts that say what is wrong, where, and what to do."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import bpy

from ...core.errors import BadScene
from ..object_checks import (
    REFINING_MODIFIERS,
    check_cache_content,
    check_cache_files,
    check_sequence_file,
    sequence_path,
    sequences,
    visible_modifiers,
)
from ..preconditions import object_label
from ..wording import counted
from . import simulations

# Driven or not, they change how something looks or renders, but no shape in the viewport.
_LOOKS = re.compile(
    r"(^|\.)(hide_render|hide_select|hide|is_visible|color(\.\w+)?|display_\w+|empty_display_\w+|custom_shape_\w+|"
    r"lock_\w+|show_(?!viewport$|only_shape_key$)\w+|render_levels|render_resolution_[uv])$"
)
_OF_MODIFIER = re.compile(r'modifiers\["((?:[^"\\]|\\.)*)"\]\.(?!show_viewport$)')
# At most so many names are listed.
_NAMED = 3
_PARTICLES_SHOWN = {"PATH", "OBJECT", "COLLECTION"}
# Modifier types that renders show finer, with their properties for viewport and render.
_LEVELS = {
    "SUBSURF": ("levels", "render_levels"),
    "MULTIRES": ("levels", "render_levels"),
    "OCEAN": ("viewport_resolution", "resolution"),
    "SCREW": ("steps", "render_steps"),
}


# Disabled in the viewport to get a mesh's own vertices; renders then show the finer or fuller mesh.
_MAKE_VERTICES = REFINING_MODIFIERS | {
    "ARRAY", "BUILD", "EDGE_SPLIT", "EXPLODE", "MASK", "OCEAN", "PARTICLE_INSTANCE", "PARTICLE_SYSTEM", "SOLIDIFY"
}  # fmt: skip


class Driven(NamedTuple):
    """A data-block with drivers. paths: the properties to check; None stands for all."""

    block: bpy.types.ID
    paths: frozenset[str] | None = None

    def drivers(self, depsgraph: bpy.types.Depsgraph | None = None) -> list[bpy.types.FCurve]:
        """The drivers that are enabled and count, evaluated if a depsgraph is given."""
        block = self.block if depsgraph is None else self.block.evaluated_get(depsgraph)
        animation = block.animation_data
        curves = animation.drivers if animation is not None else ()
        return [curve for curve in curves if not curve.mute and self._counts(curve.data_path)]

    def _counts(self, path: str) -> bool:
        if self.paths is not None:
            return path in self.paths
        modifier = _OF_MODIFIER.match(path)
        if modifier is not None and isinstance(self.block, bpy.types.Object):
            found = self.block.modifiers.get(bpy.utils.unescape_identifier(modifier[1]))
            if found is not None and not found.show_viewport:
                return False
        return _LOOKS.search(path) is None


def driver_owners(scene: bpy.types.Scene, used: Iterable) -> list[Driven]:
    """The data-blocks in ``used`` that have drivers, and the scene properties that these drivers read."""
    found = [Driven(block) for block in used if getattr(block, "animation_data", None) is not None]
    read: dict = {}
    for curve in [curve for each in found for curve in each.drivers()]:
        for variable in curve.driver.variables:
            for target in variable.targets:
                block = scene if variable.type == "CONTEXT_PROP" else target.id
                if isinstance(block, bpy.types.Scene):
                    read.setdefault(block, set()).add(target.data_path)
    return found + [Driven(block, frozenset(paths)) for block, paths in read.items()]


def blocked_drivers(driven: Iterable[Driven], depsgraph: bpy.types.Depsgraph | None) -> Iterator[str]:
    for each in driven:
        names = [
            f"{_property(each.block, curve)} ({curve.driver.expression})"
            for curve in each.drivers(depsgraph)
            if _is_blocked(curve)
        ]
        if names:
            yield (f"{_drivers_text(each.block, names)} not run, as scripts are disabled. {_to_run_scripts()}")


def drivers_in_error(driven: Iterable[Driven], depsgraph: bpy.types.Depsgraph | None = None) -> Iterator[str]:
    for each in driven:
        names = []
        for curve in each.drivers(depsgraph):
            if not (curve.is_valid and curve.driver.is_valid) and not _is_blocked(curve):
                what = curve.driver.expression if curve.driver.type == "SCRIPTED" else curve.driver.type.lower()
                names.append(f"{_property(each.block, curve)} ({what})")
        if names:
            them = "them" if len(names) > 1 else "it"
            yield (
                f"{_drivers_text(each.block, names)} invalid, so Blender does not evaluate {them}. Correct or remove "
                "the drivers that are red in the Drivers Editor"
            )


def _is_blocked(curve: bpy.types.FCurve) -> bool:
    driver = curve.driver
    python = driver.type == "SCRIPTED" and not driver.is_simple_expression
    return python and not driver.is_valid and bpy.app.autoexec_fail and _is_python(driver.expression)


def _to_run_scripts() -> str:
    """What to do. Blender as a Python module has no program to start and no window, and does not read the user's
    preferences."""
    if bpy.app.binary_path:
        return "If you trust the file, start Blender with --enable-autoexec, or open the file with Trusted Source"
    return (
        "If you trust the file, add --run-scripts to the command, or open the file with "
        "bpy.ops.wm.open_mainfile(filepath=..., use_scripts=True)"
    )


def _is_python(expression: str) -> bool:
    try:
        compile(expression, "driver", "eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _drivers_text(block: bpy.types.ID, names: list[str]) -> str:
    several = len(names) > 1
    return f"the driver{'s' if several else ''} of {_listed(names)} of {_label(block)} {'are' if several else 'is'}"


def _property(block: bpy.types.ID, curve: bpy.types.FCurve) -> str:
    """Such as "location[0]"."""
    try:
        value = block.path_resolve(curve.data_path)
    except ValueError:
        value = None
    indexed = hasattr(value, "__len__") and not isinstance(value, str)
    return f"{curve.data_path}[{curve.array_index}]" if indexed else curve.data_path


def blocked_texts() -> Iterator[str]:
    """Text data-blocks that would have registered handlers."""
    if not bpy.app.autoexec_fail:
        return
    for text in bpy.data.texts:
        if text.use_module and re.search(r"app\.handlers|from bpy\.app import handlers", text.as_string()):
            yield (
                f'the text "{text.name}", which has handlers, is not run, as scripts are disabled. {_to_run_scripts()}'
            )


def missing_data(used: dict) -> Iterator[str]:
    """Missing libraries and data-blocks. used: from ``dependencies``."""
    missing: dict = {}
    for block, user in used.items():
        reference = block.override_library.reference if block.override_library is not None else None
        for each in (block, reference):
            if each is not None and each.is_missing:
                missing.setdefault(each.library, []).append(f"{_label(each)}{_used_by(user, used)}")
    for library, names in missing.items():
        path = bpy.path.abspath(library.filepath) if library is not None else ""
        if os.path.isfile(path):
            yield f"the library {path} no longer has {_listed(names)}. Relink, or restore the library"
        else:
            yield f"the library {path} is missing, and with it {_listed(names)}. Restore or relocate it, then reopen"


def missing_files(used: dict, numbers: Sequence[int]) -> Iterator[str]:
    for block, user in used.items():
        if isinstance(block, bpy.types.Image):
            path = _missing_image(block, user, numbers)
        elif isinstance(block, (bpy.types.VectorFont, bpy.types.Volume)) and block.filepath != "<builtin>":
            packed = getattr(block, "packed_file", None) is not None
            path = None if packed else _missing(_absolute(block.filepath, block))
        else:
            continue
        if path is not None:
            yield (
                f"the file of {_label(block)}{_used_by(user, used)} is missing or cannot be read: {path or 'none'}. "
                "Restore it, or correct the path"
            )


def _missing_image(image: bpy.types.Image, user: bpy.types.ID | None, numbers: Sequence[int]) -> str | None:
    """The path that is missing or cannot be read, or None."""
    if image.source in {"GENERATED", "VIEWER"} or image.packed_file is not None or len(image.packed_files):
        return None
    path = _absolute(image.filepath, image)
    if image.source == "TILED":
        tiles = (path.replace("<UDIM>", str(tile.number)) for tile in image.tiles)
        return next((tile for tile in tiles if _missing(tile)), None)
    if image.source == "SEQUENCE" and isinstance(user, bpy.types.Texture):
        paths = (sequence_path(path, _image_number(user.image_user, number)) for number in numbers)
        return next((str(each) for each in paths if each is not None and not each.is_file()), None)
    if _missing(path) is None and image.source == "FILE" and not all(image.size):
        return path
    return _missing(path)


def _image_number(image_user: bpy.types.ImageUser, frame: float) -> int:
    """The file number of an image sequence at a frame, as Blender counts it."""
    count, number = image_user.frame_duration, int(frame) - image_user.frame_start + 1
    if image_user.use_cyclic and count:
        number = (number - 1) % count + 1
    return min(max(number, 0), count) + image_user.frame_offset


def _missing(path: str) -> str | None:
    return None if path and os.path.isfile(path) else path


def _absolute(filepath: str, block: bpy.types.ID) -> str:
    return os.path.normpath(bpy.path.abspath(filepath, library=block.library)) if filepath else ""


def cache_faults(context: bpy.types.Context, used: dict, read: Iterable, numbers: Sequence[int]) -> Iterator[str]:
    """Faults of caches. read: the objects whose own cache files are checked during reading."""
    depsgraph = context.evaluated_depsgraph_get()
    for block in used:
        if isinstance(block, bpy.types.Object):
            if block not in read:
                yield from _file_faults(block, depsgraph, numbers)
            yield from simulations.cache_faults(block, numbers[0], numbers[-1])
            for part in _constraints(block):
                file = getattr(part, "cache_file", None)
                if file is not None and not part.mute and _missing(_absolute(file.filepath, file)) is not None:
                    yield (
                        f'the cache file of the constraint "{part.name}" of {object_label(block)} is missing: '
                        f"{_absolute(file.filepath, file)}. Correct its path, or restore the file"
                    )


def _constraints(ob: bpy.types.Object) -> list:
    bones = ob.pose.bones if ob.pose is not None else ()
    return [*ob.constraints, *(constraint for bone in bones for constraint in bone.constraints)]


def _file_faults(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph, numbers: Sequence[int]) -> Iterator[str]:
    try:
        check_cache_files(ob)
        check_cache_content(ob, depsgraph)
        for modifier in sequences(ob):
            for number in numbers:
                check_sequence_file(ob, modifier, number)
    except BadScene as error:
        yield str(error)


def render_differences(used: Iterable, coarse: Iterable) -> Iterator[str]:
    """Modifiers that differ in renders. coarse: objects for which modifiers that make other vertices do not count."""
    for block in used:
        if not isinstance(block, bpy.types.Object):
            continue
        differing = [each for each in block.modifiers if each.show_viewport != each.show_render]
        if block in coarse:
            differing = [each for each in differing if each.type not in _MAKE_VERTICES]
        for shown, where, advice in (
            (True, "the viewport", "Disable them in the viewport, or enable them in renders"),
            (False, "renders", "Enable them in the viewport, or disable them in renders"),
        ):
            names = [f'"{each.name}"' for each in differing if each.show_viewport == shown]
            if names:
                several = len(names) > 1
                yield (
                    f"the modifier{'s' if several else ''} {_listed(names)} of {object_label(block)} "
                    f"{'are' if several else 'is'} enabled in {where} only, and Skinning Tools reads what the viewport "
                    f"shows. {advice if several else advice.replace('them', 'it')}"
                )


def level_differences(objects: Iterable) -> Iterator[str]:
    for ob in objects:
        for modifier in visible_modifiers(ob):
            shown, rendered = _LEVELS.get(modifier.type, ("", ""))
            if shown and modifier.show_render and getattr(modifier, shown) != getattr(modifier, rendered):
                what, values = shown.removeprefix("viewport_"), (getattr(modifier, each) for each in (shown, rendered))
                yield (
                    f'the modifier "{modifier.name}" of {object_label(ob)} is read with the {what} of the viewport, '
                    "{}, but renders use {}. To read the finer mesh, set both to its value".format(*values)
                )


def particles_and_duplicates(objects: Iterable) -> Iterator[str]:
    """What objects show besides their meshes without Geometry Nodes."""
    for ob in objects:
        for modifier in visible_modifiers(ob):
            if modifier.type == "PARTICLE_SYSTEM" and _shows_particles(modifier.particle_system.settings):
                system = modifier.particle_system
                yield (
                    f'the particles "{system.name}" of {object_label(ob)} are not in the result. Keep the source for '
                    "them"
                )
        if ob.instance_type in {"VERTS", "FACES"} and ob.children:
            yield (
                f"the instances that {object_label(ob)} makes of its children at its {_INSTANCERS[ob.instance_type]} "
                "are not in the result. Make them real (Object > Apply > Make Instances Real), or keep the source for "
                "them"
            )


_INSTANCERS = {"VERTS": "vertices", "FACES": "faces"}


def _shows_particles(settings: bpy.types.ParticleSettings) -> bool:
    return settings.render_type in _PARTICLES_SHOWN and (settings.render_type != "PATH" or settings.type == "HAIR")


def may_have_instances(ob: bpy.types.Object) -> bool:
    return any(modifier.type == "NODES" for modifier in visible_modifiers(ob))


def beside_meshes(objects: list, depsgraph: bpy.types.Depsgraph) -> dict:
    """The text for each of the objects that shows more than its mesh at the current frame."""
    found: dict = {}
    # Particles and duplicates are reported above, and belong to other objects.
    told = [ob for ob in objects if ob.particle_systems or ob.instance_type != "NONE"]
    for each in depsgraph.object_instances if objects else ():
        parent = each.parent.original if each.is_instance and each.parent is not None else None
        if parent in objects:
            own = each.object.original == parent
            if own or parent not in told:
                found.setdefault(parent, set()).add(_COMPONENTS.get(each.object.type if own else "", "instances"))
    return {ob: list(_beside_text(ob, found[ob])) for ob in objects if ob in found}


def _beside_text(ob: bpy.types.Object, kinds: set[str]) -> Iterator[str]:
    names = [f'"{modifier.name}"' for modifier in visible_modifiers(ob) if modifier.type == "NODES"]
    of = f"from the modifier{'s' if len(names) > 1 else ''} {_listed(names)} of {object_label(ob)}"
    for kind in sorted(kinds):
        advice = "Convert them to a mesh in the nodes"
        if kind == "instances":
            advice = "Add the node Realize Instances at the end of the group to include them"
        yield f"{kind} {of} are not in the result, which has only the mesh. {advice}"


_COMPONENTS = {
    "CURVE": "curves",
    "CURVES": "curves",
    "POINTCLOUD": "points",
    "VOLUME": "volumes",
    "GREASEPENCIL": "strokes",
    "GPENCIL": "strokes",
}


def _used_by(user: bpy.types.ID | None, used: dict) -> str:
    """Such as ", which object "Flag" uses": the object at the end of the chain of users."""
    while user is not None and not isinstance(user, bpy.types.Object):
        user = used[user]
    return f", which {object_label(user)} uses" if user is not None else ""


def _label(block: bpy.types.ID) -> str:
    if isinstance(block, bpy.types.Key):
        return f"the shape keys of {_label(block.user)}"
    return f'{block.bl_rna.name.lower()} "{block.name}"'


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {counted(more, 'other')}" if more > 0 else "")
