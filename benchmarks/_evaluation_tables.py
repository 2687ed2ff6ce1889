# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the evaluation of 2019 on models of its sizes: time and memory of the bake, of playback and of buffers."""

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _evaluation_models import INFLUENCES, SIZES, Model, model  # beside this file
from _process import in_own_process, peak_memory, restart_peak_memory
from _rotation_center_variants import Problem, Shared, breadth_first, faces_reached, in_parallel, naive
from _tables import Tables

from skinning_tools.core.rotation_centers import bake_rotation_centers

# Floats for each bone and each vertex beyond what all methods need, section 5.2.2: a matrix; a dual quaternion; a
# matrix, a quaternion and the center.
FLOATS = {"LBS": (16, 0), "DQS": (8, 0), "CRS": (20, 3)}
# Figure 8 of the evaluation: naive, with 4 threads, with 4 threads and breadth-first.
PAPER_BAKES = {
    "cuboid": ("51.4 s", "16 s", "18.6 s"),
    "wolf": ("25.9 s", "7.9 s", "0.6 s"),
    "raptor": ("> 2.5 h", "2.5 h", "16.2 min"),
}
# Frames a second by LBS, DQS and CRS, table 2 of the evaluation.
PAPER_FRAMES = {"cuboid": (130, 130, 128), "wolf": (750, 747, 745), "raptor": (122, 123, 118)}

MODELS = "Models of the evaluation's numbers of vertices, faces and bones; shapes and weights are ours"
VARIANTS = {"naive": naive, "breadth-first": breadth_first}
THREADS = 4
# Seconds of a variant; beyond that, it computes a share of the vertices.
LIMIT = 15.0
SOFTWARE = (
    "It is a renderer in software on the machine's two cores, as no GPU was available: the ratios are those of the "
    "arithmetic, the times not those of a GPU."
)


def show_bakes(tables: Tables, options) -> None:
    tables.begin(
        "Bake of the evaluation's models",
        f"{MODELS}, with up to {INFLUENCES} influences. The evaluation's variants and ours on whole faces; then ours "
        "with subdivision 0.1, for which 16 GB were not enough on its raptor. "
        f"Parallel: {THREADS} processes, as its {THREADS} threads. Seconds of the processor: of the slowest process, "
        "which is the time on as many free cores, and of all together. MB: how much the process grows at most, or all "
        "of them together. Faces: share of all faces whose similarity is "
        "computed for a vertex. Error: largest distance from the naive sum, divided by the diagonal.",
        *("model", "variant", "seconds", "all processes", "MB", "faces", "error / diagonal", "in the evaluation"),
    )
    for name in SIZES:
        made = model(name)
        exact = in_own_process(run_variant, name, "naive")
        plain, threads, search = PAPER_BAKES[name]
        others = (
            (threads, run_variant, "naive", THREADS),
            ("–", run_variant, "breadth-first"),
            (search, run_variant, "breadth-first", THREADS),
            ("–", run_ours, 0.0),
            ("out of memory" if name == "raptor" else "–", run_ours, 0.1),
        )
        runs = [(exact, plain)]
        runs += [(in_own_process(function, name, *given), reported) for reported, function, *given in others]
        for run, reported in runs:
            # Whole faces and pieces of them have other centers.
            error = f"{run.error(exact, made):.1e}" if "subdivision" not in run.title else "–"
            cells = (f"{run.longest:.2f}", f"{run.seconds:.2f}", f"{run.growth:.0f}", f"{100 * run.faces:.3g} %")
            tables.row(name, run.title, *cells, error, reported)
    tables.note(
        "The search computes few faces, and misses surface that is similar but not connected. numpy computes all faces "
        "of a pair of bones in one call, so fast that the search takes longer than it saves; the faces tell what a "
        "compiled program would save."
    )


