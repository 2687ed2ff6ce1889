# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of an EigenSkin, Pose Joints, the build, and what is done with the corrections afterwards."""

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from ...blender import error_display
from ...blender.bone_selection import named_bones
from ...blender.character import armature_at, character_of, target_mesh
from ...blender.job_checks import active_object
from ...blender.preconditions import check_mode
from ...blender.wording import counted
from ...core.errors import BadScene, SkinningError
from ...ui.boundary import Checked, Immediate
from ...ui.jobs import AtOnce, SkinningJob, WithSettings
from ...ui.settings import RANGE_NAMES
from . import bake, build, example_mirror, example_pose, example_sources, joint_poses, writer
from .examples import check_storable, remove_example
from .record import check_present
from .settings import (
    KIND_ITEMS,
    BakeSettings,
    BuildSettings,
    ExampleSettings,
    FrameSettings,
    MirrorSettings,
    PoseRange,
    RemovalSettings,
)

SOURCES = tuple(item for item in KIND_ITEMS if item[0] != "FRAMES")
HEAT_MAPS = (
    ("BEFORE", "Before", "Largest distance of each vertex from the examples by plain linear blending"),
    ("AFTER", "After", "Largest distance of each vertex from the examples with the corrections"),
    ("OFF", "Off", "Show the mesh's materials again"),
)


class SKINNING_OT_eigenskin_add_example(Immediate, bpy.types.Operator):
    """Store the present pose together with its right shape"""

    bl_idname = "skinning.eigenskin_add_example"
    bl_label = "Add Example"

    source: EnumProperty(
        name="Shape", description="Where the right shape is", items=SOURCES, default="EVALUATED", options={"SKIP_SAVE"}
    )
    name: StringProperty(
        name="Name", description="The example's name. Empty names it by the joint that is posed", options={"SKIP_SAVE"}
    )
    shape_key: StringProperty(
        name="Shape Key", description="The shape key to take. Empty stands for the active one", options={"SKIP_SAVE"}
    )

    require = staticmethod(example_sources.check_addable)

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "source")
        layout.prop(self, "name")
        object = target_mesh(context)
        keys = object.data.shape_keys if object is not None else None
        if self.source == "SHAPE_KEY" and keys is not None:
            layout.prop_search(self, "shape_key", keys, "key_blocks")

    def act(self, context, object):
        added = example_sources.add_example(context, object, self.source, self.name, self.shape_key)
        return added.summary(context.scene)


class SKINNING_OT_eigenskin_add_frames(Checked, SkinningJob, bpy.types.Operator):
    """Store pose and shape of every frame that poses a joint. The shape is another selected mesh's, or its own"""

    bl_idname = "skinning.eigenskin_add_frames"
    bl_label = "Add Examples from Frames"

    settings = FrameSettings
    require = staticmethod(example_sources.check_addable)
    work = staticmethod(example_sources.add_frames)

    def prepare(self, context):
        """As for any job, but the range of the marked poses takes the place of the scene's."""
        armature = armature_at(active_object(context))
        of_scene = armature.skinning_eigenskin.use_scene_range
        self.settings.fill(self, context.scene, armature, but=RANGE_NAMES if of_scene else ())
        whole = example_sources.default_range(context.scene, self.use_markers)
        for name, value in zip(RANGE_NAMES, whole, strict=True):
            if not self.properties.is_property_set(name):
                setattr(self, name, value)

    def finish(self, context, result):
        return result.summary(context.scene)


class _TakesExample(WithSettings, Immediate):
    """Mix-in of what works on an example of the active armature."""

    @staticmethod
    def require(context, object):
        """The armature that is active or deforms the active mesh. Raises BadScene where it has no examples."""
        armature = armature_at(object)
        if armature is None:
            raise BadScene("Select an armature, or a mesh that it deforms")
        if not armature.skinning_eigenskin.examples:
            raise BadScene(f'The armature "{armature.name}" has no examples. Add poses with their right shapes first')
        return armature

    def example_index(self, armature) -> int:
        group = armature.skinning_eigenskin
        index = group.active_index if self.index == -1 else self.index
        if not 0 <= index < len(group.examples):
            raise BadScene(
                f'There is no example {index} of "{armature.name}", which has {len(group.examples)}. '
                "Choose one in the list"
            )
        return index


