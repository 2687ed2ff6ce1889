# SPDX-License-Identifier: GPL-3.0-or-later
"""How weights are fitted to a pose, kept with the scene, and what a posed copy remembers.

An operator takes from the scene's settings what its caller did not give when it is invoked from the interface; from
Python only the arguments and the defaults below count.
"""

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...ui.common_settings import influences_property

SOURCE_ITEMS = (
    ("COPIES", "Posed Copies", "Copies of the mesh as it is posed, whose vertices you move"),
    ("OBJECT", "Other Object", "Another object with the same vertices, where it is in the scene, in the present pose"),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh at its full value, moved by the bones as they are posed"),
)
CANDIDATE_ITEMS = (
    ("OWN", "Own Bones", "Each vertex keeps to the bones that move it already"),
    ("NEAR", "Adjoining Bones", "The bones that move any of the vertices, and those next to them in the armature"),
    ("SELECTED", "Selected Bones", "The selected bones of the armature. Weights of others go, unless they are locked"),
    ("ALL", "All Bones", "All bones of the armature that deform"),
)
VERTEX_ITEMS = (
    ("MOVED", "Moved", "Vertices that are not where the pose puts them. All others keep their weights"),
    ("SELECTED", "Selected", "The selected vertices, whether they were moved or not"),
)

SETTING_NAMES = (
    "source",
    "target",
    "shape_key",
    "candidates",
    "max_influences",
    "vertices",
    "threshold",
    "keep_copies",
)


def setting_annotations(limit: str) -> dict:
    """The fit's properties. limit: "min" for the panel, "soft_min" for the operator, which refuses with a message."""
    return {
        "source": EnumProperty(
            name="Shape From",
            description="Where the vertices are as they should be in the pose",
            items=SOURCE_ITEMS,
            default="COPIES",
            options={"SKIP_SAVE"},
        ),
        "target": StringProperty(
            name="Object", description="Object whose vertices are where they should be", options={"SKIP_SAVE"}
        ),
        "shape_key": StringProperty(
            name="Shape Key",
            description="Shape key that moves the vertices to where they should be. Empty stands for the active one",
            options={"SKIP_SAVE"},
        ),
        "candidates": EnumProperty(
            name="Bones",
            description="The bones that may get weights",
            items=CANDIDATE_ITEMS,
            default="OWN",
            options={"SKIP_SAVE"},
        ),
        "max_influences": influences_property(
            limit,
            "Most bones that may move one vertex. 0 allows as many as some vertex of the mesh has",
            default=0,
            least=0,
        ),
        "vertices": EnumProperty(
            name="Vertices",
            description="The vertices that get new weights",
            items=VERTEX_ITEMS,
            default="MOVED",
            options={"SKIP_SAVE"},
        ),
        "threshold": FloatProperty(
            name="Threshold",
            description="Vertices that moved by no more than this keep their weights. 0 leaves out rounding only",
            subtype="DISTANCE",
            default=0.0,
            precision=4,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "keep_copies": BoolProperty(
            name="Keep Copies",
            description="Leave the posed copies in the scene, to go on with them",
            default=False,
            options={"SKIP_SAVE"},
        ),
    }


class SkinningWeightFit(bpy.types.PropertyGroup):
    """How the panel's button fits weights."""

    __annotations__ = setting_annotations("min")


class SkinningFitCopy(bpy.types.PropertyGroup):
    """What a posed copy remembers; see features.fit.fit_copies. ``mesh`` is empty in all other objects."""

    __annotations__ = {
        "mesh": PointerProperty(name="Mesh", description="The mesh that the copy was made of", type=bpy.types.Object),
        "active": PointerProperty(name="Active", description="Object that was active before", type=bpy.types.Object),
        "mode": StringProperty(name="Mode", description="Mode that the active object was in", default="OBJECT"),
        "hid_mesh": BoolProperty(name="Hid Mesh", description="The mesh was visible before"),
        "frame": IntProperty(name="Frame", description="The frame that the copy was made at"),
        "fingerprint": StringProperty(name="Fingerprint", description="Tells whether the mesh was edited since"),
        "to_mesh": FloatVectorProperty(
            name="To Mesh", description="From the copy's space to the mesh object's", subtype="MATRIX", size=(4, 4)
        ),
    }


registry = [SkinningWeightFit, SkinningFitCopy]


def register() -> None:
    bpy.types.Scene.skinning_weight_fit = PointerProperty(type=SkinningWeightFit)
    bpy.types.Object.skinning_fit_copy = PointerProperty(type=SkinningFitCopy)


def unregister() -> None:
    del bpy.types.Object.skinning_fit_copy
    del bpy.types.Scene.skinning_weight_fit
