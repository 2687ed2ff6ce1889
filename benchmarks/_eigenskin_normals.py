# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of EigenSkin's normals: the least error of so many components, and what is seen at other poses."""

from dataclasses import replace

import eigenskin_human as human
import numpy as np
from _eigenskin_poses import ratios, trained_axes
from _tables import Tables

from skinning_tools.core.deform import skin_frame, transformed_normals, vertex_normals, vertex_transforms
from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, rest_displacements

NORMAL_COMPONENTS = (1, 3, 5)


def show_normals(tables: Tables) -> None:
    body = human.Character.read()
    surface = vertex_normals(body.rig.rest, body.triangles)
    tables.begin(
        "Normals",
        "Remaining error of the normals' corrections in the rest pose, over the whole mesh, by number of components. "
        "Joints and examples as in *Error over components*. Optimum: the singular value decomposition of the "
        "corrections themselves. As built: components and values of their own, beside as many of the displacements.",
        *("joint", *map(str, NORMAL_COMPONENTS)),
    )
    for label, name in (human.HINGES | human.BALLS).items():
        examples = with_normals(body, human.turns_about(name, trained_axes(body, label, name)))
        wanted = normal_corrections(body.rig, examples, surface)
        values = np.linalg.svd(wanted.reshape(len(wanted), -1), compute_uv=False)
        optimum, built = [], []
        for count in NORMAL_COMPONENTS:
            model = build_eigenskin(
                body.rig, examples, EigenSkinSettings(components=count), rest_surface_normals=surface
            )
            built.append(np.linalg.norm(wanted - stored_normals(model, examples)))
            optimum.append(np.linalg.norm(values[count:]))
        for row, left in ((f"{label}, optimum", optimum), (f"{label}, as built", built)):
            tables.row(row, *ratios(np.array(left) / np.linalg.norm(wanted)))
    tables.begin(
        "Shading",
        "Joints and examples of *Normals*, at 25 unseen poses about these axes: degrees from the normals of the "
        "correct shape, root mean square over the vertices whose normals are corrected. Plain: the rest pose's "
        "normals by the blended matrices, as engines have them without corrections. Corrected: by components of "
        "their own, then by the blended matrices. Surface: computed from the corrected mesh, as Blender does.",
        *("joint", *map(str, NORMAL_COMPONENTS)),
    )
    for label, name in (human.HINGES | human.BALLS).items():
        axes = trained_axes(body, label, name)
        examples, unseen = (
            with_normals(body, turns) for turns in (human.turns_about(name, axes), human.unseen_turns(name, axes))
        )
        models = [
            build_eigenskin(body.rig, examples, EigenSkinSettings(components=count), rest_surface_normals=surface)
            for count in NORMAL_COMPONENTS
        ]
        angles = np.array([shading_errors(body, model, unseen, surface) for model in models])
        for row, column in zip(("plain", "corrected", "surface"), angles.T, strict=True):
            tables.row(f"{label}, {row}", *(f"{value:.2f}°" for value in column))


def with_normals(body: human.Character, turns):
    """Examples, with the normals of their shapes."""
    examples = body.examples(turns)
    return replace(examples, normals=np.array([vertex_normals(shape, body.triangles) for shape in examples.shapes]))


def shading_errors(body: human.Character, model, unseen, surface) -> list[float]:
    """Degrees, root mean square: of plain and corrected normals, and of the corrected mesh's own."""
    rig, vertices = body.rig, model.supports[0].normals.vertices
    squares = []
    for row, (values, turned) in enumerate(
        zip(model.values(unseen.rotations), model.normal_values(unseen.rotations), strict=True)
    ):
        moved = skin_frame(rig.rest + model.displacements(values), rig.bones, rig.weights, unseen.matrices[row])
        transforms = vertex_transforms(rig.rest, rig.bones, rig.weights, unseen.matrices[row])
        plain, corrected = (
            transformed_normals(part, transforms) for part in (surface, surface + model.normal_corrections(turned))
        )
        squares.append(
            [
                np.mean(np.arccos(np.clip((shown * unseen.normals[row]).sum(axis=1)[vertices], -1, 1)) ** 2)
                for shown in (plain, corrected, vertex_normals(moved, body.triangles))
            ]
        )
    return np.degrees(np.sqrt(np.mean(squares, axis=0))).tolist()


def normal_corrections(rig, examples, surface) -> np.ndarray:
    """(E, N, 3) the offsets from the rest pose's normals ``surface`` (N, 3)."""
    found = rest_displacements(
        *(rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes), examples.normals, surface
    )
    return found.values[..., 3:].astype(float)


def stored_normals(model, examples) -> np.ndarray:
    """(E, N, 3) the offsets by the model."""
    return np.array([model.normal_corrections(values) for values in model.normal_values(examples.rotations)])
