# SPDX-License-Identifier: GPL-3.0-or-later
"""What a feature is: all that it adds to Blender, in one object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType


@dataclass(frozen=True)
class Feature:
    """The registration, the sidebar, the menus, the command line and the generated references are made from this.

    group: the heading of its operators in the reference; guide: the page of the docs that explains it.
    settings, operators and panels: modules whose ``registry`` lists Blender's classes, and which may have ``register``
    and ``unregister``. commands: modules with ``add``, one a subcommand. menus: functions (menu, context) that draw an
    entry at the end of one of Blender's menus, by the menu's name.
    """

    group: str
    guide: str
    settings: tuple[ModuleType, ...] = ()
    operators: tuple[ModuleType, ...] = ()
    panels: tuple[ModuleType, ...] = ()
    commands: tuple[ModuleType, ...] = ()
    menus: Mapping[str, Callable] = field(default_factory=dict)


def menu_entry(identifier: str) -> Callable:
    """A function that draws the operator of that name at the end of a menu."""

    def draw(menu, context) -> None:
        menu.layout.separator()
        menu.layout.operator_context = "INVOKE_DEFAULT"
        menu.layout.operator(identifier)

    return draw