@dataclass(frozen=True, eq=False)
class Run:
    """A bake of the vertices ``chosen``, evenly spread ones where all take too long; seconds are those of all then.

    longest, seconds: of the slowest process and of all. growth: in MB. faces: the share that is looked at.
    """

    title: str
    chosen: np.ndarray
    centers: np.ndarray
    longest: float
    seconds: float
    growth: float
    faces: float = 1.0

    def error(self, exact: "Run", made: Model) -> float:
        blended = np.count_nonzero(made.weights, axis=1) > 1
        common = np.intersect1d(self.chosen, exact.chosen)
        common = common[blended[common]]
        own, true = (run.centers[np.searchsorted(run.chosen, common)] for run in (self, exact))
        return float(np.linalg.norm(own - true, axis=1).max() / np.linalg.norm(np.ptp(made.rest, axis=0)))


def run_variant(name: str, variant_name: str, processes: int = 0) -> Run:
    """One of the evaluation's variants on a model, in this process or, other than 0, several."""
    made, variant = model(name), VARIANTS[variant_name]
    with _Meter() as meter:
        problem = Problem.of(*made.skin)
        step = _step(variant, problem)
        chosen = np.arange(0, len(made.rest), step)
        if processes:
            shared = in_parallel(variant, problem, chosen, processes)
        else:
            shared = Shared(variant(problem, chosen), 0.0, 0.0)
    faces = 1.0
    if variant is breadth_first:
        blended = np.flatnonzero(np.count_nonzero(made.weights, axis=1) > 1)
        looked_at = faces_reached(problem, blended[:: max(len(blended) // 300, 1)])
        faces = float(np.mean(looked_at)) / len(made.triangles)
    title = f"{variant_name}, parallel" if processes else variant_name
    if step > 1:
        title += f" (1 of {step} vertices, times {step})"
    longest, total = step * (meter.own + shared.longest), step * meter.all
    return Run(title, chosen, shared.centers, longest, total, meter.growth + shared.growth, faces)


def run_ours(name: str, epsilon: float) -> Run:
    made = model(name)
    with _Meter() as meter:
        centers, _ = bake_rotation_centers(*made.skin, subdivision_epsilon=epsilon)
    title = f"ours, subdivision {epsilon:g}" if epsilon else "ours"
    return Run(title, np.arange(len(made.rest)), centers, meter.own, meter.all, meter.growth)


class _Meter:
    """Measures a block: seconds of the processor of this process (own) and with those that have ended in it (all), and
    the growth of this process in MB."""

    def __enter__(self) -> "_Meter":
        self._before, self._start = restart_peak_memory(), _processor()
        return self

    def __exit__(self, *_) -> None:
        self.own, self.all = (now - start for now, start in zip(_processor(), self._start, strict=True))
        self.growth = peak_memory() - self._before


def _step(variant: Callable, problem: Problem) -> int:
    """Every so many vertices are computed, so that the limit holds."""
    sample = np.linspace(0, len(problem.weights) - 1, 48).astype(int)
    start = time.process_time()
    variant(problem, sample)
    estimate = (time.process_time() - start) / len(sample) * len(problem.weights)
    return max(1, int(np.ceil(estimate / LIMIT)))


def _processor() -> tuple[float, float]:
    """Seconds of the processor of this process, and with those that it has started and that have ended."""
    own = time.process_time()
    try:
        import resource
    except ImportError:  # Windows
        return own, own
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own, own + children.ru_utime + children.ru_stime


def show_playback(tables: Tables, options) -> None:
    if importlib.util.find_spec("bpy") is None:
        print("Playback is not measured: there is no bpy here. Run it by build.py.")
        return
    found = {name: in_own_process(play, name, options.frames) for name in SIZES}
    some = next(iter(found.values()))
    tables.begin(
        "Frames of the evaluation's models",
        f"{MODELS}. Modifiers: {some.what}, evaluation of a frame, including the animation of the bones. Shader: that "
        "of the preview, compiled for one method at a time, with 1920 × 1080 pixels, and with 16 × 16, where vertices "
        "are most of the work. Milliseconds of the processor for a frame, all threads together, as the median; methods "
        "take turns. Frames per second: as many as one free core computes.",
        *("model", "way", "LBS ms", "DQS ms", "CRS ms", "DQS / LBS", "CRS / LBS", "frames per second, CRS"),
    )
    for name, measured in found.items():
        for way, seconds in measured.ways.items():
            _playback_row(tables, name, way, [float(np.median(taken)) for taken in seconds])
        _playback_row(tables, name, "in the evaluation, on a GPU", [1 / frames for frames in PAPER_FRAMES[name]])
    if some.device is None:
        tables.note("The shader is not measured here: without a window it needs Blender 5.1 and a GPU or Mesa's EGL.")
    else:
        software = SOFTWARE if "llvmpipe" in some.device else ""
        tables.note(f"Device of the shader: {some.device}. {software}".rstrip())


def _playback_row(tables: Tables, name: str, way: str, seconds: list[float]) -> None:
    """seconds: by LBS, DQS and, where there is a modifier for it, CRS."""
    cells = [f"{1000 * value:.2f}" for value in seconds]
    ratios = [f"{value / seconds[0]:.2f}" for value in seconds[1:]]
    missing = ["–"] * (3 - len(seconds))
    frames = "–" if missing else f"{1 / seconds[2]:.0f}"
    tables.row(name, way, *cells, *missing, *ratios, *missing, frames)


@dataclass(frozen=True)
class Played:
    """ways: the seconds of the processor for each frame by LBS, DQS and CRS, for modifiers and shader. what, device:
    they ran on."""

    what: str
    device: str | None
    ways: dict[str, list[list[float]]]


def play(name: str, frames: int) -> Played:
    """In a process of its own: Blender's module changes where its parent's children would look for modules."""
    import _evaluation_playback

    return _evaluation_playback.play(model(name), frames)


def show_memory(tables: Tables, options) -> None:
    if importlib.util.find_spec("bpy") is None:
        print("Memory is not measured: there is no bpy here. Run it by build.py.")
        return
    tables.begin(
        "Memory of the evaluation's models",
        "Counted: section 5.2.2 of the evaluation, for bones and, beyond positions and weights, for vertices. On the "
        "device: how much the process grows by each of 256 copies of buffers of that content, which the driver keeps; "
        "small ones take some kB whatever they hold. Attributes: what the bake and the modifier add to the mesh in "
        "Blender. Playing: how much the process grows at most over some frames by that modifier, with all copies that "
        "Blender makes.",
        *("model", "method", "counted kB", "on the device kB", "attributes kB", "playing MB"),
    )
    for name, (vertices, _, bones) in SIZES.items():
        found = in_own_process(content, name)
        for method, (per_bone, per_vertex) in FLOATS.items():
            counted = 4e-3 * (per_bone * bones + per_vertex * vertices)
            kept = in_own_process(growth_of_buffers, name, per_bone, per_vertex)
            growth = in_own_process(growth_of_playing, name, method)
            attributes = 1e-3 * found.attributes if method == "CRS" else 0.0
            optional = ["–" if value is None else f"{value:.2f}" for value in (kept, growth)]
            tables.row(name, method, f"{counted:.2f}", optional[0], f"{attributes:.0f}", optional[1])
    if found.device is not None:
        tables.note(f"Device: {found.device}. {found.preview}")


@dataclass(frozen=True)
class Content:
    """attributes: bytes that bake and native modifier add to the mesh. preview: what its buffers hold, as a
    sentence; "" without a device."""

    device: str | None
    attributes: int
    preview: str


def content(name: str) -> Content:
    import _evaluation_playback

    return _evaluation_playback.content(model(name))


def growth_of_buffers(name: str, per_bone: int, per_vertex: int) -> float | None:
    import _evaluation_playback

    return _evaluation_playback.growth_of_buffers(model(name), per_bone, per_vertex)


def growth_of_playing(name: str, method: str) -> float | None:
    import _evaluation_playback

    return _evaluation_playback.growth_of_playing(model(name), method)
