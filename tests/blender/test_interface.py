# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the whole interface: every button and setting has a tooltip, messages fit into a popup, and menu entries
are added and removed."""

import re
from types import SimpleNamespace

import bpy
import pytest

import skinning_tools
from skinning_tools.blender import background
from skinning_tools.blender.wording import in_two_lines
from skinning_tools.features import FEATURES
from skinning_tools.ui import manual, menus
from skinning_tools.ui.jobs import SkinningJob
from tests.blender import moving_meshes, panel_recorder, scenes
from tests.blender.binding_scenes import tube

pytestmark = pytest.mark.usefixtures("extension")


def classes():
    return [cls for module in skinning_tools._modules() for cls in getattr(module, "registry", ())]


def own_properties():
    """Name, property and owner of everything that the extension's classes define."""
    for cls in classes():
        if issubclass(cls, (bpy.types.Operator, bpy.types.PropertyGroup)):
            for prop in cls.bl_rna.properties:
                if prop.identifier not in {"rna_type", "name", "bl_idname"} and not prop.identifier.startswith("bl_"):
                    yield f"{cls.__name__}.{prop.identifier}", prop


# Of Blender's own mix-ins, and what no panel shows: the row of a list, the color in its icon.
UNSEEN = {"remove_name", "remove_active", "active_index", "rgb"}


def test_every_setting_has_a_tooltip():
    silent = [
        name
        for name, prop in own_properties()
        if not prop.description and not prop.is_hidden and prop.type not in {"POINTER", "COLLECTION"}
        if prop.identifier not in UNSEEN
    ]
    assert silent == []


def test_every_item_of_a_menu_of_settings_has_a_tooltip():
    silent = [
        f"{name} {item.identifier}"
        for name, prop in own_properties()
        if prop.type == "ENUM"
        for item in prop.enum_items_static
        if not item.description
    ]
    assert silent == []


def tooltips() -> dict[str, str]:
    """The texts that Blender shows for each operator."""
    names = [cls.bl_idname.split(".")[-1] for cls in classes() if issubclass(cls, bpy.types.Operator)]
    return {name: getattr(bpy.ops.skinning, name).get_rna_type().description for name in names}


def test_every_operator_has_a_tooltip():
    found = tooltips()
    assert len(found) > 20
    assert [name for name, text in found.items() if not text] == []


def test_tooltips_follow_blenders_guidelines():
    """No full stop at the end, and no line breaks, which a tooltip shows, but between sentences."""
    texts = tooltips() | {name: prop.description for name, prop in own_properties()}
    assert [name for name, text in texts.items() if text.endswith(".")] == []
    assert [name for name, text in texts.items() if re.search(r"[^.]\n", text)] == []


def test_panels_and_menus_have_labels():
    for cls in classes():
        if issubclass(cls, (bpy.types.Panel, bpy.types.Menu, bpy.types.Operator)):
            assert cls.bl_label, cls.__name__


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Nothing moves", ["Nothing moves"]),
        ("The mesh is hidden. Show it", ["The mesh is hidden.", "Show it"]),
        (
            "The cache of flag.001 ends at frame 12.5, too soon. It is baked. Delete its bake",
            ["The cache of flag.001 ends at frame 12.5, too soon.", "Delete its bake"],
        ),
    ],
)
def test_long_texts_break_into_two_lines(text, lines):
    assert in_two_lines(text).split("\n") == lines


def test_long_lines_are_cut():
    lines = in_two_lines(f"The path {'very ' * 40}long is missing. Correct {'all ' * 40}of it").split("\n")
    assert len(lines) == 2
    assert all(len(line) <= 90 and line.endswith("…") for line in lines)


def test_scripts_get_the_whole_message():
    moving_meshes.fresh_scene()
    moving_meshes.add_object("Still", *moving_meshes.grid())
    with pytest.raises(
        RuntimeError, match=r"Nothing moves.*Check the frame range, or that the animation is on the mesh"
    ):
        bpy.ops.skinning.convert_animation(bone_count=2)
    assert background.last_failure("Convert Animation to Skinning") is None


def test_failures_are_kept_until_the_next_job():
    background.note_failure(background.Failure("Bind", "It does not work"))
    assert background.last_failure("Bind", "Other").text == "It does not work"
    assert background.last_failure("Other") is None
    background.end_job(background.begin_job("Bind"))
    assert background.last_failure("Bind") is None


def test_a_failure_is_forgotten_with_its_file():
    background.note_failure(background.Failure("Bind", "It does not work"))
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    assert background.last_failure("Bind") is None


def test_the_failure_of_each_job_is_in_one_panel():
    titles = sorted(title for cls in classes() for title in getattr(cls, "titles", ()))
    assert len(set(titles)) == len(titles)
    operators = [cls for cls in classes() if issubclass(cls, bpy.types.Operator)]
    assert set(titles) <= {cls.bl_label for cls in operators}
    assert {cls.bl_label for cls in operators if issubclass(cls, SkinningJob)} <= set(titles)


def test_panels_show_the_failures_of_their_operators():
    tube()
    bpy.ops.skinning.bind(method="POINT_TO_LINE")
    shown = []
    for panel in classes():
        for title in getattr(panel, "titles", ()):
            background.note_failure(background.Failure(title, "It does not work"))
            assert "It does not work" in panel_recorder.drawn(panel).texts, title
            shown.append(panel)
    assert len(set(shown)) == 14


