# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Weights and Add Helper Bones over all actions of a character, with Corrective Smooth on its mesh as the target.

The character is ../shared/data/rigs/Fox.glb, or another glTF file; its vertices are merged by distance first. Errors
are E_RMS as Blender evaluates them, as shares of the error before.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _tables import Tables  # noqa: E402 (beside this file)

import skinning_tools  # noqa: E402 (in the path from here on)
from skinning_tools.blender.background import drain  # noqa: E402
from skinning_tools.blender.skin_reader import armature_of  # noqa: E402
from skinning_tools.features.partial.helpers import add_helper_bones  # noqa: E402
from skinning_tools.features.partial.weights import solve_weights  # noqa: E402

FOX = ROOT.parent / "shared" / "data" / "rigs" / "Fox.glb"
MERGED = 1e-4
HELPERS, HOLD = 8, 0.5


def character(path: Path) -> bpy.types.Object:
    """The largest skinned mesh of the file, alone in an empty scene, merged, with Corrective Smooth."""
    import bmesh  # exists once bpy is imported

    bpy.ops.wm.read_factory_settings(use_empty=True)
    skinning_tools.register()
    bpy.ops.import_scene.gltf(filepath=str(path))
    skinned = [ob for ob in bpy.data.objects if ob.type == "MESH" and armature_of(ob) is not None]
    mesh = max(skinned, key=lambda ob: len(ob.data.vertices))
    edited = bmesh.new()
    edited.from_mesh(mesh.data)
    bmesh.ops.remove_doubles(edited, verts=edited.verts, dist=MERGED)
    edited.to_mesh(mesh.data)
    edited.free()
    mesh.modifiers.new("Corrective Smooth", "CORRECTIVE_SMOOTH")
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob == mesh)
    bpy.context.view_layer.objects.active = mesh
    return mesh


def solved(path: Path, solve=solve_weights, **settings) -> dict[str, tuple[float, float]]:
    """For each action: E_RMS before and after."""
    mesh = character(path)
    record = drain(solve(bpy.context, mesh, **settings)).record
    skinning_tools.unregister()
    return {
        name: (before, after)
        for name, before, after in zip(record.clips, record.clips_before, record.clips_after, strict=True)
    }


def left_out(path: Path, names: Iterable[str], solve=solve_weights, **settings) -> dict[str, float]:
    """For each action: its error after a solve from all the others, as a share of the error before."""
    found = {}
    for name in names:
        others = ",".join(other for other in names if other != name)
        before, after = solved(path, solve, actions="SELECTED", action_names=others, **settings)[name]
        found[name] = after / before
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=FOX, help="a glTF file with several actions")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    options = parser.parse_args()
    if not options.file.is_file():
        print(f"There is no file {options.file}.")
        return 1
    runs = {
        "8 influences": {"max_influences": 8},
        "4 influences": {"max_influences": 4},
        "8, rest shape": {"max_influences": 8, "rest_shape": True},
        "4, rest shape": {"max_influences": 4, "rest_shape": True},
        "8, Hold": {"max_influences": 8, "hold": HOLD},
    }
    columns, before = {}, {}
    for label, settings in runs.items():
        found = solved(options.file, **settings)
        before = {name: pair[0] for name, pair in found.items()}
        columns[label] = {name: after / start for name, (start, after) in found.items()}
    helpers = {f"{HELPERS} helpers": {}, f"{HELPERS} driven helpers": {"driven": True}}
    for label, settings in helpers.items():
        found = solved(options.file, add_helper_bones, bone_count=HELPERS, **settings)
        columns[label] = {name: after / start for name, (start, after) in found.items()}
    for label in ("8 influences", "8, rest shape"):
        columns[f"left out, {label}"] = left_out(options.file, list(before), **runs[label])
    for label, settings in helpers.items():
        given = {"bone_count": HELPERS, **settings}
        columns[f"left out, {label}"] = left_out(options.file, list(before), add_helper_bones, **given)
    tables = Tables(first=24)
    tables.begin(
        "All actions count",
        "E_RMS before, and the share of it that is left, as Blender evaluates it, by the number of influences. *Rest "
        f"shape*: with Shift Rest Shape; *Hold*: {HOLD}; *left out*: the action was not used, all others were.",
        "action",
        "before",
        *columns,
    )
    for name, start in before.items():
        tables.row(name.rpartition("|")[2], f"{start:.2f}", *(f"{column[name]:.2f}" for column in columns.values()))
    tables.row("mean", "", *(f"{np.mean(list(column.values())):.2f}" for column in columns.values()))
    tables.row("worst", "", *(f"{max(column.values()):.2f}" for column in columns.values()))
    if options.write:
        command = f"`python3 build.py bench clips --write docs/{options.write.name}`"
        tables.write(options.write, "Weights for several actions", f"Made by {command}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
