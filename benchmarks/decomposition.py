# SPDX-License-Identifier: GPL-3.0-or-later
"""Error and time of the decomposition on the sequences of Kavan et al. 2010, beside the paper's own figures; what
residual shapes and suggested numbers of bones leave.

Reads ../shared/data. The time is that of the solve, from the reduction to the transforms, the shortest of a few runs:
on a machine that does other things too, that is the one that was disturbed least. The paper's seconds were measured on
a dual-core desktop of 2010.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _tables import Tables  # noqa: E402 (beside this file)

from skinning_tools.core.animation import (  # noqa: E402 (the checkout, not an installed copy)
    Animation,
    ErrorMeter,
    unit_scale,
)
from skinning_tools.core.bone_channels import bone_channels  # noqa: E402
from skinning_tools.core.bone_placement import place_bones  # noqa: E402
from skinning_tools.core.bone_suggestion import suggest_bone_count  # noqa: E402
from skinning_tools.core.decomposition import BONE_KINDS, Decomposition, Settings, decompose  # noqa: E402
from skinning_tools.core.decomposition.clips import clip_errors, decompose_clips  # noqa: E402
from skinning_tools.core.decomposition.kavan2010 import REDUCTION_ERROR  # noqa: E402
from skinning_tools.core.decomposition.reduction import STRATEGIES, AnimationMatrix, reduce_animation  # noqa: E402
from skinning_tools.core.decomposition.transforms import to_rows  # noqa: E402
from skinning_tools.core.deform import (  # noqa: E402
    blended_normals,
    dominant_transforms,
    skin_frame,
    transformed_normals,
    vertex_normals,
    vertex_transforms,
)
from skinning_tools.core.deform.surface import normal_errors  # noqa: E402
from skinning_tools.core.solve_effort import QUALITIES  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SEQUENCES = (("horse_gallop", 30), ("horse_collapse", 6), ("samba", 30), ("elastic_cow", 18))
COLUMNS = {"sequence": 15, "bones": 7, "kind": 8, "E_RMS": 8, "largest error": 15, "d": 5, "seconds": 9} | {
    "paper's E_RMS": 15, "paper's seconds": 17, "error / paper": 15
}  # fmt: skip
SHAPES = (1, 3, 10)
CLIPS, CLIP_BONES = ("horse_gallop", "horse_collapse"), (6, 18, 30)
# About as many frames as Suggest reads.
LOOKED_AT = 16
NORMALS_EVERY = 10
SOLVE_STAGES = ("reduction", "segmentation", "iterations", "transforms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="solves of each sequence (3)")
    parser.add_argument("--kinds", nargs="+", choices=BONE_KINDS, default=list(BONE_KINDS))
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument("--only", choices=MORE, help="only this table; --write leaves the others as they are")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("The sequences are not next to the checkout (../shared/data).")
        return 1
    if not options.only:
        show_table(options)
    tables = Tables(first=16)
    for name in [options.only] if options.only else MORE:
        MORE[name](tables)
    if options.write:
        tables.replace(options.write)
    return 0


def show_table(options: argparse.Namespace) -> None:
    """Print the first table, and write the page with this table only."""
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    rows = []
    print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for name, bone_count in SEQUENCES:
        paper = dict(zip(table["columns"], table[name], strict=True))
        for kind in options.kinds:
            rows.append(measure(name, bone_count, kind, paper, options.runs))
            print(
                "".join(f"{cell:>{width}}" for cell, width in zip(rows[-1], COLUMNS.values(), strict=True)), flush=True
            )
    ratios = [float(row[-1]) for row in rows if row[-1]]
    mean = f"Geometric mean of error / paper, affine bones: {np.exp(np.mean(np.log(ratios))):.2f}" if ratios else ""
    print(mean)
    if options.write:
        lines = [list(COLUMNS), ["---"] * len(COLUMNS), *rows]
        text = "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)
        options.write.write_text(f"# Conversion in figures\n\n{text}\n\n{mean}\n", encoding="utf-8")


def measure(name: str, bone_count: int, kind: str, paper: dict, runs: int) -> list[str]:
    """One row of the table."""
    animation = read(name)
    results = [decompose(animation, Settings(bone_count, kind)) for _ in range(runs)]
    seconds = min(sum(result.seconds[stage] for stage in SOLVE_STAGES) for result in results)
    result = results[0]
    cells = [name, str(bone_count), kind, f"{result.e_rms:.3f}", f"{result.max_error:.1f}", str(result.dimension)]
    cells.append(f"{seconds:.2f}")
    if kind == "AFFINE":
        return [
            *cells,
            f"{paper['kavan']:.1f}",
            f"{paper['kavan_seconds']:.1f}",
            f"{result.e_rms / paper['kavan']:.2f}",
        ]
    return [*cells, "", "", ""]


def show_qualities(tables: Tables) -> None:
    tables.begin(
        "Qualities",
        "Affine bones. E_RMS divided by the paper's, the largest error, and processor time in seconds.",
        *("sequence", "bones", "quality", "E_RMS", "error / paper", "largest error", "processor seconds"),
    )
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    ratios: dict[str, list[float]] = {quality: [] for quality in QUALITIES}
    for name, bone_count in SEQUENCES:
        paper = dict(zip(table["columns"], table[name], strict=True))["kavan"]
        for quality in QUALITIES:
            start = time.process_time()
            found = decompose(read(name), Settings(bone_count, quality=quality))
            seconds = time.process_time() - start
            ratios[quality].append(found.e_rms / paper)
            cells = f"{found.e_rms:.3f}", f"{found.e_rms / paper:.2f}", f"{found.max_error:.1f}", f"{seconds:.1f}"
            tables.row(name, str(bone_count), quality.title(), *cells)
    for quality, values in ratios.items():
        tables.row("geometric mean", "", quality.title(), "", f"{np.exp(np.mean(np.log(values))):.2f}", "", "")


def show_emphasis(tables: Tables) -> None:
    tables.begin(
        "Emphasis",
        "E_RMS and the largest error, affine bones, divided by those without emphasis.",
        *("sequence", "bones", "emphasis", "E_RMS", "largest error", "E_RMS / without", "largest error / without"),
    )
    for name, bone_count in SEQUENCES:
        plain = decompose(read(name), Settings(bone_count))
        for emphasis in (0.5, 1.0):
            found = decompose(read(name), Settings(bone_count, emphasis=emphasis))
            ratios = found.e_rms / plain.e_rms, found.max_error / plain.max_error
            cells = (f"{found.e_rms:.3f}", f"{found.max_error:.1f}", *(f"{ratio:.2f}" for ratio in ratios))
            tables.row(name, str(bone_count), str(emphasis), *cells)


def show_normals_by_settings(tables: Tables) -> None:
    name, bone_count = "samba", 30
    tables.begin(
        "Normals by settings",
        f"{name}, {bone_count} affine bones unless said: E_RMS, and the angle between normals in degrees, in every "
        f"{NORMALS_EVERY}th frame.",
        *("settings", "E_RMS", "normals, mean", "normals, 90 % within"),
    )
    plain = Settings(bone_count)
    animation = read(name)
    for label, settings in (
        ("default", plain),
        ("Surface 0.5", replace(plain, surface=0.5)),
        ("Surface 1", replace(plain, surface=1.0)),
        ("Surface 0.5, Smoothness 0.25", replace(plain, surface=0.5, smoothness=0.25)),
        ("Emphasis 1", replace(plain, emphasis=1.0)),
        ("Smoothness 0.25", replace(plain, smoothness=0.25)),
        ("8 influences", replace(plain, max_influences=8)),
        ("10 residual shapes", replace(plain, residual_shapes=10)),
        ("60 bones", replace(plain, bone_count=60)),
    ):
        found = decompose(animation, settings)
        tables.row(label, f"{found.e_rms:.3f}", *normals_of(animation, skinned_frames(found)))
        if settings is plain:
            meter, frames = freest(animation, found)
            e_rms, label = f"{meter.e_rms:.3f}", f"default's bones, {4 * plain.max_influences} free numbers a vertex"
            tables.row(label, e_rms, *normals_of(animation, frames[::NORMALS_EVERY]))


def show_surface(tables: Tables) -> None:
    tables.begin(
        "Surface",
        f"E_RMS, the largest error and the angle between normals (the mean, and what 90 % are within; every "
        f"{NORMALS_EVERY}th frame) with *Surface* at 0.5, divided by those without.",
        *("sequence", "bones", "kind", "E_RMS", "largest error", "normals, mean", "normals, 90 % within"),
    )
    for name, bone_count in SEQUENCES:
        animation = read(name)
        for kind in ("AFFINE", "RIGID"):
            values = []
            for surface in (0.0, 0.5):
                found = decompose(animation, Settings(bone_count, kind, surface=surface))
                normals = map(float, normals_of(animation, skinned_frames(found)))
                values.append([found.e_rms, found.max_error, *normals])
            ratios = (f"{ratio:.2f}" for ratio in np.divide(values[1], values[0]))
            tables.row(name, str(bone_count), kind, *ratios)


def skinned_frames(found: Decomposition) -> list[np.ndarray]:
    """Every so many frames of a result."""
    return [
        skin_frame(found.rest_at(row), found.bones, found.weights, found.transforms[row])
        for row in range(0, len(found.transforms), NORMALS_EVERY)
    ]


def normals_of(animation: Animation, frames: Sequence[np.ndarray]) -> tuple[str, str]:
    """The mean angle between normals, and what 90 % are within, of every so many ``frames``."""
    pairs = zip(frames, animation.frames[::NORMALS_EVERY], strict=True)
    angles = np.concatenate([normal_errors(made, frame, animation.triangles) for made, frame in pairs])
    return f"{angles.mean():.2f}", f"{np.quantile(angles, 0.9):.2f}"


def freest(animation: Animation, found: Decomposition) -> tuple[ErrorMeter, np.ndarray]:
    """The errors and the frames that come closest where vertices are free sums of the columns of their bones' matrices:
    no weights and no rest positions bring these bones closer."""
    rows = to_rows(found.transforms).reshape(found.bone_count, 4, -1)
    made = np.empty((len(found.rest), rows.shape[2]))
    wanted = animation.frames.transpose(1, 0, 2).reshape(made.shape)
    for vertex, bones in enumerate(found.bones):
        own = rows[bones].reshape(-1, rows.shape[2]).T
        made[vertex] = own @ np.linalg.lstsq(own, wanted[vertex], rcond=1e-10)[0]
    meter = ErrorMeter(unit_scale(animation.frames), len(made))
    frames = made.reshape(len(made), -1, 3).transpose(1, 0, 2)
    for positions, frame in zip(frames, animation.frames, strict=True):
        meter.add(frame, positions)
    return meter, frames


def show_between(tables: Tables) -> None:
    name, bone_count = "samba", 30
    tables.begin(
        "Between frames",
        f"{name}, {bone_count} bones, affine unless said, solved on every second frame: E_RMS at these frames, and at "
        "the frames in between, where the channels of the bones are interpolated as Blender does. Second differences: "
        "their root mean square over time, of the matrices' linear parts, in thousandths.",
        *("settings", "at the frames", "between them", "second differences"),
    )
    plain = Settings(bone_count)
    every = read(name)
    for label, settings in (
        ("as published", replace(plain, method="KAVAN2010")),
        *((quality.title(), replace(plain, quality=quality)) for quality in QUALITIES),
        ("Rigid", replace(plain, bone_kind="RIGID")),
    ):
        found = decompose(Animation(every.frames[::2], every.triangles), settings)
        meter = ErrorMeter(unit_scale(every.frames), every.vertex_count)
        for positions, matrices in zip(every.frames[1::2], matrices_between(found), strict=False):
            meter.add(positions, skin_frame(found.rest, found.bones, found.weights, matrices))
        second = 1000.0 * np.sqrt(np.mean(np.diff(found.transforms[..., :3], 2, axis=0) ** 2))
        tables.row(label, f"{found.e_rms:.2f}", f"{meter.e_rms:.2f}", f"{second:.1f}")


def matrices_between(found: Decomposition) -> np.ndarray:
    """(F - 1, P, 3, 4): the bones half-way from each frame to the next."""
    placement = place_bones(found.rest, found.bones, found.weights, found.bone_count)
    rest = np.tile(np.eye(4), (found.bone_count, 1, 1))
    rest[:, :3, :3], rest[:, :3, 3] = placement.axes, placement.heads
    channels = bone_channels(found, rest)
    halves = {name: 0.5 * (values[:-1] + values[1:]) for name, values in channels.moving().items()}
    return replace(channels, **halves).object_matrices(rest)


def show_residual_shapes(tables: Tables) -> None:
    tables.begin(
        "Residual shapes",
        "E_RMS by number of residual shapes, with affine bones.",
        *("sequence", "bones", "none", *map(str, SHAPES)),
    )
    for name, bone_count in SEQUENCES:
        results = [decompose(read(name), Settings(bone_count, residual_shapes=count)) for count in (0, *SHAPES)]
        tables.row(name, str(bone_count), *(f"{result.e_rms:.2f}" for result in results))


def show_suggested(tables: Tables) -> None:
    tables.begin(
        "Suggested numbers of bones",
        f"The number that Suggest Bones finds from about {LOOKED_AT} frames of each sequence, and E_RMS with that "
        "number of bones.",
        *("sequence", "kind", "bones", "E_RMS"),
    )
    for name, _ in SEQUENCES:
        animation = read(name)
        step = max(1, (len(animation.frames) - 1) // (LOOKED_AT - 1))
        for kind in BONE_KINDS:
            count = suggest_bone_count(animation.frames[::step], kind)
            tables.row(name, kind, str(count), f"{decompose(animation, Settings(count, kind)).e_rms:.2f}")


def show_normals(tables: Tables) -> None:
    tables.begin(
        "Normals",
        "Mean angle in degrees, over all vertices and every fourth frame, between the normals of the animation and "
        "those of its conversion with affine bones. Blender: of the deformed faces, weighted by their angles, on "
        "both sides. Mean of triangles: as in the paper's section 5, on both sides. The others move the normals of "
        "the rest pose: by the sum of inverse transposes (MG03 in the paper), by the same with each normal at unit "
        "length first, by the inverse transpose of the blended transforms, and by the bone with the largest weight.",
        *("sequence", "bones", "Blender", "mean of triangles", "inverse transposes", "at unit length"),
        *("blended transform", "largest weight"),
    )
    for name, bone_count in SEQUENCES:
        animation = read(name)
        found = decompose(animation, Settings(bone_count))
        skin, triangles = (found.bones, found.weights), animation.triangles
        at_rest = vertex_normals(found.rest, triangles)
        angles = []
        for positions, matrices in zip(animation.frames[::4], found.transforms[::4], strict=True):
            made = skin_frame(found.rest, *skin, matrices)
            real = vertex_normals(positions, triangles)
            transforms = vertex_transforms(found.rest, *skin, matrices)
            pairs = (
                (vertex_normals(made, triangles), real),
                (
                    vertex_normals(made, triangles, by_angle=False),
                    vertex_normals(positions, triangles, by_angle=False),
                ),
                (blended_normals(at_rest, *skin, matrices), real),
                (blended_normals(at_rest, *skin, matrices, equalized=True), real),
                (transformed_normals(at_rest, transforms), real),
                (transformed_normals(at_rest, dominant_transforms(*skin, matrices)), real),
            )
            angles.append([np.degrees(np.arccos(np.clip(np.sum(a * b, axis=1), -1, 1))).mean() for a, b in pairs])
        tables.row(name, str(bone_count), *(f"{value:.2f}" for value in np.mean(angles, axis=0)))


def show_reductions(tables: Tables) -> None:
    tables.begin(
        "Strategies of the reduction",
        "E_RMS that a reduction to the paper's ε leaves, its dimension d, and processor time in seconds; "
        "orthogonality: the largest entry of |BᵀB − I|, and the same without line 5 of Algorithm 1.",
        *("sequence", "strategy", "left", "d", "seconds", "orthogonality", "without line 5"),
    )
    for name, _ in SEQUENCES:
        matrix = AnimationMatrix(read(name).frames)
        for strategy in STRATEGIES:
            start = time.process_time()
            found = reduce_animation(matrix, REDUCTION_ERROR, strategy)
            seconds = time.process_time() - start
            left = 1000 * np.sqrt(found.lost / (matrix.height * matrix.vertex_count))
            loose = "" if strategy == "EXACT" else orthogonality(matrix, strategy, stabilize=False)
            cells = (f"{left:.3f}", str(found.dimension), f"{seconds:.1f}", orthogonality(matrix, strategy), loose)
            tables.row(name, strategy.lower().replace("_", " "), *cells)


def orthogonality(matrix: AnimationMatrix, strategy: str, stabilize: bool = True) -> str:
    basis = reduce_animation(matrix, REDUCTION_ERROR, strategy, stabilize=stabilize).basis
    return f"{np.abs(basis.T @ basis - np.eye(basis.shape[1])).max():.1e}"


def show_clips(tables: Tables) -> None:
    tables.begin(
        "Clips",
        f"E_RMS of {' and '.join(CLIPS)} as clips of one mesh (their vertices put into one order), in the scale of the "
        "first, and divided by that of a solve of each alone: with as many bones for each, so that together they have "
        "twice as many; and in the last two columns, with only as many bones as one of them has alone. All alike: "
        "without weights of the clips.",
        *("kind", "bones of each", *(f"{name} alone" for name in CLIPS), "together", "ratios", "ratios, all alike"),
        *("with the bones of one", "its ratios"),
    )
    clips = same_order([read(name) for name in CLIPS])
    lengths = [len(clip.frames) for clip in clips]
    both = Animation(np.concatenate([clip.frames for clip in clips]), clips[0].triangles)
    scales = [unit_scale(both.frames) / unit_scale(clip.frames) for clip in clips]
    for kind in BONE_KINDS:
        for count in CLIP_BONES:
            alone = [decompose(clip, Settings(count, kind)).e_rms for clip in clips] * np.array(scales)
            twice = Settings(2 * count, kind)
            found = clip_errors(both, decompose_clips(both, lengths, twice), lengths)
            alike = clip_errors(both, decompose(both, twice), lengths)
            few = clip_errors(both, decompose_clips(both, lengths, Settings(count, kind)), lengths)
            cells = (alone[:1], alone[1:], found, found / alone, alike / alone, few, few / alone)
            tables.row(kind, str(count), *(", ".join(f"{value:.2f}" for value in cell) for cell in cells))


def same_order(clips: list[Animation]) -> list[Animation]:
    """The clips with the vertices of each in the order of the first: those at the same places of the publisher's rest
    poses, which differ by a shift only."""
    references = [np.load(DATA / f"{name}.npz")["reference"] for name in CLIPS]
    references = [reference - reference.mean(axis=0) for reference in references]
    found = []
    for clip, reference in zip(clips, references, strict=True):
        gaps, order = cKDTree(reference).query(references[0])
        if gaps.max() > 1e-5 or len(np.unique(order)) < len(order):
            raise ValueError(f"{clip.name} has other vertices than {clips[0].name}")
        found.append(Animation(clip.frames[:, order], clips[0].triangles, name=clip.name))
    return found


def read(name: str) -> Animation:
    data = np.load(DATA / f"{name}.npz")
    return Animation(data["frames"], data["triangles"], name=name)


# Further tables, by the name of --only.
MORE = {
    "qualities": show_qualities,
    "emphasis": show_emphasis,
    "normals-by-settings": show_normals_by_settings,
    "surface": show_surface,
    "between": show_between,
    "suggested": show_suggested,
    "residual-shapes": show_residual_shapes,
    "clips": show_clips,
    "normals": show_normals,
    "reductions": show_reductions,
}


if __name__ == "__main__":
    sys.exit(main())
