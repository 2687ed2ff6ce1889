# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulations: from which frame they have to be played for an object's shape to be right, and up to which it is."""

from collections.abc import Iterator
from dataclasses import dataclass

import bpy

# What these use is not what an object depends on.
_CONTAINERS = (bpy.types.Scene, bpy.types.WindowManager, bpy.types.WorkSpace, bpy.types.Screen, bpy.types.Library)
_PARTICLE_DEFORMERS = {"EXPLODE", "PARTICLE_INSTANCE"}


def simulation_start(scene, view_layer, object) -> int | None:
    """The first frame of the simulations that the shape of ``object`` may depend on; None where there are none.

    Colliders and force fields act on a simulation without being referred to. So where there is one at all, the
    earliest start in the view layer counts. Needs an up-to-date depsgraph.
    """
    objects = [entry for entry in dependencies(object) if isinstance(entry, bpy.types.Object)]
    if not any(True for entry in objects for _ in _starts(scene, entry)):
        return None
    starts = [start for entry in {*view_layer.objects, *objects} for start in _starts(scene, entry)]
    return min(starts)


def own_simulation_start(scene, object) -> int | None:
    """The first frame of the object's own simulations, None where it has none. Cheap enough for a panel's draw: does
    not look at what the object depends on."""
    return min(_starts(scene, object), default=None)


def forget_skipped_frames(object) -> None:
    """Have the caches of ``object`` and what it depends on made anew where the user skipped frames in them.

    Blender keeps what it guessed when the timeline was scrubbed, and shows it instead of the simulation. Takes effect
    at the simulation's first frame.
    """
    for entry in dependencies(object):
        if isinstance(entry, bpy.types.Object) and any(
            cache.is_frame_skip and not cache.is_baked for _, cache in _point_caches(entry)
        ):
            entry.update_tag(refresh={"DATA"})


@dataclass(frozen=True)
class ShortCache:
    """A simulation that stands still after the frame ``end``. name: of its modifier."""

    object_name: str
    name: str
    end: int
    baked: bool

    def advice(self, last: int) -> str:
        """What to do for it to go on to the frame ``last``."""
        first = "Delete its bake, extend" if self.baked else "Extend"
        return f"{first} the cache to frame {last} in the modifier's Cache panel"


def short_caches(object, last: int) -> list[ShortCache]:
    """The simulations that the shape of ``object`` depends on and whose caches end before the frame ``last``."""
    objects = [entry for entry in dependencies(object) if isinstance(entry, bpy.types.Object)]
    return sorted((cache for entry in objects for cache in _own_short_caches(entry, last)), key=lambda cache: cache.end)


def short_caches_behind(view_layer, object, last: int) -> list[ShortCache]:
    """The simulations in the view layer that depend on ``object`` and whose caches end before the frame ``last``."""
    found = {entry: list(_own_short_caches(entry, last)) for entry in view_layer.objects}
    return [cache for entry, caches in found.items() if caches and object in dependencies(entry) for cache in caches]


def _own_short_caches(object, last: int) -> Iterator[ShortCache]:
    for name, cache in _point_caches(object):
        if cache.frame_end < last and not cache.use_external:
            yield ShortCache(object.name, name, cache.frame_end, cache.is_baked)


def dependencies(object) -> set:
    """``object`` and all data-blocks that it uses, directly or through others."""
    uses: dict = {}
    for used, users in bpy.data.user_map().items():
        for user in users:
            uses.setdefault(user, []).append(used)
    found, waiting = {object}, [object]
    while waiting:
        for used in uses.get(waiting.pop(), ()):
            if used not in found and not isinstance(used, _CONTAINERS):
                found.add(used)
                waiting.append(used)
    return found


def _starts(scene, object) -> Iterator[int]:
    """First frames of the object's own simulations that are not baked."""
    for _, cache in _point_caches(object):
        if not cache.is_baked and not cache.use_external:
            yield cache.frame_start
    for modifier in object.modifiers:
        if not modifier.show_viewport:
            continue
        if modifier.type == "FLUID" and modifier.fluid_type == "DOMAIN":
            yield modifier.domain_settings.cache_frame_start
        if modifier.type == "NODES":
            for bake in modifier.bakes:
                if bake.node is not None and bake.node.bl_idname == "GeometryNodeSimulationOutput":
                    yield bake.frame_start if bake.use_custom_simulation_frame_range else scene.frame_start


def _point_caches(object) -> Iterator[tuple[str, bpy.types.PointCache]]:
    """Caches of the simulations that shape the object's mesh, with the modifier's or the particles' name."""
    particles = False
    for modifier in object.modifiers:
        if not modifier.show_viewport:
            continue
        if modifier.type in {"CLOTH", "SOFT_BODY"}:
            yield modifier.name, modifier.point_cache
        elif modifier.type == "DYNAMIC_PAINT" and modifier.canvas_settings is not None:
            yield from ((modifier.name, surface.point_cache) for surface in modifier.canvas_settings.canvas_surfaces)
        particles = particles or modifier.type in _PARTICLE_DEFORMERS
    if particles:
        yield from ((system.name, system.point_cache) for system in object.particle_systems)
