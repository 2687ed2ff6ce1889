# SPDX-License-Identifier: GPL-3.0-or-later
"""Records on data-blocks: checksums of this version and of earlier versions."""

import numpy as np
import pytest

from skinning_tools.blender.records import checksum, has_checksum

# Of the text "abc", as published with each algorithm.
OF_ABC = {
    "crc32": "352441c2",
    "sha1": "a9993e364706816aba3e25717850c26c9cd0d89d",
    "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
}


def test_new_checksums_are_of_one_kind():
    assert checksum("abc") == checksum("a", np.frombuffer(b"bc", np.uint8)) == OF_ABC["sha256"]


@pytest.mark.parametrize("kind", OF_ABC)
def test_checksums_of_earlier_versions_are_recognized(kind):
    assert has_checksum(OF_ABC[kind], "abc")
    assert has_checksum(OF_ABC[kind], "a", np.frombuffer(b"bc", np.uint8))
    assert not has_checksum(OF_ABC[kind], "abd")


def test_no_checksum_is_that_of_nothing():
    assert not has_checksum("")
    assert not has_checksum("", "abc")
