# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a conversion out of its figures, to convert again as it was."""

from dataclasses import fields

from .settings import SETTING_NAMES

# Beside core.decomposition.Settings; figures of earlier versions have not all of them.
_OPTIONS = {"root_bone": False, "joint_hierarchy": False, "key_tolerance": 0.0}


def settings_of(figures: dict) -> tuple[object, dict]:
    """The core.decomposition.Settings, and the other arguments of ``conversion.convert`` but the objects."""
    from ..core.decomposition import Settings

    known = {field.name for field in fields(Settings)}
    settings = {name: value for name, value in figures["settings"].items() if name in known}
    settings["optimize_rest_pose"] = bool(settings.get("optimize_rest_pose", True))
    return Settings(**settings), options_of(figures) | frames_of(figures)


def options_of(figures: dict) -> dict:
    options = {name: type(default)(figures.get(name, default)) for name, default in _OPTIONS.items()}
    if "joint_count" in figures:
        options["joint_hierarchy"] = True
    if "keys" in figures:
        options["key_tolerance"] = figures["keys"]["tolerance"]
    return options


def frames_of(figures: dict) -> dict:
    return {
        "frame_start": round(figures["frame_start"]),
        "frame_end": round(figures["frame_end"]),
        "frame_step": figures["frame_step"],
    }


def take_settings(scene, figures: dict) -> None:
    """Set the scene's settings to those of a conversion; its range is set where it is not the scene's."""
    chosen = scene.skinning_conversion
    settings, _ = settings_of(figures)
    for name in SETTING_NAMES:
        setattr(chosen, name, getattr(settings, name))
    for name, value in options_of(figures).items():
        setattr(chosen, name, value)
    frames = frames_of(figures)
    chosen.selected_objects = len(figures.get("parts", ())) > 1
    chosen.frame_step = frames["frame_step"]
    last = range(scene.frame_start, scene.frame_end + 1, frames["frame_step"])[-1:]
    chosen.use_scene_range = (frames["frame_start"], [frames["frame_end"]]) == (scene.frame_start, list(last))
    chosen.frame_start, chosen.frame_end = frames["frame_start"], frames["frame_end"]
