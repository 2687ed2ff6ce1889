# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned mesh in the preview: read once, drawn at every redraw in the present pose.

Between redraws it keeps no reference to Blender's data, only the session-wide number of the mesh object: an undo,
another file or the user may remove the object at any time.
"""

import dataclasses
import time

import bpy
import numpy as np

from ...blender.attributes import has_attribute, read_attribute
from ...blender.center_records import BASIS
from ...blender.data_blocks import object_again
from ...blender.preconditions import unmet
from ...blender.skin_reader import (
    Skin,
    armature_of,
    bone_matrices,
    bone_names,
    check_even_scale,
    read_arrays,
    read_skin,
)
from ...blender.wording import counted, vertices_text
from ...core.deform import METHODS, vertex_normals
from ...core.errors import BadScene
from ...ui.view_drawing import View
from ..centers.baking import bake_record, read_centers, shape_of
from . import drawing, legend
from .buffers import VertexData
from .settings import LABELS, SkinningPreviewSettings

# Least time between two readings of the mesh, in seconds and relative to the time of a reading.
REFRESH_SECONDS = 0.15
REFRESH_PATIENCE = 4.0

# Largest opacity while the mesh is painted, sculpted or edited.
WORKING_OPACITY = 0.35


class SkinView:
    """One mesh in one mode ("LBS", "DQS", "CRS").

    data: its arrays and GPU buffers; has_centers: whether it has valid baked centers; stale: whether it has been edited
    since it was read.
    """

    name: str
    _skin: Skin
    _label: str

    def __init__(self, context: bpy.types.Context, mesh_object: bpy.types.Object | None, mode: str):
        """Raises SkinningError if ``mesh_object`` cannot be previewed in this mode."""
        skin = read_skin(context, mesh_object)
        check_even_scale(mesh_object)
        self._take(context, skin)
        self._uid = skin.object.session_uid
        self.set_mode(mode)

    def set_mode(self, mode: str) -> None:
        """Change the mode. Raises BadScene, and keeps the mode, if CRS has no centers of rotation."""
        if mode == "CRS" and not self.has_centers:
            raise unmet("NO_CENTERS", object=self._label, remedy="Press Bake Centers first, or preview another method")
        self.mode = mode

    def summary(self) -> str:
        """The previewed mesh and mode in one line."""
        count, bones = len(self.data.rest), len(self.bone_names)
        return f"{self.name}: {LABELS[self.mode]} of {vertices_text(count)} and {counted(bones, 'bone')}"

    def target(self) -> bpy.types.Object | None:
        """The mesh object, even if renamed; None if it is gone."""
        mesh_object = object_again(self.name, self._uid)
        if mesh_object is not None:
            self.name = mesh_object.name
        return mesh_object

    def is_changed_by(self, depsgraph: bpy.types.Depsgraph) -> bool:
        """Whether the mesh itself was updated, or the armature has other deforming bones since.

        An object whose armature is gone counts as changed.
        """
        mesh_object = self.target()
        if mesh_object is None:
            return False
        if any(update.id.original == mesh_object.data for update in depsgraph.updates):
            return True
        armature = armature_of(mesh_object)
        return armature is None or bone_names(mesh_object, armature) != self.bone_names

    def is_edited(self) -> bool:
        """Whether the mesh or its armature is in Edit Mode, in which its data is not up to date."""
        mesh_object = self.target()
        armature = armature_of(mesh_object) if mesh_object is not None else None
        return any(ob is not None and ob.data.is_editmode for ob in (mesh_object, armature))

    def refresh(self, context: bpy.types.Context) -> None:
        """Read the mesh again, or later if it is being edited. Raises SkinningError if it cannot be read."""
        mesh_object = self._existing_target()
        if self.is_edited():
            return
        skin = read_arrays(mesh_object)
        check_even_scale(mesh_object)
        self._take(context, skin)
        if self.mode == "CRS" and not self.has_centers:
            raise BadScene("The preview has ended: the baked centers of rotation are gone. Bake them again")

    def look(self, settings: SkinningPreviewSettings) -> drawing.Look:
        """The Look for the panel's settings; transparent while the user works on the mesh itself."""
        mesh_object = self.target()
        working = mesh_object is not None and mesh_object.mode != "OBJECT"
        methods: tuple[str, ...] = METHODS if settings.side_by_side else (self.mode,)
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

    def draw_view(self, context: bpy.types.Context) -> None:
        """Draw the preview. Raises BadScene if the object is gone."""
        found = self._shown_in(context)
        if found is None:
            return
        mesh_object, armature, depsgraph = found
        try:
            matrices = bone_matrices(dataclasses.replace(self._skin, object=mesh_object, armature=armature), depsgraph)
        except BadScene:
            # A bone was renamed or deleted: reading the mesh again reports the consequences.
            self.stale = True
            return
        drawing.draw(self.data, matrices, *self._seen(context, mesh_object, depsgraph))

    def draw_pixels(self, context: bpy.types.Context) -> None:
        """Draw the preview. Raises BadScene if the object is gone."""
        found = self._shown_in(context)
        if found is not None:
            mesh_object, _, depsgraph = found
            legend.draw(context, self.data, *self._seen(context, mesh_object, depsgraph))

    def _take(self, context: bpy.types.Context, skin: Skin) -> None:
        start = time.perf_counter()
        record = bake_record(skin.object)
        centers, valid = (None, None) if record is None else read_centers(skin.object)
        # The shape that the centers belong to.
        shape = shape_of(context, skin.object, BASIS if record is None else record.shape, skin.rest)
        skin = dataclasses.replace(skin, rest=shape)
        normals = vertex_normals(skin.rest, skin.triangles)
        self.data = VertexData.of(skin.rest, normals, skin.triangles, skin.bones, skin.weights, centers, valid)
        self.has_centers = centers is not None
        self.stale = False
        self.name, self._label = skin.object.name, skin.label
        self._flat = _mostly_flat(skin.object.data)
        # Only the bone names of the skin are needed from here on: the buffers have the arrays.
        nothing = np.empty(0)
        self.bone_names = skin.bone_names
        self._skin = dataclasses.replace(
            skin, object=None, armature=None, rest=nothing, triangles=nothing, bones=nothing, weights=nothing
        )
        self.seconds_to_next_reading = max(REFRESH_SECONDS, REFRESH_PATIENCE * (time.perf_counter() - start))

    def _existing_target(self) -> bpy.types.Object:
        mesh_object = self.target()
        if mesh_object is None:
            raise BadScene(f'The preview has ended: its object "{self.name}" was deleted')
        return mesh_object

    def _shown_in(
        self, context: bpy.types.Context
    ) -> tuple[bpy.types.Object, bpy.types.Object, bpy.types.Depsgraph] | None:
        """Mesh, armature and depsgraph, or None if this view does not show the preview."""
        mesh_object, space = self._existing_target(), context.space_data
        armature = armature_of(mesh_object)
        if armature is None:
            self.stale = True
            return None
        if context.view_layer.objects.get(mesh_object.name) != mesh_object or not mesh_object.visible_in_viewport_get(
            space
        ):
            return None
        if not space.overlay.show_overlays:
            return None
        return mesh_object, armature, context.evaluated_depsgraph_get()

    def _seen(
        self, context: bpy.types.Context, mesh_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph
    ) -> tuple[np.ndarray, View, drawing.Look]:
        """The mesh's world matrix, the view, and the look for drawing."""
        to_world = np.array(mesh_object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
        return to_world, View.of(context.region_data), self.look(context.window_manager.skinning_preview)


def _mostly_flat(mesh: bpy.types.Mesh) -> bool:
    """Whether most faces are shaded flat."""
    if not mesh.polygons or not has_attribute(mesh, "sharp_face", "BOOLEAN", "FACE"):
        return False
    return bool(read_attribute(mesh, "sharp_face").mean() > 0.5)
