# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender -b file.blend --command skinning ...`: the extension's work, unattended."""

import argparse
import logging
import math
import sys
from pathlib import Path

import bpy

from .core.errors import BadScene, SkinningError
from .scene import background, conversion, crs_modifier, dependencies, eigenskin, example_sources, rotation_centers
from .scene.skin_reader import native_modifier

logger = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_USAGE = 0, 1, 2

PROGRESS_STEP = 0.05


class _UsageError(Exception):
    """The command line itself is wrong."""


def main(arguments: list[str]) -> int:
    """Run one subcommand; returns the exit status: 0 done, 1 it failed, 2 the command line is wrong."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        # argparse has written its message; Blender is to end in its own way, with the exit status.
        return stop.code or EXIT_DONE
    try:
        options.run(options)
    except _UsageError as error:
        _say_error(str(error))
        return EXIT_USAGE
    except SkinningError as error:
        _say_error(str(error))
        return EXIT_FAILED
    except Exception as error:
        logger.exception("The work failed")
        _say_error(f"The work failed through a fault of its own ({type(error).__name__}: {error})")
        return EXIT_FAILED
    return EXIT_DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="blender -b FILE.blend --command skinning",
        description="Skinning Tools without a window.",
        epilog="Exit status: 0 done, 1 it failed (the reason is on the error output), 2 the command line is wrong.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_convert(commands)
    _add_bake_rotation_centers(commands)
    _add_build_eigenskin(commands)
    return parser


def _add_convert(commands) -> None:
    convert = commands.add_parser(
        "convert",
        help="turn a mesh animation into bones, weights and keyframes",
        description="Turn the animation of a mesh into a skinned copy with an armature, weights and keyframes, "
        "and save the file.",
    )
    convert.add_argument("--object", metavar="NAME", required=True, help="the mesh object that moves")
    convert.add_argument("--bones", type=int, default=20, metavar="N", help="number of bones (default: %(default)s)")
    convert.add_argument(
        "--kind",
        choices=("AFFINE", "SCALED", "RIGID"),
        type=str.upper,
        default="AFFINE",
        help="what the bones may do (default: %(default)s)",
    )
    convert.add_argument(
        "--influences",
        type=int,
        default=4,
        metavar="N",
        help="most bones that may move one vertex (default: %(default)s)",
    )
    convert.add_argument(
        "--iterations", type=int, default=15, metavar="N", help="rounds of improvement (default: %(default)s)"
    )
    convert.add_argument(
        "--target-error",
        type=float,
        default=0.0,
        metavar="E",
        help="E_RMS at which fewer bones are enough (default: not used)",
    )
    convert.add_argument("--no-rest-pose", action="store_true", help="keep the first frame as the rest pose")
    convert.add_argument("--frame-start", type=int, metavar="F", help="first frame (default: the scene's)")
    convert.add_argument("--frame-end", type=int, metavar="F", help="last frame (default: the scene's)")
    convert.add_argument(
        "--frame-step", type=int, default=1, metavar="N", help="convert every N-th frame (default: %(default)s)"
    )
    _add_target(convert)
    convert.set_defaults(run=_convert)


def _add_bake_rotation_centers(commands) -> None:
    bake = commands.add_parser(
        "bake-rotation-centers",
        help="store the center that each vertex of a skinned mesh turns about",
        description="Find the center of rotation of each vertex of a skinned mesh, store it as an attribute, "
        "and save the file.",
    )
    bake.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")
    bake.add_argument(
        "--sigma",
        type=float,
        default=0.1,
        metavar="S",
        help="how alike weights must be to share a center (default: %(default)s)",
    )
    bake.add_argument(
        "--subdivision-epsilon",
        type=float,
        default=0.1,
        metavar="E",
        help="sum faces whose weights differ by more in finer pieces, 0 none (default: %(default)s)",
    )
    bake.add_argument(
        "--attribute",
        default=rotation_centers.DEFAULT_ATTRIBUTE,
        metavar="NAME",
        help="where to store the centers (default: %(default)s)",
    )
    bake.add_argument("--symmetrize", action="store_true", help="mirror the centers of vertices that mirror across X")
    bake.add_argument("--add-modifier", action="store_true", help="deform by the centers: Blender 5.1 or newer")
    _add_target(bake)
    bake.set_defaults(run=_bake_rotation_centers)


def _add_build_eigenskin(commands) -> None:
    build = commands.add_parser(
        "build-eigenskin",
        help="correct a skinned mesh by shape keys that its pose drives",
        description="Make shape keys, driven by the bones, that correct a skinned mesh as its examples show, "
        "and save the file.",
    )
    build.add_argument("--object", metavar="NAME", required=True, help="the mesh object that an armature deforms")
    build.add_argument(
        "--examples-from",
        metavar="NAME",
        help="first read examples from this object, frame by frame: another mesh with the same vertices, or the mesh "
        "itself with all its modifiers (default: use the examples that the file has)",
    )
    build.add_argument(
        "--frame-start", type=int, metavar="F", help="first frame of the examples (default: the scene's)"
    )
    build.add_argument("--frame-end", type=int, metavar="F", help="last frame of the examples (default: the scene's)")
    build.add_argument(
        "--frame-step", type=int, default=1, metavar="N", help="an example every N frames (default: %(default)s)"
    )
    build.add_argument(
        "--all-frames",
        action="store_true",
        help="read all frames of the range, not only those that Pose Joints has marked, where there are any",
    )
    build.add_argument(
        "--components", type=int, default=3, metavar="N", help="shape keys for each joint (default: %(default)s)"
    )
    build.add_argument(
        "--budget", type=int, default=0, metavar="N", help="shape keys in all, to the joints that need them most"
    )
    build.add_argument(
        "--support-threshold",
        type=float,
        default=0.04,
        metavar="S",
        help="share of a joint's largest displacement from which on vertices are corrected (default: %(default)s)",
    )
    build.add_argument(
        "--max-per-vertex",
        type=int,
        default=10,
        metavar="N",
        help="most shape keys that may move one vertex (default: %(default)s)",
    )
    build.add_argument(
        "--radius", type=float, default=0.0, metavar="DEGREES", help="of the interpolation (default: automatic)"
    )
    build.add_argument(
        "--joint-pairs", type=int, default=0, metavar="N", help="most pairs of joints that get corrections of their own"
    )
    build.add_argument("--normals", action="store_true", help="store corrections of the normals as attributes")
    _add_target(build)
    build.set_defaults(run=_build_eigenskin)


def _add_target(command) -> None:
    """What all commands that save share."""
    target = command.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", metavar="FILE.blend", help="where to save the result")
    target.add_argument("--overwrite", action="store_true", help="save over the file that was opened")
    command.add_argument("--quiet", action="store_true", help="no progress lines")


def _convert(options) -> None:
    output = _output_path(options)
    dependencies.require_dependencies()
    from .core.decomposition import Settings

    context = bpy.context
    settings = Settings(
        bone_count=options.bones,
        bone_kind=options.kind,
        max_influences=options.influences,
        iterations=options.iterations,
        optimize_rest_pose=not options.no_rest_pose,
        target_error=options.target_error,
    )
    steps = conversion.convert(
        context,
        _find_object(context.scene, options.object),
        settings,
        frame_start=options.frame_start,
        frame_end=options.frame_end,
        frame_step=options.frame_step,
    )
    result = background.drain(steps, None if options.quiet else _ProgressLines())
    _save(output)
    _say(table(result, output))


def _bake_rotation_centers(options) -> None:
    output = _output_path(options)
    dependencies.require_dependencies()
    context = bpy.context
    object = _find_object(context.scene, options.object)
    if options.add_modifier:
        crs_modifier.check_addable(context, object)
    crs_modifier.check_updatable(context, object)
    steps = rotation_centers.bake(
        context,
        object,
        sigma=options.sigma,
        subdivision_epsilon=options.subdivision_epsilon,
        attribute_name=options.attribute,
        symmetrize=options.symmetrize,
    )
    bake = background.drain(steps, None if options.quiet else _ProgressLines())
    if options.add_modifier:
        crs_modifier.add(context, object)
    else:
        crs_modifier.update(context, object)
    _save(output)
    modifier = native_modifier(object)
    rows = [
        ("Object", bake.object_name),
        ("Vertices", str(bake.vertex_count)),
        ("With a center", str(bake.record.center_count)),
        ("Without", str(bake.vertex_count - bake.record.center_count)),
        *([("Modifier", modifier.name)] if modifier is not None else []),
        ("Seconds", f"{bake.seconds:.2f}"),
        ("Saved to", str(output)),
    ]
    _say(_table(rows))


def _build_eigenskin(options) -> None:
    output = _output_path(options)
    dependencies.require_dependencies()
    from .core.eigenskin import EigenSkinSettings

    context = bpy.context
    object = _find_object(context.scene, options.object)
    settings = {
        "components": options.components,
        "budget": options.budget,
        "support_threshold": options.support_threshold,
        "max_per_vertex": options.max_per_vertex,
        "radius": math.radians(options.radius),
        "joint_pairs": options.joint_pairs,
    }
    EigenSkinSettings(**settings).check()
    reads = (options.frame_start is not None, options.frame_end is not None, options.frame_step != 1)
    if any((*reads, options.all_frames)) and not options.examples_from:
        raise _UsageError("Frames are read with --examples-from only: name the object that has the right shape")
    progress = None if options.quiet else _ProgressLines()
    rows = []
    if options.examples_from:
        added = background.drain(
            example_sources.add_frames(
                context,
                object,
                options.frame_start,
                options.frame_end,
                options.frame_step,
                not options.all_frames,
                source=_find_object(context.scene, options.examples_from),
            ),
            progress,
        )
        rows.append(("Examples added", str(len(added.names))))
    built = background.drain(eigenskin.build(context, object, settings, options.normals), progress)
    _save(output)
    name, vertex, distance = built.worst
    _say(
        _table(
            [
                ("Object", built.object_name),
                *rows,
                ("Examples", str(built.example_count)),
                ("Shape keys", str(built.written.shape_key_count)),
                ("Supports", str(built.written.support_count)),
                ("Error left", f"{built.relative_error:.4f}"),
                ("Worst vertex", f"{vertex} in {name}, {distance:.6g}"),
                *(("Note", note) for note in built.notes),
                ("Seconds", f"{built.seconds:.2f}"),
                ("Saved to", str(output)),
            ]
        )
    )


def _output_path(options) -> Path:
    """Where to save, checked before the work: a result that cannot be saved is wasted."""
    opened = Path(bpy.data.filepath) if bpy.data.filepath else None
    if opened is None:
        raise _UsageError(
            "No file is open. Name one before --command: blender -b FILE.blend --command skinning COMMAND ..."
        )
    if options.overwrite:
        return opened
    output = Path(options.output).expanduser().absolute()
    if output.suffix != ".blend":
        raise _UsageError(f"--output must name a .blend file, not {output.name}")
    if not output.parent.is_dir():
        raise _UsageError(f"--output names a folder that does not exist: {output.parent}")
    if output.exists() and output.samefile(opened):
        raise _UsageError("--output is the file that was opened. Use --overwrite to save over it")
    return output


def _find_object(scene, name: str):
    found = scene.objects.get(name)
    if found is None:
        meshes = ", ".join(ob.name for ob in scene.objects if ob.type == "MESH") or "none"
        raise BadScene(f'There is no object "{name}" in scene "{scene.name}". Its meshes: {meshes}')
    return found


def _save(output: Path) -> None:
    try:
        bpy.ops.wm.save_as_mainfile(filepath=str(output), check_existing=False)
    except RuntimeError as error:
        raise BadScene(f"The result could not be saved to {output}: {error}") from error


class _ProgressLines:
    """A line on the terminal whenever the stage changes or another part of the work is done."""

    def __init__(self):
        self._stage = ""
        self._fraction = -1.0

    def __call__(self, fraction: float, stage: str) -> None:
        if stage and (stage.split(":")[0] != self._stage or fraction >= self._fraction + PROGRESS_STEP):
            self._stage, self._fraction = stage.split(":")[0], fraction
            _say(f"{fraction:5.0%}  {stage}")


def table(result: conversion.Conversion, output: Path) -> str:
    """The figures of a conversion as lines of name and value."""
    rows = [
        ("Object", result.source_name),
        ("Bones", str(result.bone_count)),
        ("Vertices", str(result.vertex_count)),
        ("Frames", f"{len(result.frame_numbers)} ({result.frame_numbers[0]:g} to {result.frame_numbers[-1]:g})"),
        ("E_RMS", f"{result.meter.e_rms:.4f}"),
        ("Largest error", f"{result.meter.max_error:.4f}"),
        *((f"Seconds to {name}", f"{value:.2f}") for name, value in result.seconds.items()),
        ("Saved to", str(output)),
    ]
    return _table(rows)


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _say_error(text: str) -> None:
    sys.stderr.write(f"Error: {text}\n")
    sys.stderr.flush()


_handles: list = []


def register() -> None:
    _handles.append(bpy.utils.register_cli_command("skinning", main))


def unregister() -> None:
    bpy.utils.unregister_cli_command(_handles.pop())
