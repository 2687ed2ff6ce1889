# SPDX-License-Identifier: GPL-3.0-or-later
"""An EigenSkin as tables of four floats for vertex shaders (EigenSkin, section 2.5), and the text from which it can be
restored.

docs/engine_tables.md describes the tables, docs/shaders has the code that reads them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .model import EigenSkin, NormalBasis, Support
from .pose_space import PoseSpace, hinge_angles, hinge_middle

# Texels of a joint and of a basis function.
_JOINT, _TERM = 3, 2


@dataclass(frozen=True, eq=False)
class ShaderTables:
    """network (R, 4) float32: component by component where its terms are, those of the normals last, then terms,
    joints and centers. displacements (S, 4) float32: x, y, z and the component, vertex by vertex. runs (N, 2): each
    vertex's first row of those, and how many it has. normals and normal_runs: the same of the normals' corrections,
    without rows where the model has none. joints: those in ``network``, indices into the model's names.
    """

    network: np.ndarray
    displacements: np.ndarray
    runs: np.ndarray
    normals: np.ndarray
    normal_runs: np.ndarray
    joints: tuple[int, ...]


def shader_tables(model: EigenSkin) -> ShaderTables:
    """The tables of ``model``. Displacements that are zero are left out."""
    joints = tuple(sorted({joint for support in model.supports for joint in support.joints}))
    parts: list[tuple[Support, Support | NormalBasis]] = [(support, support) for support in model.supports]
    parts += [(support, support.normals) for support in model.supports if support.normals is not None]
    counts = [len(part.basis_weights) for _, part in parts for _ in part.components]
    terms_at = len(counts)
    joints_at = terms_at + _TERM * sum(counts)
    centers_at = joints_at + _JOINT * len(joints)
    rows: dict[int, tuple] = {}
    centers: list[np.ndarray] = []
    for number, joint in enumerate(joints):
        space = model.spaces[joint]
        first = centers_at + sum(len(each) for each in centers)
        rows[joint] = joints_at + _JOINT * number, first, _rest_features(space)
        centers.append(_center_texels(space))
    heads = np.zeros((terms_at, 4))
    heads[:, 0] = terms_at + _TERM * np.concatenate([[0], np.cumsum(counts)[:-1]]) if counts else 0
    heads[:, 1] = counts
    heads[:, 2] = np.concatenate([np.zeros(0), *(part.limits for _, part in parts)])
    terms = [_term_texels(support, weights, rows) for support, part in parts for weights in part.basis_weights.T]
    about = [_joint_texels(model.spaces[joint], number, rows[joint][1]) for number, joint in enumerate(joints)]
    network = np.concatenate([heads, *terms, *about, *centers])
    shapes = _rows([part for support, part in parts if part is support], model.vertex_count, 0)
    normals = _rows([part for support, part in parts if part is not support], model.vertex_count, model.component_count)
    return ShaderTables(network.astype(np.float32), *shapes, *normals, joints)


def model_text(model: EigenSkin) -> str:
    """``model`` as JSON, without its shapes: what determines the values of its components."""
    joints = sorted({joint for support in model.supports for joint in support.joints})
    spaces = [model.spaces[joint] for joint in joints]
    return json.dumps(
        {
            "joints": [
                {
                    "name": model.joint_names[joint],
                    "centers": space.centers.tolist(),
                    "axis": None if space.axis is None else space.axis.tolist(),
                    "radius": float(space.radius),
                }
                for joint, space in zip(joints, spaces, strict=True)
            ],
            "supports": [
                {
                    "name": support.name,
                    "joints": [joints.index(joint) for joint in support.joints],
                    "weights": support.basis_weights.tolist(),
                    "centers": None if support.centers is None else np.asarray(support.centers).tolist(),
                    "limits": support.limits.tolist(),
                    "normals": None
                    if support.normals is None
                    else {
                        "weights": support.normals.basis_weights.tolist(),
                        "limits": support.normals.limits.tolist(),
                    },
                }
                for support in model.supports
            ],
        }
    )


def model_of(text: str, deltas: np.ndarray, normals: np.ndarray | None = None) -> EigenSkin:
    """The model of a ``model_text``, with the shapes ``deltas`` (C, N, 3) of its components, but without masks and
    singular values. ``normals`` (C', N, 3): the components of the normals, if it corrects them. Raises ValueError,
    KeyError or TypeError if the text or the number of shapes is wrong."""
    stored = json.loads(text)
    spaces = {
        index: PoseSpace(
            np.array(joint["centers"], dtype=np.float64),
            None if joint["axis"] is None else np.array(joint["axis"], dtype=np.float64),
            joint["radius"],
        )
        for index, joint in enumerate(stored["joints"])
    }
    shapes, turns = _Taken(deltas), _Taken(np.zeros((0, *deltas.shape[1:])) if normals is None else normals)
    supports = []
    for support in stored["supports"]:
        vertices, components = shapes.take(len(support["limits"]))
        turned = support.get("normals")
        supports.append(
            Support(
                support["name"],
                tuple(support["joints"]),
                np.zeros(deltas.shape[1]),
                vertices,
                components,
                None
                if turned is None
                else NormalBasis(
                    *turns.take(len(turned["limits"])), np.array(turned["weights"]), np.array(turned["limits"])
                ),
                np.array(support["weights"], dtype=np.float64),
                None if support["centers"] is None else np.array(support["centers"], dtype=int),
                np.array(support["limits"], dtype=np.float64),
                np.zeros(0),
            )
        )
    if shapes.left or turns.left:
        raise ValueError("more shapes or normals than the text has")
    names = tuple(joint["name"] for joint in stored["joints"])
    return EigenSkin(names, deltas.shape[1], spaces, tuple(supports), ())


@dataclass
class _Taken:
    """Fields (C, N, 3) that are taken from the first one on."""

    fields: np.ndarray
    start: int = 0

    @property
    def left(self) -> int:
        return len(self.fields) - self.start

    def take(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The vertices (n,) that the next ``count`` fields move, and the fields there. Raises ValueError."""
        if count > self.left:
            raise ValueError(f"{len(self.fields)} shapes or normals do not fit the text")
        found = self.fields[self.start : self.start + count]
        self.start += count
        vertices = np.flatnonzero(found.any(axis=(0, 2)))
        return vertices, found[:, vertices]


def _rest_features(space: PoseSpace) -> np.ndarray:
    """(M,) the features at rest."""
    return space.features(space.centers[:1])[0]


def _center_texels(space: PoseSpace) -> np.ndarray:
    """(M, 4): x, y, z, w of each center, or of a hinge the angle, and cosine and sine of its half."""
    if space.axis is None:
        return np.roll(space.centers, -1, axis=1)
    angles = hinge_angles(space.centers, space.axis)
    return np.column_stack([angles, np.cos(0.5 * angles), np.sin(0.5 * angles), np.zeros(len(angles))])


def _joint_texels(space: PoseSpace, number: int, first_center: int) -> np.ndarray:
    """(3, 4)"""
    axis = np.zeros(3) if space.axis is None else space.axis
    middle = 0.0 if space.axis is None else hinge_middle(space.centers, space.axis)
    about = [number, space.axis is not None, middle, space.radius**2]
    return np.array([about, [*axis.tolist(), first_center], [*space.shares, 0.0, 0.0]], dtype=np.float64)


def _term_texels(support: Support, weights: np.ndarray, rows: dict) -> np.ndarray:
    """(2 M, 4): the weight, and the joint, center and feature at rest of one or two factors; joint −1 for none."""
    texels = np.zeros((len(weights), _TERM, 4))
    texels[:, 0, 0] = weights
    texels[:, 1, 0] = -1.0
    for place, joint in enumerate(support.joints):
        row, first, at_rest = rows[joint]
        # Pairs count centers after the rest pose.
        center = np.arange(len(weights)) if support.centers is None else support.centers[:, place] + 1
        start = 1 if place == 0 else 0
        texels[:, place, start] = row
        texels[:, place, start + 1] = first + center
        # A function of one joint is zero at rest by its weights; those of pairs are tied.
        texels[:, place, start + 2] = 0.0 if support.centers is None else at_rest[center]
    return texels.reshape(-1, 4)


def _rows(supports: Sequence[Support | NormalBasis], vertex_count: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    """displacements (S, 4) and runs (N, 2) of components that begin with number ``start``."""
    vertices, parts = [np.zeros(0, int)], [np.zeros((0, 4))]
    for support in supports:
        for component in support.components:
            moved = component.any(axis=1)
            vertices.append(support.vertices[moved])
            parts.append(np.column_stack([component[moved], np.full(moved.sum(), float(start))]))
            start += 1
    owner = np.concatenate(vertices)
    order = np.argsort(owner, kind="stable")
    lengths = np.bincount(owner, minlength=vertex_count)
    runs = np.column_stack([np.cumsum(lengths) - lengths, lengths])
    return np.concatenate(parts)[order].astype(np.float32), runs
