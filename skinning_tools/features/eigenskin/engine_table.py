# SPDX-License-Identifier: GPL-3.0-or-later
"""The corrections of a mesh as a file of tables for an engine's shaders (EigenSkin, section 2.5)."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import dependencies
from ...blender.animation.shape_key_reader import key_coordinates
from ...blender.attributes import has_attribute, read_attribute, remove_attributes, write_attribute
from ...blender.figures import Figure, Result
from ...blender.gltf_space import gltf_axes
from ...blender.preconditions import check_attributes_writable, check_bones, object_label, unmet
from ...blender.skin_reader import armature_of, mesh_triangles
from ...blender.written_files import Kind, begins_with, claim_named
from ...core.errors import BadScene
from ...core.quaternions import from_matrices
from ...core.rotations import polar_decomposition
from .drivers import MODEL, PREFIX
from .record import Record, present_record
from .removal import NORMAL_RUNS_ATTRIBUTE, RUNS_ATTRIBUTE

if TYPE_CHECKING:
    from ...core.eigenskin.model import EigenSkin

MAGIC = b"SKINEIG1"
TABLE = Kind("EigenSkin table", lambda path: begins_with(path, MAGIC[:-1]))
SCHEMA, SCHEMA_VERSION = "skinning_tools.eigenskin", 2
# Texels in a row of the tables.
WIDTH = 1024


@dataclass(frozen=True)
class SavedTable(Result):
    """path: of the file. texel_count: of the displacements; normal_count: components of the normals; byte_count: of the
    file."""

    name: str
    path: Path
    component_count: int
    normal_count: int
    joint_count: int
    texel_count: int
    most: int
    byte_count: int

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("File", str(self.path)),
            Figure("Components", self.component_count),
            *([Figure("Components of normals", self.normal_count)] if self.normal_count else []),
            Figure("Joints", self.joint_count),
            Figure("Displacements", self.texel_count),
            Figure("Most for a vertex", self.most),
            Figure("Bytes", self.byte_count),
        ]


def save_table(
    context: bpy.types.Context, mesh_object: bpy.types.Object, filepath: str, y_up: bool = True
) -> SavedTable:
    """Write the tables of docs/engine_tables.md to ``filepath``, in the space of glTF files, and each vertex's run of
    displacements to the point attribute RUNS_ATTRIBUTE, which the exporter writes; where normals are corrected, too,
    their runs to NORMAL_RUNS_ATTRIBUTE. Raises BadScene, BadPath."""
    dependencies.require_dependencies()
    from ...core.eigenskin.shader_tables import shader_tables

    check_attributes_writable(mesh_object)
    mesh = mesh_object.data
    for name in (RUNS_ATTRIBUTE, NORMAL_RUNS_ATTRIBUTE):
        if name in mesh.attributes and not has_attribute(mesh, name, "FLOAT2"):
            raise unmet("ATTRIBUTE_OF_ANOTHER_KIND", object=mesh_object, attribute=name)
    target = claim_named(filepath, TABLE, ".bin")
    to_world = np.array(mesh_object.matrix_world, dtype=np.float64)[:3, :3]
    model, names = _read_model(mesh_object, to_world, y_up)
    armature = armature_of(mesh_object)
    check_bones(armature, model.joint_names, "BONE_GONE")
    tables = shader_tables(model)
    normal_count = sum(len(support.normals.limits) for support in model.supports if support.normals is not None)
    blocks = {"network": _whole_rows(tables.network), "displacements": _whole_rows(tables.displacements)}
    if normal_count:
        blocks["normals"] = _whole_rows(tables.normals)
    starts = np.cumsum([0, *(block.nbytes for block in blocks.values())]).tolist()
    head = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "vertices": model.vertex_count,
        "components": names,
        "normal_components": normal_count,
        "joints": [_joint(armature, model.joint_names[joint], y_up) for joint in tables.joints],
        "tables": {
            name: {"offset": start, "width": WIDTH, "height": len(block)}
            for start, (name, block) in zip(starts, blocks.items(), strict=False)
        },
    }
    text = json.dumps(head, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    data = b"".join([MAGIC, struct.pack("<I", len(text)), text, *(block.tobytes() for block in blocks.values())])
    target.save(data)
    write_attribute(mesh, RUNS_ATTRIBUTE, "FLOAT2", tables.runs)
    remove_attributes(mesh, (NORMAL_RUNS_ATTRIBUTE,))
    if normal_count:
        write_attribute(mesh, NORMAL_RUNS_ATTRIBUTE, "FLOAT2", tables.normal_runs)
    mesh.update()
    return SavedTable(
        mesh_object.name,
        target.path,
        model.component_count,
        normal_count,
        len(tables.joints),
        len(tables.displacements),
        int(tables.runs[:, 1].max(initial=0)),
        len(data),
    )


def _read_model(mesh_object: bpy.types.Object, to_world: np.ndarray, y_up: bool) -> "tuple[EigenSkin, list[str]]":
    """The model in the space of the file, and the names of its components. Raises BadScene."""
    from ...core.eigenskin.shader_tables import model_of

    record, label = present_record(mesh_object), object_label(mesh_object)
    names = [name for support in record.supports for name in support.keys]
    key = mesh_object.data.shape_keys
    blocks = key.key_blocks if key is not None else {}
    if any(name not in blocks for name in names):
        raise BadScene(f"The corrections of {label} have lost their shape keys. Build them again")
    rest = key_coordinates(key.reference_key).astype(np.float64)
    deltas = np.array([key_coordinates(blocks[name]) - rest for name in names]).reshape(-1, len(rest), 3)
    text: Any = next((key.get(name) for name in record.properties if name.startswith(PREFIX + MODEL)), None)
    try:
        normals = _read_normals(mesh_object, record, rest, to_world, y_up)
        return model_of(text, gltf_axes(deltas @ to_world.T, y_up), normals), names
    except (TypeError, ValueError, KeyError) as error:
        raise BadScene(
            f"The corrections of {label} were built by an earlier version, or changed since. Build them again"
        ) from error


def _read_normals(
    mesh_object: bpy.types.Object, record: Record, rest: np.ndarray, to_world: np.ndarray, y_up: bool
) -> np.ndarray | None:
    """(C, N, 3) the components of the normals in the space of the file; None without any. Raises BadScene."""
    from ...core.deform import vertex_normals

    mesh = mesh_object.data
    names = [name for support in record.supports for name in support.attributes]
    if any(not has_attribute(mesh, name, "FLOAT_VECTOR") for name in names):
        raise BadScene(
            f"The corrections of {object_label(mesh_object)} have lost attributes of their normals. Build them again"
        )
    if not names:
        return None
    # What is added to a unit normal, whose length changes where the object is scaled unevenly.
    back = np.linalg.inv(to_world)
    lengths = np.linalg.norm(vertex_normals(rest, mesh_triangles(mesh)) @ back, axis=1)
    corrections = np.array([read_attribute(mesh, name) for name in names]) @ back / lengths[:, None]
    return gltf_axes(corrections, y_up)


def _joint(armature: bpy.types.Object, name: str, y_up: bool) -> dict:
    """What an engine needs to know of a joint. axes: its rotation at rest in the space of the file, x y z w."""
    bone = armature.data.bones[name]
    at_rest = np.array(armature.matrix_world @ bone.matrix_local, dtype=np.float64)[:3, :3]
    rotation = polar_decomposition(gltf_axes(at_rest.T, y_up).T)[0]
    axes = np.roll(from_matrices(rotation[None])[0], -1)
    return {"name": name, "parent": bone.parent.name if bone.parent is not None else None, "axes": axes.tolist()}


def _whole_rows(texels: np.ndarray) -> np.ndarray:
    """(height, WIDTH, 4) little-endian, the last row filled up with zeros; at least one row."""
    height = max(-(-len(texels) // WIDTH), 1)
    filled = np.zeros((height * WIDTH, 4), "<f4")
    filled[: len(texels)] = texels
    return filled.reshape(height, WIDTH, 4)
