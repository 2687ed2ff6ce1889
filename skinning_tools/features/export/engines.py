# SPDX-License-Identifier: GPL-3.0-or-later
"""File formats with the settings of Blender's exporters, explained in docs/export_settings.md; what each engine reads.

The settings are those that differ from the exporters' defaults, and the defaults that a result depends on. Settings
that a version of Blender does not have are left out.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import bpy

from .gltf_turns import keep_turns_short


@dataclass(frozen=True)
class Format:
    """A file format. ending: of its files. write, read: Blender's operators, such as "wm.usd_export", of those for
    reading the first that there is; wanted: settings for writing; taken: for reading; clips: further ones for writing
    several clips, none if the format cannot; in_turn: they have to be unmuted strips, one after the other; finish: what
    to do to the file that the exporter wrote."""

    label: str
    ending: str
    write: str
    read: tuple[str, ...]
    wanted: dict[str, Any]
    taken: dict[str, Any] = field(default_factory=dict)
    clips: dict[str, Any] = field(default_factory=dict)
    in_turn: bool = False
    finish: Callable[[Path], None] | None = None

    @property
    def available(self) -> bool:
        """Whether this Blender writes and reads it: add-ons may be off, and some builds have no USD."""
        return _first_of((self.write,)) is not None and _first_of(self.read) is not None

    def save(self, path: Path, **changes: Any) -> None:
        """Write the selected objects of the context's scene; ``changes`` to the settings. Raises RuntimeError,
        OSError."""
        _call((self.write,), path, self.wanted | changes)
        if self.finish is not None:
            self.finish(path)

    def load(self, path: Path) -> None:
        """Read a file into the context's scene. Raises RuntimeError."""
        _call(self.read, path, self.taken)


def _first_of(names: tuple[str, ...]) -> Any:
    """The first operator of those names that this Blender has, or None."""
    for name in names:
        module, _, function = name.partition(".")
        operator = getattr(getattr(bpy.ops, module), function, None)
        with contextlib.suppress(KeyError, AttributeError):
            if operator is not None and operator.get_rna_type():
                return operator
    return None


def _call(names: tuple[str, ...], path: Path, settings: dict[str, Any]) -> None:
    operator = _first_of(names)
    known = operator.get_rna_type().properties.keys()
    operator(filepath=str(path), **{each: value for each, value in settings.items() if each in known})


FORMATS = MappingProxyType(
    {
        "GLTF": Format(
            "glTF 2.0",
            ".glb",
            "export_scene.gltf",
            ("import_scene.gltf",),
            {
                "export_format": "GLB",
                "use_selection": True,
                "use_active_scene": True,
                "export_apply": False,
                "export_attributes": True,
                "export_morph": True,
                "export_def_bones": False,
                "export_hierarchy_flatten_bones": False,
                "export_animation_mode": "ACTIVE_ACTIONS",
                "export_force_sampling": True,
                # Bones without keyframes keep their pose, in the file and in the scene.
                "export_reset_pose_bones": False,
                "export_frame_step": 1,
                "export_optimize_animation_size": False,
                # Actions of the file that the armature does not play, which Blender 4 would put in one with its own.
                "export_anim_single_armature": False,
                # Scenes that play strips or drivers alone, without an action.
                "export_anim_scene_split_object": False,
            },
            # A clip must not begin with what another one leaves in bones that it has no keyframes for.
            # Shape keys without keyframes keep their values.
            clips={
                "export_animation_mode": "ACTIONS",
                "export_reset_pose_bones": True,
                "export_morph_reset_sk_data": False,
            },
            finish=keep_turns_short,
        ),
        "FBX": Format(
            "FBX",
            ".fbx",
            "export_scene.fbx",
            # The importer in C++, which Blender has since 4.5, loses the scale that bones pass on to each other if the
            # frame at the export shows the rest pose.
            ("import_scene.fbx", "wm.fbx_import"),
            {
                "use_selection": True,
                "use_mesh_modifiers": False,
                "use_armature_deform_only": False,
                "add_leaf_bones": False,
                "axis_forward": "-Z",
                "axis_up": "Y",
                "bake_anim_use_nla_strips": False,
                "bake_anim_use_all_actions": False,
                "bake_anim_step": 1.0,
                "bake_anim_simplify_factor": 0.0,
            },
            clips={"bake_anim_use_nla_strips": True},
            in_turn=True,
        ),
        "USD": Format(
            "USD",
            ".usdc",
            "wm.usd_export",
            ("wm.usd_import",),
            {
                "selected_objects_only": True,
                "export_animation": True,
                "export_armatures": True,
                "only_deform_bones": False,
                "export_shapekeys": True,
                # Write nothing beside the file, and no background that the character's scene does not have.
                "export_textures": False,
                "export_textures_mode": "KEEP",
                "convert_world_material": False,
            },
            {"import_textures_mode": "IMPORT_NONE", "create_world_material": False},
        ),
    }
)


@dataclass(frozen=True)
class Engine:
    """A program that reads the files. format: of FORMATS; influences: the most bones of a vertex with its usual
    settings; apart: it keeps location, rotation and scale of each bone apart down to the skin, so that bones cannot
    shear; changes: to the format's settings."""

    label: str
    tip: str
    format: str
    influences: int
    apart: bool = False
    changes: dict[str, Any] = field(default_factory=dict)


ENGINES = MappingProxyType(
    {
        "THREE": Engine("Three.js", "glTF, 4 influences. Plays bones of all kinds", "GLTF", 4),
        "UNITY": Engine(
            "Unity",
            "FBX in meters, 4 influences, as its quality settings have by default",
            "FBX",
            4,
            changes={"apply_scale_options": "FBX_SCALE_ALL"},
        ),
        "UNREAL": Engine(
            "Unreal Engine",
            "FBX, 8 influences. Keeps the scale of bones apart: use Scaled or Rigid bones",
            "FBX",
            8,
            apart=True,
        ),
        "GODOT": Engine("Godot", "glTF, 4 influences. Plays bones of all kinds", "GLTF", 4),
        "OTHER": Engine("Other", "glTF, 4 influences. Scaled or Rigid bones play everywhere", "GLTF", 4, apart=True),
    }
)


def with_ending(path: str, ending: str) -> str:
    """The path with the ending in place of that of another format, in which an earlier export may have been."""
    stem, own = os.path.splitext(path)
    return (stem if own.lower() in {each.ending for each in FORMATS.values()} else path) + ending
