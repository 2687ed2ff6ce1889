# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates the reference in docs/operators.md from the registered operators."""

import math
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"

SCENE_RANGE = {"frame_start", "frame_end"}


def reference() -> str:
    """All operators for scripts, by task, as Markdown."""
    import bpy

    import skinning_tools
    from skinning_tools.features import FEATURES

    registered = hasattr(bpy.types, "SKINNING_OT_convert_animation")
    if not registered:
        skinning_tools.register()
    try:
        parts, group = [], ""
        for feature in FEATURES:
            if feature.operators and feature.group != group:
                group = feature.group
                parts.append([f"### {group}", "", f"[Guide]({feature.guide})"])
            parts += [_operator(cls) for module in feature.operators for cls in module.registry if _is_operator(cls)]
    finally:
        if not registered:
            skinning_tools.unregister()
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _is_operator(cls) -> bool:
    import bpy

    return issubclass(cls, bpy.types.Operator) and "INTERNAL" not in cls.bl_options


def _operator(cls) -> list[str]:
    """Name, tooltip and properties."""
    import bpy

    rna = getattr(bpy.ops.skinning, cls.bl_idname.rpartition(".")[2]).get_rna_type()
    properties = [each for each in rna.properties if each.identifier != "rna_type" and not each.is_hidden]
    # Together, their default is the scene's range.
    of_scene = SCENE_RANGE if {each.identifier for each in properties} >= SCENE_RANGE else set()
    defaults = ["the scene's" if each.identifier in of_scene else _default(each) for each in properties]
    rows = [
        f"| `{each.identifier}` | {default} | {_meaning(each)} |"
        for each, default in zip(properties, defaults, strict=True)
    ]
    table = ["", "| property | default | meaning |", "|---|---|---|", *rows] if rows else []
    return [f"#### {cls.bl_idname}", "", f"**{cls.bl_label}**. {_sentence(rna.description)}", *table]


def _default(each) -> str:
    if each.type == "ENUM" and each.is_enum_flag:
        return f"`{set(each.default_flag) or '{}'}`"
    if each.type in ("FLOAT", "INT", "BOOLEAN") and each.is_array:
        return f"`{tuple(map(_rounded, each.default_array))}`"
    if each.type == "FLOAT" and each.subtype == "ANGLE":
        return f"`{_rounded(each.default)}` ({_rounded(math.degrees(each.default)):g}°)"
    if each.type in ("ENUM", "STRING"):
        return f'`"{each.default}"`'
    return f"`{_rounded(each.default)}`"


def _rounded(number):
    """The number without digits beyond Blender's single precision."""
    return float(f"{number:.6g}") if isinstance(number, float) else number


def _meaning(each) -> str:
    text = _sentence(each.description) if each.description else f"{each.name}."
    if each.type == "ENUM":
        items = (f"`{item.identifier}` ({_inner(item.description) or item.name})" for item in each.enum_items)
        text = f"{text} {'; '.join(items)}"
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _inner(text: str) -> str:
    """A tooltip inside a sentence."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
