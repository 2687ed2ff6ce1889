# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators on the examples of an EigenSkin: storing, posing, mirroring and judging them, and Pose Joints."""

import bpy
from bpy.props import StringProperty

from ...blender.bone_selection import named_bones
from ...blender.character import armature_at, target_mesh
from ...blender.job_checks import active_object
from ...blender.preconditions import unmet
from ...blender.translation import translated
from ...blender.wording import counted
from ...core.errors import BadScene, SkinningError
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from ...ui.settings import RANGE_NAMES
from . import estimate, example_mirror, example_pose, example_sources, joint_poses
from .examples import check_storable, remove_example
from .settings import (
    AddSettings,
    EstimateSettings,
    ExampleSettings,
    FrameSettings,
    MirrorSettings,
    PoseRange,
    RemovalSettings,
)


class SKINNING_OT_eigenskin_add_example(Checked, AtOnce, bpy.types.Operator):
    """Store the present pose together with its correct shape"""

    bl_idname = "skinning.eigenskin_add_example"
    bl_label = "Add Example"

    settings = AddSettings
    require = staticmethod(example_sources.check_addable)
    work = staticmethod(example_sources.add_example)

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "source")
        layout.prop(self, "name")
        mesh_object = target_mesh(context)
        keys = mesh_object.data.shape_keys if mesh_object is not None else None
        if self.source == "SHAPE_KEY" and keys is not None:
            layout.prop_search(self, "shape_key", keys, "key_blocks")


class SKINNING_OT_eigenskin_add_frames(Checked, SkinningJob, bpy.types.Operator):
    """Store pose and shape of every frame that poses a joint. The shape comes from another selected mesh, or from \
the mesh itself"""

    bl_idname = "skinning.eigenskin_add_frames"
    bl_label = "Add Examples from Frames"

    settings = FrameSettings
    require = staticmethod(example_sources.check_addable)
    work = staticmethod(example_sources.add_frames)

    def prepare(self, context: bpy.types.Context) -> None:
        """Prepare as for any job, but with the range of the marked poses instead of the scene's."""
        armature = armature_at(active_object(context))
        assert armature is not None
        of_scene = armature.skinning_eigenskin.use_scene_range
        self.settings.fill(self, context, but=RANGE_NAMES if of_scene else ())
        whole = example_sources.default_range(context.scene, self.use_markers)
        for name, value in zip(RANGE_NAMES, whole, strict=True):
            if not self.properties.is_property_set(name):
                setattr(self, name, value)


class _TakesExample(Checked, AtOnce):
    """Mix-in for operators on an example of the active armature."""

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
        """The armature that is active or deforms the active mesh. Raises BadScene if it has no examples."""
        armature = armature_at(active)
        if armature is None:
            raise unmet("NO_ARMATURE")
        if not armature.skinning_eigenskin.examples:
            raise BadScene(f'The armature "{armature.name}" has no examples. Add poses with their correct shapes first')
        return armature

    def example_index(self, armature: bpy.types.Object) -> int:
        group = armature.skinning_eigenskin
        index = group.active_index if self.index == -1 else self.index  # type: ignore[attr-defined] # of the settings
        if not 0 <= index < len(group.examples):
            raise BadScene(
                f'There is no example {index} of "{armature.name}", which has {len(group.examples)}. '
                "Choose one in the list"
            )
        return index


class SKINNING_OT_eigenskin_remove_example(_TakesExample, bpy.types.Operator):
    """Remove an example and its shape from the list"""

    bl_idname = "skinning.eigenskin_remove_example"
    bl_label = "Remove Example"

    settings = RemovalSettings

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        armature = self.require(context, active)
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
    """Pose the armature as stored in the example"""

    bl_idname = "skinning.eigenskin_apply_pose"
    bl_label = "Show Pose"

    settings = ExampleSettings

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        armature = self.require(context, active)
        item = armature.skinning_eigenskin.examples[self.example_index(armature)]
        strayed = example_pose.apply_pose(context, armature, item)
        if not strayed:
            return f'{armature.name}: posed as in "{item.name}"'
        more = f" and {len(strayed) - 1} more joints" if len(strayed) > 1 else ""
        self.report(
            {"WARNING"},
            translated(
                f'"{strayed[0]}"{more} cannot be posed as in "{item.name}": constraints, drivers or properties of the '
                "rig move them"
            ),
        )
        return ""