class SKINNING_OT_eigenskin_remove_example(_TakesExample, bpy.types.Operator):
    """Remove an example from the list, with its shape"""

    bl_idname = "skinning.eigenskin_remove_example"
    bl_label = "Remove Example"

    settings = RemovalSettings

    def act(self, context, object):
        armature = self.require(context, object)
        check_storable(armature)
        examples = armature.skinning_eigenskin.examples
        if self.remove_all:
            text = counted(len(examples), "example")
            while examples:
                remove_example(armature, len(examples) - 1)
        else:
            index = self.example_index(armature)
            text = f'example "{examples[index].name}"'
            remove_example(armature, index)
        return f"{armature.name}: {text} removed, {len(examples)} left"


class SKINNING_OT_eigenskin_apply_pose(_TakesExample, bpy.types.Operator):
    """Pose the armature as the example was stored with"""

    bl_idname = "skinning.eigenskin_apply_pose"
    bl_label = "Show Pose"

    settings = ExampleSettings

    def act(self, context, object):
        armature = self.require(context, object)
        item = armature.skinning_eigenskin.examples[self.example_index(armature)]
        strayed = example_pose.apply_pose(context, armature, item)
        if not strayed:
            return f'{armature.name}: posed as in "{item.name}"'
        more = f" and {len(strayed) - 1} more joints" if len(strayed) > 1 else ""
        self.report(
            {"WARNING"},
            f'"{strayed[0]}"{more} cannot be posed as in "{item.name}": constraints, drivers or properties of the rig '
            "move them",
        )
        return ""


class SKINNING_OT_eigenskin_mirror(AtOnce, bpy.types.Operator):
    """Make examples of one side of the body from those of the other. Older ones of the same poses are replaced"""

    bl_idname = "skinning.eigenskin_mirror"
    bl_label = "Mirror Examples"

    settings = MirrorSettings
    require = staticmethod(example_sources.check_addable)
    work = staticmethod(example_mirror.mirror_examples)


class SKINNING_OT_eigenskin_pose_joints(WithSettings, Immediate, bpy.types.Operator):
    """Key each selected bone through its range, one at a time, for a simulation or a sculptor to fill in the shapes"""

    bl_idname = "skinning.eigenskin_pose_joints"
    bl_label = "Pose Joints"

    settings = PoseRange

    bone_names: StringProperty(
        name="Bones",
        description="Names of the bones, separated by commas. Empty stands for the selected ones",
        options={"SKIP_SAVE", "HIDDEN"},
    )

    @staticmethod
    def require(context, object):
        if armature_at(object) is None:
            raise BadScene("There is no active armature. Select the bones to pose in Pose Mode")

    def invoke(self, context, event):
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.row(heading="Axes").prop(self, "axes", text="", toggle=True)
        column = layout.column(align=True)
        column.prop(self, "angle_min")
        column.prop(self, "angle_max")
        for name in ("use_limits", "steps", "frames_per_pose", "hold_frames", "frame_start"):
            layout.prop(self, name)
        layout.label(text=self.outcome(context), icon="INFO")

    def outcome(self, context) -> str:
        """What the present settings make, for the dialog: where each pose ends up on the timeline is hard to guess."""
        try:
            count, last = joint_poses.planned_poses(*self._chosen(active_object(context)))
        except SkinningError as error:
            return str(error)
        return f"{counted(count, 'pose')}, the last frame is {last}"

    def act(self, context, object):
        return joint_poses.pose_joints(context, *self._chosen(object)).summary()

    def _chosen(self, object) -> tuple:
        """The armature, the names of its bones, and how to turn them."""
        armature = armature_at(object)
        return armature, named_bones(armature, self.bone_names), PoseRange(**self.settings.of_operator(self))


