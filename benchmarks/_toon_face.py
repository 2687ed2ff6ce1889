# SPDX-License-Identifier: GPL-3.0-or-later
"""A toon's head that is built here, unlike a scanned one: few and large motions, parts that turn by half a right angle
and more, lids and brows that lie apart, a head that squashes and stretches. In centimeters; the face looks along −y.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

SIDES = {"L": 1.0, "R": -1.0}
_JAW = np.array([0.0, 2.0, -1.0])
_EYE = np.array([3.6, -7.6, 2.8])
_EYE_RADIUS, _LID_RADIUS = 2.2, 2.45
_MOUTH = np.array([0.0, -9.0, -4.0])
_TONGUE, _THROAT = np.array([0.0, -6.0, -4.8]), np.array([0.0, -3.0, -4.8])
_TEETH = np.array([0.0, -6.0, -3.1]), np.array([0.0, -6.0, -5.9])
_BROW = np.array([0.0, -1.8, 3.6])


@dataclass
class ToonFace:
    """rest (N, 3), faces (T, 4): a face of three corners has -1 as its fourth; names and deltas (S, N, 3) of shapes."""

    rest: np.ndarray
    faces: np.ndarray
    names: list[str] = field(default_factory=list)
    deltas: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 3), np.float32))


def toon_face(detail: float = 1.0, symmetric: bool = True) -> ToonFace:
    """With about 10,600 vertices · detail² and 37 shapes; 25 if it is not symmetric, where those of its right side are
    missing and its left side lags behind."""
    parts: dict[str, tuple[int, int]] = {}
    points, faces, count = [], [], 0
    for name, (part, squares) in _parts(detail).items():
        parts[name] = count, count + len(part)
        points.append(part)
        faces.append(squares + count)
        count += len(part)
    rest = np.concatenate(points)
    places = {name: slice(*ends) for name, ends in parts.items()}
    shapes = {name: move(rest, places) for name, move in _shapes().items()}
    if not symmetric:
        shapes = {name: moved for name, moved in shapes.items() if not name.endswith("_R")}
        behind = 1.0 - 0.35 * np.clip(rest[:, :1] / 8.0, 0.0, 1.0)
        shapes = {name: rest + behind * (moved - rest) for name, moved in shapes.items()}
    deltas = np.stack([moved - rest for moved in shapes.values()]).astype(np.float32)
    return ToonFace(rest, np.concatenate(faces), list(shapes), deltas)


def _parts(detail: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points and faces of each part."""

    def ball(across: int, up: int, radii, center, low=0.0, high=1.0) -> tuple[np.ndarray, np.ndarray]:
        points, squares = _ball(max(round(detail * across), 6), max(round(detail * up), 4), low, high)
        return points * radii + center, squares

    parts = {
        "head": ball(96, 64, (9.0, 10.0, 11.0), 0.0),
        "tongue": ball(24, 16, (1.8, 3.2, 0.7), _TONGUE),
        "upper teeth": ball(32, 10, (3.0, 3.2, 0.8), _TEETH[0]),
        "lower teeth": ball(32, 10, (2.8, 3.0, 0.8), _TEETH[1]),
    }
    for side, sign in SIDES.items():
        center = _EYE * [sign, 1.0, 1.0]
        parts[f"eye_{side}"] = ball(32, 24, _EYE_RADIUS, center)
        parts[f"upper lid_{side}"] = ball(32, 14, _LID_RADIUS, center, 0.52, 1.0)
        parts[f"lower lid_{side}"] = ball(32, 10, _LID_RADIUS, center, 0.0, 0.3)
        parts[f"brow_{side}"] = ball(20, 10, (2.2, 0.5, 0.45), center + _BROW)
    # Right halves are the mirror images of the left, vertex by vertex.
    for name in [name for name in parts if name.endswith("_R")]:
        points, squares = parts[f"{name[:-1]}L"]
        parts[name] = points * [-1.0, 1.0, 1.0], squares[:, ::-1]
    return parts


