# SPDX-License-Identifier: GPL-3.0-or-later
"""A feature: everything that it adds to Blender, in one object."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol

import bpy


class Subcommand(Protocol):
    """A ``Command``, or a module that declares one to argparse itself."""

    def add(self, commands: argparse._SubParsersAction, /) -> None: ...


@dataclass(frozen=True)
class Feature:
    """Registration, sidebar, menus, command line and the generated references use this object.

    group: the heading of its operators in the reference; guide: the page of the docs that explains it.
    settings, operators and panels: modules whose ``registry`` lists Blender's classes, and which may have ``pointers``,
    the property groups by "Scene.name", ``handlers`` (see ``blender.app_handlers``), ``register`` and ``unregister``.
    commands: a ``Command`` for each subcommand, or a module with ``add``. menus: functions (menu, context) that draw an
    entry at the end of one of Blender's menus, by the menu's name. gltf_extensions: classes whose methods Blender's
    glTF exporter calls.
    """

    group: str
    guide: str
    settings: tuple[ModuleType, ...] = ()
    operators: tuple[ModuleType, ...] = ()
    panels: tuple[ModuleType, ...] = ()
    commands: tuple[Subcommand, ...] = ()
    gltf_extensions: tuple[type, ...] = ()
    menus: Mapping[str, Callable] = field(default_factory=dict)


def menu_entry(identifier: str) -> Callable:
    """A function that draws the operator of that name at the end of a menu."""

    def draw(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
        menu.layout.separator()
        menu.layout.operator_context = "INVOKE_DEFAULT"
        menu.layout.operator(identifier)

    return draw
