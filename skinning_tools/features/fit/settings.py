# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of fitting weights to a pose, kept with the scene, and what a posed copy remembers."""

import bpy
from bpy.props import BoolProperty, FloatVectorProperty, IntProperty, PointerProperty, StringProperty

from ...core.errors import BadSettings
from ...ui.settings import Settings, choice, influences, name, number, switch

SOURCES = (
    ("COPIES", "Posed Copies", "Copies of the mesh as it is posed, whose vertices you move"),
    ("OBJECT", "Other Object", "Another object with the same vertices, where it is in the scene, in the present pose"),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh at its full value, moved by the bones as they are posed"),
)
CANDIDATES = (
    ("OWN", "Own Bones", "Each vertex keeps to the bones that move it already"),
    ("NEAR", "Adjoining Bones", "The bones that move any of the vertices, and those next to them in the armature"),
    ("SELECTED", "Selected Bones", "The selected bones of the armature. Weights of others go, unless they are locked"),
    ("ALL", "All Bones", "All bones of the armature that deform"),
)
VERTICES = (
    ("MOVED", "Moved", "Vertices that are not where the pose puts them. All others keep their weights"),
    ("SELECTED", "Selected", "The selected vertices, whether they were moved or not"),
)


class FitSettings(Settings, stored="skinning_weight_fit"):
    source = choice("Shape From", SOURCES, "COPIES", tip="Where the vertices are as they should be in the pose")
    target = name("Object", tip="Object whose vertices are where they should be")
    shape_key = name(
        "Shape Key",
        tip="Shape key that moves the vertices to where they should be. Empty stands for the active one",
    )
    candidates = choice("Bones", CANDIDATES, "OWN", tip="The bones that may get weights")
    max_influences = influences(
        0,
        0,
        tip="Most bones that may move one vertex. 0 allows as many as some vertex of the mesh has",
        help="most bones of a vertex (default: as many as some vertex has)",
    )
    vertices = choice("Vertices", VERTICES, "MOVED", tip="The vertices that get new weights")
    threshold = number(
        "Threshold",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        precision=4,
        tip="Vertices that moved by no more than this keep their weights. 0 leaves out rounding only",
        flag="--threshold",
        metavar="D",
        help="vertices that are this close already keep their weights",
    )
    keep_copies = switch("Keep Copies", False, tip="Leave the posed copies in the scene, to go on with them")

    @classmethod
    def of(cls, owner) -> "FitSettings":
        """Those of the scene."""
        return cls(**cls.of_operator(owner))

    def check(self) -> None:
        """Raises BadSettings."""
        if self.max_influences < 0:
            raise BadSettings(f"The influence limit must not be negative, and is {self.max_influences}")
        if not self.threshold >= 0:
            raise BadSettings(f"The threshold must not be negative, and is {self.threshold:g}")


class SkinningWeightFit(bpy.types.PropertyGroup):
    """How the panel's button fits weights."""

    __annotations__ = FitSettings.group_annotations()


class SkinningFitCopy(bpy.types.PropertyGroup):
    """What a posed copy remembers; see ``posed_copies``. ``mesh`` is empty in all other objects."""

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
