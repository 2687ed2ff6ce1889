# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of all conversions of the file, and what can be done with the chosen one."""

import bpy
from bpy.props import IntProperty

from ....blender import background
from ....blender.conversion_figures import REPORT_PROPERTY
from ....blender.conversions import conversions, index_of_conversion, places_of_conversions, result_of
from ....blender.visibility import make_active
from ....ui.drawing import SidebarPanel, named_row


class SKINNING_UL_conversions(bpy.types.UIList):
    """Of all objects of the file, those that stand for a conversion"""

    bl_idname = "SKINNING_UL_conversions"

    def draw_item(self, context, layout, data, item, icon, active_data, active_property):
        figures = item[REPORT_PROPERTY]
        columns = layout.row()
        columns.active = item.visible_get()
        name = columns.split(factor=0.4)
        name.label(text=item.name)
        for text in conversion_cells(figures):
            name.label(text=text)

    def filter_items(self, context, data, property):
        objects = getattr(data, property)
        places, bit = places_of_conversions(), self.bitflag_filter_item
        found = [objects[place] for place in places]
        named = self.filter_name and bpy.types.UI_UL_list.filter_items_by_name(self.filter_name, bit, found, "name")
        shown = [0] * len(objects)
        for place, flag in zip(places, named or [bit] * len(places), strict=True):
            shown[place] = flag
        return shown, []


def conversion_cells(figures) -> tuple[str, str, str]:
    """E_RMS, bones and seconds of a conversion in a row of the list."""
    seconds = sum(figures["seconds"].values())
    return (
        f"{figures['e_rms']:.2f}",
        f"{figures['bone_count']}",
        f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s",
    )


class SKINNING_PT_conversions(SidebarPanel, bpy.types.Panel):
    bl_label = "Conversions"
    bl_idname = "SKINNING_PT_conversions"

    @classmethod
    def poll(cls, context):
        return bool(conversions())

    def draw(self, context):
        layout = self.layout
        layout.enabled = background.running_job() is None
        heads = layout.split(factor=0.4)
        heads.label(text="Armature")
        for text in ("E_RMS", "Bones", "Time"):
            heads.label(text=text)
        layout.template_list(
            SKINNING_UL_conversions.bl_idname,
            "",
            bpy.data,
            "objects",
            context.scene,
            "skinning_conversion_index",
            rows=3,
        )
        result = result_of(context.view_layer.objects.active)
        if result is None:
            return
        row = named_row(layout, "Show")
        for show, label in (("SOURCE", "Source"), ("RESULT", "Result"), ("BOTH", "Both")):
            row.operator("skinning.compare_result", text=label, depress=shown_of(result) == show).show = show
        column = layout.column(align=True)
        row = column.row(align=True).split(factor=0.65, align=True)
        row.operator("skinning.convert_again", icon="FILE_REFRESH")
        row.operator("skinning.convert_again", text="Replace").replace = True
        column.operator("skinning.use_result_settings", icon="COPYDOWN")
        column.operator("skinning.delete_result", icon="TRASH")


def shown_of(result) -> str:
    """Which of operators.results.SHOWN is what the view layer shows, "" where none is."""
    sources, meshes = (any(ob.visible_get() for ob in objects) for objects in (result.sources, result.meshes))
    return {(True, True): "BOTH", (True, False): "SOURCE", (False, True): "RESULT"}.get((sources, meshes), "")


def _chosen(scene) -> int:
    return index_of_conversion(bpy.context.view_layer.objects.active)


def _choose(scene, index: int) -> None:
    """Make the conversion's object the active one, as its row was clicked."""
    if bpy.context.mode in {"OBJECT", "POSE"} and 0 <= index < len(bpy.data.objects):
        make_active(bpy.context, bpy.data.objects[index])


registry = [SKINNING_UL_conversions, SKINNING_PT_conversions]


def register() -> None:
    bpy.types.Scene.skinning_conversion_index = IntProperty(
        name="Conversion",
        description="The conversion whose object is the active one",
        get=_chosen,
        set=_choose,
        options={"SKIP_SAVE"},
    )


def unregister() -> None:
    del bpy.types.Scene.skinning_conversion_index
