# SPDX-License-Identifier: GPL-3.0-or-later
"""The modifiers of a mesh whose effect is baked: what they are, and switching them off and on again."""

from dataclasses import dataclass

import bpy

from ...blender.center_records import modifier_record, native_modifier
from ...blender.preconditions import check_mode, check_own_mesh, check_visible, object_label, unmet
from ...blender.skin_reader import armature_modifier, armature_of, check_rig
from ...core.errors import BadMesh, BadScene

# On the mesh: see ``earlier_weights``.
EARLIER = "skinning_earlier_weights"

# Modifiers that move vertices by the shape or by other objects alone; not those that simulate.
_DEFORMING = {
    "CAST",
    "CORRECTIVE_SMOOTH",
    "CURVE",
    "DISPLACE",
    "HOOK",
    "LAPLACIANDEFORM",
    "LAPLACIANSMOOTH",
    "LATTICE",
    "MESH_DEFORM",
    "SHRINKWRAP",
    "SIMPLE_DEFORM",
    "SMOOTH",
    "SURFACE_DEFORM",
    "WARP",
}
_OTHER_VERTICES = {
    "ARRAY",
    "BEVEL",
    "BOOLEAN",
    "BUILD",
    "DECIMATE",
    "EDGE_SPLIT",
    "MASK",
    "MIRROR",
    "MULTIRES",
    "REMESH",
    "SCREW",
    "SKIN",
    "SOLIDIFY",
    "SUBSURF",
    "VOLUME_TO_MESH",
    "WELD",
    "WIREFRAME",
}
# What modifiers have that are bound to a mesh, or hooks to some of its vertices.
_BOUND = ("is_bind", "is_bound", "vertex_indices")


@dataclass(frozen=True)
class Switches:
    """What a bake has switched off, to switch it on again. names: of modifiers; viewport, render: where each was
    enabled. preserved: the modifier that preserved volume, "" for none; replaced: the Armature modifier that the
    modifier of centers had replaced, "" for none."""

    names: tuple[str, ...]
    viewport: tuple[bool, ...]
    render: tuple[bool, ...]
    preserved: str
    replaced: str


@dataclass(frozen=True, eq=False)
class Teacher:
    """mesh, armature: the objects. names: of the modifiers whose effect is baked. preserves: the Armature modifier
    preserves volume. centers: the modifier of centers of rotation is among them, in place of the Armature modifier."""

    mesh: bpy.types.Object
    armature: bpy.types.Object
    names: tuple[str, ...]
    preserves: bool
    centers: bool

    @property
    def by_index(self) -> bool:
        """Whether a modifier knows the vertices by their numbers, so that none of them may go."""
        modifiers = (self.mesh.modifiers[name] for name in self.names)
        return any(any(getattr(each, name, ()) for name in _BOUND) for each in modifiers)

    @property
    def what(self) -> str:
        """The effects by name, for people."""
        return ", ".join([*(["Preserve Volume"] if self.preserves else []), *self.names])

    def switch_off(self) -> Switches:
        """Switch the modifiers off in viewport and render, and return what is needed to switch them on again."""
        modifiers = [self.mesh.modifiers[name] for name in self.names]
        own = armature_modifier(self.mesh)
        replaced = own.name if self.centers and own is not None else ""
        switches = Switches(
            self.names,
            tuple(modifier.show_viewport for modifier in modifiers),
            tuple(modifier.show_render for modifier in modifiers),
            own.name if self.preserves and own is not None else "",
            replaced,
        )
        for modifier in modifiers:
            modifier.show_viewport = modifier.show_render = False
        if own is not None:
            own.use_deform_preserve_volume = False
            if replaced:
                own.show_viewport = own.show_render = True
        return switches


def switch_on(mesh_object: bpy.types.Object, switches: Switches) -> list[str]:
    """Undo ``Teacher.switch_off``, for the modifiers that still exist; returns what is on again."""
    modifiers, again = mesh_object.modifiers, []
    if switches.preserved in modifiers:
        modifiers[switches.preserved].use_deform_preserve_volume = True
        again.append("Preserve Volume")
    for name, viewport, render in zip(switches.names, switches.viewport, switches.render, strict=True):
        if name in modifiers:
            modifiers[name].show_viewport, modifiers[name].show_render = viewport, render
            again.append(name)
    if switches.replaced in modifiers:
        modifiers[switches.replaced].show_viewport = modifiers[switches.replaced].show_render = False
    return again


def _deforming_after(mesh_object: bpy.types.Object, first: bpy.types.Modifier | None) -> list[str]:
    """The names of the modifiers below ``first`` that deform the mesh. Raises BadMesh if one between them changes the
    vertices."""
    names, between = [], ""
    place = mesh_object.modifiers.find(first.name) if first is not None else -1
    for modifier in mesh_object.modifiers[place + 1 :]:
        if not modifier.show_viewport:
            continue
        if modifier.type in _OTHER_VERTICES:
            between = between or modifier.name
        elif modifier.type in _DEFORMING:
            if between:
                raise BadMesh(
                    f'The modifier "{between}" of {object_label(mesh_object)} changes its vertices before '
                    f'"{modifier.name}" deforms them. Move "{between}" below it, or disable it in the viewport'
                )
            names.append(modifier.name)
    return names


def teacher_of(context: bpy.types.Context, mesh_object: bpy.types.Object) -> Teacher:
    """What deforms the mesh beside the weights of its armature. Cheap enough for a panel.

    Raises BadScene, and BadMesh if a modifier between changes the vertices.
    """
    check_mode(mesh_object)
    check_visible(context.scene, context.view_layer, mesh_object)
    check_own_mesh(mesh_object, "its weights cannot be changed")
    check_rig(mesh_object)
    if EARLIER in mesh_object.data:
        raise BadScene(
            f"The deformers of {object_label(mesh_object)} were baked before. Press Restore Weights first, to bake "
            "them again"
        )
    armature = armature_of(mesh_object)
    assert armature is not None
    native, own = native_modifier(mesh_object), armature_modifier(mesh_object)
    centers = native is not None and native.show_viewport and modifier_record(native) is not None
    if own is not None and not own.show_viewport and not centers:
        raise unmet("MODIFIER_DISABLED", modifier=own.name, object=mesh_object)
    first: bpy.types.Modifier | None = native if centers else own
    names = [first.name] if centers and first is not None else []
    names += _deforming_after(mesh_object, first)
    preserves = own is not None and own.use_deform_preserve_volume and not centers
    if not names and not preserves:
        raise BadScene(
            f"Nothing but its weights deforms {object_label(mesh_object)} after the armature. Add the modifier to "
            "bake below the Armature modifier, such as Corrective Smooth, or enable Preserve Volume there"
        )
    return Teacher(mesh_object, armature, tuple(names), preserves, centers)
