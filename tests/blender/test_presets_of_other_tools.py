# SPDX-License-Identifier: GPL-3.0-or-later
"""Presets of Bind, Smooth Weights and EigenSkin. What presets do at all is tested with those of Convert Animation."""

import bpy
import pytest

from skinning_tools.features.bind.panel import SKINNING_PT_bind, SKINNING_PT_bind_presets
from skinning_tools.features.bind.settings import PRESETS as BIND
from skinning_tools.features.eigenskin.panel import SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_presets
from skinning_tools.features.eigenskin.settings import PRESETS as EIGENSKIN
from skinning_tools.features.weights.panel import SKINNING_PT_smooth_presets, SKINNING_PT_smooth_weights
from skinning_tools.features.weights.settings import PRESETS as SMOOTH
from skinning_tools.ui.presets import Presets
from tests.blender.binding_scenes import activate
from tests.blender.eigenskin_scenes import limb

pytestmark = pytest.mark.usefixtures("extension")

KINDS = {kind.name: kind for kind in (BIND, SMOOTH, EIGENSKIN)}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, monkeypatch) -> Presets:
    monkeypatch.setenv("BLENDER_USER_SCRIPTS", str(tmp_path))
    ob, rig = limb()
    activate(ob, rig)
    return KINDS[request.param]


def operator(kind: Presets, verb: str):
    return getattr(bpy.ops.skinning, f"{verb}_{kind.name}_preset")


def values(kind: Presets) -> dict:
    chosen = kind.kept(bpy.context)
    return {name: getattr(chosen, name) for name in kind.settings.declared}


def test_the_presets_are_complete_and_differ(kind):
    files = kind.files()
    assert len(files) >= 3
    found = []
    for path in files.values():
        found.append(kind.read(path))
        assert set(found[-1]) == set(kind.settings.declared)
        assert operator(kind, "apply")(filepath=str(path)) == {"FINISHED"}
        assert values(kind) == pytest.approx(found[-1])
    assert all(found.count(each) == 1 for each in found)


@pytest.mark.parametrize("active", ["mesh", "armature"])
def test_a_preset_of_the_users(kind, tmp_path, active):
    if active == "armature":
        activate(bpy.context.active_object.find_armature())
    number = next(name for name in ("max_influences", "components") if name in kind.settings.declared)
    chosen = kind.kept(bpy.context)
    setattr(chosen, number, 7)
    assert operator(kind, "add")(name="My Own") == {"FINISHED"}
    path = tmp_path / "presets" / kind.subdir / "My_Own.py"
    before = values(kind)
    setattr(chosen, number, 2)
    assert operator(kind, "apply")(filepath=str(path)) == {"FINISHED"}
    assert values(kind) == before
    assert getattr(chosen, number) == 7


def test_presets_of_corrections_need_a_character(tmp_path, monkeypatch):
    monkeypatch.setenv("BLENDER_USER_SCRIPTS", str(tmp_path))
    bpy.ops.mesh.primitive_cube_add()
    with pytest.raises(RuntimeError, match="armature"):
        bpy.ops.skinning.add_eigenskin_preset(name="My Own")
    with pytest.raises(RuntimeError, match="armature"):
        bpy.ops.skinning.apply_eigenskin_preset(filepath=str(EIGENSKIN.find("Folds")))


@pytest.mark.parametrize(
    ("panel", "menu"),
    [
        (SKINNING_PT_bind, SKINNING_PT_bind_presets),
        (SKINNING_PT_smooth_weights, SKINNING_PT_smooth_presets),
        (SKINNING_PT_eigenskin, SKINNING_PT_eigenskin_presets),
    ],
)
def test_the_menu_calls_operators_that_exist(panel, menu):
    assert hasattr(panel, "draw_header_preset")
    for name in (menu.preset_operator, menu.preset_add_operator):
        getattr(bpy.ops.skinning, name.removeprefix("skinning.")).get_rna_type()
