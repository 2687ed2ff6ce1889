# SPDX-License-Identifier: GPL-3.0-or-later
"""A feature: everything that it adds to Blender, in one object."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
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
    commands: a ``Command`` for each subcommand, or a module with ``add``. menus: the operators that stand at the end of
    a menu, by the name of a menu of Blender or of ``ui.menus``. gltf_extensions: classes whose methods Blender's glTF
    exporter calls.
    """

    group: str
    guide: str
    settings: tuple[ModuleType, ...] = ()
    operators: tuple[ModuleType, ...] = ()
    panels: tuple[ModuleType, ...] = ()
    commands: tuple[Subcommand, ...] = ()
    gltf_extensions: tuple[type, ...] = ()
    menus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@cache
def menu_entries(operators: tuple[str, ...]) -> Callable:
    """The function that draws the operators of these names at the end of a menu, after a separator: one and the same
    for the same operators, as Blender's menus find it again by identity."""

    def draw(menu: bpy.types.Menu, context: bpy.types.Context) -> None:
        menu.layout.separator()
        # With the panel's settings and a progress display.
        menu.layout.operator_context = "INVOKE_DEFAULT"
        for identifier in operators:
            menu.layout.operator(identifier)

    return draw
