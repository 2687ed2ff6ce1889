# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of settings: Blender preset files from the extension and from the user.

They are parsed, never executed. A feature declares ``Presets`` and, with the mix-ins below, two operators and a menu.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import bpy
import numpy as np
from bl_operators.presets import AddPresetBase
from bl_ui.utils import PresetPanel

from ..blender.translation import translated
from ..core.errors import BadSettings
from .boundary import reported
from .jobs import AtOnce
from .settings import Settings

_SHIPPED = Path(__file__).resolve().parents[1] / "presets"
_OWNER = "settings"
# Raised by ast for damaged text, null bytes and too deep nesting.
_NO_PYTHON = (SyntaxError, ValueError, MemoryError, RecursionError)


@dataclass(frozen=True)
class Presets:
    """The presets of one kind.

    name: in the names of their operators, and in messages, as in "bind settings". folder: where they are, below
    "skinning" in a folder of presets. settings: those that a preset stores. kept: the property group of the file that
    has the panel's settings. place: the same as an expression, which Blender evaluates and writes into the files; if an
    object has the settings, it is ``bpy.context.object`` there.
    """

    name: str
    folder: str
    settings: type[Settings]
    kept: Callable[[bpy.types.Context], bpy.types.PropertyGroup]
    place: str

    @property
    def subdir(self) -> str:
        """Their folder below those of Blender's presets."""
        return f"skinning/{self.folder}"

    @property
    def shipped(self) -> Path:
        """The folder of the extension's own."""
        return _SHIPPED / self.subdir

    def user_folders(self) -> list[str]:
        """The folders of presets saved by the user or, in its scripts folder, by a studio."""
        return bpy.utils.preset_paths(self.subdir)

    def files(self) -> dict[str, Path]:
        """The presets by their names in the menu; a user's preset replaces the extension's of the same name."""
        folders = [self.shipped, *map(Path, self.user_folders())]
        files = sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*.py"))
        files.sort(key=lambda path: path.parent != self.shipped)
        return {preset_name(path): path for path in files}

    def find(self, name: str) -> Path:
        """Find a preset by name, ignoring case and treating a space as an underscore. Raises BadSettings, which lists
        all presets."""
        files = self.files()
        found = {_plain(known): path for known, path in files.items()}.get(_plain(name))
        if found is None:
            raise BadSettings(f'There is no preset "{name}". The presets are: {", ".join(files)}')
        return found

    def read(self, path: Path) -> dict:
        """The settings of a preset file: its assignments of plain values to ``settings``.

        Raises BadSettings if it cannot be read, has no settings, or sets something that they do not store.
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
            raise BadSettings(f"The preset {path} has no {self.name} settings. Save it again, or delete it")
        unknown = sorted(values.keys() - self.settings.declared.keys())
        if unknown:
            raise BadSettings(f"The preset {path} sets {unknown[0]}, which is not a setting of {self.name} presets")
        return values

    def apply(self, context: bpy.types.Context, path: Path) -> list[str]:
        """Set the panel's settings to those of a preset file.

        Numbers outside a setting's range are clamped; returns notes on them. Raises BadSettings, and changes nothing,
        if the file cannot be read or a value does not suit its setting.
        """
        values, chosen = self.read(path), self.kept(context)
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
                    f"In the preset {path}, {value!r} is not a valid value for {label}. Save the preset again, or "
                    "delete it"
                ) from error
            taken = getattr(chosen, name)
            if taken != (np.float32(value) if isinstance(taken, float) else value):
                notes.append(f"{label}: {value:g} is out of range and was set to {taken:g}")
        return notes


class AddsPreset(AddPresetBase):
    """Mix-in of the operator that saves or removes one of ``presets``."""

    presets: ClassVar[Presets]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.preset_menu = f"SKINNING_PT_{cls.presets.name}_presets"
        cls.preset_defines = [f"{_OWNER} = {cls.presets.place}"]
        cls.preset_values = [f"{_OWNER}.{name}" for name in cls.presets.settings.declared]
        cls.preset_subdir = cls.presets.subdir

    def execute(self, context: bpy.types.Context) -> set[str]:
        if self.remove_name or self.remove_active:
            return super().execute(context)
        with reported(self):
            owner = self.presets.kept(context).id_data
            with context.temp_override(**{"object": owner} if isinstance(owner, bpy.types.Object) else {}):
                return super().execute(context)
        return {"CANCELLED"}

    def remove(self, context: bpy.types.Context, filepath: str) -> None:
        # Blender refuses only for files that it may not write.
        if Path(filepath).parent == self.presets.shipped:
            raise PermissionError("it belongs to the extension")
        Path(filepath).unlink()


class AppliesPreset(AtOnce):
    """Mix-in of the operator that copies one of ``presets`` to the panel."""

    presets: ClassVar[Presets]
    filepath: str

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        file = bpy.props.StringProperty(
            name="File", description="The preset's file", subtype="FILE_PATH", options={"SKIP_SAVE"}
        )
        cls.__annotations__ = {"filepath": file}

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        path = Path(self.filepath)
        for note in self.presets.apply(context, path):
            self.report({"INFO"}, translated(note))
        return f"Settings of the preset {preset_name(path)}"


class PresetsMenu(PresetPanel):
    """Mix-in of the menu of ``presets`` in a panel's header: the extension's, which cannot be removed, come first."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "HEADER"
    presets: ClassVar[Presets]
    layout: bpy.types.UILayout
    path_menu: Callable

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.emboss = "PULLDOWN_MENU"
        self.layout.operator_context = "EXEC_DEFAULT"
        self._draw_folders([str(self.presets.shipped)], None)
        self.layout.separator()
        self._draw_folders(self.presets.user_folders(), self.preset_add_operator)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.preset_subdir = cls.presets.subdir
        cls.preset_operator = f"skinning.apply_{cls.presets.name}_preset"
        cls.preset_add_operator = f"skinning.add_{cls.presets.name}_preset"

    def _draw_folders(self, folders: list[str], add_operator: str | None) -> None:
        # Without a folder Blender says "Missing Paths", although the user simply has no presets yet.
        self.path_menu(
            folders or [str(self.presets.shipped)],
            self.preset_operator,
            filter_ext=lambda ending: bool(folders) and ending.lower() == ".py",
            display_name=lambda path: bpy.path.display_name(path, title_case=False),
            add_operator=add_operator,
        )


def preset_name(path: Path) -> str:
    """The name of a preset file in menus."""
    return bpy.path.display_name(path.name, title_case=False)


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
