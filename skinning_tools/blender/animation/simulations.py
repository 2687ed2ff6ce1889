# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulations: the frame from which they must be played for correct shapes, and the last frame with correct shapes."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy

from ..object_checks import visible_modifiers
from .used_data import dependencies


def simulation_start(scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, ob: bpy.types.Object) -> int | None:
    """The first frame of the simulations that the shape of ``ob`` may depend on; None if there are none.

    Colliders and force fields act on a simulation without any reference to them. So if there is any simulation, the
    earliest start in the view layer counts. Needs an up-to-date depsgraph.
    """
    objects = [entry for entry in dependencies(ob) if isinstance(entry, bpy.types.Object)]
    if not any(True for entry in objects for _ in _starts(scene, entry)):
        return None
    starts = [start for entry in {*view_layer.objects, *objects} for start in _starts(scene, entry)]
    return min(starts)


def frames_to_play(
    scene: bpy.types.Scene, view_layer: bpy.types.ViewLayer, objects: Sequence[bpy.types.Object], numbers: Sequence[int]
) -> Sequence[int]:
    """The frames to set in order, so that the ``objects`` are right at ``numbers``: these alone or, where shapes depend
    on a simulation, all since its start.

    Invalidates caches in which the user skipped frames. Needs an up-to-date depsgraph.
    """
    starts = [start for ob in objects if (start := simulation_start(scene, view_layer, ob)) is not None]
    if not starts:
        return numbers
    for ob in objects:
        _forget_skipped_frames(ob)
    return range(min(*starts, numbers[0]), numbers[-1] + 1)


def acting_on(view_layer: bpy.types.ViewLayer, objects: Iterable[bpy.types.Object]) -> list:
    """The objects that act on the played simulations of ``objects`` without being referred to: force fields, colliders
    and other rigid bodies."""
    played = [
        each for ob in objects for each in _point_caches(ob) if not (each.cache.is_baked or each.cache.use_external)
    ]
    return [ob for ob in view_layer.objects if _acts(ob)] if played else []


def _acts(ob: bpy.types.Object) -> bool:
    field = ob.field
    collides = any(modifier.type == "COLLISION" for modifier in visible_modifiers(ob))
    return collides or ob.rigid_body is not None or (field is not None and field.type != "NONE")


def own_simulation_start(scene: bpy.types.Scene, ob: bpy.types.Object) -> int | None:
    """The first frame of the object's own simulations, None if it has none. Cheap enough for a panel's draw: ignores
    the object's dependencies."""
    return min(_starts(scene, ob), default=None)


def _forget_skipped_frames(ob: bpy.types.Object) -> None:
    """Invalidate the caches of ``ob`` and its dependencies in which the user skipped frames.

    Blender keeps the guesses it made while the timeline was scrubbed, and shows them instead of the simulation. Takes
    effect at the simulation's first frame.
    """
    for entry in dependencies(ob):
        if isinstance(entry, bpy.types.Object) and any(
            each.cache.is_frame_skip and not each.cache.is_baked for each in _point_caches(entry)
        ):
            entry.update_tag(refresh={"DATA"})


@dataclass(frozen=True)
class ShortCache:
    """A simulation that stands still after the frame ``end``. name: of its modifier; place: the panel of its cache."""

    object_name: str
    name: str
    end: int
    baked: bool
    place: str = "the modifier's Cache panel"

    def advice(self, last: int) -> str:
        """How to extend the simulation to the frame ``last``."""
        first = "Delete its bake, extend" if self.baked else "Extend"
        return f"{first} the cache to frame {last} in {self.place}"


def short_caches(ob: bpy.types.Object, last: int) -> list[ShortCache]:
    """The simulations that the shape of ``ob`` depends on and whose caches end before the frame ``last``."""
    objects = [entry for entry in dependencies(ob) if isinstance(entry, bpy.types.Object)]
    return sorted((cache for entry in objects for cache in _own_short_caches(entry, last)), key=lambda cache: cache.end)


def short_caches_behind(view_layer: bpy.types.ViewLayer, ob: bpy.types.Object, last: int) -> list[ShortCache]:
    """The simulations in the view layer that depend on ``ob`` and whose caches end before the frame ``last``."""
    found = {entry: list(_own_short_caches(entry, last)) for entry in view_layer.objects}
    return [cache for entry, caches in found.items() if caches and ob in dependencies(entry) for cache in caches]


