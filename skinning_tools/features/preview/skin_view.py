# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned mesh as the preview has it: read once, drawn at every redraw in the pose of the moment.

Between redraws nothing of Blender's is held, only the session-wide number of the mesh object: an undo, another file or
the user may take the object away at any time.
"""

import dataclasses
import time

import bpy
import numpy as np

from ...blender.attributes import has_attribute, read_attribute
from ...blender.skin_reader import (
    Skin,
    armature_of,
    bone_matrices,
    bone_names,
    check_even_scale,
    read_arrays,
    read_skin,
)
from ...core.deform import METHODS, vertex_normals
from ...core.errors import BadScene
from ...ui.view_drawing import View
from ..centers.baking import bake_record, read_centers
from . import drawing, legend
from .buffers import VertexData
from .settings import LABELS

# Least time between two readings of the mesh, and how many times that of a reading itself.
REFRESH_SECONDS = 0.15
REFRESH_PATIENCE = 4.0

# The most where the mesh is painted, sculpted or edited.
WORKING_OPACITY = 0.35


class SkinView:
    """One mesh in one mode ("LBS", "DQS", "CRS").

    data: its arrays and GPU buffers; has_centers: whether it has baked centers that fit it; stale: it has been edited
    since it was read.
    """

    def __init__(self, context, object, mode: str):
        """Raises SkinningError where ``object`` cannot be previewed in this mode."""
        skin = read_skin(context, object)
        check_even_scale(object)
        self._take(skin)
        self._uid = object.session_uid
        self.set_mode(mode)

    def set_mode(self, mode: str) -> None:
        """Raises BadScene, and keeps the mode, where there are no centers of rotation for CRS."""
        if mode == "CRS" and not self.has_centers:
            raise BadScene(
                f"The {self._label} has no baked centers of rotation. Press Bake Centers first, "
                "or preview another method"
            )
        self.mode = mode

    def summary(self) -> str:
        """What is shown, in one line."""
        count, bones = len(self.data.rest), len(self.bone_names)
        return f"{self.name}: {LABELS[self.mode]} of {count:,} vertices and {bones:,} bones"

    def target(self):
        """The mesh object, whatever it is called by now; None where it is gone."""
        object = bpy.data.objects.get(self.name)
        if object is None or object.session_uid != self._uid:
            object = next((candidate for candidate in bpy.data.objects if candidate.session_uid == self._uid), None)
        if object is not None:
            self.name = object.name
        return object

    def is_changed_by(self, depsgraph) -> bool:
        """Whether the mesh itself is among what was updated, or the armature deforms by other bones since.

        An object whose armature is gone counts as changed.
        """
        object = self.target()
        if object is None:
            return False
        if any(update.id.original == object.data for update in depsgraph.updates):
            return True
        armature = armature_of(object)
        return armature is None or bone_names(object, armature) != self.bone_names

    def is_edited(self) -> bool:
        """Whether the mesh or its armature is in Edit Mode, where its data is not up to date."""
        object = self.target()
        armature = armature_of(object) if object is not None else None
        return any(ob is not None and ob.data.is_editmode for ob in (object, armature))

    def refresh(self) -> None:
        """Read the mesh again, later where it is being edited. Raises SkinningError where that cannot be."""
        object = self._existing_target()
        if self.is_edited():
            return
        skin = read_arrays(object)
        check_even_scale(object)
        self._take(skin)
        if self.mode == "CRS" and not self.has_centers:
            raise BadScene("The preview has ended: the baked centers of rotation are gone. Bake them again")

    def look(self, settings) -> drawing.Look:
        """What to draw by the settings of the panel; faintly while the mesh itself is worked on, below it."""
        object = self.target()
        working = object is not None and object.mode != "OBJECT"
        methods = METHODS if settings.side_by_side else (self.mode,)
        compared = settings.compared if settings.colors == "DISTANCE" else None
        if not self.has_centers:
            methods = tuple(method for method in methods if method != "CRS")
            compared = None if compared == "CRS" else compared
        return drawing.Look(
            methods=methods,
            compared=compared,
            color_range=settings.color_range,
            spacing=settings.spacing,
            offset=settings.offset,
            opacity=min(settings.opacity, WORKING_OPACITY) if working else settings.opacity,
            in_front=settings.in_front,
            flat=self._flat,
            show_centers=settings.show_centers,
        )

    def draw_view(self, context) -> None:
        """Raises BadScene where the object is gone."""
        found = self._shown_in(context)
        if found is None:
            return
        object, armature, depsgraph = found
        try:
            matrices = bone_matrices(dataclasses.replace(self._skin, object=object, armature=armature), depsgraph)
        except BadScene:
            # A bone was renamed or deleted; what that means, reading the mesh anew will tell.
            self.stale = True
            return
        drawing.draw(self.data, matrices, *self._seen(context, object, depsgraph))

    def draw_pixels(self, context) -> None:
        """Raises BadScene where the object is gone."""
        found = self._shown_in(context)
        if found is not None:
            object, _, depsgraph = found
            legend.draw(context, self.data, *self._seen(context, object, depsgraph))

    def _take(self, skin: Skin) -> None:
        start = time.perf_counter()
        centers, valid = (None, None) if bake_record(skin.object) is None else read_centers(skin.object)
        normals = vertex_normals(skin.rest, skin.triangles)
        self.data = VertexData.of(skin.rest, normals, skin.triangles, skin.bones, skin.weights, centers, valid)
        self.has_centers = centers is not None
        self.stale = False
        self.name, self._label = skin.object.name, skin.label
        self._flat = _mostly_flat(skin.object.data)
        # Of the skin only the names of the bones are asked for from here on: the buffers have the arrays.
        nothing = np.empty(0)
        self.bone_names = skin.bone_names
        self._skin = dataclasses.replace(
            skin, object=None, armature=None, rest=nothing, triangles=nothing, bones=nothing, weights=nothing
        )
        self.seconds_to_next_reading = max(REFRESH_SECONDS, REFRESH_PATIENCE * (time.perf_counter() - start))

    def _existing_target(self):
        object = self.target()
        if object is None:
            raise BadScene(f'The preview has ended: its object "{self.name}" was deleted')
        return object

    def _shown_in(self, context):
        """Mesh, armature and depsgraph, or None where this view does not show the preview."""
        object, space = self._existing_target(), context.space_data
        armature = armature_of(object)
        if armature is None:
            self.stale = True
            return None
        if context.view_layer.objects.get(object.name) != object or not object.visible_in_viewport_get(space):
            return None
        if not space.overlay.show_overlays:
            return None
        return object, armature, context.evaluated_depsgraph_get()

    def _seen(self, context, object, depsgraph) -> tuple[np.ndarray, View, drawing.Look]:
        """Where the mesh is in the world, from where it is seen, and what is drawn of it."""
        to_world = np.array(object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
        return to_world, View.of(context.region_data), self.look(context.window_manager.skinning_preview)


def _mostly_flat(mesh) -> bool:
    """Whether most faces are shaded flat."""
    if not mesh.polygons or not has_attribute(mesh, "sharp_face", "BOOLEAN", "FACE"):
        return False
    return bool(read_attribute(mesh, "sharp_face").mean() > 0.5)
