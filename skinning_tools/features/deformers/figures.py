# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a bake, for report, panel and command line."""

from dataclasses import dataclass

from ...blender.figures import Figure, Result
from ...blender.wording import counted, vertices_text

# On the mesh.
FIGURES = "skinning_baked_deformers"


@dataclass(frozen=True)
class BakeFigures:
    """what: the baked modifiers. imitated: the share of their effect that weights and helpers have at ``tests`` poses
    that nothing was fitted to, the plain rig's before being 0; at_training: at those that it was fitted to."""

    what: str
    armature: str
    imitated: float
    at_training: float
    poses: int
    tests: int
    helpers: int
    influences: int
    shrunk: int

    def figures(self) -> list[Figure]:
        return [
            Figure("Imitated", self.imitated, "{:.1%}"),
            Figure("At the poses used", self.at_training, "{:.1%}", line=""),
            Figure("Effect", self.what, line=f"of {self.what} at {self.tests} other random poses"),
            Figure("Armature", self.armature, line=""),
            Figure("Poses", self.poses, line=""),
            Figure("Test poses", self.tests, line=""),
            Figure("Made milder", self.shrunk, line="", if_any=True),
            Figure("Helper bones", self.helpers, line="", if_any=True),
            Figure("Influences", self.influences, line=""),
        ]


@dataclass(frozen=True)
class BakedDeformers(Result):
    """A finished bake."""

    object_name: str
    vertex_count: int
    record: BakeFigures
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        done = f"weights of {vertices_text(self.vertex_count)}"
        if self.record.helpers:
            done += f", {counted(self.record.helpers, 'driven helper bone')}"
        return [Figure("Object", self.object_name), Figure("Done", done, line=done), *self.record.figures()]