def cache_faults(ob: bpy.types.Object, first: int, last: int) -> Iterator[str]:
    """Faults of the caches of the object's own simulations between the frames ``first`` and ``last``.

    A simulation that is not baked is played and needs no cache, but stops at the end of its range.
    """
    for each in _point_caches(ob):
        cache, label = each.cache, f'the simulation "{each.name}" of object "{ob.name}"'
        if not cache.is_baked and not cache.use_external:
            if each.is_short(last):
                short = _short(ob, each)
                yield f"{label} ends at frame {short.end} and stands still from then on. {short.advice(last)}"
            continue
        count, start, end = _cached_frames(each)
        again = f"Bake it again from frame {min(first, cache.frame_start)} to {last} in {each.place}"
        if not count:
            where = " on disk" if cache.use_disk_cache or cache.use_external else ""
            yield f"the cache{where} of {label} is empty, so that it stands still. {again}, or restore its files"
        elif each.has_range and (start > first or end < last):
            yield f"{label} is only baked from frame {start} to {end}, and stands still before and after. {again}"
        elif count < _whole_count(start, end, cache.frame_step):
            yield f"{label} has only {count} of {end - start + 1} frames baked. {again}"
        elif cache.is_outdated:
            yield f"the baked cache of {label} is outdated: something has changed since the bake. {again}"
    for modifier in visible_modifiers(ob):
        label = f'the simulation "{modifier.name}" of object "{ob.name}"'
        if modifier.type == "FLUID" and modifier.fluid_type == "DOMAIN":
            yield from _fluid_faults(modifier.domain_settings, label, last)
        elif modifier.type == "NODES":
            for end in _ends_of_node_bakes(modifier, ob.library):
                if end < last:
                    yield f"{label} is only baked to frame {end}, and stands still after. Bake it again to frame {last}"


def _fluid_faults(domain: bpy.types.FluidDomainSettings, label: str, last: int) -> Iterator[str]:
    if domain.domain_type != "LIQUID":
        return
    if domain.cache_frame_end < last:
        yield f"{label} ends at frame {domain.cache_frame_end}. Extend the domain's cache to frame {last}"
    baked = domain.has_cache_baked_data and (domain.has_cache_baked_mesh or not domain.use_mesh)
    if domain.cache_type != "REPLAY" and not baked:
        yield f"{label} is not baked, and shows its domain instead. Bake it in the domain's Cache panel"


def _ends_of_node_bakes(modifier: bpy.types.NodesModifier, library: bpy.types.Library | None) -> Iterator[int]:
    """The last frame of each simulation of a Geometry Nodes modifier that is baked to files."""
    for bake in modifier.bakes:
        if bake.node is None or bake.node.bl_idname != "GeometryNodeSimulationOutput":
            continue
        own = bake.directory if bake.use_custom_path else ""
        given = own or (modifier.bake_directory and f"{modifier.bake_directory}/{bake.bake_id}")
        folder = Path(bpy.path.abspath(given, library=library), "meta")
        if given and folder.is_dir():
            numbers = [int(path.stem.split("_")[0]) for path in folder.glob("*.json") if path.stem[:1].isdigit()]
            yield from [max(numbers)] if numbers else []


def _own_short_caches(ob: bpy.types.Object, last: int) -> Iterator[ShortCache]:
    for each in _point_caches(ob):
        if each.is_short(last) and not each.cache.use_external:
            yield _short(ob, each)


def _short(ob: bpy.types.Object, each: "_Simulation") -> ShortCache:
    return ShortCache(ob.name, each.name, each.cache.frame_end, each.cache.is_baked, each.place)


def _starts(scene: bpy.types.Scene, ob: bpy.types.Object) -> Iterator[int]:
    """First frames of the object's own simulations that are not baked."""
    for each in _point_caches(ob):
        if not each.cache.is_baked and not each.cache.use_external:
            yield each.cache.frame_start
    for modifier in visible_modifiers(ob):
        if modifier.type == "FLUID" and modifier.fluid_type == "DOMAIN":
            yield modifier.domain_settings.cache_frame_start
        if modifier.type == "NODES":
            for bake in modifier.bakes:
                if bake.node is not None and bake.node.bl_idname == "GeometryNodeSimulationOutput":
                    yield bake.frame_start if bake.use_custom_simulation_frame_range else scene.frame_start


