# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of benchmarks/decomposition.py on normals: what the settings bring, and how normals can be computed."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from _sequences import CAPTURED, captured  # beside this file
from _tables import Tables

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import Decomposition, Settings, decompose
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.deform import (
    blended_normals,
    dominant_transforms,
    skin_frame,
    transformed_normals,
    vertex_normals,
    vertex_transforms,
)
from skinning_tools.core.deform.surface import normal_errors

NORMALS_EVERY = 10


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
    for name, bone_count in CAPTURED:
        animation = captured(name)
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


def show_normals_by_settings(tables: Tables) -> None:
    name, bone_count = "samba", 30
    tables.begin(
        "Normals by settings",
        f"{name}, {bone_count} affine bones unless said: E_RMS, the angle between normals in degrees, in every "
        f"{NORMALS_EVERY}th frame, and the processor time of the solve, divided by the default's.",
        *("settings", "E_RMS", "normals, mean", "normals, 90 % within", "time"),
    )
    plain = Settings(bone_count)
    animation = captured(name)
    for label, settings in (
        ("default", plain),
        ("Surface 0.5", replace(plain, surface=0.5)),
        ("Surface 1", replace(plain, surface=1.0)),
        ("Surface 0.5, Smoothness 0.25", replace(plain, surface=0.5, smoothness=0.25)),
        ("Best", replace(plain, quality="BEST")),
        ("Best, Surface 1", replace(plain, quality="BEST", surface=1.0)),
        ("Emphasis 1", replace(plain, emphasis=1.0)),
        ("Smoothness 0.25", replace(plain, smoothness=0.25)),
        ("8 influences", replace(plain, max_influences=8)),
        ("10 residual shapes", replace(plain, residual_shapes=10)),
        ("3 residual shapes", replace(plain, residual_shapes=3)),
        ("3 residual shapes, Surface 0.5", replace(plain, residual_shapes=3, surface=0.5)),
        ("60 bones", replace(plain, bone_count=60)),
    ):
        found, seconds = timed(animation, settings)
        if settings is plain:
            default = seconds
        normals = normals_of(animation, skinned_frames(found))
        tables.row(label, f"{found.e_rms:.3f}", *normals, f"{seconds / default:.1f}")
        if settings is plain:
            meter, frames = freest(animation, found)
            e_rms, label = f"{meter.e_rms:.3f}", f"default's bones, {4 * plain.max_influences} free numbers a vertex"
            tables.row(label, e_rms, *normals_of(animation, frames[::NORMALS_EVERY]), "")


def show_surface(tables: Tables) -> None:
    tables.begin(
        "Surface",
        f"E_RMS, the largest error and the angle between normals (the mean, and what 90 % are within; every "
        f"{NORMALS_EVERY}th frame) and the processor time of the solve with *Surface*, divided by those without.",
        *("sequence", "bones", "kind", "Surface", "E_RMS", "largest error", "normals, mean", "normals, 90 % within"),
        "time",
    )
    for name, bone_count in CAPTURED:
        animation = captured(name)
        for kind in ("AFFINE", "RIGID"):
            plain = _with_surface(animation, bone_count, kind, 0.0)
            for surface in (0.5, 1.0):
                ratios = np.divide(_with_surface(animation, bone_count, kind, surface), plain)
                cells = (f"{ratio:.2f}" for ratio in ratios[:-1])
                tables.row(name, str(bone_count), kind, f"{surface:g}", *cells, f"{ratios[-1]:.1f}")


def _with_surface(animation: Animation, bone_count: int, kind: str, surface: float) -> list[float]:
    found, seconds = timed(animation, Settings(bone_count, kind, surface=surface))
    normals = map(float, normals_of(animation, skinned_frames(found)))
    return [found.e_rms, found.max_error, *normals, seconds]


def timed(animation: Animation, settings: Settings) -> tuple[Decomposition, float]:
    """The result and the processor seconds of its solve."""
    start = time.process_time()
    found = decompose(animation, settings)
    return found, time.process_time() - start


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
