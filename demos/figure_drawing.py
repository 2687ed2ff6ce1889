# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures on white paper: colors, axes, and meshes that matplotlib draws without a renderer."""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's colors, which color-blind people can distinguish; black is for text.
ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PINK, GRAY = PALETTE = (
    *("#e69f00", "#56b4e9", "#009e73", "#f0e442"),
    *("#0072b2", "#d55e00", "#cc79a7", "#8c8c8c"),
)
TEXT, MUTED, SKIN = "#1a1a1a", "#555555", "#dcdcdc"
WIDTH, DPI = 10.0, 140
plt.rcParams |= {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "savefig.facecolor": "white",
}
# From little to much; from inwards to outwards.
SHADES = LinearSegmentedColormap.from_list("shades", [SKIN, SKY, BLUE, "#00304d"])
TWO_SIDED = LinearSegmentedColormap.from_list("two-sided", ["#2d004b", "#8073ac", SKIN, "#e08214", "#7f3b08"])
_LIGHT = np.array([-0.45, 0.65, 0.62])
_AMBIENT = 0.62


def subplots(rows: int, columns: int, height: float, **options):
    """Figure and axes as ``pyplot.subplots`` gives them, WIDTH by ``height`` inches."""
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), dpi=DPI, layout="constrained", **options)
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    return figure, axes


def save(figure, path: Path) -> Path:
    figure.savefig(path)
    plt.close(figure)
    return path


def plain_log(axis, steps=(1, 2, 5)) -> None:
    """Plain numbers, 0.5, 1, 2, 5, 10, on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def color_bar(figure, axes, shades, low: float, high: float, label: str = ""):
    """Below ``axes``."""
    scale = ScalarMappable(Normalize(low, high), shades)
    return figure.colorbar(scale, ax=axes, orientation="horizontal", shrink=0.4, aspect=30, label=label)


@dataclass(frozen=True, eq=False)
class View:
    """An orthographic view. axes (3, 3): rows that point to the right, up, and to the eye."""

    axes: np.ndarray

    @classmethod
    def of(cls, toward_eye, up=(0.0, 0.0, 1.0)) -> "View":
        back = np.asarray(toward_eye, float) / np.linalg.norm(toward_eye)
        right = np.cross(up, back)
        right /= np.linalg.norm(right)
        return cls(np.stack([right, np.cross(back, right), back]))

    def seen(self, points: np.ndarray) -> np.ndarray:
        """(n, 3): right, up and toward the eye."""
        return np.asarray(points, float) @ self.axes.T


def draw_surface(axes, view: View, points: np.ndarray, triangles: np.ndarray, colors) -> None:
    """Draw a closed mesh on ``axes``, lit from the upper left. colors: one, or (N, 3) of the vertices, or (T, 3)."""
    seen = view.seen(points)
    corners = seen[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(seen)
    for corner in triangles.T:
        np.add.at(normals, corner, across)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    light = np.clip(normals @ (_LIGHT / np.linalg.norm(_LIGHT)), 0, 1)[triangles].mean(axis=1)
    tint = np.asarray(to_rgb(colors) if isinstance(colors, str) else colors, float)
    if tint.shape == (len(points), 3):
        tint = tint[triangles].mean(axis=1)
    faces = np.clip(np.broadcast_to(tint, (len(triangles), 3)) * (_AMBIENT + (1.12 - _AMBIENT) * light[:, None]), 0, 1)
    front = np.flatnonzero(across[:, 2] > 0)
    front = front[np.argsort(corners[front, :, 2].mean(axis=1), kind="stable")]
    # Edges in the faces' colors close the hairlines that smoothing leaves between neighbors.
    patch = PolyCollection(corners[front, :, :2], facecolors=faces[front], edgecolors=faces[front], linewidths=0.35)
    axes.add_collection(patch)


def fit(axes, view: View, *points: np.ndarray, margin: float = 0.03) -> None:
    """Show all ``points`` (n, 3) in true proportion, without axes."""
    seen = view.seen(np.concatenate(points))[:, :2]
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = margin * (high - low).max()
    axes.set_xlim(low[0] - room, high[0] + room)
    axes.set_ylim(low[1] - room, high[1] + room)
    axes.set_aspect("equal")
    axes.axis("off")


def mark(axes, view: View, points: np.ndarray, **style) -> None:
    """Dots at ``points`` (n, 3), over everything drawn before."""
    seen = view.seen(np.atleast_2d(points))
    axes.scatter(seen[:, 0], seen[:, 1], **({"zorder": 5, "linewidths": 0} | style))


def mixed(colors, shares: np.ndarray, base: str = SKIN) -> np.ndarray:
    """(N, 3) of ``colors`` (P, 3) by ``shares`` (N, P); the rest up to 1 is ``base``."""
    rest = 1 - shares.sum(axis=1, keepdims=True)
    return np.clip(shares @ np.asarray(colors) + rest * np.array(to_rgb(base)), 0, 1)


def bone_colors(owners: np.ndarray, triangles: np.ndarray, count: int) -> np.ndarray:
    """(P, 3) of the palette: bones that own vertices of one triangle differ. owners (N,)."""
    touching = np.zeros((count, count), bool)
    for one, other in ((0, 1), (1, 2), (2, 0)):
        touching[owners[triangles[:, one]], owners[triangles[:, other]]] = True
    touching |= touching.T
    chosen = np.full(count, -1)
    for bone in np.argsort(-touching.sum(axis=1), kind="stable"):
        used = np.bincount(chosen[chosen >= 0], minlength=len(PALETTE))
        near = np.bincount(chosen[touching[bone] & (chosen >= 0)], minlength=len(PALETTE))
        chosen[bone] = np.lexsort((used, near))[0]
    return np.array([to_rgb(color) for color in PALETTE])[chosen]
