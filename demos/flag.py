# SPDX-License-Identifier: GPL-3.0-or-later
"""The main workflow on real input: a flag in the wind, from cloth simulation and Alembic cache to a rig, with pictures.

Run by `python3 build.py demo`. Leaves flag.blend, flag.abc, flag.glb, flag.png and error.png in demo/.
"""

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# Blender 4.2 keeps waiting threads spinning, which on a busy machine takes the processor from those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import flag_picture
import flag_scene
import rendering
from program import leave

import skinning_tools
from skinning_tools.core.animation import ErrorMeter, unit_scale

BONES = 24
APART = 2.4  # meters between source and result in flag.blend


class Stages:
    """Prints the name of each stage as it starts, and records its duration."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Callable[[float], None]]:
        """Time the block; yields a function that shows the fraction done, 0 to 1."""
        head = f"[{self.names.index(name) + 1}/{len(self.names)}] {name}"
        shown = -1

        def show(share: float) -> None:
            nonlocal shown
            # A terminal gets one line that counts up; a log file gets a line per quarter.
            percent = int(100 * share) if sys.stdout.isatty() else 25 * int(4 * share)
            if percent > shown:
                shown = percent
                print(f"\r{head} {percent:3d} %" if sys.stdout.isatty() else f"{head} {percent} %", end=END, flush=True)

        print(head, end=END, flush=True)
        start = time.perf_counter()
        yield show
        self.seconds[name] = time.perf_counter() - start
        print(
            f"\r{head}: {self.seconds[name]:.1f} s    "
            if sys.stdout.isatty()
            else f"{head}: {self.seconds[name]:.1f} s"
        )


END = "" if sys.stdout.isatty() else "\n"
SIMULATE, CACHE, OPEN, CONVERT, MEASURE, EXPORT, SAVE, RENDER = STAGES = (
    "Simulating the flag in the wind",
    "Writing the Alembic cache",
    "Opening the cache",
    f"Converting it to {BONES} bones",
    "Measuring the rig in Blender",
    "Exporting flag.glb",
    "Saving flag.blend",
    "Rendering the picture",
)


def main() -> None:
    options = parse_options()
    folder = options.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    cache = folder / "flag.abc"
    stages = Stages(STAGES)

    flag_scene.empty_file()
    flag = flag_scene.add_cloth(options.frames)
    with stages.stage(SIMULATE) as show:
        for share in flag_scene.simulate(flag, options.frames):
            show(share)
    with stages.stage(CACHE), quiet():
        flag_scene.write_cache(flag, str(cache))
    with stages.stage(OPEN), quiet():
        source = flag_scene.open_cache(str(cache), options.frames)
    with stages.stage(CONVERT):
        skinned = convert(source)
    with stages.stage(MEASURE) as show:
        meter, worst_frame, worst = measure(source, skinned, show)
    meshes = snapshots(source, skinned, worst_frame)
    # Export before moving the rig next to the source: the file for engines has the rig at its own position.
    with stages.stage(EXPORT), quiet():
        export(skinned, folder / "flag.glb")
    with stages.stage(SAVE), quiet():
        save(source, skinned, folder / "flag.blend", cache.name)

    rendering.colored_by_error(meshes[2], worst, color_limit(worst))
    with stages.stage(RENDER), quiet():
        flag_picture.render(str(folder / "flag.png"), meshes, options.samples)
    vertices = len(source.data.vertices)
    captions = [
        ("Alembic cache", f"cloth: {vertices:,} vertices, {options.frames} frames"),
        ("Skinned mesh", f"{BONES} bones, E_RMS {skinned['skinning_e_rms']:.2f} ‰"),
        ("Its error", f"at frame {worst_frame}, of the largest E_RMS"),
    ]
    label = f"mm from the cache, at most {1000 * worst.max():.0f}; flag {flag_scene.WIDTH:g} m wide"
    rendering.compose(str(folder / "flag.png"), captions, 1000 * color_limit(worst), label)
    flag_picture.plot_error(
        str(folder / "error.png"),
        np.arange(1, options.frames + 1),
        meter.frame_e_rms,
        meter.frame_max_error,
        f"Flag in the wind: {vertices:,} vertices, {BONES} bones, E_RMS {meter.e_rms:.2f} ‰",
    )
    report(folder, stages, skinned, meter)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "demo", help="folder for the files (demo/)")
    parser.add_argument("--frames", type=int, default=120, help="length of the animation (120)")
    parser.add_argument("--samples", type=int, default=16, help="quality of the picture (16)")
    return parser.parse_args()


def convert(source: bpy.types.Object) -> bpy.types.Object:
    """The skinned copy of ``source`` that the extension's operator makes."""
    skinning_tools.register()
    bpy.ops.skinning.convert_animation(bone_count=BONES)
    return bpy.data.objects[f"{source.name}_skinned"]


