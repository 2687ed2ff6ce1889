# SPDX-License-Identifier: GPL-3.0-or-later
"""What Blender leaves out of the shapes that are read from a scene: blocked scripts, missing files, simulations that
stand still, what only renders show, instances.

All readers check for omissions in the same way. They become notes; on the command line they end the work before
anything is saved, except for the kinds that the user has allowed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy

from ...core.errors import BadAnimation, BadMesh, BadScene
from ..data_blocks import is_alive
from . import omission_checks
from .simulations import acting_on
from .used_data import dependencies

# docs/command_line.md explains them.
KINDS = ("scripts", "drivers", "libraries", "files", "caches", "render", "instances")
# Noted and never refused: the finer mesh of a render has the same shape.
LEVELS = "levels"


@dataclass(frozen=True)
class Omission:
    """kind: of KINDS, or LEVELS; text: what is left out, where, and what to do, for a line of notes."""

    kind: str
    text: str


_refused: frozenset[str] = frozenset()


@contextmanager
def refused(kinds: Iterable[str]) -> Iterator[None]:
    """Inside the block, omissions of these kinds raise BadScene as soon as they are found."""
    global _refused
    before, _refused = _refused, frozenset(kinds)
    try:
        yield
    finally:
        _refused = before


class Omissions:
    """Finds what is left out of the shapes of ``objects`` while they are read at the frames ``numbers``.

    also: what else is read, such as an armature, without its shape. same_vertices: the objects must have the vertices
    of another mesh, so modifiers that add vertices are disabled on purpose, and only positions count. Scans the whole
    file once: for the start of a job, not for a panel. Refused kinds raise BadScene, here and later.
    """

    def __init__(
        self,
        context: bpy.types.Context,
        objects: Iterable[bpy.types.Object],
        numbers: Sequence[int],
        also: Iterable[bpy.types.ID] = (),
        same_vertices: bool = False,
    ):
        self._objects = tuple(objects)
        self._found: dict[Omission, None] = {}
        context.evaluated_depsgraph_get()
        used = dependencies(*self._objects, *also)
        acting = acting_on(context.view_layer, [each for each in used if isinstance(each, bpy.types.Object)])
        if acting:
            used |= {each: user for each, user in dependencies(*acting).items() if each not in used}
        self._driven = omission_checks.driver_owners(context.scene, used)
        self._add("scripts", omission_checks.blocked_texts())
        self._add_drivers()
        self._add("libraries", omission_checks.missing_data(used))
        self._add("files", omission_checks.missing_files(used, numbers))
        self._add("caches", omission_checks.cache_faults(context, used, self._objects, numbers))
        self._add("render", omission_checks.render_differences(used, self._objects if same_vertices else ()))
        shown = () if same_vertices else self._objects
        self._add(LEVELS, omission_checks.level_differences(shown))
        self._add("instances", omission_checks.particles_and_duplicates(shown))
        self._waiting = [ob for ob in shown if omission_checks.may_have_instances(ob)]
        self._check()

    def look(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Look at the current frame for what objects show besides their meshes."""
        for ob, texts in omission_checks.beside_meshes(self._waiting, depsgraph).items():
            self._waiting.remove(ob)
            self._add("instances", texts)
        self._check()

    def look_at_drivers(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Check drivers after frames of a temporary scene: failures there do not show in the user's scene."""
        self._add_drivers(depsgraph)
        self._check()

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Add the omissions to an error about the mesh or its animation, as they may be its cause."""
        try:
            yield
        except (BadMesh, BadAnimation) as error:
            if not self._found:
                raise
            raise type(error)(f"{error}. It may be that {'; '.join(texts_of(self._found))}") from error

    def finish(self) -> tuple[Omission, ...]:
        """All omissions found; checks drivers once more, since they may fail at any frame."""
        self._add_drivers()
        self._check()
        return tuple(self._found)

    def _add_drivers(self, depsgraph: bpy.types.Depsgraph | None = None) -> None:
        self._driven = [each for each in self._driven if is_alive(each.block)]
        self._add("scripts", omission_checks.blocked_drivers(self._driven, depsgraph))
        self._add("drivers", omission_checks.drivers_in_error(self._driven, depsgraph))

    def _add(self, kind: str, texts: Iterable[str]) -> None:
        self._found |= {Omission(kind, text): None for text in texts}

    def _check(self) -> None:
        found = [omission for omission in self._found if omission.kind in _refused]
        if found:
            kinds = ",".join(kind for kind in KINDS if any(omission.kind == kind for omission in found))
            raise BadScene(
                f"Blender does not evaluate everything that is read: {'; '.join(texts_of(found))}. To read it "
                f"nevertheless: --allow-incomplete {kinds}"
            )


def texts_of(found: Iterable[Omission]) -> tuple[str, ...]:
    """The texts, for notes."""
    return tuple(omission.text for omission in found)
