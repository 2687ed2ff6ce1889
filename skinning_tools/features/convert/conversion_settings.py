# SPDX-License-Identifier: GPL-3.0-or-later
"""What a conversion is told; and the same out of its figures, to convert again as it was."""

from dataclasses import dataclass, fields

from .settings import RIG_OPTION_NAMES, SETTING_NAMES


@dataclass(frozen=True)
class ConversionOptions:
    """What a conversion is told beside core.decomposition.Settings.

    Frames: the scene's range where None. key_tolerance: how far fewer keys may move a vertex, per mille; 0 keeps them
    all. root_bone: all bones are under one that stands still. joint_hierarchy: bones hang from those that they turn
    about.
    """

    frame_start: int | None = None
    frame_end: int | None = None
    frame_step: int = 1
    key_tolerance: float = 0.0
    root_bone: bool = False
    joint_hierarchy: bool = False


def settings_of(figures: dict) -> tuple[object, ConversionOptions]:
    """The core.decomposition.Settings and the options that ``figures`` were reached with."""
    from ...core.decomposition import Settings

    known = {field.name for field in fields(Settings)}
    settings = {name: value for name, value in figures["settings"].items() if name in known}
    settings["optimize_rest_pose"] = bool(settings.get("optimize_rest_pose", True))
    return Settings(**settings), _options_of(figures)


def _options_of(figures: dict) -> ConversionOptions:
    """Figures of earlier versions have not all of them."""
    return ConversionOptions(
        frame_start=round(figures["frame_start"]),
        frame_end=round(figures["frame_end"]),
        frame_step=figures["frame_step"],
        key_tolerance=figures["keys"]["tolerance"] if "keys" in figures else figures.get("key_tolerance", 0.0),
        root_bone=bool(figures.get("root_bone", False)),
        joint_hierarchy="joint_count" in figures or bool(figures.get("joint_hierarchy", False)),
    )


def take_settings(scene, figures: dict) -> None:
    """Set the scene's settings to those of a conversion; its range is set where it is not the scene's."""
    chosen = scene.skinning_conversion
    settings, options = settings_of(figures)
    for name in SETTING_NAMES:
        setattr(chosen, name, getattr(settings, name))
    for name in (*RIG_OPTION_NAMES, "frame_start", "frame_end", "frame_step"):
        setattr(chosen, name, getattr(options, name))
    chosen.selected_objects = len(figures.get("parts", ())) > 1
    last = range(scene.frame_start, scene.frame_end + 1, options.frame_step)[-1:]
    chosen.use_scene_range = (options.frame_start, [options.frame_end]) == (scene.frame_start, list(last))