class SKINNING_OT_eigenskin_mirror(Checked, AtOnce, bpy.types.Operator):
    """Make examples of one side of the body from those of the other. Replaces earlier examples of the same poses"""

    bl_idname = "skinning.eigenskin_mirror"
    bl_label = "Mirror Examples"

    settings = MirrorSettings
    require = staticmethod(example_sources.check_addable)
    work = staticmethod(example_mirror.mirror_examples)


class SKINNING_OT_eigenskin_pose_joints(Checked, AtOnce, bpy.types.Operator):
    """Key each selected bone through its range, one at a time, so that a simulation or a sculptor can add the shapes"""

    bl_idname = "skinning.eigenskin_pose_joints"
    bl_label = "Pose Joints"

    settings = PoseRange

    bone_names: StringProperty(
        name="Bones",
        description="Names of the bones, separated by commas. If empty, the selected bones",
        options={"SKIP_SAVE", "HIDDEN"},
    )

    @staticmethod
    def require(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
        if armature_at(active) is None:
            raise unmet("NO_ARMATURE")

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.row(heading="Axes").prop(self, "axes", text="", toggle=True)
        layout.prop(self, "sampling")
        column, ball = layout.column(align=True), self.sampling == "BALL"
        column.prop(self, "count" if ball else "angle_min")
        column.prop(self, "angle_max", text="Largest Angle" if ball else "To")
        for name in ("use_limits", "steps", "frames_per_pose", "hold_frames", "frame_start"):
            layout.prop(self, name)
        layout.label(text=self.outcome(context), icon="INFO")

    def outcome(self, context: bpy.types.Context) -> str:
        """The number of poses and the last frame by the settings."""
        try:
            count, last = joint_poses.planned_poses(*self._chosen(active_object(context)))
        except SkinningError as error:
            return str(error)
        text = f"{counted(count, 'pose')}, the last frame is {last}"
        return f"{text}. A ball needs two axes or more" if self.sampling == "BALL" and sum(self.axes) == 1 else text

    def act(self, context: bpy.types.Context, active: bpy.types.Object | None) -> str:
        return joint_poses.pose_joints(context, *self._chosen(active)).summary()

    def _chosen(self, active: bpy.types.Object | None) -> tuple:
        """The armature, the names of its bones, and their range."""
        armature = armature_at(active)
        return armature, named_bones(armature, self.bone_names), PoseRange(**self.settings.of_operator(self))


class SKINNING_OT_eigenskin_estimate(Checked, SkinningJob, bpy.types.Operator):
    """Predict each example from the others: the error to expect between them, before anything is built"""

    bl_idname = "skinning.eigenskin_estimate"
    bl_label = "Estimate Error"

    settings = EstimateSettings
    require = staticmethod(estimate.check_estimable)
    work = staticmethod(estimate.estimate)


class SKINNING_OT_eigenskin_pose_next(Checked, AtOnce, bpy.types.Operator):
    """Pose the armature where another example helps most, as found by Estimate Error"""

    bl_idname = "skinning.eigenskin_pose_next"
    bl_label = "Pose Next Example"

    require = staticmethod(example_sources.check_addable)
    work = staticmethod(estimate.pose_next)


registry = [
    SKINNING_OT_eigenskin_add_example,
    SKINNING_OT_eigenskin_add_frames,
    SKINNING_OT_eigenskin_remove_example,
    SKINNING_OT_eigenskin_apply_pose,
    SKINNING_OT_eigenskin_mirror,
    SKINNING_OT_eigenskin_pose_joints,
    SKINNING_OT_eigenskin_estimate,
    SKINNING_OT_eigenskin_pose_next,
]
