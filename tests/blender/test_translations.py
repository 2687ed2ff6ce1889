# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that are put together can be translated, and are found by Blender's tool that collects them."""

import ast
from pathlib import Path

import bpy
import pytest

import skinning_tools
from skinning_tools.blender.wording import duration_text

PACKAGE = Path(skinning_tools.__file__).parent
CALLS = {"iface_", "rpt_"}
GERMAN = {("*", "about {seconds} s"): "etwa {seconds} s", ("*", "Bones"): "Knochen"}


def calls():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield path, node


def test_templates_are_plain_texts_with_names():
    """A tool finds only plain texts; a translator cannot turn round what has no name."""
    found = 0
    for path, node in calls():
        text = node.args[0]
        if not isinstance(text, ast.Constant):
            # What was given a text: a stage's name, a message, which stay as they are where nobody knows them.
            assert not isinstance(text, ast.JoinedStr), f"{path.name}, line {node.lineno}"
            continue
        found += 1
        assert "{}" not in text.value, f"{path.name}, line {node.lineno}"
    assert found > 20


@pytest.mark.skipif(not bpy.app.translations.locales, reason="this Blender has no translations")
def test_a_translation_is_used():
    view = bpy.context.preferences.view
    before = view.language, view.use_translate_interface
    bpy.app.translations.register(__name__, {"de_DE": GERMAN, "de": GERMAN})
    try:
        try:
            view.language = "de_DE"
        except TypeError:
            view.language = "de"
        view.use_translate_interface = True
        assert duration_text(12.0) == "etwa 12 s"
    finally:
        view.language, view.use_translate_interface = before
        bpy.app.translations.unregister(__name__)
    assert duration_text(12.0) == "about 12 s"
