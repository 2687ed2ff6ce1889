# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts the shape keys of a face and judges the result as Blender plays it: the worker of shape_keys.py.

usage: _judged_face.py FACE.npz SETTINGS, with the operator's settings as JSON. Prints one line of JSON: for sliders at
1 and for mixes the mean and the largest error in millimeters (differences of coordinates) and the 90th percentile of
the normals' angles in degrees; milliseconds of an update; processor seconds and megabytes that the conversion took; the
share of motions.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import skinning_tools
from skinning_tools.blender.attributes import read_attribute
from skinning_tools.blender.skin_reader import mesh_triangles
from skinning_tools.core.deform.surface import vertex_normals
from skinning_tools.features.shape_keys.faces import face_of

MILLIMETERS = 10.0  # per unit of the face
MIXES, SLIDERS_A_MIX, UPDATES = 20, 6, 20


def main() -> None:
    path, settings = sys.argv[1], json.loads(sys.argv[2])
    with np.load(path) as data:
        rest, deltas, faces = data["rest"].astype(float), data["deltas"], data["quads"]
        names = [str(name) for name in data["shape_names"]]
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    skinning_tools.register()
    _make_face(rest, deltas, faces, names)
    memory, begin = _peak(), time.process_time()
    bpy.ops.skinning.convert_shape_keys(**settings)
    found = {"processor": time.process_time() - begin, "megabytes": (_peak() - memory) / 1024.0}
    rig, skinned = bpy.data.objects["Face_rig"], bpy.data.objects["Face_skinned"]
    triangles = mesh_triangles(skinned.data)

    def error(values: np.ndarray) -> tuple[float, float, float]:
        got, wanted = _played(rig, skinned, names, values), rest + np.tensordot(values, deltas, 1)
        cosines = np.einsum("ni,ni->n", vertex_normals(got, triangles), vertex_normals(wanted, triangles))
        turned = np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
        away = MILLIMETERS * np.abs(got - wanted)
        return float(away.mean()), float(away.max()), float(np.quantile(turned, 0.9))

    random, mixes = np.random.default_rng(0), []
    for _ in range(MIXES):
        values = np.zeros(len(names))
        chosen = random.choice(len(names), SLIDERS_A_MIX, replace=False)
        values[chosen] = random.uniform(0.2, 0.9, SLIDERS_A_MIX)
        mixes.append(error(values))
    for key, errors in (("shapes", [error(values) for values in np.eye(len(names))]), ("mixes", mixes)):
        means, largest, turned = np.transpose(errors)
        found[key] = float(means.mean()), float(largest.max()), float(turned.mean())
    updates = []
    for number in range(UPDATES):
        begin = time.perf_counter()
        _played(rig, skinned, names, np.full(len(names), 0.5 + 0.02 * number), read=False)
        updates.append(time.perf_counter() - begin)
    # The fastest: other programs take time from the others.
    found["update_ms"] = 1000.0 * min(updates)
    face = face_of(skinned)
    assert face is not None
    found["share"] = face.record.share
    print(json.dumps(found), flush=True)


def _make_face(rest: np.ndarray, deltas: np.ndarray, faces: np.ndarray, names: list[str]) -> None:
    """The active object, with its keys; a face of three corners has -1 as its fourth."""
    mesh = bpy.data.meshes.new("Face")
    mesh.from_pydata(rest.tolist(), [], [[int(corner) for corner in face if corner >= 0] for face in faces])
    ob = bpy.data.objects.new("Face", mesh)
    bpy.context.collection.objects.link(ob)
    ob.shape_key_add(name="Basis")
    for name, delta in zip(names, deltas, strict=True):
        ob.shape_key_add(name=name).points.foreach_set("co", (rest + delta).ravel())
    bpy.context.view_layer.objects.active = ob


def _played(rig, skinned, names: list[str], values: np.ndarray, read: bool = True) -> np.ndarray | None:
    for name, value in zip(names, values, strict=True):
        rig[name] = float(value)
    rig.update_tag()
    bpy.context.view_layer.update()
    evaluated = skinned.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return read_attribute(evaluated.data, "position").astype(float) if read else None


def _peak() -> float:
    """Kilobytes of memory that this process has had at most."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
    # Some versions of the bpy module crash at exit.
    sys.stdout.flush()
    os._exit(0)
