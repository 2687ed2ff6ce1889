# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections of normals, by components and values of their own."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.deform import transformed_normals, vertex_normals, vertex_transforms
from skinning_tools.core.eigenskin import EigenSkinSettings, Examples, build_eigenskin, rest_displacements

from ..skinned_shapes import cuboid
from .posed_rigs import PosedRig, ball_poses, hinge_poses, limb

ALL = EigenSkinSettings(components=1000, support_threshold=0.0, max_per_vertex=100_000)
MANY = np.radians(np.arange(-110, 120, 20))
TRIANGLES = cuboid(24, 3)[1]


def taught(poses, **given) -> tuple[PosedRig, Examples, np.ndarray]:
    """A limb, examples with normals, and the normals at rest."""
    posed = limb()
    examples = posed.examples(poses, **given)
    normals = np.array([vertex_normals(shape, TRIANGLES) for shape in examples.shapes])
    return posed, replace(examples, normals=normals), vertex_normals(posed.rig.rest, TRIANGLES)


def corrections_of(posed, examples, surface) -> np.ndarray:
    """(E, N, 3) what the examples add to the normals at rest."""
    rig = posed.rig
    found = rest_displacements(
        rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes, examples.normals, surface
    )
    return found.values[..., 3:].astype(float)


def test_normals_of_the_examples_are_met_where_all_components_are_kept():
    posed, examples, surface = taught(hinge_poses("bone 1"))
    model = build_eigenskin(posed.rig, examples, ALL, rest_surface_normals=surface)
    for row, values in enumerate(model.normal_values(examples.rotations)):
        corrected = surface + model.normal_corrections(values)
        transforms = vertex_transforms(posed.rig.rest, posed.rig.bones, posed.rig.weights, examples.matrices[row])
        before, after = (
            np.abs(transformed_normals(part, transforms) - examples.normals[row]).max() for part in (surface, corrected)
        )
        assert before > 0.05
        assert after < 1e-4


@pytest.mark.parametrize("poses", [hinge_poses("bone 1", steps=MANY), ball_poses("bone 1")])
@pytest.mark.parametrize("count", [3, 5])
def test_the_components_are_nearly_the_best_of_their_number(poses, count):
    posed, examples, surface = taught(poses)
    wanted = corrections_of(posed, examples, surface)
    least = np.linalg.norm(np.linalg.svd(wanted.reshape(len(wanted), -1), compute_uv=False)[count:])
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(components=count), rest_surface_normals=surface)
    found = np.array([model.normal_corrections(values) for values in model.normal_values(examples.rotations)])
    # Below a hundredth the support's edge counts.
    assert np.linalg.norm(found - wanted) < max(1.15 * least, 0.01 * np.linalg.norm(wanted))
    assert count == 5 or least > 0.02 * np.linalg.norm(wanted)
    displaced = build_eigenskin(posed.rig, replace(examples, normals=None), EigenSkinSettings(components=count))
    np.testing.assert_allclose(model.values(examples.rotations), displaced.values(examples.rotations), atol=1e-9)


def test_pairs_correct_normals_too():
    steps = np.radians([-60, 60])
    alone = [pose for joint in (1, 2) for pose in hinge_poses(f"bone {joint}", steps=steps)]
    poses = alone + [{"bone 1": [0, one, 0], "bone 2": [0, other, 0]} for one in steps for other in steps]

    def displaced(turned):
        rest = limb().rig.rest
        bump = np.clip(1 - ((rest[:, 0] - 3) / 1.5) ** 2, 0, None)[:, None] * np.sin(4 * rest[:, [1, 2, 0]])
        return 0.03 * bump * (turned[1, 2] + turned[2, 2] + 4 * turned[1, 2] * turned[2, 2])

    posed, examples, surface = taught(poses, displaced=displaced)
    wanted = corrections_of(posed, examples, surface)
    left = []
    for pairs in (0, 1):
        model = build_eigenskin(posed.rig, examples, replace(ALL, joint_pairs=pairs), rest_surface_normals=surface)
        found = np.array([model.normal_corrections(values) for values in model.normal_values(examples.rotations)])
        left.append(np.linalg.norm(found - wanted))
    assert len(model.supports) == 3
    assert left[1] < 0.5 * left[0]


def test_no_normals_without_normals_of_the_examples():
    posed = limb()
    examples = posed.examples(hinge_poses("bone 1"))
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings())
    assert model.normal_values(examples.rotations).shape == (len(examples.names), 0)
    assert not model.normal_corrections(np.zeros(0)).any()
