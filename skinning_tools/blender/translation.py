# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface in the language that Blender's preferences choose.

Blender itself translates the labels and tooltips of registered classes. Texts that are put together go through
``translated`` where they are shown: reports, reasons, panels.
"""

from functools import cache
from pathlib import Path

import bpy

from ..core.catalog import Catalog, read, translations

# A file for each language, such as "de.po".
_FOLDER = Path(__file__).resolve().parents[1] / "languages"
# Blender looks up an operator's name with its own context.
_CONTEXTS = bpy.app.translations.contexts.default, bpy.app.translations.contexts.operator_default
_OWNER = __package__


def translated(text: str) -> str:
    """The text in the language of the interface; unchanged if that is English, or has no translation here."""
    if not bpy.context.preferences.view.use_translate_interface:
        return text
    catalog = _catalog(bpy.app.translations.locale[:2])
    return text if catalog is None else catalog.translate(text)


@cache
def _catalog(language: str) -> Catalog | None:
    path = _FOLDER / f"{language}.po"
    return Catalog(translations(read(path))) if path.is_file() else None


def _names(language: str) -> tuple[str, ...]:
    """What this Blender may call the language: "de" became "de_DE" in some versions."""
    return language, *(each for each in bpy.app.translations.locales if each.startswith(f"{language}_"))


def texts_for_blender(path: Path) -> dict[tuple[str, str], str]:
    """The translations of a file by context and text, as Blender registers them."""
    entries = read(path)
    everywhere = translations(entries)
    return {
        (context, form): each
        for context in _CONTEXTS
        for text, each in (everywhere | translations(entries, context)).items()
        # Python before 3.13 leaves the indentation in docstrings, which are tooltips.
        for form in {text, text.replace("\n", "\n    ")}
    }


def register() -> None:
    known: dict[str, dict] = {}
    for path in _FOLDER.glob("*.po"):
        known |= dict.fromkeys(_names(path.stem), texts_for_blender(path))
    bpy.app.translations.register(_OWNER, known)


def unregister() -> None:
    bpy.app.translations.unregister(_OWNER)
    _catalog.cache_clear()
