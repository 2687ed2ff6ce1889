# SPDX-License-Identifier: GPL-3.0-or-later
"""The sliders of a face as a JSON file, for engines that sum poses themselves: what each slider does to which bones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender.animation.shape_key_reader import key_coordinates
from ...blender.figures import Figure, Result
from ...blender.written_files import Kind, begins_with, claim_named
from ...core.quaternions import from_matrices
from ...ui.command_line.report import json_bytes
from .sliders import POINTS, face_rig, helpers_of

SCHEMA, SCHEMA_VERSION = "skinning_tools.sliders", 1
TABLE = Kind("slider table", lambda path: begins_with(path, json_bytes({"schema": SCHEMA})[:-3]))
# As a share of the largest motion, or of a turn in radians: less is rounding.
_STILL = 1e-6


@dataclass(frozen=True)
class SavedTable(Result):
    """path: of the file. motion_count: of a bone by a slider; all_count: if every slider moved every bone."""

    name: str
    path: Path
    slider_count: int
    motion_count: int
    all_count: int

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("File", str(self.path)),
            Figure("Sliders", self.slider_count),
            Figure("Motions of bones", self.motion_count),
            Figure("Share of all", self.motion_count / self.all_count, "{:.1%}"),
        ]


def save_table(context: bpy.types.Context, active: bpy.types.Object | None, filepath: str) -> SavedTable:
    """Write the table of the active face to ``filepath``. Raises BadScene, BadPath."""
    armature, names = face_rig(context, active)
    target = claim_named(filepath, TABLE, ".json")
    table = slider_table(armature, names)
    target.save(json_bytes(table))
    motions = sum(len(slider["bones"]) for slider in table["sliders"])
    return SavedTable(armature.name, target.path, len(names), motions, len(names) * len(table["bones"]))


def slider_table(armature: bpy.types.Object, names: list[str]) -> dict:
    """The table as JSON values; docs/engine_tables.md describes it."""
    motions: dict[str, dict] = {name: {} for name in names}
    bones = []
    for helper, bone_names in helpers_of(armature):
        bones += [armature.data.bones[name] for name in bone_names]
        for name, found in _motions(helper, bone_names):
            if name in motions:
                motions[name] |= found
    sliders = []
    for name in names:
        shown = armature.id_properties_ui(name).as_dict()
        sliders.append({"name": name, "least": shown["min"], "most": shown["max"], "bones": motions[name]})
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "armature": armature.name,
        "bones": [
            {
                "name": bone.name,
                "parent": bone.parent.name if bone.parent is not None else None,
                "rest": [list(row) for row in bone.matrix_local],
            }
            for bone in bones
        ],
        "sliders": sliders,
    }


def _motions(helper: bpy.types.Object, bone_names: list[str]) -> Iterator[tuple[str, dict]]:
    """Each slider of a helper, and the motions of the bones that it moves."""
    keys = helper.data.shape_keys.key_blocks
    sides = len(bone_names), len(POINTS), 3
    rest = key_coordinates(keys[0]).reshape(sides).astype(np.float64)
    axes, reach = _axes(rest)
    # From the helper's units to those of the armature, whose scale is even.
    size = float(np.cbrt(np.linalg.det(np.array(helper.matrix_basis)[:3, :3])))
    for key in keys[1:]:
        points = key_coordinates(key).reshape(sides).astype(np.float64)
        # In the bone's own axes, as Blender's channels of a pose bone are.
        moves = np.einsum("pij,pi->pj", axes, points[:, 0] - rest[:, 0])
        turns = from_matrices(np.swapaxes(axes, 1, 2) @ _axes(points)[0])
        turns *= np.where(turns[:, :1] < 0, -1.0, 1.0)
        moved = (np.abs(moves).max(axis=1) > _STILL * reach) | (np.abs(turns[:, 1:]).max(axis=1) > _STILL)
        yield (
            key.name,
            {
                bone_names[bone]: {"location": (size * moves[bone]).tolist(), "rotation": turns[bone].tolist()}
                for bone in np.flatnonzero(moved)
            },
        )


def _axes(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The axes x, y and z (P, 3, 3) of bones in columns, as the constraints aim them at points (P, 3, 3), and how far
    the points are from the bones."""
    along, up = points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]
    lengths = np.linalg.norm(along, axis=1, keepdims=True)
    y = along / lengths
    z = up - np.einsum("pi,pi->p", up, y)[:, None] * y
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1), float(lengths.mean())
