# SPDX-License-Identifier: GPL-3.0-or-later
"""Random skinned motion as a decomposition, and the source object and animation that it represents."""

import bpy
import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.blender import background
from skinning_tools.blender.animation.animation_reader import SourceAnimation
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Decomposition
from skinning_tools.features.convert import rig_writer
from tests.blender import scenes

KINDS = ("AFFINE", "SCALED", "RIGID")


def random_transforms(kind: str, frames: int, bones: int, seed=0) -> np.ndarray:
    """(F, P, 3, 4) unrelated matrices of a kind, scales of both signs among them."""
    random = np.random.default_rng(seed)
    matrices = random.normal(size=(frames, bones, 3, 4))
    if kind != "AFFINE":
        matrices[..., :3] = Rotation.random(frames * bones, random_state=seed).as_matrix().reshape(frames, bones, 3, 3)
    if kind == "SCALED":
        matrices[..., :3] *= random.normal(size=(frames, bones, 1, 3))
        matrices[..., :3] = matrices[..., :3] @ bone_axes(bones).swapaxes(1, 2)
    return matrices


def smooth_transforms(frames: int, bones: int, noise=0.0, degrees=10.0, seed=0) -> np.ndarray:
    """(F, P, 3, 4) bones that spin evenly about their own axes while they drift, with noise on the linear part."""
    random = np.random.default_rng(seed)
    axes = random.normal(size=(bones, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = np.radians(degrees) * np.arange(frames)
    turns = Rotation.from_rotvec((angles[:, None, None] * axes).reshape(-1, 3)).as_matrix()
    linear = turns.reshape(frames, bones, 3, 3) + noise * random.normal(size=(frames, bones, 3, 3))
    drift = 0.1 * np.arange(frames)[:, None, None] * random.normal(size=(bones, 3))
    return np.concatenate([linear, drift[..., None]], axis=-1)


def skinned(decomposition: Decomposition, transforms=None) -> np.ndarray:
    """(F, N, 3) positions by linear blend skinning in double precision."""
    transforms = decomposition.transforms if transforms is None else transforms
    points = np.column_stack([decomposition.rest, np.ones(len(decomposition.rest))])
    per_bone = np.einsum("fpij,nj->fpni", transforms, points)
    vertices = np.arange(len(points))[:, None]
    return np.einsum("fnki,nk->fni", per_bone[:, decomposition.bones, vertices], decomposition.weights)


def bone_axes(bones: int) -> np.ndarray:
    """(P, 3, 3) the axes that SCALED bones stretch along: those of the object, then all sorts."""
    axes = Rotation.random(bones, random_state=1).as_matrix()
    axes[0] = np.eye(3)
    return axes


def decomposition(transforms, kind="AFFINE", vertex_count=60, influences=4, offset=(0.0, 0.0, 0.0), seed=0):
    """A Decomposition of random points about ``offset`` and random weights."""
    random = np.random.default_rng(seed)
    bone_count = transforms.shape[1]
    influences = min(influences, bone_count)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(vertex_count)], np.int32)
    weights = random.dirichlet(np.ones(influences), vertex_count)
    rest = random.normal(size=(vertex_count, 3)) + offset
    axes = bone_axes(bone_count) if kind == "SCALED" else np.tile(np.eye(3), (bone_count, 1, 1))
    return Decomposition(
        rest, transforms, bones, weights, kind, bone_axes=axes, e_rms=0.0, max_error=0.0, history=(), dimension=1
    )


def source_animation(object, result: Decomposition, first=1, step=1) -> SourceAnimation:
    """The animation of ``object`` that ``result`` reproduces exactly."""
    frames = skinned(result)
    numbers = first + step * np.arange(len(frames), dtype=np.float64)
    mesh = object.data.copy() if object.data.library is None else bpy.data.meshes.new_from_object(object)
    return SourceAnimation(object, Animation(frames, [(0, 1, 2)], numbers, f'object "{object.name}"'), "test", mesh)


def cloud(result: Decomposition, name="Flag") -> bpy.types.Object:
    """An object in the scene with the vertices of ``result`` and one face."""
    return scenes.mesh_object(result.rest, [(0, 1, 2)], name=name)


def written(kind="AFFINE", frames=8, bones=5, **options):
    """An object, its animation and the rig that is written for it."""
    result = decomposition(random_transforms(kind, frames, bones), kind, **options)
    object = cloud(result)
    source = source_animation(object, result)
    return object, source, write_rig(source, result)


def write_rig(*arguments, **options) -> rig_writer.Rig:
    """As ``rig_writer.write_rig``, all its steps."""
    return background.drain(rig_writer.write_rig(bpy.context, *arguments, **options))
