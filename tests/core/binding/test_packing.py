# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights as bytes: the rows of glTF, and the packed table, read by the function that the documentation gives."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from skinning_tools.core.binding.compression import STEPS, bytes_per_vertex, compress_weights
from skinning_tools.core.binding.packing import MAGIC, joint_rows, packed_table
from skinning_tools.core.errors import BadSettings

PAGE = Path(__file__).resolve().parents[3] / "docs" / "engine_tables.md"
ROWS = 500


def documented_reader():
    """The function ``read_weights`` of the page."""
    (code,) = re.findall(r"```python\n(.*?def read_weights.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    return names["read_weights"]


def problem(bone_count, influences, seed=0):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(ROWS)])
    return bones, random.dirichlet(np.ones(influences), ROWS)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("bone_count", "kind"), [(256, np.uint8), (257, np.uint16)])
def test_rows_of_gltf(bits, bone_count, kind):
    bones, weights = problem(bone_count, 8)
    bones[0, 0], bones[0, 1:] = bone_count - 1, np.arange(7)
    weights[:10, 3:] = 0
    weights[:10] /= weights[:10].sum(axis=1, keepdims=True)
    joints, steps, error = joint_rows(bones, weights.astype(np.float32), bits)
    assert (joints.dtype, steps.dtype) == (kind, np.dtype(f"u{bits // 8}"))
    assert (steps.sum(axis=1, dtype=np.int64) == STEPS[bits]).all()
    assert (joints[steps == 0] == 0).all()
    dense, found = np.zeros((2, ROWS, bone_count))
    np.put_along_axis(dense, bones, weights, axis=1)
    np.add.at(found, (np.arange(ROWS)[:, None], joints), steps / STEPS[bits])
    largest = np.abs(found - dense).max()
    assert largest == pytest.approx(error, abs=1e-7)
    # The least that exact sums of eight allow; single precision of the input.
    assert largest <= (1 - 1 / 8) / STEPS[bits] + 1e-7


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("bone_count", "influences", "unbound"), [(3, 3, 2), (60, 4, 0), (256, 4, 0), (256, 4, 5), (9, 1, 1)]
)
def test_the_table_is_read_as_the_page_says(tmp_path, bits, bone_count, influences, unbound):
    bones, weights = problem(bone_count, influences)
    weights[:unbound] = 0
    rounded = compress_weights(bones, weights, bits=bits, max_influences=influences)
    names = ["Arm.L", "Krümmung", *(f"bone {number}" for number in range(bone_count - 2))]
    path = tmp_path / "body.bin"
    path.write_bytes(packed_table(rounded, names))
    found_names, found_bones, found_weights = documented_reader()(path)
    assert found_names == names
    np.testing.assert_array_equal(found_bones[unbound:], rounded.bones[unbound:])
    np.testing.assert_array_equal(found_weights[unbound:], rounded.weights[unbound:])
    assert (found_bones[:unbound] == bone_count).all()
    # Bytes of the vertices, after the head and the names, and at most three that fill up.
    rest = len(path.read_bytes()) - 32 - struct.unpack_from("<I", path.read_bytes(), 28)[0]
    assert 0 <= rest - ROWS * bytes_per_vertex(influences, bits, bone_count + (unbound > 0)) <= 3


def test_slots_that_no_row_needs_are_left_out():
    bones, weights = problem(9, 4)
    weights[:, 2:] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    data = packed_table(compress_weights(bones, weights), [str(number) for number in range(9)])
    assert data[:8] == MAGIC
    assert struct.unpack_from("<6I", data, 8)[:5] == (ROWS, 9, 2, 8, 8)


def test_unsupported_values_are_refused():
    with pytest.raises(BadSettings, match="16 bits can tell apart"):
        joint_rows(np.array([[0, 1 << 16]]), np.array([[0.5, 0.5]]), 8)