def measure(source, skinned, show: Callable[[float], None]) -> tuple[ErrorMeter, int, np.ndarray]:
    """The error of the rig as Blender evaluates it, the frame where it is largest, and each vertex's distance there."""
    scene = bpy.context.scene
    depsgraph = bpy.context.evaluated_depsgraph_get()
    meter, worst = None, (-1.0, 0, None)
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        expected, actual = (flag_scene.positions(ob, depsgraph) for ob in (source, skinned))
        meter = meter or ErrorMeter(unit_scale(expected[None]), len(expected))
        meter.add(expected, actual)
        distance = np.linalg.norm(actual - expected, axis=1)
        worst = max(worst, (meter.frame_e_rms[-1], frame, distance), key=lambda entry: entry[0])
        show(frame / scene.frame_end)
    return meter, worst[1], worst[2]


def snapshots(source, skinned, frame: int) -> list[bpy.types.Mesh]:
    """Still meshes of the given frame: source, result, and the result once more, to be colored."""
    bpy.context.scene.frame_set(frame)
    depsgraph = bpy.context.evaluated_depsgraph_get()
    meshes = [bpy.data.meshes.new_from_object(ob.evaluated_get(depsgraph)) for ob in (source, skinned, skinned)]
    bpy.context.scene.frame_set(bpy.context.scene.frame_start)
    return meshes


def color_limit(error: np.ndarray) -> float:
    """The error with the last color: the 99th percentile, so that a single vertex does not pale all others."""
    return float(np.percentile(error, 99))


def top(ob: bpy.types.Object) -> bpy.types.Object:
    """The topmost parent of ``ob``."""
    while ob.parent:
        ob = ob.parent
    return ob


def rig_of(skinned: bpy.types.Object) -> bpy.types.Object:
    return next(modifier.object for modifier in skinned.modifiers if modifier.type == "ARMATURE")


def export(skinned: bpy.types.Object, path: Path) -> None:
    """Mesh, skin and animation as glTF."""
    for ob in bpy.context.scene.objects:
        ob.select_set(ob in (skinned, rig_of(skinned)))
    bpy.ops.export_scene.gltf(
        filepath=str(path), export_format="GLB", use_selection=True, export_skins=True, export_animations=True
    )


def save(source, skinned, path: Path, cache_name: str) -> None:
    """Source and result side by side in a file that needs no extension and finds its cache beside itself."""
    heads = {top(ob) for ob in (skinned, rig_of(skinned))} - {top(source)}
    for head in heads:
        head.location.x += APART
    flag_scene.add_view((APART + flag_scene.WIDTH) / 2)
    skinning_tools.unregister()
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True)
    for cache in bpy.data.cache_files:
        cache.filepath = f"//{cache_name}"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True)
    path.with_suffix(".blend1").unlink(missing_ok=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Capture Blender's own terminal output, and print it only after a failure."""
    sys.stdout.flush()
    terminal = os.dup(1)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(io.StringIO()):
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(terminal, 1)
            os.close(terminal)


def report(folder: Path, stages: Stages, skinned: bpy.types.Object, meter: ErrorMeter) -> None:
    rows = [
        ("E_RMS, per mille", f"{meter.e_rms:.3f}"),
        ("largest error, per mille", f"{meter.max_error:.2f}"),
        ("bones", f"{skinned['skinning_bone_count']}"),
        *((name, f"{seconds:.1f} s") for name, seconds in stages.seconds.items()),
        ("all stages", f"{sum(stages.seconds.values()):.1f} s"),
    ]
    width = max(len(name) for name, _ in rows)
    print("\n" + "\n".join(f"{name:<{width}}  {value:>10}" for name, value in rows))
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    print(f"\nIn {shown}: " + ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file())))


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        # An operator's report is written for people.
        print(f"\nThe demo stopped: {str(error).strip()}")
        status = 1
    else:
        status = 0
    leave(status)
