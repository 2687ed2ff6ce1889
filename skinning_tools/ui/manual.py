# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of docs/, which an installed extension has as web pages, so that they open without a network."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import bpy

if TYPE_CHECKING:
    from .feature import Feature

# The package is built with it; a checkout has none.
FOLDER = Path(__file__).resolve().parents[1] / "manual"


def page_address(page: str, anchor: str = "") -> str:
    """The address of a page for the browser, by its file name in docs/; "" where the extension has no pages."""
    path = (FOLDER / page).with_suffix(".html")
    return path.as_uri() + (f"#{anchor}" if anchor else "") if path.is_file() else ""


def links(features: "Iterable[Feature]") -> list[tuple[str, str]]:
    """The page of each operator and each setting, as Blender's *Online Manual* looks them up: (pattern, address)."""
    found = []
    for feature in features:
        address = page_address(feature.guide)
        modules = (*feature.operators, *feature.settings)
        for cls in (cls for module in modules for cls in getattr(module, "registry", ())):
            if issubclass(cls, bpy.types.Operator):
                found.append((f"bpy.ops.{cls.bl_idname}*", address))
            elif issubclass(cls, bpy.types.PropertyGroup):
                found.append((f"bpy.types.{cls.__name__.lower()}.*", address))
    found.append(("bpy.ops.skinning.*", page_address("index.md")))
    return [link for link in found if link[1]]