@dataclass(frozen=True)
class _Simulation:
    """A simulation with a point cache. name: of its modifier or its particles; owner: the data-block that files are
    named after; place: the panel of its cache; has_range: False for particles, whose cache ends with the last one."""

    name: str
    cache: bpy.types.PointCache
    owner: bpy.types.ID
    place: str = ShortCache.place
    has_range: bool = True

    def is_short(self, last: int) -> bool:
        return self.has_range and self.cache.frame_end < last


def _point_caches(ob: bpy.types.Object) -> Iterator[_Simulation]:
    """The simulations that shape the object's mesh, or move the object as a rigid body."""
    particles: dict[tuple[bpy.types.Object, int], bpy.types.ParticleSystem] = {}
    for modifier in visible_modifiers(ob):
        if modifier.type in {"CLOTH", "SOFT_BODY"}:
            yield _Simulation(modifier.name, modifier.point_cache, ob)
        elif modifier.type == "DYNAMIC_PAINT" and modifier.canvas_settings is not None:
            for surface in modifier.canvas_settings.canvas_surfaces:
                yield _Simulation(modifier.name, surface.point_cache, ob)
        elif modifier.type == "EXPLODE":
            particles |= {(ob, index): system for index, system in enumerate(ob.particle_systems)}
        elif modifier.type == "PARTICLE_INSTANCE" and modifier.object is not None:
            index, systems = modifier.particle_system_index - 1, modifier.object.particle_systems
            if index < len(systems):
                particles[modifier.object, index] = systems[index]
    for (owner, _), system in particles.items():
        yield _Simulation(system.name, system.point_cache, owner, "the particles' Cache panel", has_range=False)
    if ob.rigid_body is not None and ob.rigid_body.type == "ACTIVE":
        for scene in ob.users_scene:
            world = scene.rigidbody_world
            if world is not None and world.enabled:
                place = "the scene's Rigid Body World, Cache"
                yield _Simulation("Rigid Body World", world.point_cache, scene, place)


def _cached_frames(simulation: _Simulation) -> tuple[int, int, int]:
    """The number of frames in a baked or external cache, and the first and the last of them."""
    cache = simulation.cache
    first, last = cache.frame_start, cache.frame_end
    if not (cache.use_disk_cache or cache.use_external):
        # Blender offers this only as text: "10 frames in memory (8 KiB)".
        count = re.search(r"\d+", cache.info)
        return int(count[0]) if count else last - first + 1, first, last
    if not (cache.use_external or bpy.data.filepath):
        # Blender keeps them in a temporary folder while the file has no name.
        return last - first + 1, first, last
    folder = _cache_folder(simulation)
    name = cache.name or simulation.owner.name.encode().hex().upper()
    ending = rf"{max(cache.index, 0):02d}\.\w+"
    numbers = []
    if os.path.isdir(folder):
        found = (re.fullmatch(rf"{re.escape(name)}_(-?\d+)_{ending}", entry) for entry in os.listdir(folder))
        numbers = [int(match[1]) for match in found if match and int(match[1])]
    if not numbers:
        return 0, first, last
    if cache.use_external:
        return len(numbers), min(numbers), max(numbers)
    return len([number for number in numbers if first <= number <= last]), first, last


def _whole_count(start: int, end: int, step: int) -> int:
    """The least number of frames in a complete cache. Blender does not store the frames -1 and 0."""
    return sum(number not in (-1, 0) for number in range(start, end + 1, max(step, 1))) if end > 0 else 1


def _cache_folder(simulation: _Simulation) -> str:
    """Where Blender looks for the files of a disk cache."""
    cache, library = simulation.cache, simulation.owner.library
    if cache.use_external:
        return bpy.path.abspath(cache.filepath, library=library if cache.use_library_path else None)
    path = library.filepath if library is not None and cache.use_library_path else bpy.data.filepath
    path = Path(bpy.path.abspath(path))
    return str(path.parent / f"blendcache_{path.stem}")
