# SPDX-License-Identifier: GPL-3.0-or-later
"""Files store choices as numbers: those that earlier versions wrote keep their meaning."""

import bpy
import pytest

import skinning_tools

pytestmark = pytest.mark.usefixtures("extension")

# Every choice that is kept in files. New items take new numbers; lines are added, never changed.
STORED = {
    "SkinningBindSettings.method": "DELAUNAY=0 POINT_TO_LINE=1 CONTAINMENT=2 RIGID=3 AUTOMATIC=4",
    "SkinningBindSettings.volume_kind": "CAPSULE=0 ELLIPSOID=1 BOX=2",
    "SkinningComponents.colors": "AMOUNT=0 DIRECTION=1",
    "SkinningCompressSettings.bits": "8=0 16=1",
    "SkinningConversionSettings.bone_kind": "AFFINE=0 SCALED=1 RIGID=2",
    "SkinningConversionSettings.method": "STANDARD=0 KAVAN2010=1",
    "SkinningConversionSettings.on_result": "KEEP=0 REPLACE=1 CONVERT=2",
    "SkinningConversionSettings.quality": "DRAFT=0 STANDARD=1 BEST=2",
    "SkinningEigenskinExample.kind": "EVALUATED=0 MESH=1 SHAPE_KEY=2 FRAMES=3",
    "SkinningExportSettings.engine": "THREE=0 UNITY=1 UNREAL=2 GODOT=3 OTHER=4",
    "SkinningExportSettings.file_format": "ENGINE=0 GLTF=1 FBX=2 USD=3",
    "SkinningGltfSettings.weights": "FLOAT=0 8=1 16=2",
    "SkinningJointHelpers.center": "BONE=0 CURSOR=1",
    "SkinningJointHelpers.kind": "LINKS=0 TWIST=1",
    "SkinningJointHelpers.measure": "BEND=0 TWIST=1 X=2 Z=3 RAISE=4 ACROSS=5 OUT=6",
    "SkinningJointHelpers.motion": "MOVE=0 SCALE=1 TURN=2",
    "SkinningJointHelpers.preset": (
        "BICEPS=0 CHEST=1 BELLY=2 CALF=3 CUSTOM=4 BREATHING=5 FAT=6 CLAVICLE=7 SCAPULA=8 CLOTH=9"
    ),
    "SkinningPartialHelpers.actions": "ALL=0 CURRENT=1 SELECTED=2 NLA=3",
    "SkinningPartialHelpers.bone_kind": "RIGID=0 SCALED=1 AFFINE=2",
    "SkinningPartialHelpers.own_weights": "KEEP=0 ADAPT=1",
    "SkinningPartialTransforms.bone_kind": "RIGID=0 SCALED=1 AFFINE=2",
    "SkinningPartialWeights.actions": "ALL=0 CURRENT=1 SELECTED=2 NLA=3",
    "SkinningPartitionSettings.output": "ATTRIBUTE=0 FACE_SETS=1 OBJECTS=2 NONE=3",
    "SkinningPreviewSettings.colors": "METHOD=0 DISTANCE=1",
    "SkinningPreviewSettings.compared": "LBS=0 DQS=1 CRS=2",
    "SkinningRotationCenterSettings.rest_shape": "BASIS=0 CURRENT=1",
    "SkinningShapeKeySettings.bone_kind": "RIGID=0",
    "SkinningShapeKeySettings.quality": "DRAFT=0 STANDARD=1",
    "SkinningTransferSettings.mirror": "NONE=0 POSITIVE_X=1 NEGATIVE_X=2",
    "SkinningWeightFit.candidates": "OWN=0 NEAR=1 SELECTED=2 ALL=3",
    "SkinningWeightFit.source": "COPIES=0 OBJECT=1 SHAPE_KEY=2",
    "SkinningWeightFit.vertices": "MOVED=0 SELECTED=1",
    "SkinningWeightView.mode": "BONES=0 COUNT=1 OFF=2",
    "SkinningWeightView.palette": "DISTINCT=0 COLOR_BLIND=1",
}


def groups(cls=bpy.types.PropertyGroup):
    for each in cls.__subclasses__():
        yield each
        yield from groups(each)


def test_stored_choices_keep_their_numbers():
    found = {}
    for group in groups():
        for name, declared in getattr(group, "__annotations__", {}).items():
            # Classes of an earlier registration in this process have no properties any more.
            prop = group.bl_rna.properties.get(name) if group.is_registered else None
            if group.__module__.startswith(f"{skinning_tools.__name__}.") and declared and prop and prop.type == "ENUM":
                items = sorted((item.value, item.identifier) for item in prop.enum_items)
                found[f"{group.__name__}.{name}"] = " ".join(f"{item}={number}" for number, item in items)
    assert found == STORED
