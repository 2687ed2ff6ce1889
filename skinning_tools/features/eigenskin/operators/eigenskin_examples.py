# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of an EigenSkin: adding, reading from frames, removing and mirroring them, and showing their poses."""

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty

from ....blender import dependencies
from ....blender.character import armature_at, character_of, target_mesh
from ....blender.job_checks import active_object
from ....blender.wording import counted
from ....core.errors import BadScene
from ....ui.boundary import Checked, reported
from ....ui.common_settings import RANGE_NAMES, frame_annotations
from ....ui.jobs import SkinningJob
from .. import eigenskin_settings, example_mirror, example_pose, example_sources
from ..eigenskin_examples import check_storable, remove_example

SOURCES = tuple(item for item in eigenskin_settings.KIND_ITEMS if item[0] != "FRAMES")


def armature_with_examples(context, object):
    """The armature that is active or deforms the active mesh. Raises BadScene where it has no examples."""
    armature = armature_at(object)
    if armature is None:
        raise BadScene("Select an armature, or a mesh that it deforms")
    if not armature.skinning_eigenskin.examples:
        raise BadScene(f'The armature "{armature.name}" has no examples. Add poses with their right shapes first')
    return armature


class _AddsExamples(Checked):
    """What adds examples to the active mesh, or the one that the active armature deforms."""

    require = staticmethod(example_sources.check_addable)


class _TakesExample(Checked):
    """What works on an example of the active armature, and which one that is."""

    __annotations__ = {
        "index": IntProperty(
            name="Index", description="Place in the list, -1 for the active example", default=-1, options={"SKIP_SAVE"}
        )
    }

    require = staticmethod(armature_with_examples)

    def example_index(self, armature) -> int:
        group = armature.skinning_eigenskin
        index = group.active_index if self.index == -1 else self.index
        if not 0 <= index < len(group.examples):
            raise BadScene(
                f'There is no example {index} of "{armature.name}", which has {len(group.examples)}. '
                "Choose one in the list"
            )
        return index


class SKINNING_OT_eigenskin_add_example(_AddsExamples, bpy.types.Operator):
    """Store the present pose together with its right shape"""

    bl_idname = "skinning.eigenskin_add_example"
    bl_label = "Add Example"
    bl_options = {"REGISTER", "UNDO"}

    source: EnumProperty(
        name="Shape", description="Where the right shape is", items=SOURCES, default="EVALUATED", options={"SKIP_SAVE"}
    )
    name: StringProperty(
        name="Name", description="The example's name. Empty names it by the joint that is posed", options={"SKIP_SAVE"}
    )
    shape_key: StringProperty(
        name="Shape Key", description="The shape key to take. Empty stands for the active one", options={"SKIP_SAVE"}
    )

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.prop(self, "source")
        layout.prop(self, "name")
        keys = self._shape_keys(context)
        if self.source == "SHAPE_KEY" and keys is not None:
            layout.prop_search(self, "shape_key", keys, "key_blocks")

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            object = character_of(context, active_object(context))
            added = example_sources.add_example(context, object, self.source, self.name, self.shape_key)
            self.report({"INFO"}, added.summary(context.scene))
            return {"FINISHED"}
        return {"CANCELLED"}

    def _shape_keys(self, context):
        object = target_mesh(context)
        return object.data.shape_keys if object is not None else None


class SKINNING_OT_eigenskin_add_frames(_AddsExamples, SkinningJob, bpy.types.Operator):
    """Store pose and shape of every frame that poses a joint. The shape is another selected mesh's, or its own"""

    bl_idname = "skinning.eigenskin_add_frames"
    bl_label = "Add Examples from Frames"

    __annotations__ = frame_annotations("read", "soft_min") | {
        "use_markers": BoolProperty(
            name="Only Marked Poses",
            description="Only the frames that Pose Joints has marked, where there are any",
            default=True,
            options={"SKIP_SAVE"},
        )
    }

    def prepare(self, context):
        """Take what the caller did not give from the armature's settings, as the panel shows them."""
        armature = armature_at(active_object(context))
        if armature is None:
            return
        chosen = armature.skinning_eigenskin
        self.fill(("frame_step", "use_markers"), chosen)
        if not chosen.use_scene_range:
            self.fill(RANGE_NAMES, chosen)
        # From here on the range is fixed, so that "Adjust Last Operation" shows and keeps it.
        whole = example_sources.default_range(context.scene, self.use_markers)
        for name, value in zip(RANGE_NAMES, whole, strict=True):
            if not self.properties.is_property_set(name):
                setattr(self, name, value)

    def steps(self, context):
        dependencies.require_dependencies()
        object = character_of(context, active_object(context))
        given = self.given(RANGE_NAMES)
        return (
            yield from example_sources.add_frames(
                context, object, frame_step=self.frame_step, use_markers=self.use_markers, **given
            )
        )

    def finish(self, context, result):
        return result.summary(context.scene)


class SKINNING_OT_eigenskin_remove_example(_TakesExample, bpy.types.Operator):
    """Remove an example from the list, with its shape"""

    bl_idname = "skinning.eigenskin_remove_example"
    bl_label = "Remove Example"
    bl_options = {"REGISTER", "UNDO"}

    __annotations__ = _TakesExample.__annotations__ | {
        "remove_all": BoolProperty(
            name="All", description="Remove all examples of the list", default=False, options={"SKIP_SAVE"}
        )
    }

    def execute(self, context):
        with reported(self):
            armature = armature_with_examples(context, active_object(context))
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
            self.report({"INFO"}, f"{armature.name}: {text} removed, {len(examples)} left")
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_eigenskin_apply_pose(_TakesExample, bpy.types.Operator):
    """Pose the armature as the example was stored with"""

    bl_idname = "skinning.eigenskin_apply_pose"
    bl_label = "Show Pose"
    bl_options = {"REGISTER", "UNDO"}

    __annotations__ = dict(_TakesExample.__annotations__)

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            armature = armature_with_examples(context, active_object(context))
            item = armature.skinning_eigenskin.examples[self.example_index(armature)]
            strayed = example_pose.apply_pose(context, armature, item)
            if strayed:
                more = f" and {len(strayed) - 1} more joints" if len(strayed) > 1 else ""
                self.report(
                    {"WARNING"},
                    f'"{strayed[0]}"{more} cannot be posed as in "{item.name}": constraints, drivers or properties of '
                    "the rig move them",
                )
            else:
                self.report({"INFO"}, f'{armature.name}: posed as in "{item.name}"')
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_eigenskin_mirror(_AddsExamples, bpy.types.Operator):
    """Make examples of one side of the body from those of the other. Older ones of the same poses are replaced"""

    bl_idname = "skinning.eigenskin_mirror"
    bl_label = "Mirror Examples"
    bl_options = {"REGISTER", "UNDO"}

    direction: EnumProperty(
        name="Direction",
        description="From which side to which, by the names of bones",
        items=example_mirror.DIRECTIONS,
        default="LEFT_TO_RIGHT",
    )

    def execute(self, context):
        with reported(self):
            dependencies.require_dependencies()
            object = character_of(context, active_object(context))
            self.report({"INFO"}, example_mirror.mirror_examples(context, object, self.direction).summary())
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [
    SKINNING_OT_eigenskin_add_example,
    SKINNING_OT_eigenskin_add_frames,
    SKINNING_OT_eigenskin_remove_example,
    SKINNING_OT_eigenskin_apply_pose,
    SKINNING_OT_eigenskin_mirror,
]
