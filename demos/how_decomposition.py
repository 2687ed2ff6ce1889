# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of docs/how_decomposition_works.md: sweeps, bones, influences and reduction, as in Kavan et al. 2010."""

import json
from dataclasses import dataclass
from pathlib import Path

import creature
import flag_scene
import numpy as np
from figure_drawing import (
    BLUE,
    GRAY,
    GREEN,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    View,
    bone_colors,
    draw_surface,
    fit,
    mixed,
    plain_log,
    save,
    subplots,
)
from human_rig import DATA

from benchmarks._baselines import clustered_pca
from benchmarks._baselines.approximations import measured
from demos.objects import triangles
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.decomposition.kavan2010 import REDUCTION_ERROR, first_regions
from skinning_tools.core.decomposition.reduction import AnimationMatrix, Reduction, reduce_animation
from skinning_tools.core.deform import skin_frame, vertex_normals
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.progress import ignore
from tests.blender import scenes

CAPTURED = {"horse_gallop": "galloping horse", "horse_collapse": "collapsing horse", "samba": "dancer"} | {
    "elastic_cow": "elastic cow"
}
SWEEPS = 30
BONES = 24
CLUSTERS = 10
COUNTS = (4, 8, 16, 32, 64)
PUBLISHED, STANDARD = "as published", "ours"
METHODS = {PUBLISHED: ("KAVAN2010", ORANGE, "--"), STANDARD: ("STANDARD", BLUE, "-")}
KINDS = {"rigid": ("RIGID", GREEN), "scaled": ("SCALED", SKY), "affine": ("AFFINE", BLUE)}
STRATEGIES = {
    "each vertex in turn (Gram–Schmidt)": ("GRAM_SCHMIDT", GRAY),
    "longest column (the paper's choice)": ("MAXIMUM_NORM", ORANGE),
    "one power iteration": ("POWER_1", PINK),
    "eigenvectors (ours, the optimum)": ("EXACT", BLUE),
}
LIGHTEST_KEPT = 0.02


@dataclass(frozen=True)
class Sequence:
    """title: with what it shows. paper: the E_RMS that the paper reports after its 15 iterations, where it has it."""

    title: str
    animation: Animation
    bones: int
    paper: float | None = None


def draw_all(folder: Path, quick: bool) -> None:
    made = generated(quick)
    captured = [] if quick else recorded()
    print(draw_convergence(folder / "decomposition_convergence.png", made + captured, 4 if quick else SWEEPS))
    counts = COUNTS[:2] if quick else COUNTS
    print(draw_bone_counts(folder / "decomposition_bone_counts.png", made, counts))
    print(draw_influences(folder / "decomposition_influences.png", made[0], 4 if quick else SWEEPS))
    print(draw_reduction(folder / "decomposition_reduction.png", made), flush=True)
    print(draw_orthogonality(folder / "decomposition_orthogonality.png", made[1]), flush=True)
    print(draw_clusters(folder / "decomposition_clusters.png", made[1], 4 if quick else CLUSTERS), flush=True)


def generated(quick: bool) -> list[Sequence]:
    """Sequences made by Blender: the walking creature and the flag in the wind."""
    body = creature.build(0.09 if quick else 0.045).body
    walk = Animation(scenes.played(body, range(1, creature.FRAMES + 1)), triangles(body.data), name="creature")
    flag_scene.empty_file()
    count = 5 if quick else 120
    wind = Animation(*flag_scene.played_frames(flag_scene.add_cloth(count), flag_scene.FIRST_FRAME, count), name="flag")
    return [Sequence("walking creature", walk, BONES), Sequence("flag in the wind", wind, BONES)]


def recorded() -> list[Sequence]:
    """The paper's own sequences next to the checkout."""
    file = DATA / "reference_errors.json"
    if not file.is_file():
        print("The paper's sequences are left out: they are not next to the checkout (../shared/data)")
        return []
    table = json.loads(file.read_text())["kavan2010_table2"]
    found = []
    for name, title in CAPTURED.items():
        with np.load(DATA / f"{name}.npz") as data:
            animation = Animation(data["frames"], data["triangles"], name=name)
        row = dict(zip(table["columns"], table[name], strict=True))
        found.append(Sequence(title, animation, row["bones"], row["kavan"]))
    return found


