# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenes that several files of tests begin with.

What they import waits until a test asks for it: see ``extension`` in tests/conftest.py.
"""

import pytest


@pytest.fixture
def empty():
    """A new, empty scene."""
    from tests.blender import scenes

    scenes.empty_scene()


@pytest.fixture
def scene():
    """A new scene for moving meshes."""
    from tests.blender import moving_meshes

    return moving_meshes.fresh_scene()


@pytest.fixture
def rigged():
    """The limb of EigenSkin's tests, its armature and its joints."""
    import bpy

    from skinning_tools.features.eigenskin.examples import read_rig
    from tests.blender.eigenskin_scenes import limb

    ob, rig = limb()
    return ob, rig, read_rig(bpy.context, ob)[1]


@pytest.fixture
def limb():
    """The limb with examples, active, and its armature."""
    import bpy

    from tests.blender.eigenskin_scenes import limb_with_examples

    ob, rig = limb_with_examples()
    bpy.context.view_layer.objects.active = ob
    return ob, rig


@pytest.fixture
def posed():
    """The limb with its lower bone turned."""
    from tests.blender.eigenskin_scenes import posed_limb

    return posed_limb([("lower", "X", 70), ("upper", "Z", 20)])


@pytest.fixture
def bent():
    """The limb with both joints turned, its mesh active."""
    from tests.blender.eigenskin_scenes import posed_limb

    return posed_limb([("lower", "X", 70), ("upper", "Z", 40)])
