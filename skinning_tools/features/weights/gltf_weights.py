# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of 8 or 16 bits in the files of Blender's glTF exporter, which calls the extension's hook for every mesh."""

from typing import Any

import bpy
import numpy as np

from ...blender import dependencies


class GltfWeights:
    """For the exporter: see its ``glTF2ExportUserExtension``. It is made anew for every export."""

    # Blender 5 then stops the export after an exception; 4 only prints it.
    is_critical = True

    def gather_mesh_hook(
        self,
        mesh: Any,
        blender_mesh: bpy.types.Mesh,
        blender_object: bpy.types.Object | None,
        vertex_groups: bpy.types.bpy_prop_collection,
        modifiers: bpy.types.bpy_prop_collection | None,
        materials: tuple,
        settings: dict,
    ) -> None:
        """Round the weights of a gathered ``mesh`` in place, as the scene's setting says."""
        chosen = bpy.context.scene.skinning_weight_tools.gltf.weights
        if chosen == "FLOAT":
            return
        dependencies.require_dependencies()
        errors = [_round(primitive.attributes, int(chosen)) for primitive in mesh.primitives]
        done = [error for error in errors if error is not None]
        if done:
            settings["log"].info(f"{mesh.name}: weights of {chosen} bits, rounded by at most {100 * max(done):.2g} %")
        if len(done) < sum("WEIGHTS_0" in primitive.attributes for primitive in mesh.primitives):
            settings["log"].warning(f"{mesh.name}: the exporter has compressed the weights itself; they stay so")


def _round(attributes: dict, bits: int) -> float | None:
    """Round the weights of one primitive; the largest rounding, None if there are none or they are not floats."""
    from ...core.binding.packing import joint_rows

    sets = sum(name.startswith("WEIGHTS_") for name in attributes)
    pairs = [(attributes[f"JOINTS_{number}"], attributes[f"WEIGHTS_{number}"]) for number in range(sets)]
    # Meshopt has encoded the bytes already.
    if not pairs or any(hasattr(each.buffer_view, "extensions") for pair in pairs for each in pair):
        return None
    joints, weights = (np.hstack([_numbers(pair[side]) for pair in pairs]) for side in (0, 1))
    if weights.dtype != np.float32:
        return None
    *rows, error = joint_rows(joints, weights, bits)
    for number, pair in enumerate(pairs):
        for accessor, numbers in zip(pair, rows, strict=True):
            _write(accessor, numbers[:, 4 * number : 4 * number + 4])
        pair[1].normalized = True
    return error


_TYPES = {"UnsignedByte": np.uint8, "UnsignedShort": np.uint16, "Float": np.float32}


def _numbers(accessor: Any) -> np.ndarray:
    """(N, 4)"""
    return np.frombuffer(accessor.buffer_view.data, _TYPES[accessor.component_type.name]).reshape(-1, 4)


def _write(accessor: Any, numbers: np.ndarray) -> None:
    """Give an accessor other ``numbers`` (N, 4)."""
    name = next(name for name, kind in _TYPES.items() if kind == numbers.dtype)
    # The exporter's own classes: its modules are at different places in different versions.
    accessor.component_type = type(accessor.component_type)[name]
    view = accessor.buffer_view
    accessor.buffer_view = type(view)(np.ascontiguousarray(numbers).tobytes(), view.bufferViewTarget)
