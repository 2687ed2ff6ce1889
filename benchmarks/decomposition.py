# SPDX-License-Identifier: GPL-3.0-or-later
"""Error and time of the decomposition on the sequences of Kavan et al. 2010, beside the paper's own figures; what
residual shapes and suggested numbers of bones leave.

Reads ../shared/data. Times are the processor's, which other work on the machine hardly changes. The paper's seconds
were measured on a dual-core desktop of 2010.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _normals_tables import show_normals, show_normals_by_settings, show_surface  # noqa: E402 (beside this file)
from _sequences import CAPTURED, DATA, captured  # noqa: E402
from _tables import Tables  # noqa: E402

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale  # noqa: E402 (the checkout's)
from skinning_tools.core.bone_channels import bone_channels  # noqa: E402
from skinning_tools.core.bone_placement import place_bones  # noqa: E402
from skinning_tools.core.bone_suggestion import suggest_bone_count  # noqa: E402
from skinning_tools.core.decomposition import BONE_KINDS, Decomposition, Settings, decompose  # noqa: E402
from skinning_tools.core.decomposition.clips import clip_errors, decompose_clips  # noqa: E402
from skinning_tools.core.decomposition.kavan2010 import REDUCTION_ERROR  # noqa: E402
from skinning_tools.core.decomposition.reduction import STRATEGIES, AnimationMatrix, reduce_animation  # noqa: E402
from skinning_tools.core.deform import skin_frame  # noqa: E402
from skinning_tools.core.solve_effort import QUALITIES  # noqa: E402

SHAPES = (1, 3, 10)
CLIPS, CLIP_BONES = ("horse_gallop", "horse_collapse"), (6, 18, 30)
# About as many frames as Suggest reads.
LOOKED_AT = 16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument("--only", choices=SHOWN, help="only this table; --write leaves the others as they are")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("The sequences are not next to the checkout (../shared/data).")
        return 1
    tables = Tables(first=16)
    for name in [options.only] if options.only else SHOWN:
        SHOWN[name](tables)
    if options.write:
        tables.replace(options.write)
    return 0


def show_sequences(tables: Tables) -> None:
    tables.begin(
        "Sequences",
        "E_RMS and the largest error, the dimension d of the reduction, and processor time in seconds.",
        *("sequence", "bones", "kind", "E_RMS", "largest error", "d", "seconds"),
        *("paper's E_RMS", "paper's seconds", "error / paper"),
    )
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    ratios = []
    for name, bone_count in CAPTURED:
        paper = dict(zip(table["columns"], table[name], strict=True))
        for kind in BONE_KINDS:
            start = time.process_time()
            found = decompose(captured(name), Settings(bone_count, kind))
            seconds = time.process_time() - start
            cells = f"{found.e_rms:.3f}", f"{found.max_error:.1f}", str(found.dimension), f"{seconds:.2f}"
            published = "", "", ""
            if kind == "AFFINE":
                ratios.append(found.e_rms / paper["kavan"])
                published = f"{paper['kavan']:.1f}", f"{paper['kavan_seconds']:.1f}", f"{ratios[-1]:.2f}"
            tables.row(name, str(bone_count), kind, *cells, *published)
    tables.note(f"Geometric mean of error / paper, affine bones: {np.exp(np.mean(np.log(ratios))):.2f}")


def show_qualities(tables: Tables) -> None:
    tables.begin(
        "Qualities",
        "Affine bones. E_RMS divided by the paper's, the largest error, and processor time in seconds.",
        *("sequence", "bones", "quality", "E_RMS", "error / paper", "largest error", "processor seconds"),
    )
    table = json.loads((DATA / "reference_errors.json").read_text())["kavan2010_table2"]
    ratios: dict[str, list[float]] = {quality: [] for quality in QUALITIES}
    for name, bone_count in CAPTURED:
        paper = dict(zip(table["columns"], table[name], strict=True))["kavan"]
        for quality in QUALITIES:
            start = time.process_time()
            found = decompose(captured(name), Settings(bone_count, quality=quality))
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
    for name, bone_count in CAPTURED:
        plain = decompose(captured(name), Settings(bone_count))
        for emphasis in (0.5, 1.0):
            found = decompose(captured(name), Settings(bone_count, emphasis=emphasis))
            ratios = found.e_rms / plain.e_rms, found.max_error / plain.max_error
            cells = (f"{found.e_rms:.3f}", f"{found.max_error:.1f}", *(f"{ratio:.2f}" for ratio in ratios))
            tables.row(name, str(bone_count), str(emphasis), *cells)


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
    every = captured(name)
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
    for name, bone_count in CAPTURED:
        results = [decompose(captured(name), Settings(bone_count, residual_shapes=count)) for count in (0, *SHAPES)]
        tables.row(name, str(bone_count), *(f"{result.e_rms:.2f}" for result in results))


def show_suggested(tables: Tables) -> None:
    tables.begin(
        "Suggested numbers of bones",
        f"The number that Suggest Bones finds from about {LOOKED_AT} frames of each sequence, and E_RMS with that "
        "number of bones.",
        *("sequence", "kind", "bones", "E_RMS"),
    )
    for name, _ in CAPTURED:
        animation = captured(name)
        step = max(1, (len(animation.frames) - 1) // (LOOKED_AT - 1))
        for kind in BONE_KINDS:
            count = suggest_bone_count(animation.frames[::step], kind)
            tables.row(name, kind, str(count), f"{decompose(animation, Settings(count, kind)).e_rms:.2f}")


def show_reductions(tables: Tables) -> None:
    tables.begin(
        "Strategies of the reduction",
        "E_RMS that a reduction to the paper's ε leaves, its dimension d, and processor time in seconds; "
        "orthogonality: the largest entry of |BᵀB − I|, and the same without line 5 of Algorithm 1.",
        *("sequence", "strategy", "left", "d", "seconds", "orthogonality", "without line 5"),
    )
    for name, _ in CAPTURED:
        matrix = AnimationMatrix(captured(name).frames)
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
    clips = same_order([captured(name) for name in CLIPS])
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


# By the name of --only.
SHOWN = {
    "sequences": show_sequences,
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