def _ball(across: int, up: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """A part of the unit sphere from ``low`` to ``high``, open at both ends: points, and faces of four corners."""
    turn = 2 * np.pi * np.arange(across) / across
    height = np.pi * (np.linspace(low, high, up) * 0.96 + 0.02 - 0.5)
    turn, height = (each.ravel() for each in np.meshgrid(turn, height))
    points = np.stack([np.cos(height) * np.sin(turn), -np.cos(height) * np.cos(turn), np.sin(height)], axis=1)
    corner = np.arange(across * up).reshape(up, across)
    after = np.roll(corner, -1, axis=1)
    return points, np.stack([corner[:-1], after[:-1], after[1:], corner[1:]], axis=-1).reshape(-1, 4)


Move = Callable[[np.ndarray, dict[str, slice]], np.ndarray]


def _shapes() -> dict[str, Move]:
    pucker, funnel = np.array([[-0.45, 0.0, -0.1], [0.0, -1.3, 0.0]]), np.array([[-0.2, 0.0, 0.4], [0.0, -0.9, 0.0]])
    shapes: dict[str, Move] = {
        "jawOpen": _jaw([-0.45, 0.0, 0.0]),
        "jawLeft": _jaw([0.0, 0.0, 0.2]),
        "jawRight": _jaw([0.0, 0.0, -0.2]),
        "jawForward": _jaw([0.0, 0.0, 0.0], [0.0, -1.2, 0.0]),
        "mouthPucker": _on_head(_MOUTH, 3.5, lambda away: away * pucker[0] + pucker[1]),
        "mouthFunnel": _on_head(_MOUTH, 3.5, lambda away: away * funnel[0] + funnel[1]),
        "tongueOut": _parts_moved(["tongue"], move=[0.0, -4.5, -0.3]),
        "tongueUp": _parts_moved(["tongue"], [0.5, 0.0, 0.0], about=_THROAT),
        "tongueCurl": _curled,
        "headSquash": lambda rest, places: rest * [1.18, 1.18, 0.72],
        "headStretch": lambda rest, places: rest * [0.86, 0.86, 1.35],
        "headBendLeft": _bent(2.5),
        "headBendRight": _bent(-2.5),
    }
    for side, sign in SIDES.items():
        eye, lids = [f"eye_{side}"], _EYE * [sign, 1.0, 1.0]
        upper, lower = [f"upper lid_{side}"], [f"lower lid_{side}"]
        corner = _MOUTH + np.array([3.0 * sign, 0.0, 0.0])
        looks = {"Up": [0.45, 0, 0], "Down": [-0.45, 0, 0], "In": [0, 0, -0.5 * sign], "Out": [0, 0, 0.5 * sign]}
        for name, turn in looks.items():
            shapes[f"eyeLook{name}_{side}"] = _parts_moved(eye, [-turn[0], turn[1], turn[2]], about=lids)
        shapes |= {
            f"eyeBlink_{side}": _parts_moved(upper, [1.1, 0.0, 0.0], about=lids),
            f"eyeSquint_{side}": _parts_moved(lower, [-0.6, 0.0, 0.0], about=lids),
            f"browUp_{side}": _parts_moved([f"brow_{side}"], [0.0, 0.25 * sign, 0.0], [0.0, 0.0, 1.6], lids),
            f"browDown_{side}": _parts_moved([f"brow_{side}"], [0.0, -0.35 * sign, 0.0], [0.0, 0.0, -1.2], lids),
            f"cheekPuff_{side}": _puffed([5.5 * sign, -6.5, -2.5], 3.0, 1.8),
            f"mouthSmile_{side}": _on_head(corner, 2.5, _moved_by(1.3 * sign, 0.6, 1.4)),
            f"mouthFrown_{side}": _on_head(corner, 2.5, _moved_by(0.3 * sign, 0.2, -1.5)),
            f"noseSneer_{side}": _on_head(np.array([1.5 * sign, -9.8, -0.5]), 1.8, _moved_by(0.0, 0.1, 0.9)),
        }
    return shapes


def _rotated(points: np.ndarray, turn, about) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(turn).apply(points - about) + about


def _jaw(turn, move=(0.0, 0.0, 0.0)) -> Move:
    def moved(rest: np.ndarray, places: dict[str, slice]) -> np.ndarray:
        share = np.zeros((len(rest), 1))
        head = rest[places["head"]]
        low, front = (1.0 / (1.0 + np.exp(each)) for each in ((head[:, 2] + 4.0) / 0.8, (head[:, 1] + 1.0) / 1.5))
        share[places["head"], 0] = low * front
        share[places["lower teeth"]] = share[places["tongue"]] = 1.0
        return rest + share * (_rotated(rest, np.negative(turn), _JAW) + move - rest)

    return moved


def _parts_moved(names: list[str], turn=(0.0, 0.0, 0.0), move=(0.0, 0.0, 0.0), about=(0.0, 0.0, 0.0)) -> Move:
    def moved(rest: np.ndarray, places: dict[str, slice]) -> np.ndarray:
        result = rest.copy()
        for name in names:
            result[places[name]] = _rotated(rest[places[name]], turn, about) + move
        return result

    return moved


def _on_head(center, reach: float, change: Callable[[np.ndarray], np.ndarray]) -> Move:
    def moved(rest: np.ndarray, places: dict[str, slice]) -> np.ndarray:
        result, head = rest.copy(), rest[places["head"]]
        away = head - center
        fade = np.exp(-np.square(away).sum(axis=1) / (2.0 * (0.6 * reach) ** 2))
        result[places["head"]] += fade[:, None] * change(away)
        return result

    return moved


def _moved_by(*move: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda away: np.tile(move, (len(away), 1))


def _puffed(center, reach: float, amount: float) -> Move:
    def outward(away: np.ndarray) -> np.ndarray:
        return amount * (away + center) / np.linalg.norm(away + center, axis=1, keepdims=True)

    return _on_head(np.asarray(center), reach, outward)


def _curled(rest: np.ndarray, places: dict[str, slice]) -> np.ndarray:
    result, tongue = rest.copy(), rest[places["tongue"]]
    back = tongue[:, 1].max()
    angle = 0.22 * (back - tongue[:, 1])
    radius = 1.0 / 0.22
    height = tongue[:, 2] - tongue[:, 2].mean()
    result[places["tongue"], 1] = back - (radius - height) * np.sin(angle)
    result[places["tongue"], 2] = tongue[:, 2].mean() + radius - (radius - height) * np.cos(angle)
    return result


def _bent(across: float) -> Move:
    def moved(rest: np.ndarray, places: dict[str, slice]) -> np.ndarray:
        share = np.clip((rest[:, 2] + 11.0) / 22.0, 0.0, 1.0)[:, None] ** 2
        return rest + share * [across, 0.0, -0.4]

    return moved
