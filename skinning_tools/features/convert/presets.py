# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of a conversion's settings: Blender preset files from the extension and from the user.

They are parsed, never executed.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import bpy
import numpy as np
from bpy.app.translations import pgettext_iface as iface_
from bpy.app.translations import pgettext_rpt as rpt_

from ...core.errors import BadSettings
from .settings import PresetSettings, SkinningConversionSettings

SUBDIR = "skinning/convert_animation"
SHIPPED = Path(__file__).resolve().parents[2] / "presets" / SUBDIR
_OWNER = "settings"
# Raised by ast for damaged text, null bytes and too deep nesting.
_NO_PYTHON = (SyntaxError, ValueError, MemoryError, RecursionError)
DEFINES = (f"{_OWNER} = bpy.context.scene.skinning_conversion",)


def preset_files() -> dict[str, Path]:
    """The presets by their names in the menu; a user's preset replaces the extension's of the same name."""
    folders = [SHIPPED, *map(Path, user_folders())]
    files = sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*.py"))
    files.sort(key=lambda path: path.parent != SHIPPED)
    return {preset_name(path): path for path in files}


def preset_name(path: Path) -> str:
    """The name of a preset file in menus."""
    return bpy.path.display_name(path.name, title_case=False)


def user_folders() -> list[str]:
    """The folders of presets saved by the user or, in its scripts folder, by a studio."""
    return bpy.utils.preset_paths(SUBDIR)


def find_preset(name: str) -> Path:
    """Find a preset by name, ignoring case and treating a space as an underscore. Raises BadSettings, which lists all
    presets."""
    files = preset_files()
    found = {_plain(known): path for known, path in files.items()}.get(_plain(name))
    if found is None:
        raise BadSettings(f'There is no preset "{name}". The presets are: {", ".join(files)}')
    return found


def read_preset(path: Path) -> dict:
    """The settings of a preset file: its assignments of plain values to ``settings``.

    Raises BadSettings if it cannot be read, has no settings, or sets something that a conversion does not accept.
    """
    try:
        # As bytes, which may begin with the byte order mark of some editors.
        tree = ast.parse(path.read_bytes())
    except FileNotFoundError as error:
        raise BadSettings(f"The preset {path} was deleted or renamed. Choose another one") from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except _NO_PYTHON as error:
        line = getattr(error, "lineno", None)
        raise _unreadable(path, f"line {line} is damaged" if line else "it is damaged") from error
    values = {}
    for node, target in _assignments(tree):
        try:
            values[target.attr] = ast.literal_eval(node.value)
        except (*_NO_PYTHON, TypeError) as error:
            raise _unreadable(path, f"line {node.value.lineno} is not a plain value") from error
    if not values:
        raise BadSettings(f"The preset {path} has no conversion settings. Save it again, or delete it")
    unknown = sorted(values.keys() - PresetSettings.declared.keys())
    if unknown:
        raise BadSettings(f"The preset {path} sets {unknown[0]}, which is not a setting of conversion presets")
    return values


def apply_preset(chosen: SkinningConversionSettings, path: Path) -> list[str]:
    """Set ``chosen``, the scene's settings, to those of a preset file.

    Numbers outside a setting's range are clamped; returns notes on them. Raises BadSettings, and changes nothing, if
    the file cannot be read or a value does not suit its setting.
    """
    values = read_preset(path)
    before = {name: getattr(chosen, name) for name in values}
    notes = []
    for name, value in values.items():
        label = chosen.bl_rna.properties[name].name
        try:
            setattr(chosen, name, value)
        except (TypeError, ValueError, OverflowError) as error:
            for each, old in before.items():
                setattr(chosen, each, old)
            raise BadSettings(
                f"In the preset {path}, {value!r} is not a valid value for {label}. Save the preset again, or delete it"
            ) from error
        taken = getattr(chosen, name)
        if taken != (np.float32(value) if isinstance(taken, float) else value):
            text = rpt_("{setting}: {value:g} is out of range and was set to {taken:g}")
            notes.append(text.format(setting=iface_(label), taken=taken, value=value))
    return notes


def _unreadable(path: Path, reason: str) -> BadSettings:
    return BadSettings(f"The preset {path} cannot be read: {reason}. Save it again, or delete it")


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.Assign, ast.Attribute]]:
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == _OWNER:
                yield node, target


def _plain(name: str) -> str:
    return name.casefold().replace("_", " ").strip()
