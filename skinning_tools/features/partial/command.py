# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands of partial solves."""

from ...ui.command_line import arguments
from ...ui.command_line.command import Command
from ...ui.command_line.common import find_armature
from ...ui.command_line.outcome import Row
from . import helper_removal, helpers, motion, weights
from .settings import HelperSettings, MotionSettings, RemovalSettings, WeightSettings


def _add_object(command) -> None:
    command.add_argument("--object", metavar="NAME", required=True, help="the mesh object that bones move")


def _named_alone(solve):
    """``solve`` where only names count: what is selected in a file says nothing on the command line."""

    def work(context, object, **given):
        for other in context.view_layer.objects.selected[:]:
            other.select_set(False)
        return (yield from solve(context, object, **given))

    return work


def _solved(result) -> list[Row]:
    figures = result.figures
    frames, before = [figures.frame_start, figures.frame_end], figures.e_rms_before
    return [
        Row("Object", result.object_name),
        Row("Armature", figures.armature),
        Row("Target", figures.target),
        Row("Frames", frames, "{:g} to {:g}".format(*frames)),
        Row("Done", result.done),
        *([Row("E_RMS before", before, f"{before:.4f}")] if before >= 0 else []),
        Row("E_RMS", figures.e_rms, f"{figures.e_rms:.4f}"),
        Row("Largest error", figures.max_error, f"{figures.max_error:.4f}"),
    ]


def _removed(result) -> list[Row]:
    return [
        Row("Armature", result.armature_name),
        Row("Removed", list(result.helpers), ", ".join(result.helpers)),
        Row("Vertices with new weights", result.vertices),
    ]


COMMANDS = (
    Command(
        "solve-weights",
        "weights for bones that move already",
        "Solve for the weights with which the motion of an armature brings a mesh closest to an animation, and save "
        "the file.",
        settings=WeightSettings,
        work=_named_alone(weights.solve_weights),
        rows=_solved,
        add_object=_add_object,
    ),
    Command(
        "solve-transforms",
        "keyframes for bones whose weights are there already",
        "Solve for the keyframes with which the bones of a mesh, by its weights, come closest to an animation, and "
        "save the file. They make a new action; the old one stays in the file.",
        settings=MotionSettings,
        work=_named_alone(motion.solve_transforms),
        rows=_solved,
        add_object=_add_object,
    ),
    Command(
        "add-helper-bones",
        "bones that correct what a rig's own leave over",
        "Add bones to the armature of a mesh that bring it closer to an animation, and save the file. The bones that "
        "are there, and their keyframes, stay as they are.",
        settings=HelperSettings,
        work=_named_alone(helpers.add_helper_bones),
        rows=_solved,
        add_object=_add_object,
    ),
    Command(
        "remove-helper-bones",
        "take helper bones away again",
        "Remove the bones that add-helper-bones has added, with their keyframes and what names them, give their "
        "weights to the other bones of the same vertices, and save the file.",
        settings=RemovalSettings,
        work=helper_removal.remove_helper_bones,
        rows=_removed,
        add_object=arguments.add_rig_object,
        find=find_armature,
    ),
)
