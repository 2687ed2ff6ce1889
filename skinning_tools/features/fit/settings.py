# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of fitting weights to a pose, kept with the scene, and the data stored on a posed copy."""

import bpy
from bpy.props import BoolProperty, FloatVectorProperty, IntProperty, PointerProperty, StringProperty

from ...ui.settings import Setting, Settings, choice, count, influences, name, number, switch

SOURCES = (
    ("COPIES", "Posed Copies", "Copies of the posed mesh, whose vertices you move"),
    ("OBJECT", "Other Object", "Another object with the same vertices, at its place in the scene, in the present pose"),
    ("SHAPE_KEY", "Shape Key", "A shape key of the mesh at its full value, deformed by the present pose"),
)
CANDIDATES = (
    ("OWN", "Own Bones", "Each vertex keeps its present bones"),
    ("NEAR", "Adjoining Bones", "The bones that move any of the vertices, and the bones next to them in the armature"),
    (
        "SELECTED",
        "Selected Bones",
        "The selected bones of the armature. Weights of other bones are removed unless locked",
    ),
    ("ALL", "All Bones", "All deforming bones of the armature"),
)
VERTICES = (
    ("MOVED", "Moved", "Vertices that differ from the pose. All others keep their weights"),
    ("SELECTED", "Selected", "The selected vertices, moved or not"),
)


class FitSettings(Settings, stored="skinning_weight_fit"):
    source = choice("Shape From", SOURCES, "COPIES", tip="Where the target positions of the vertices come from")
    target = name("Object", tip="Object with the target positions of the vertices")
    shape_key = name(
        "Shape Key",
        tip="Shape key with the target positions of the vertices. If empty, the active shape key",
    )
    candidates = choice("Bones", CANDIDATES, "OWN", tip="The bones that may get weights")
    max_influences = influences(
        0,
        0,
        tip="Most bones that may move one vertex. 0 uses the present maximum of the mesh",
        help="most bones that may move one vertex (default: the present maximum of the mesh)",
    )
    vertices = choice("Vertices", VERTICES, "MOVED", tip="The vertices that get new weights")
    threshold = number(
        "Threshold",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        precision=4,
        tip="Vertices that moved by no more than this keep their weights. 0 ignores only rounding",
        flag="--threshold",
        metavar="D",
        help="vertices that are already this close keep their weights",
    )
    keep_copies = switch("Keep Copies", False, tip="Keep the posed copies in the scene to continue with them")

    @classmethod
    def of(cls, owner: "SkinningWeightFit") -> "FitSettings":
        """The settings of the scene."""
        return cls(**cls.of_operator(owner))


class DragSettings(Settings, stored="skinning_weight_fit"):
    candidates = FitSettings.candidates
    max_influences = FitSettings.max_influences
    radius = number(
        "Radius",
        0.0,
        least=0.0,
        subtype="DISTANCE",
        precision=3,
        tip="Vertices up to this far from the dragged one, along the edges of the mesh, follow it in part. 0 drags the "
        "vertex alone. While dragging, the mouse wheel changes it",
    )
    vertex = count("Vertex", 0, least=0, soft_most=None, tip="Index of the vertex to drag", kept=False)
    position = Setting(
        "FloatVector",
        "Position",
        "Where to drag the vertex in the present pose, in the world",
        (0.0, 0.0, 0.0),
        kept=False,
        more={"size": 3, "subtype": "TRANSLATION"},
    )


class SkinningWeightFit(bpy.types.PropertyGroup):
    """Settings of the panel's button."""

    __annotations__ = FitSettings.group_annotations() | {"radius": DragSettings.group_annotations()["radius"]}


class SkinningFitCopy(bpy.types.PropertyGroup):
    """The data stored on a posed copy; see ``posed_copies``. ``mesh`` is empty in all other objects."""

    __annotations__ = {
        "mesh": PointerProperty(name="Mesh", description="The mesh that was copied", type=bpy.types.Object),
        "active": PointerProperty(name="Active", description="Object that was active before", type=bpy.types.Object),
        "mode": StringProperty(name="Mode", description="Mode that the active object was in", default="OBJECT"),
        "hid_mesh": BoolProperty(name="Hid Mesh", description="The mesh was visible before"),
        "frame": IntProperty(name="Frame", description="The frame that the copy was made at"),
        "fingerprint": StringProperty(name="Fingerprint", description="Detects edits of the mesh"),
        "to_mesh": FloatVectorProperty(
            name="To Mesh", description="From the copy's space to the mesh object's", subtype="MATRIX", size=(4, 4)
        ),
    }


registry = [SkinningWeightFit, SkinningFitCopy]
pointers = {"Scene.skinning_weight_fit": SkinningWeightFit, "Object.skinning_fit_copy": SkinningFitCopy}
