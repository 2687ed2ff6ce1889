# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of joints that act together although their supports do not meet."""

import eigenskin_human as human
import numpy as np
from _eigenskin_poses import ratios
from _tables import Tables
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import EigenSkinSettings, Examples, build_eigenskin, example_errors

ELBOW, WRIST, SHOULDER = "lowerarm01.L", "wrist.L", "upperarm01.L"
STEPS = (-80, -40, 40, 80)

# Lengths of the forearm: how far muscles swell where both joints are bent by a radian, and around what place.
SWELLS, AROUND = 0.1, 0.35


def show_coupling(tables: Tables) -> None:
    body = human.Character.read()
    tables.begin(
        "Joint coupling",
        "Elbow and wrist of the human rig with the shapes of dual quaternions, and a muscle between them that swells "
        "with the product of both angles, where neither acts alone. Examples: ±40°, ±80° of each joint alone, and "
        "their 16 combinations, or 60 random poses of shoulder, elbow and wrist. Unseen: 25 random combinations of "
        "the two, or random poses of the three. Errors in the pose, with 5 components.",
        *("examples and corrections", "supports", "examples' error", "unseen"),
    )
    random = np.random.default_rng(0)
    alone = [{name: step} for name in (ELBOW, WRIST, SHOULDER) for step in STEPS]
    both = [{ELBOW: one, WRIST: other} for one in STEPS for other in STEPS]
    two, three = (
        [dict(zip(names, row, strict=True)) for row in random.uniform(-80, 80, (count, len(names)))]
        for names, count in (((ELBOW, WRIST), 25), ((ELBOW, WRIST, SHOULDER), 85))
    )
    cases = {"combinations": ([*alone, *both], two), "general poses": ([*alone, *three[25:]], three[:25])}
    for label, (taught, other) in cases.items():
        examples, unseen = swollen(body, taught), swollen(body, other)
        for pairs in (0, 1):
            settings = EigenSkinSettings(components=5, joint_pairs=pairs, max_per_vertex=1000)
            model = build_eigenskin(body.rig, examples, settings)
            errors = [example_errors(body.rig, each, model).relative for each in (examples, unseen)]
            names = " and ".join(["single joints", *(part.name for part in model.supports if len(part.joints) == 2)])
            tables.row(f"{label}, {names}", str(len(model.supports)), *ratios(errors))


def swollen(body: human.Character, poses: list[dict[str, float]]) -> Examples:
    """poses: degrees of each joint about its bending axis."""
    rig = body.rig
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (len(poses), len(rig.joint_names), 1))
    for row, pose in enumerate(poses):
        for name, angle in pose.items():
            turned = Rotation.from_rotvec(np.radians(angle) * body.axes(name)[0]).as_quat()
            rotations[row, rig.joint_names.index(name)] = np.roll(turned, 1)
    elbow, wrist = (rig.joint_names.index(name) for name in (ELBOW, WRIST))
    along = body.heads[wrist] - body.heads[elbow]
    length = np.linalg.norm(along)
    middle = body.heads[elbow] + 0.5 * along
    away = rig.rest - middle
    near = np.clip(1 - (np.linalg.norm(away, axis=1) / (AROUND * length)) ** 2, 0, None)
    outward = away - (away @ along)[:, None] * along / length**2
    bulge = SWELLS * length * near[:, None] * outward / np.maximum(np.linalg.norm(outward, axis=1), 1e-9)[:, None]
    matrices = np.array([body.matrices(local) for local in rotations])
    shapes = []
    for pose, posed in zip(poses, matrices, strict=True):
        product = np.radians(pose.get(ELBOW, 0.0)) * np.radians(pose.get(WRIST, 0.0))
        shapes.append(skin_frame(rig.rest + product * bulge, rig.bones, rig.weights, posed, "DQS"))
    return Examples(tuple(f"pose {row + 1}" for row in range(len(poses))), rotations, matrices, np.array(shapes))
