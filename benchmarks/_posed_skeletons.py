# SPDX-License-Identifier: GPL-3.0-or-later
"""What skeletons found in motion are worth to who poses them: joints that slip, skin that tears, parts taken along."""

import sys

import numpy as np
from _sequences import ROOT, captured  # beside this file
from _tables import Tables

sys.path.insert(0, str(ROOT / "demos"))

from human_rig import MOTIONS, HumanArrays, read_human

from skinning_tools.core.animation import Animation, unit_scale
from skinning_tools.core.bone_order import subtrees
from skinning_tools.core.decomposition import Decomposition, Settings
from skinning_tools.core.decomposition.skeleton import find_skeleton
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.geometry import diagonal
from skinning_tools.core.joint_hierarchy import JointHierarchy
from skinning_tools.core.pose_test import shares_below, stretches, turns
from skinning_tools.core.solve_effort import POSABLE_SMOOTHNESS
from skinning_tools.core.strongest import strongest_bones

MOST_BONES = 60
CAPTURED = "samba", "horse_gallop"
JOINTS = {False: "as read", True: "Rotation Only"}
# Degrees; bones that are the strongest of fewer vertices have no part of the skin.
_MOVING, _FEWEST = 10.0, 3


def posed_skeletons(tables: Tables) -> None:
    """A table of skeletons with free and with held joints, and of the human rig's own."""
    tables.begin(
        "Skeletons that are posed",
        f"Up to {MOST_BONES} Rigid bones, with joints as they are read out of free bones, and with Rotation Only. "
        "*Joint slip*: the largest of any joint in any frame, in percent of the body's diagonal. *Torn edges*: the "
        "edges that become longer than twice their length when any bone is turned by 30° about any axis, both ways. "
        "*Taken along*: vertices that the turn of some bone by 45° moves by more than 2 % of the body's size, although "
        "they follow most neither this bone, nor one below it, nor its parent. *Joints within 3 %*: of those where "
        f"bones of the human rig turn by more than {_MOVING:g}° against the bone above. Human: walk and shamble, after "
        "the rest pose.",
        *("body", "joints", "bones", "E_RMS", "joint slip", "torn edges", "taken along", "joints within 3 %"),
    )
    for name in CAPTURED:
        animation = captured(name)
        for held, joints in JOINTS.items():
            tables.row(name, joints, *_figures(animation, *skeleton_of(animation, held)), "")
    human = read_human()
    animation, own_joints = _animated(human), _moving_joints(human)
    for held, joints in JOINTS.items():
        found, tree = skeleton_of(animation, held)
        distances = np.linalg.norm(tree.joints[tree.parents >= 0, None] - own_joints, axis=2)
        near = distances.min(axis=0) / diagonal(human.rest)
        tables.row("human", joints, *_figures(animation, found, tree), f"{np.mean(near < 0.03):.2f} of {len(near)}")
    skin = human.rest, human.bones, human.weights, human.parents, human.heads
    tables.row("human", "its own", str(len(human.parents)), "", "", *_posed(human.triangles, *skin), "")


def skeleton_of(animation: Animation, held: bool) -> tuple[Decomposition, JointHierarchy]:
    """As Convert Animation finds it; held: with Rotation Only."""
    settings = Settings(MOST_BONES, "RIGID", prune=True, smoothness=POSABLE_SMOOTHNESS)
    return find_skeleton(animation, [len(animation.frames)], settings, held=held)[:2]


def _figures(animation: Animation, found: Decomposition, tree: JointHierarchy) -> list[str]:
    linked = np.flatnonzero(tree.parents >= 0)
    apart = found.transforms[:, linked] - found.transforms[:, tree.parents[linked]]
    slips = np.linalg.norm(np.einsum("fpij,pj->fpi", apart[..., :3], tree.joints[linked]) + apart[..., 3], axis=2)
    slip = 100.0 * slips.max() / diagonal(animation.frames[0])
    posed = _posed(animation.triangles, found.rest, found.bones, found.weights, tree.parents, tree.joints)
    return [str(found.bone_count), f"{found.e_rms:.2f}", f"{slip:.3f}", *posed]


def _posed(
    triangles: np.ndarray,
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    parents: np.ndarray,
    heads: np.ndarray,
) -> list[str]:
    """The edges that tear, and the vertices that a bone takes along, of all."""
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    lengths = np.linalg.norm(rest[edges[:, 0]] - rest[edges[:, 1]], axis=1)
    shares = list(shares_below(bones, weights, parents))
    frames = np.tile(np.eye(4), (len(parents), 1, 1))
    frames[:, :3, 3] = heads
    torn, taken = np.zeros(len(edges), bool), np.zeros(len(rest), bool)
    for turn in turns(rest, shares, frames, np.radians(30.0)):
        torn |= stretches(turn.points, edges, lengths) > 2.0
    most = 0.02 * 2.0 / unit_scale(rest[None])
    strongest, below = strongest_bones(bones, weights), subtrees(parents)
    for turn in turns(rest, shares, frames, np.radians(45.0)):
        if parents[turn.bone] >= 0:
            own = below[turn.bone].copy()
            own[parents[turn.bone]] = True
            taken |= (np.linalg.norm(turn.points - rest, axis=1) > most) & ~own[strongest]
    return [f"{torn.sum():,} of {len(edges):,}", f"{taken.sum():,} of {len(rest):,}"]


def _animated(human: HumanArrays) -> Animation:
    motion = np.concatenate([human.matrices[name] for name in MOTIONS])
    frames = [human.rest, *(skin_frame(human.rest, human.bones, human.weights, matrices) for matrices in motion)]
    return Animation(np.array(frames), human.triangles, name="human")


def _moving_joints(human: HumanArrays) -> np.ndarray:
    """(J, 3) the heads of bones that turn against the nearest bone above that moves skin, too."""
    counts = np.bincount(strongest_bones(human.bones, human.weights), minlength=len(human.parents))
    motion = np.concatenate([human.matrices[name] for name in MOTIONS])
    heads = []
    for bone in np.flatnonzero(counts >= _FEWEST):
        above = human.parents[bone]
        while above >= 0 and counts[above] < _FEWEST:
            above = human.parents[above]
        if above >= 0:
            turn = np.swapaxes(motion[:, above, :, :3], -1, -2) @ motion[:, bone, :, :3]
            cosines = 0.5 * (np.trace(turn, axis1=1, axis2=2) - 1.0)
            if cosines.min() < np.cos(np.radians(_MOVING)):
                heads.append(human.heads[bone])
    return np.array(heads)
