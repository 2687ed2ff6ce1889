# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommand that binds meshes to an armature."""

from ...core.errors import BadScene
from ...ui.command_line.command import Command
from ...ui.command_line.common import UsageError, find_object
from ...ui.command_line.outcome import Row, each
from .bind import bind
from .rigid_objects import Parented
from .settings import BindSettings
from .targets import Targets, armature_for


def _add_objects(command) -> None:
    command.add_argument(
        "--object", metavar="NAME", required=True, action="append", help="a mesh object; may be given several times"
    )
    command.add_argument(
        "--armature", metavar="NAME", help="the armature object (default: the mesh's own, or the only one of the scene)"
    )


def _find_meshes(scene, names) -> list:
    meshes = [find_object(scene, name) for name in dict.fromkeys(names)]
    for ob in meshes:
        if ob.type != "MESH":
            raise BadScene(f'The object "{ob.name}" is not a mesh')
    return meshes


def _check(options) -> None:
    if (options.whole_parts or options.as_objects) and options.method != "RIGID":
        raise UsageError("--whole-parts and --as-objects go with --method RIGID only")
    idle = {
        "--influences": options.influences != BindSettings().max_influences,
        "--distance-limit": options.distance_limit,
        "--use-envelopes": options.use_envelopes,
    }
    if options.method == "RIGID" and any(idle.values()):
        names = ", ".join(name for name, given in idle.items() if given)
        raise UsageError(f"With --method RIGID each vertex follows its nearest bone: leave out {names}")
    for name, given in (("--replace", options.replace), ("--whole-parts", options.whole_parts)):
        if options.as_objects and given:
            raise UsageError(f"--as-objects makes no weights: leave out {name}")


def _bind(context, meshes, armature, **given):
    targets = Targets(tuple(meshes), armature_for(context, meshes[0], armature))
    return (yield from bind(context, targets, BindSettings(**given)))


def _rows(result) -> list[Row]:
    if isinstance(result, Parented):
        return each("{}", result.bones, "bones")
    records = result.records.values()
    return [
        Row("Object", list(result.records), ", ".join(result.records)),
        Row("Armature", result.armature_name),
        Row("Vertices bound", sum(record.vertex_count for record in records)),
        Row("Vertices kept", sum(record.kept_count for record in records)),
        Row("Nothing to bind", list(result.complete), ", ".join(result.complete) or "none"),
        Row("Bones", result.bone_count),
        Row("Bones a vertex", result.influences, f"up to {result.influences}"),
    ]


COMMANDS = (
    Command(
        "bind",
        "attach a mesh to the bones of an armature",
        "Give meshes weights of an armature's deforming bones, in their rest pose, and save the file.",
        settings=BindSettings,
        work=_bind,
        rows=_rows,
        add_object=_add_objects,
        find=_find_meshes,
        check=_check,
        more=lambda options: {"armature": options.armature or ""},
    ),
)
