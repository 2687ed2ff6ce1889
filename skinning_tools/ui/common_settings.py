# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of properties that several tools have, in their settings and in their operators.

limit: "min" makes values outside impossible to enter (the panels). "soft_min" lets them through to the check that
refuses them with a message (the operators): a script's zero must not silently become one.
"""

from bpy.props import BoolProperty, FloatProperty, IntProperty

RANGE_NAMES = "frame_start", "frame_end"


def frame_annotations(verb: str, limit: str) -> dict:
    """A range of frames and its step. verb: what is done with each frame, as in "measure"."""
    return {
        "frame_start": IntProperty(
            name="Frame Start", description=f"First frame to {verb}", default=1, options={"SKIP_SAVE"}
        ),
        "frame_end": IntProperty(
            name="Frame End", description=f"Last frame to {verb}", default=250, options={"SKIP_SAVE"}
        ),
        "frame_step": IntProperty(
            name="Frame Step",
            description=f"{verb.capitalize()} every frame (1), every second frame (2), and so on",
            default=1,
            soft_max=50,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
    }


def scene_range_property(verb: str):
    """Whether the range is the scene's; verb as above."""
    return BoolProperty(
        name="Scene Range",
        description=f"{verb.capitalize()} from the scene's start frame to its end frame",
        default=True,
    )


def influences_property(
    limit: str,
    description: str = "Most bones that may move one vertex. Game engines commonly allow 4",
    default: int = 4,
    least: int = 1,
):
    """The most influences of a vertex, from ``least`` on."""
    return IntProperty(
        name="Influences",
        description=description,
        default=default,
        soft_max=12,
        options={"SKIP_SAVE"},
        **{limit: least},
    )


def smoothness_property(limit: str):
    """How smooth weights are that are solved for."""
    return FloatProperty(
        name="Smoothness",
        description="How much of the error may be given for weights that are smooth over the surface: 0 is off, "
        "0.25 takes out noise at next to no cost",
        default=0.0,
        subtype="FACTOR",
        options={"SKIP_SAVE"},
        **{limit: 0.0, limit.replace("min", "max"): 1.0},
    )
