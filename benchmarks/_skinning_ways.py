# SPDX-License-Identifier: GPL-3.0-or-later
"""The columns of the table of skinning decompositions: each method to approximate an animation, with its error, time
and memory."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import _sequences
from _baselines import dem_bones
from _process import peak_memory

from skinning_tools.core.decomposition import Settings, decompose

CORRECTED = "{} + EigenSkin-10"
SMA, SAD, CPCA, SVD = "SMA", "SAD", "clustered PCA", "SVD"
DEM, DEM_4, DEM_8 = "Dem Bones", "Dem Bones, tuned, 4", "Dem Bones, tuned, 8"
PAPER_METHOD, RIGID, AFFINE = "Kavan et al. 2010", "ours, rigid", "ours, affine"
# Measured together if one starts from the other.
WAYS = {
    SMA: (SMA, CORRECTED.format(SMA)),
    SAD: (SAD, CORRECTED.format(SAD)),
    CPCA: (CPCA,),
    SVD: (SVD,),
    DEM: (DEM,),
    DEM_4: (DEM_4,),
    DEM_8: (DEM_8,),
    PAPER_METHOD: (PAPER_METHOD,),
    RIGID: (RIGID,),
    AFFINE: (AFFINE,),
}
COLUMNS = [column for columns in WAYS.values() for column in columns]


@dataclass(frozen=True)
class Result:
    """E_RMS and largest distance per mille, seconds on the wall and of the processor, MB; or the reason for no
    result."""

    e_rms: float = float("nan")
    largest: float = float("nan")
    wall: float = float("nan")
    processor: float = float("nan")
    memory: float = float("nan")
    missing: str = ""


def measure(file: str, name: str, bones: int, way: str) -> list[dict]:
    """The results of all columns of ``way``, in a process of its own."""
    from _baselines.approximations import measured

    animation = _sequences.read(Path(file), name)
    results, approximation = [], None
    for column in WAYS[way]:
        wall, processor = time.perf_counter(), time.process_time()
        approximation = approximate(animation, bones, column, approximation)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        if isinstance(approximation, str):
            results.append(asdict(Result(missing=approximation)))
        else:
            e_rms, largest = measured(animation, approximation)
            results.append(asdict(Result(e_rms, largest, wall, processor, peak_memory())))
    return results


def approximate(animation, bones: int, column: str, start):
    """The approximation of a column; ``start``: that of the previous column. A text if there is none."""
    from _baselines import (
        clustered_pca,
        eigenskin_corrections,
        skinning_arbitrary_deformations,
        skinning_mesh_animations,
        truncated_svd,
    )
    from _baselines.approximations import Skinned

    if isinstance(start, str):
        return start
    if column == SMA:
        try:
            return skinning_mesh_animations.approximate(animation, bones)
        except skinning_mesh_animations.TooFewClusters:
            return "too few clusters"
    if column in (CORRECTED.format(SMA), CORRECTED.format(SAD)):
        return eigenskin_corrections.correct(animation, start)
    dem = {DEM: dem_bones.DEFAULTS, DEM_4: dem_bones.TUNED_4, DEM_8: dem_bones.TUNED_8}.get(column)
    if dem:
        return dem_bones.approximate(animation, bones, **dem) if dem_bones.available() else "not installed"
    settings = {
        PAPER_METHOD: Settings(bones, method="KAVAN2010"),
        RIGID: Settings(bones, "RIGID"),
        AFFINE: Settings(bones),
    }.get(column)
    if settings:
        found = decompose(animation, settings)
        return Skinned(found.rest, found.bones, found.weights, found.transforms)
    modules = {SAD: skinning_arbitrary_deformations, CPCA: clustered_pca, SVD: truncated_svd}
    return modules[column].approximate(animation, bones)