class SKINNING_OT_build_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Make shape keys, driven by the pose, that correct the mesh as the examples show. Those of the last build go"""

    bl_idname = "skinning.build_eigenskin"
    bl_label = "Build EigenSkin"

    settings = BuildSettings
    require = staticmethod(build.check_buildable)
    work = staticmethod(build.build)

    def prepare(self, context):
        self.settings.fill(self, context.scene, armature_at(active_object(context)))

    def finish(self, context, result):
        return result.summary(context.scene)


class _OnCorrectedMesh(Immediate):
    """Mix-in of what works on a mesh that has corrections. Subclasses define ``change(context, object)``, which takes
    that mesh and returns what to tell, if anything."""

    @staticmethod
    def require(context, object):
        if object is not None and object.type == "ARMATURE":
            object = character_of(context, object)
        check_present(object)
        check_mode(object)

    def act(self, context, object):
        object = target_mesh(context)
        text = self.change(context, object)
        return f"{object.name}: {text}" if text else ""


class SKINNING_OT_remove_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the corrections with all that they added to the mesh. The examples stay"""

    bl_idname = "skinning.remove_eigenskin"
    bl_label = "Remove EigenSkin"

    def change(self, context, object):
        if error_display.shows_colors(object):
            error_display.show_colors(context, False)
        build.remove(object)
        return "corrections removed, examples kept"


class SKINNING_OT_mute_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Switch the corrections off without removing them, and on again"""

    bl_idname = "skinning.mute_eigenskin"
    bl_label = "Mute EigenSkin"

    mute: BoolProperty(name="Mute", description="Off if set, on if not", default=True, options={"SKIP_SAVE"})

    def change(self, context, object):
        writer.mute_eigenskin(object, self.mute)
        return f"corrections {'muted' if self.mute else 'on'}"


class SKINNING_OT_bake_eigenskin(Checked, SkinningJob, bpy.types.Operator):
    """Key the corrections' values at each frame, for exporters and engines that know no drivers, which are muted.
    glTF: Animation Mode Active Actions puts them into one clip with the bones"""

    bl_idname = "skinning.bake_eigenskin"
    bl_label = "Bake EigenSkin to Keyframes"

    settings = BakeSettings
    require = staticmethod(bake.check_bakeable)
    work = staticmethod(bake.bake_to_keyframes)


class SKINNING_OT_unbake_eigenskin(_OnCorrectedMesh, bpy.types.Operator):
    """Remove the keyframes of the corrections and let the drivers play again"""

    bl_idname = "skinning.unbake_eigenskin"
    bl_label = "Remove EigenSkin Keyframes"

    def change(self, context, object):
        bake.unbake(object)
        return "the drivers play the corrections again"


class SKINNING_OT_show_eigenskin_error(_OnCorrectedMesh, bpy.types.Operator):
    """Show in color how far each vertex is from the examples: blue for none, red for the most before correction"""

    bl_idname = "skinning.show_eigenskin_error"
    bl_label = "Show EigenSkin Error"

    shown: EnumProperty(name="Shown", items=HEAT_MAPS, default="AFTER", options={"SKIP_SAVE"})

    def change(self, context, object):
        if self.shown == "OFF":
            error_display.remove_error_colors(object)
            error_display.show_colors(context, False)
            return ""
        scale = build.show_heat_map(object, self.shown)
        error_display.show_colors(context, True)
        return scale.meaning(context)


registry = [
    SKINNING_OT_eigenskin_add_example,
    SKINNING_OT_eigenskin_add_frames,
    SKINNING_OT_eigenskin_remove_example,
    SKINNING_OT_eigenskin_apply_pose,
    SKINNING_OT_eigenskin_mirror,
    SKINNING_OT_eigenskin_pose_joints,
    SKINNING_OT_build_eigenskin,
    SKINNING_OT_remove_eigenskin,
    SKINNING_OT_mute_eigenskin,
    SKINNING_OT_bake_eigenskin,
    SKINNING_OT_unbake_eigenskin,
    SKINNING_OT_show_eigenskin_error,
]
