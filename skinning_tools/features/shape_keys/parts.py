# SPDX-License-Identifier: GPL-3.0-or-later
"""The meshes of a face, and which of them are solved together: those on the same bone of their body."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.animation.several_sources import sources_label, to_space_of
from ...core.geometry import transform_points
from .body import Body, read_body
from .reading import ShapeKeys, Slider, read_shape_keys

if TYPE_CHECKING:
    from ...core.shape_rig.types import Shapes


@dataclass(frozen=True)
class Part:
    """One mesh. body: what it is on, None where no armature deforms it. to_face (4, 4): from its space to that of the
    first mesh, None where they are the same."""

    keys: ShapeKeys
    body: Body | None
    to_face: np.ndarray | None

    @property
    def mesh_object(self) -> bpy.types.Object:
        return self.keys.mesh_object

    @property
    def head(self) -> str:
        """The bone that it is on, "" where no armature deforms it."""
        return self.body.head if self.body is not None else ""

    @property
    def vertices(self) -> np.ndarray:
        """(n,) those that get bones of the face."""
        return self.body.vertices if self.body is not None else np.arange(len(self.keys.rest))

    def in_face(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of ``vertices`` in the first mesh's space: rest (n, 3), deltas (S, n, 3) and triangles."""
        rest, deltas, triangles = self.keys.rest, self.keys.deltas, self.keys.triangles
        if self.body is not None:
            rest, deltas, triangles = rest[self.vertices], self.body.face_deltas(deltas), self.body.face_triangles()
        if self.to_face is not None:
            rest = transform_points(rest, self.to_face)
            deltas = deltas @ self.to_face[:3, :3].T.astype(np.float32)
        return rest, deltas, triangles


@dataclass(frozen=True)
class Group:
    """Parts on the same bone. sliders: of any of them; shapes: what these do to the parts' vertices, one after another,
    in the space of the face's first mesh."""

    parts: tuple[Part, ...]
    sliders: tuple[Slider, ...]
    shapes: "Shapes"

    @property
    def head(self) -> str:
        return self.parts[0].head

    def rows(self) -> Iterator[tuple[Part, slice]]:
        """Each part with its vertices' rows in ``shapes``."""
        begin = 0
        for part in self.parts:
            end = begin + len(part.vertices)
            yield part, slice(begin, end)
            begin = end


@dataclass(frozen=True)
class FaceParts:
    """A face as read. parts: the first has precedence; groups: the first one has the first part."""

    parts: tuple[Part, ...]
    sliders: tuple[Slider, ...]
    groups: tuple[Group, ...]

    @property
    def first(self) -> Part:
        return self.parts[0]


def read_parts(context: bpy.types.Context, meshes: Sequence[bpy.types.Object]) -> FaceParts:
    """Read meshes that ``check_faces`` has passed; the first one gives the space. Raises BadScene, BadMesh,
    BadWeights."""
    frame = context.scene.frame_current
    parts = []
    for mesh_object in meshes:
        keys = read_shape_keys(mesh_object)
        parts.append(Part(keys, read_body(keys), to_space_of(meshes[0], mesh_object, frame)))
    by_head: dict[str, list[Part]] = {}
    for part in parts:
        by_head.setdefault(part.head, []).append(part)
    return FaceParts(tuple(parts), _sliders_of(parts), tuple(_group(tuple(each)) for each in by_head.values()))


def _sliders_of(parts: Iterable[Part]) -> tuple[Slider, ...]:
    """Those of all parts; one that several have has the range that it has in the first of them."""
    found: dict[str, Slider] = {}
    for slider in (slider for part in parts for slider in part.keys.sliders):
        found.setdefault(slider.name, slider)
    return tuple(found.values())


def _group(parts: tuple[Part, ...]) -> Group:
    from ...core.shape_rig import Shapes

    sliders = _sliders_of(parts)
    places = {slider.name: place for place, slider in enumerate(sliders)}
    moved = [part.in_face() for part in parts]
    rest = np.concatenate([each[0] for each in moved])
    deltas = np.zeros((len(sliders), len(rest), 3), np.float32)
    triangles, begin = [], 0
    for part, (own, own_deltas, own_triangles) in zip(parts, moved, strict=True):
        rows = [places[slider.name] for slider in part.keys.sliders]
        deltas[rows, begin : begin + len(own)] = own_deltas
        triangles.append(own_triangles + np.int32(begin))
        begin += len(own)
    label = sources_label([part.mesh_object for part in parts])
    return Group(parts, sliders, Shapes(rest, deltas, np.concatenate(triangles), label))