def test_progress_is_in_the_panel_of_its_operator_alone():
    tube()
    job = background.begin_job("Bind")
    try:
        found = {cls.bl_label: panel_recorder.drawn(cls) for cls in classes() if getattr(cls, "titles", ())}
    finally:
        background.end_job(job)
    assert [label for label, layout in found.items() if "Cancel (Esc)" in layout.buttons] == ["Bind"]
    others = {label for label, layout in found.items() if "Bind is running" in layout.texts}
    assert {"Convert Animation", "Transfer Weights", "Weights"} <= others
    assert "Bind" not in others


def test_notes_of_a_result_stay_in_the_panel_of_its_operator():
    pressed = SimpleNamespace(bl_label="Bind", options=SimpleNamespace(is_invoke=True))
    SkinningJob.leave_notes(pressed, SimpleNamespace(notes=("one part is loose", "two bones are left out")))
    panel = next(cls for cls in classes() if "Bind" in getattr(cls, "titles", ()))
    texts = panel_recorder.drawn(panel).texts
    assert texts[texts.index("One part is loose") + 1] == "Two bones are left out"
    background.forget_failure()
    called = SimpleNamespace(bl_label="Bind", options=SimpleNamespace(is_invoke=False))
    SkinningJob.leave_notes(called, SimpleNamespace(notes=("one part is loose",)))
    assert background.last_failure("Bind") is None


def test_a_failure_leads_to_its_entry_of_the_manual(tmp_path, monkeypatch):
    monkeypatch.setattr(manual, "FOLDER", tmp_path)
    background.note_failure(background.Failure("Bind", "It does not work", "NO_VERTICES"))
    panel = next(cls for cls in classes() if "Bind" in getattr(cls, "titles", ()))
    assert "wm.url_open" not in panel_recorder.drawn(panel).buttons, "a checkout has no pages"
    (tmp_path / "troubleshooting.html").touch()
    assert manual.page_address("troubleshooting.md", "NO_VERTICES").endswith("/troubleshooting.html#NO_VERTICES")
    assert "wm.url_open" in panel_recorder.drawn(panel).buttons


OWN_MENUS = {cls.bl_idname for cls in menus.registry}
# Menus of Blender that have an entry of the extension, or its submenu.
MENUS = {name for feature in FEATURES for name in feature.menus} - OWN_MENUS | {
    owner for cls in menus.registry for owner in getattr(cls, "owners", ())
}


def drawn(menu: str) -> int:
    return len(getattr(bpy.types, menu).draw._draw_funcs)


def test_menu_entries_come_and_go():
    counts = {name: drawn(name) for name in MENUS}
    skinning_tools.unregister()
    try:
        assert {name: drawn(name) for name in MENUS} == {name: count - 1 for name, count in counts.items()}
    finally:
        skinning_tools.register()
    assert {name: drawn(name) for name in MENUS} == counts


def test_the_key_of_the_pie_menu_comes_and_goes():
    def keys() -> list[str]:
        keymap = bpy.context.window_manager.keyconfigs.addon.keymaps["3D View"]
        return [item.properties.name for item in keymap.keymap_items if item.idname == "wm.call_menu_pie"]

    if bpy.context.window_manager.keyconfigs.addon is None:
        pytest.skip("Blender without a window has no key maps here")
    assert keys() == [menus.PIE]
    skinning_tools.unregister()
    try:
        assert keys() == []
    finally:
        skinning_tools.register()
    assert keys() == [menus.PIE]


PRESET_KINDS = ("bind", "conversion", "eigenskin", "smooth")
# Buttons beside something that only the panel shows: an example, a result, a row of a list.
ONLY_IN_PANELS = {
    *(f"{verb}_{kind}_preset" for verb in ("add", "apply") for kind in PRESET_KINDS),
    "eigenskin_apply_pose", "eigenskin_remove_example",
    "select_result", "select_rogue_weights", "select_transferred", "show_fit_copy", "suggest_bones",
    "use_result_settings"
}  # fmt: skip


def test_the_menu_search_finds_every_operator():
    in_menus = {name for feature in FEATURES for names in feature.menus.values() for name in names}
    modules = [module for feature in FEATURES for module in feature.operators]
    operators = {cls.bl_idname for module in modules for cls in module.registry if issubclass(cls, bpy.types.Operator)}
    assert in_menus <= operators
    assert {name.removeprefix("skinning.") for name in operators - in_menus} == ONLY_IN_PANELS


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_the_pie_menu_has_eight_operators_of_the_mode(mode):
    scenes.empty_scene()
    bpy.ops.object.armature_add()
    bpy.ops.object.mode_set(mode=mode)
    buttons = panel_recorder.drawn(menus.SKINNING_MT_pie).buttons
    assert len(set(buttons)) == 8
    assert ("skinning.add_bone_links" in buttons) == (mode == "POSE")
    bpy.ops.object.mode_set(mode="OBJECT")


# Blender's own mix-in for files of presets; what writes other files; what only the interface shows; the job that runs.
WITHOUT_UNDO = {
    *(f"add_{kind}_preset" for kind in PRESET_KINDS),
    "cancel_job", "dismiss_failure", "preview", "show_eigenskin_components", "show_reachable",
    "show_segments", "export_character", "save_slider_table", "save_helper_table", "save_weight_table",
}  # fmt: skip


def test_every_operator_that_changes_the_file_is_an_undo_step():
    operators = [cls for cls in classes() if issubclass(cls, bpy.types.Operator)]
    without = {cls.bl_idname.removeprefix("skinning.") for cls in operators if "UNDO" not in cls.bl_options}
    assert without == WITHOUT_UNDO
