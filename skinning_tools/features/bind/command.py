# SPDX-License-Identifier: GPL-3.0-or-later
"""`bind`: weights of an armature's bones for a mesh."""

import bpy

from ...blender import background
from ...core.errors import BadScene
from ...ui.command_line import arguments
from ...ui.command_line.common import UsageError, find_object, progress_of
from ...ui.command_line.outcome import Outcome, Row, each
from . import bind as binding
from . import rigid_objects
from .bind_settings import METHOD_ITEMS
from .bind_targets import Targets, armature_for


def add(commands) -> None:
    bind = commands.add_parser(
        "bind",
        help="attach a mesh to the bones of an armature",
        description="Give meshes weights of an armature's deforming bones, in their rest pose, and save the file.",
    )
    bind.add_argument(
        "--object", metavar="NAME", required=True, action="append", help="a mesh object; may be given several times"
    )
    bind.add_argument(
        "--armature", metavar="NAME", help="the armature object (default: the mesh's own, or the only one of the scene)"
    )
    arguments.add_enumeration(bind, "--method", METHOD_ITEMS, "DELAUNAY", "how bones are found (default: %(default)s)")
    arguments.add_influences(bind)
    bind.add_argument("--replace", action="store_true", help="make weights anew that there are already")
    bind.add_argument(
        "--distance-limit",
        type=arguments.number,
        default=0.0,
        metavar="D",
        help="how far a bone reaches, in the scene's units (default: no limit)",
    )
    bind.add_argument("--use-envelopes", action="store_true", help="bones reach as far as their envelopes")
    rigid = bind.add_mutually_exclusive_group()
    rigid.add_argument("--whole-parts", action="store_true", help="with RIGID: each connected part to one bone")
    rigid.add_argument("--as-objects", action="store_true", help="with RIGID: parent the objects to bones")
    arguments.add_target(bind)
    bind.set_defaults(run=_run)


def _run(options) -> Outcome:
    if (options.whole_parts or options.as_objects) and options.method != "RIGID":
        raise UsageError("--whole-parts and --as-objects go with --method RIGID only")
    idle = {
        "--influences": options.influences != 4,
        "--distance-limit": options.distance_limit,
        "--use-envelopes": options.use_envelopes,
    }
    if options.method == "RIGID" and any(idle.values()):
        names = ", ".join(name for name, given in idle.items() if given)
        raise UsageError(f"With --method RIGID each vertex follows its nearest bone: leave out {names}")
    if options.as_objects and options.replace:
        raise UsageError("--as-objects makes no weights: leave out --replace")
    context = bpy.context
    meshes = [find_object(context.scene, name) for name in dict.fromkeys(options.object)]
    for ob in meshes:
        if ob.type != "MESH":
            raise BadScene(f'The object "{ob.name}" is not a mesh')
    targets = Targets(tuple(meshes), armature_for(context, meshes[0], options.armature or ""))
    progress = progress_of(options)
    if options.as_objects:
        parented = background.drain(rigid_objects.parent_to_bones(context, targets), progress)
        return Outcome(each("{}", parented.bones, "bones"), parented.seconds)
    settings = binding.BindSettings(
        method=options.method,
        max_influences=options.influences,
        replace=options.replace,
        whole_parts=options.whole_parts,
        distance_limit=options.distance_limit,
        use_envelopes=options.use_envelopes,
    )
    bound = background.drain(binding.bind(context, targets, settings), progress)
    records = bound.records.values()
    most = max(record.influences for record in records)
    rows = [
        Row("Object", list(bound.records), ", ".join(bound.records)),
        Row("Armature", targets.armature.name),
        Row("Vertices bound", sum(record.vertex_count for record in records)),
        Row("Vertices kept", sum(record.kept_count for record in records)),
        Row("Nothing to bind", list(bound.complete), ", ".join(bound.complete) or "none"),
        Row("Bones", bound.bone_count),
        Row("Bones a vertex", most, f"up to {most}"),
    ]
    return Outcome(rows, bound.seconds, bound.notes)
