# SPDX-License-Identifier: GPL-3.0-or-later
"""The driven helper bones of an armature as a JSON file, for engines' pose drivers: what each does in which pose."""

from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender.figures import Figure, Result
from ...blender.helper_bones.driven import DRIVEN, DrivenRecord
from ...blender.preconditions import check_bones
from ...blender.records import read_record
from ...blender.written_files import Kind, begins_with, claim_named
from ...core.errors import BadScene
from ...core.imitation.channels import PRODUCTS
from ...ui.command_line.report import json_bytes
from .parts import armature_meant

SCHEMA, SCHEMA_VERSION = "skinning_tools.driven_helpers", 2
TABLE = Kind("table of driven helper bones", lambda path: begins_with(path, json_bytes({"schema": SCHEMA})[:-3]))
_CHANNELS = 6


@dataclass(frozen=True)
class SavedTable(Result):
    """path: of the file. term_count: coefficients that are not zero."""

    name: str
    path: Path
    helper_count: int
    joint_count: int
    term_count: int

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("File", str(self.path)),
            Figure("Helper bones", self.helper_count),
            Figure("Joints", self.joint_count),
            Figure("Terms", self.term_count),
        ]


def driven_rig(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The armature meant. Raises BadScene if no helper bone of it is driven. Cheap enough for a panel."""
    armature = armature_meant(context, active, "")
    if not any(DRIVEN in bone for bone in armature.data.bones):
        raise BadScene(
            f'The armature "{armature.name}" has no helper bones that joints drive. Add them with Driven, or by Bake '
            "Deformers"
        )
    return armature


def _read_records(armature: bpy.types.Object) -> dict[str, DrivenRecord]:
    """What drives the helper bones, by their names. Raises BadScene."""
    records = {}
    for bone in armature.data.bones:
        if DRIVEN not in bone:
            continue
        record = read_record(bone, DRIVEN, DrivenRecord)
        if record is None or len(record.coefficients) != _CHANNELS * len(PRODUCTS) * len(record.joints):
            raise BadScene(
                f'What drives the bone "{bone.name}" is damaged. Remove the helper bones, and add them again'
            )
        check_bones(armature, record.joints, "BONE_GONE")
        records[bone.name] = record
    return records


def save_table(context: bpy.types.Context, active: bpy.types.Object | None, filepath: str) -> SavedTable:
    """Write the table of the armature meant to ``filepath``. Raises BadScene, BadPath."""
    armature = driven_rig(context, active)
    records = _read_records(armature)
    target = claim_named(filepath, TABLE, ".json")
    table = helper_table(armature, records)
    target.save(json_bytes(table))
    terms = sum(int(np.count_nonzero(record.coefficients)) for record in records.values())
    return SavedTable(armature.name, target.path, len(records), len(table["joints"]), terms)


def helper_table(armature: bpy.types.Object, records: dict[str, DrivenRecord]) -> dict:
    """The table as JSON values; docs/engine_tables.md describes it."""
    helpers = []
    for name, record in records.items():
        channels = np.reshape(record.coefficients, (_CHANNELS, -1)).tolist()
        parts = {"joints": list(record.joints), "location": channels[:3], "rotation": channels[3:]}
        helpers.append({**_bone(armature, name), **parts})
    joints = dict.fromkeys(joint for record in records.values() for joint in record.joints)
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "armature": armature.name,
        "products": ["".join("1xyz"[component] for component in pair).removeprefix("1") for pair in PRODUCTS],
        "joints": [_bone(armature, name) for name in joints],
        "helpers": helpers,
    }


def _bone(armature: bpy.types.Object, name: str) -> dict:
    bone = armature.data.bones[name]
    return {
        "name": name,
        "parent": bone.parent.name if bone.parent is not None else None,
        "rest": [list(row) for row in bone.matrix_local],
    }