def draw_convergence(path: Path, sequences: list[Sequence], sweeps: int) -> Path:
    """E_RMS after each sweep, the published algorithm and ours (the paper's figure 8)."""
    columns = min(3, len(sequences))
    rows = -(-len(sequences) // columns)
    figure, grid = subplots(rows, columns, 0.6 + 2.7 * rows, squeeze=False)
    for axes, sequence in zip(grid.flat, sequences, strict=False):
        for label, (method, color, line) in METHODS.items():
            settings = Settings(sequence.bones, iterations=sweeps, method=method)
            history = decompose(sequence.animation, settings).history
            axes.plot(np.arange(1, len(history) + 1), history, line, color=color, label=label)
            print(f"{sequence.title}, {label}: E_RMS {history[-1]:.3f}")
        if sequence.paper:
            axes.plot(15, sequence.paper, "D", color=ORANGE, markeredgecolor="black", label="reported in the paper")
        axes.set_yscale("log")
        plain_log(axes.yaxis, (1, 1.5, 2, 3, 4, 6, 8))
        axes.set_xlim(0, sweeps + 0.5)
        axes.set_title(f"{sequence.title}, {sequence.bones} bones", fontsize=11)
    for axes in grid[:, 0]:
        axes.set_ylabel("E_RMS, ‰")
    for axes in grid[-1]:
        axes.set_xlabel("sweep")
    handles, labels = grid.flat[len(sequences) - 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return save(figure, path)


def draw_bone_counts(path: Path, sequences: list[Sequence], counts) -> Path:
    """E_RMS over the number of bones, for each kind, and the lower bound for linear skinning with so many bones."""
    figure, row = subplots(1, len(sequences), 4.4)
    for axes, sequence in zip(row, sequences, strict=True):
        for label, (kind, color) in KINDS.items():
            errors = [decompose(sequence.animation, Settings(count, kind)).e_rms for count in counts]
            axes.plot(counts, errors, "o-", color=color, label=f"{label} bones")
            if label == "affine":
                print(f"{sequence.title}, affine: " + ", ".join(f"{error:.2f}" for error in errors))
        published = [decompose(sequence.animation, Settings(count, method="KAVAN2010")).e_rms for count in counts]
        axes.plot(counts, published, "s--", color=ORANGE, label="affine, as published")
        axes.plot(counts, lower_bounds(sequence.animation, counts), ":", color=GRAY, label="SVD: the lower bound")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        axes.set_ylim(0.5 * errors[-1], None)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlabel("bones")
        axes.set_title(sequence.title)
    row[0].set_ylabel("E_RMS, ‰")
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return save(figure, path)


def lower_bounds(animation: Animation, counts) -> np.ndarray:
    """E_RMS that 4P components leave: T X has no higher rank, whatever the weights (Eckart & Young 1936)."""
    matrix = AnimationMatrix(animation.frames)
    full = reduce_animation(matrix, 1e-9)
    left = remaining(matrix, full)
    return np.array([left[min(4 * count, len(left) - 1)] for count in counts])


def remaining(matrix: AnimationMatrix, reduction: Reduction) -> np.ndarray:
    """(d + 1,) E_RMS of the part that the first 0, 1, … directions of a reduction leave out."""
    held = np.append(0.0, np.cumsum(np.square(reduction.coefficients).sum(axis=0)))
    squared = np.maximum(matrix.squared_norm - held, 0)
    return 1000 * np.sqrt(squared / (matrix.height * matrix.vertex_count))


def draw_influences(path: Path, sequence: Sequence, sweeps: int) -> Path:
    """The initial regions of the published algorithm, the regions after its sweeps, and ours (figures 2, 5)."""
    animation, count = sequence.animation, sequence.bones
    matrix = AnimationMatrix(animation.frames)
    reduction = reduce_animation(matrix, REDUCTION_ERROR, "MAXIMUM_NORM")
    state = first_regions(matrix, reduction, animation.triangles, count, 4, ignore)
    frame = len(animation.frames) // 3
    pictures = {
        f"Regions grown from seeds\n{count} bones": (
            weight_matrix(state.bones, state.weights, count),
            animation.frames[0],
        )
    }
    for title, settings in (
        (f"{sweeps} sweeps as published", Settings(count, iterations=sweeps, method="KAVAN2010")),
        (f"{sweeps} sweeps of ours", Settings(count, iterations=sweeps)),
        (f"{sweeps} sweeps of ours, rigid bones", Settings(count, "RIGID", iterations=sweeps)),
    ):
        result = decompose(animation, settings)
        skin = result.bones, result.weights
        played = skin_frame(result.rest, *skin, result.transforms[frame])
        pictures[f"{title}\nE_RMS {result.e_rms:.2f} ‰"] = weight_matrix(*skin, count), played
    view = View.of((0.35, -1.0, 0.2))
    figure, grid = subplots(2, 2, 6.8)
    for axes, (title, (matrix, points)) in zip(grid.flat, pictures.items(), strict=True):
        shares = matrix.toarray()
        colors = bone_colors(shares.argmax(axis=1), animation.triangles, count)
        draw_surface(axes, view, points, animation.triangles, mixed(colors, shares))
        fit(axes, view, points)
        axes.set_title(title, loc="center")
    return save(figure, path)


def draw_reduction(path: Path, sequences: list[Sequence]) -> Path:
    """The loss of a reduction to d dimensions, by the choice of its directions (the paper's table 1)."""
    figure, row = subplots(1, len(sequences), 4.2)
    for axes, sequence in zip(row, sequences, strict=True):
        matrix = AnimationMatrix(sequence.animation.frames)
        for label, (strategy, color) in STRATEGIES.items():
            left = remaining(matrix, reduce_animation(matrix, LIGHTEST_KEPT / 1000, strategy))
            axes.plot(np.arange(len(left)), left, color=color, label=label)
        for error, label, color, x in (
            (1000 * REDUCTION_ERROR, "the paper's ε", ORANGE, 0.75),
            (0.1, "ours", BLUE, 0.3),
        ):
            axes.axhline(error, color=color, linewidth=1.0, linestyle="--")
            axes.text(x, error, label, transform=axes.get_yaxis_transform(), ha="center", va="bottom", color=MUTED)
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        axes.set_ylim(LIGHTEST_KEPT, None)
        axes.set_xlabel("dimension d")
        axes.set_title(f"{sequence.title}, 3F = {matrix.height}")
    row[0].set_ylabel("left out, as E_RMS in ‰")
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return save(figure, path)


def draw_orthogonality(path: Path, sequence: Sequence) -> Path:
    """|BᵀB − I| of Algorithm 1 without and with its line 5 (the paper's figure 4)."""
    matrix = AnimationMatrix(sequence.animation.frames)
    figure, row = subplots(1, 2, 4.2)
    for axes, (title, stabilize) in zip(row, (("without line 5", False), ("with line 5", True)), strict=True):
        basis = reduce_animation(matrix, REDUCTION_ERROR, "MAXIMUM_NORM", stabilize=stabilize).basis
        entries = np.abs(basis.T @ basis - np.eye(basis.shape[1]))
        shown = axes.imshow(np.log10(np.maximum(entries, 1e-18)), vmin=-18, vmax=-10, cmap="viridis")
        axes.grid(False)
        axes.set_title(f"{title}, d = {basis.shape[1]}")
        print(f"{sequence.title}, orthogonality {title}: {entries.max():.1e}")
    figure.colorbar(shown, ax=list(row), label="decadic logarithm of |BᵀB − I|")
    return save(figure, path)


def draw_clusters(path: Path, sequence: Sequence, count: int) -> Path:
    """One frame by clustered PCA and by skinning with as many numbers a frame (the paper's figure 7)."""
    animation = sequence.animation
    clusters = clustered_pca.approximate(animation, count)
    skinned = decompose(animation, Settings(count))
    skin = skinned.bones, skinned.weights
    row = len(animation.frames) // 2
    shown = {
        f"{sequence.title}, frame {row + 1}": animation.frames[row],
        f"Clustered PCA, {count} clusters": clusters.frame(row),
        f"Skinning, {count} bones": skin_frame(skinned.rest, *skin, skinned.transforms[row]),
    }
    errors = (None, measured(animation, clusters)[0], skinned.e_rms)
    real = vertex_normals(animation.frames[row], animation.triangles)
    view = View.of((0.25, -1.0, 0.25))
    figure, axes = subplots(1, len(shown), 3.4)
    for place, (title, points), error in zip(axes, shown.items(), errors, strict=True):
        if error is not None:
            cosines = np.sum(vertex_normals(points, animation.triangles) * real, axis=1)
            angle = np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()
            title += f"\nE_RMS {error:.2f} ‰, normals off by {angle:.1f}°"
            print(f"{title}".replace("\n", ": "))
        draw_surface(place, view, points, animation.triangles, SKY)
        fit(place, view, animation.frames[row])
        place.set_title(title, loc="center", fontsize=10)
    return save(figure, path)
