# SPDX-License-Identifier: GPL-3.0-or-later
"""Results out through Blender's glTF, FBX and USD exporters and in again: the mesh is where it was at every frame."""

from dataclasses import dataclass

import bpy
import numpy as np
import pytest

from tests.blender import skinned_meshes
from tests.engines import formats, samples

pytestmark = pytest.mark.usefixtures("extension")

# Parts of the diagonal: single precision, rounded 16 times at the most where bones do not stretch, and the scales of
# USD's skeletons, which are half precision (11 bits, and a chain of two).
SINGLE = 16 * 2.0**-24
HALF = 2 * 2.0**-11
FRAMES = range(1, samples.FRAME_COUNT + 1)


@dataclass(frozen=True)
class Way:
    """A file format, and the importer that reads it."""

    ending: str
    new_fbx: bool = False

    def __str__(self) -> str:
        return f"{self.ending}{' new importer' * self.new_fbx}"

    def check(self) -> None:
        has = {
            "glb": hasattr(bpy.ops.export_scene, "gltf"),
            "fbx": hasattr(bpy.ops.export_scene, "fbx") and (not self.new_fbx or bpy.app.version >= (4, 5, 0)),
            "usdc": bpy.app.build_options.usd,
        }
        if not has[self.ending]:
            pytest.skip(f"this Blender does not read or write {self}")

    def tolerance(self, exact: float, kind: str) -> float:
        return HALF if self.ending == "usdc" and kind != "RIGID" else exact


WAYS = (Way("glb"), Way("fbx"), Way("fbx", new_fbx=True), Way("usdc"))


@pytest.fixture(params=WAYS, ids=str)
def way(request):
    request.param.check()
    return request.param


def rounding(ob) -> float:
    """How far a mesh may be from where it was: matrices are taken apart into turns and scales, which loses as much as
    the scales of a chain of bones differ by."""
    worst = 1.0
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        for bone in ob.find_armature().pose.bones:
            scales = np.abs([each.scale for each in (bone, *bone.parent_recursive)])
            worst = max(worst, (scales.max(axis=1) / scales.min(axis=1)).prod())
    return SINGLE * worst


def there_and_back(ob, folder, way, clamped=True, **settings) -> tuple[bpy.types.Object, np.ndarray, np.ndarray, float]:
    """The imported mesh, its positions (F, N, 3) at FRAMES, those that ``ob`` had, in the order of the import, and how
    far they may be apart."""
    exact = rounding(ob)
    expected = formats.played(ob, FRAMES[0], len(FRAMES))
    assert np.linalg.norm(np.diff(expected, axis=0), axis=-1).max(axis=1).min() > 0.01 * formats.diagonal(expected)
    formats.number_vertices(ob)
    fps = bpy.context.scene.render.fps
    path = formats.export(ob, folder / f"file.{way.ending}", **settings)
    imported = formats.reimport(path, fps, new_fbx=way.new_fbx, clamped=clamped)
    found = formats.played(imported, formats.first_frame(imported), len(FRAMES))
    return imported, found, expected[:, formats.vertex_numbers(imported)], exact


@pytest.mark.parametrize("shapes", [0, 3])
@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
def test_a_conversion_survives_export_and_import(tmp_path, way, kind, shapes):
    ob = samples.convert(samples.swaying_tube(), bone_kind=kind, residual_shapes=shapes)
    imported, found, expected, exact = there_and_back(ob, tmp_path, way)
    assert formats.largest_distance(found, expected) < way.tolerance(exact, kind)
    assert len(imported.data.shape_keys.key_blocks if shapes else ()) == (shapes and shapes + 2)


def test_eigenskin_corrections_survive_export_and_import(tmp_path, way):
    ob = samples.corrected_limb()
    _, found, expected, exact = there_and_back(ob, tmp_path, way, clamped=False)
    assert formats.largest_distance(found, expected) < exact


def test_a_root_bone_and_a_joint_hierarchy_are_recovered(tmp_path, way):
    ob = samples.convert(samples.swaying_tube(), bone_kind="RIGID", root_bone=True, joint_hierarchy=True)
    _, found, expected, exact = there_and_back(ob, tmp_path, way)
    assert formats.largest_distance(found, expected) < exact


@pytest.mark.parametrize("kind", ["AFFINE", "RIGID"])
def test_affine_bones_need_all_bones_in_the_file(tmp_path, way, kind):
    """FBX keeps what carries a deforming bone in any case."""
    option = {"glb": "export_def_bones", "fbx": "use_armature_deform_only", "usdc": "only_deform_bones"}[way.ending]
    ob = samples.convert(samples.swaying_tube(), bone_kind=kind)
    _, found, expected, exact = there_and_back(ob, tmp_path, way, **{option: True})
    plays = kind == "RIGID" or way.ending == "fbx"
    assert (formats.largest_distance(found, expected) < exact) == plays


def test_fbx_animation_is_simplified_unless_told_otherwise(tmp_path):
    Way("fbx").check()
    ob = samples.convert(samples.swaying_tube(), bone_kind="RIGID")
    _, found, expected, exact = there_and_back(ob, tmp_path, Way("fbx"), bake_anim_simplify_factor=10.0)
    assert formats.largest_distance(found, expected) > 10 * exact


@pytest.mark.parametrize(("ending", "name"), [("glb", "_COR"), ("fbx", None), ("usdc", "rotation_center")])
def test_centers_of_rotation(tmp_path, ending, name):
    """The attribute travels in glTF and USD, and not in FBX."""
    way = Way(ending)
    way.check()
    ob, _ = skinned_meshes.rigged_tube()
    bpy.ops.skinning.bake_rotation_centers(sigma=0.3)
    bpy.ops.skinning.prepare_centers_for_export()
    stored = {key: vectors(ob, key) for key in ("_COR", "rotation_center")}
    path = formats.export(ob, tmp_path / f"tube.{ending}")
    imported = formats.reimport(path, bpy.context.scene.render.fps)
    if name is None:
        assert not set(stored) & set(imported.data.attributes.keys())
    else:
        found = vectors(imported, name)
        np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(stored[name], axis=0))


def vectors(ob, name: str) -> np.ndarray:
    """(N, 3)"""
    return np.array([value.vector for value in ob.data.attributes[name].data])
