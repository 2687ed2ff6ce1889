# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operators of partial solves share: a job on a mesh, its armature and a target over a range of frames."""

from ....blender import dependencies
from ....blender.job_checks import active_object, reason_not_to_work
from ....ui.common_settings import RANGE_NAMES
from ....ui.jobs import SkinningJob
from .. import partial_settings
from ..partial_steps import Frames


class PartialSolve(SkinningJob):
    """Mix-in. Subclasses define ``solve``, a generator function of the scene package; ``names`` of their own
    properties, which are its arguments, too; ``group``, where the scene's settings have them; and ``weighted``, whether
    the mesh must have weights."""

    weighted = True
    names: tuple[str, ...] = ()
    group = ""

    @classmethod
    def poll(cls, context):
        # Names are properties of the operator, which are not known here: what they may stand for is checked later.
        missing = reason_not_to_work(context, lambda context, object: None)
        if missing:
            cls.poll_message_set(missing)
        return not missing

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        settings = context.scene.skinning_partial
        self.fill(partial_settings.COMMON_NAMES, settings)
        self.fill(self.names, getattr(settings, self.group))
        self.fill(RANGE_NAMES, context.scene if settings.use_scene_range else settings)

    def steps(self, context):
        dependencies.require_dependencies()
        given = self.given(RANGE_NAMES)
        frames = Frames(given.get("frame_start"), given.get("frame_end"), self.frame_step)
        own = {name: getattr(self, name) for name in self.names}
        return (yield from self.solve(
            context, active_object(context), armature=self.armature, target=self.target, frames=frames, **own
        ))  # fmt: skip

    def finish(self, context, result):
        return result.summary()
