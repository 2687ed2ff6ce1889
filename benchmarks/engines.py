# SPDX-License-Identifier: GPL-3.0-or-later
"""The loss of exported results in other programs: glTF, FBX and USD, read by three.js, Babylon.js, Godot and Blender.

Every vertex at every frame is compared with Blender's own evaluation of the rig that was exported. Needs what
tests/engines needs (Chromium, three.js, Babylon.js, Godot), and the animations of ../shared/data.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import _sequences  # noqa: E402 (beside this file)
import bpy  # noqa: E402
from _tables import Tables  # noqa: E402 (beside this file)

import skinning_tools  # noqa: E402 (checkout's)
from skinning_tools.features.export.engines import FORMATS  # noqa: E402 (checkout's)
from tests.blender import moving_meshes, scenes, skinned_meshes  # noqa: E402 (checkout's)
from tests.engines import formats, godot_player, node_programs, samples, three_player  # noqa: E402 (checkout's)

# FBX has centimeters, which three.js leaves as they are.
UNITS = {"glb": 1.0, "fbx": 100.0, "usdc": 1.0}
WAYS = (
    ("glTF, three.js", "glb", "three"),
    ("glTF, Babylon.js", "glb", "babylon"),
    ("glTF, Godot", "glb", "godot"),
    ("glTF, Blender", "glb", "blender"),
    ("FBX, three.js", "fbx", "three"),
    ("FBX, Blender", "fbx", "blender"),
    ("FBX, Blender's new importer", "fbx", "new"),
    ("USD, three.js", "usdc", "three"),
    ("USD, Blender", "usdc", "blender"),
)
KINDS = ("AFFINE", "SCALED", "RIGID")
BONES, FRAMES = 30, 48
NUMBERS = (
    "Root mean square / largest distance of a vertex over all frames, per mille of the diagonal at the first frame."
)


@dataclass(frozen=True)
class Rig:
    """A skinned mesh of the scene it was made in: its vertices at rest (N, 3) in its own space, and at the scene's
    frames (F, N, 3) in the world's, also ``half_way`` (F - 1, N, 3) between them; from ``start`` on, in seconds."""

    ob: bpy.types.Object
    rest: np.ndarray
    expected: np.ndarray
    half_way: np.ndarray
    start: int
    fps: float

    @classmethod
    def of(cls, ob) -> "Rig":
        scene = bpy.context.scene
        count = scene.frame_end - scene.frame_start + 1
        formats.number_vertices(ob)
        expected = formats.played(ob, scene.frame_start, count)
        half_way = np.array([positions_at(ob, scene.frame_start + number + 0.5) for number in range(count - 1)])
        rest = np.array([vertex.co for vertex in ob.data.vertices])
        return cls(ob, rest, expected, half_way, scene.frame_start, scene.render.fps)


def positions_at(ob, frame: float) -> np.ndarray:
    """(N, 3) in the world, of a frame or between two."""
    bpy.context.scene.frame_set(int(frame), subframe=frame % 1)
    matrix = np.array(ob.matrix_world)
    return scenes.evaluated_positions(ob) @ matrix[:3, :3].T + matrix[:3, 3]


@dataclass(frozen=True)
class Distance:
    """Per mille of the diagonal."""

    root_mean_square: float
    largest: float

    @classmethod
    def between(cls, found: np.ndarray, expected: np.ndarray) -> "Distance":
        """Of positions (F, N, 3) each."""
        distances = 1000 * np.linalg.norm(found - expected, axis=-1) / formats.diagonal(expected)
        return cls(float(np.sqrt(np.mean(np.square(distances)))), float(distances.max()))

    def __str__(self) -> str:
        # Errors of single precision in a chain of bones are negligible.
        return "< 0.001" if self.largest < 0.001 else f"{shown(self.root_mean_square)} / {shown(self.largest)}"


def shown(value: float) -> str:
    """To two digits, and not more than three after the point."""
    if value < 0.1:
        return f"{value:.3f}" if value >= 0.001 else "< 0.001"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


class Bench:
    """Makes samples, writes files into a folder, and reads them."""

    def __init__(self, player: three_player.Player, folder: Path):
        self.player, self.folder = player, folder
        self.versions: dict[str, str] = {}

    def sequence(self, name: str, **given) -> tuple[Rig, Distance]:
        """A conversion of an animation of ../shared/data or of cloth, and its error."""
        animation = _sequences.read(_sequences.path(name), name)
        frames = np.ascontiguousarray(animation.frames[:FRAMES])
        if name == "horse_gallop":  # which has Y up
            frames = formats.to_z_up(frames)
        moving_meshes.fresh_scene(len(frames))
        scenes.write_pc2(self.folder / "source.pc2", frames)
        ob = moving_meshes.add_object(name, frames[0], animation.triangles.tolist())
        scenes.point_cache(ob, self.folder / "source.pc2", "PC2")
        rig = Rig.of(samples.convert(ob, **({"bone_count": BONES} | given)))
        return rig, Distance.between(rig.expected, frames)

    def write(self, rig: Rig, ending: str, name: str = "file", **settings) -> Path:
        """``rig`` as a file, by the extension's own export unless ``settings`` change what it would use; its scene must
        be the present one."""
        path = self.folder / f"{name}.{ending}"
        if settings:
            return formats.export(rig.ob, path, **settings)
        bpy.context.view_layer.objects.active = rig.ob
        key = next(key for key, each in FORMATS.items() if each.ending == path.suffix)
        bpy.ops.skinning.export_character(filepath=str(path), file_format=key, compare=False, replace=True)
        return path

    def distance(self, rig: Rig, path: Path, reader: str) -> Distance:
        """The errors of the mesh. Blender as the reader leaves another scene."""
        if reader == "three":
            _, found, vertices = self.in_three(rig, path, np.arange(len(rig.expected)))
        elif reader == "babylon":
            times = (rig.start + np.arange(len(rig.expected))) / rig.fps
            found, vertices, _ = node_programs.play(path, times)
        elif reader == "godot":
            times = (rig.start + np.arange(len(rig.expected))) / rig.fps
            found, vertices, _ = godot_player.play(path, times, rig.fps)
        else:
            ob = formats.reimport(path, rig.fps, new_fbx=reader == "new")
            found = formats.played(ob, formats.first_frame(ob), len(rig.expected))
            vertices = formats.vertex_numbers(ob)
        return Distance.between(found, rig.expected[:, vertices])

    def in_three(self, rig: Rig, path: Path, numbers, **given):
        """The playback at the frames ``numbers`` after the first; positions (F, R, 3) in Blender's axes and units; and
        the vertex (R,) of each row."""
        attribute = formats.VERTEX.lower() if path.suffix == ".glb" else None
        playback = self.player.play(path, (rig.start + numbers) / rig.fps, attribute=attribute, **given)
        if attribute:
            vertices = playback.attribute[:, 0].astype(np.int64)
        else:
            apart, vertices = cKDTree(rig.rest).query(playback.rest)
            if apart.max() > 1e-6 * formats.diagonal(rig.rest[None]):
                raise ValueError(f"{path.name} has other rest positions than the mesh")
        return playback, formats.to_z_up(playback.positions) / UNITS[path.suffix[1:]], vertices


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="write a picture of Blender's and three.js's horse"
    )
    options = parser.parse_args()
    reason = three_player.missing() or node_programs.missing() or godot_player.missing()
    if reason:
        print(f"Nothing is measured: {reason}.")
        return 1
    skinning_tools.register()
    tables = Tables()
    with three_player.Player() as player, tempfile.TemporaryDirectory() as folder:
        bench = Bench(player, Path(folder))
        show_ways(tables, bench)
        show_settings(tables, bench)
        show_travellers(tables, bench)
        if options.picture:
            import _engines_picture  # beside this file

            rig, _ = bench.sequence("horse_gallop", bone_kind="AFFINE")
            _engines_picture.draw(options.picture, bench, rig)
    if options.write:
        command = "`python3 build.py bench engines --write docs/engines_figures.md`"
        versions = "Blender {}, three.js {three}, Babylon.js {babylon}, Godot {godot}".format(
            bpy.app.version_string, **bench.versions
        )
        tables.write(options.write, "Exported results in figures", f"Made by {command}: {versions}.")
    return 0


def show_ways(tables: Tables, bench: Bench) -> None:
    ways = [way for way in WAYS if way[2] != "new" or bpy.app.version >= (4, 5, 0)]
    tables.begin(
        "Export error",
        f"Exported with [these settings](export_settings.md). {NUMBERS} Conversion: how far the result is from its "
        "source in Blender. Formats and readers: how far each is from the result in Blender, without influences of up "
        "to 0.0001. Horse: horse_gallop; "
        f"flag: the first {FRAMES} frames of the cloth; {BONES} bones each. Limb: EigenSkin corrections as keyframes.",
        *("", "conversion", *(label for label, _, _ in ways)),
    )
    for label, make in _samples(bench).items():
        rig, own = make()
        paths = {ending: bench.write(rig, ending) for ending in UNITS}
        cells = [str(bench.distance(rig, paths[ending], reader)) for _, ending, reader in ways]
        tables.row(label, str(own or "–"), *cells)


def _samples(bench: Bench) -> dict[str, Callable[[], tuple[Rig, Distance | None]]]:
    made = {}
    for kind in KINDS:
        for shapes in (0, 10):
            label = f"horse, {kind.capitalize()}" + f", {shapes} residual shapes" * bool(shapes)
            made[label] = partial(bench.sequence, "horse_gallop", bone_kind=kind, residual_shapes=shapes)
    for kind in KINDS:
        made[f"flag, {kind.capitalize()}"] = partial(bench.sequence, "flag", bone_kind=kind)
    made["limb, EigenSkin"] = lambda: (Rig.of(samples.corrected_limb()), None)
    return made


def show_settings(tables: Tables, bench: Bench) -> None:
    tables.begin(
        "What other settings cost",
        f"The horse with {BONES} bones, exported with one setting changed. glTF is read by three.js, FBX and USD by "
        f"Blender. {NUMBERS}",
        *("", *(kind.capitalize() for kind in KINDS)),
    )
    changes = (
        ("glTF, as recommended", "glb", {}),
        ("glTF, Export Deformation Bones Only", "glb", {"export_def_bones": True}),
        ("glTF, Flatten Bone Hierarchy", "glb", {"export_hierarchy_flatten_bones": True}),
        ("glTF, Optimize Animation Size", "glb", {"export_optimize_animation_size": True}),
        ("glTF, Always Sample Animations off", "glb", {"export_force_sampling": False}),
        ("glTF, Sampling Rate 2", "glb", {"export_frame_step": 2}),
        ("glTF, Apply Modifiers", "glb", {"export_apply": True}),
        ("FBX, as recommended", "fbx", {}),
        ("FBX, Simplify 1 (the default)", "fbx", {"bake_anim_simplify_factor": 1.0}),
        ("FBX, Sampling Rate 2", "fbx", {"bake_anim_step": 2.0}),
        ("FBX, Only Deform Bones", "fbx", {"use_armature_deform_only": True}),
        ("USD, as recommended", "usdc", {}),
        ("USD, Only Deform Bones", "usdc", {"only_deform_bones": True}),
    )
    columns = []
    for kind in KINDS:
        rig, _ = bench.sequence("horse_gallop", bone_kind=kind)
        paths = [
            bench.write(rig, ending, f"file {index}", **change) for index, (_, ending, change) in enumerate(changes)
        ]
        column = [_between(bench, rig, paths[0])]
        for (_, ending, _), path in zip(changes, paths, strict=True):
            column.append(bench.distance(rig, path, "three" if ending == "glb" else "blender"))
        others = {"glTF, 8 influences": {"max_influences": 8}}
        column += [_converted_otherwise(bench, bone_kind=kind, **given) for given in others.values()]
        columns.append(column)
    labels = ["glTF, as recommended, half-way between frames", *(change[0] for change in changes), *others]
    for label, *cells in zip(labels, *columns, strict=True):
        tables.row(label, *map(str, cells))
    tables.note(
        "Half-way between frames: compared with Blender at the same moment. Engines show such moments more often than "
        "frames."
    )


def _between(bench: Bench, rig: Rig, path: Path) -> Distance:
    _, found, vertices = bench.in_three(rig, path, np.arange(len(rig.half_way)) + 0.5)
    return Distance.between(found, rig.half_way[:, vertices])


def _converted_otherwise(bench: Bench, **given) -> Distance:
    rig, _ = bench.sequence("horse_gallop", **given)
    return bench.distance(rig, bench.write(rig, "glb"), "three")


def show_travellers(tables: Tables, bench: Bench) -> None:
    """Further content of the files, as read."""
    tables.begin(
        "Bones, shape keys and attributes",
        "What a reader finds: bones, shape keys and the attributes of centers of rotation, for the horse with 30 "
        "Affine "
        "bones and 10 residual shapes, and for a tube with centers prepared for export.",
        *("", "bones", "shape keys", "_COR", "rotation_center"),
    )
    horse, _ = bench.sequence("horse_gallop", bone_kind="AFFINE", residual_shapes=10)
    horses = {ending: bench.write(horse, ending, "horse") for ending in UNITS}
    tube, _ = skinned_meshes.rigged_tube()
    bpy.ops.skinning.bake_rotation_centers(sigma=0.3)
    bpy.ops.skinning.prepare_centers_for_export()
    tubes = {ending: formats.export(tube, bench.folder / f"tube.{ending}") for ending in UNITS}
    for label, ending, reader in WAYS:
        if reader == "new" and bpy.app.version < (4, 5, 0):
            continue
        if reader == "three":
            facts = bench.player.play(horses[ending], [0]).facts
            bench.versions[reader] = "r" + facts["three"]
            bones, shapes = facts["bones"], facts["morphs"]
            attributes = {name.upper() for name in bench.player.play(tubes[ending], [0]).facts["attributes"]}
        elif reader in ("babylon", "godot"):
            # They keep no attributes that they do not know.
            if reader == "babylon":
                _, _, facts = node_programs.play(horses[ending], [0])
            else:
                _, _, facts = godot_player.play(horses[ending], [0], horse.fps)
            bench.versions[reader] = facts["version"]
            bones, shapes, attributes = facts["bones"], facts["morphs"], set()
        else:
            ob = formats.reimport(horses[ending], horse.fps, new_fbx=reader == "new")
            bones = len(ob.find_armature().data.bones)
            shapes = len(ob.data.shape_keys.key_blocks) - 1 if ob.data.shape_keys else 0
            ob = formats.reimport(tubes[ending], horse.fps, new_fbx=reader == "new")
            attributes = set(map(str.upper, ob.data.attributes.keys()))
        present = ["yes" if name in attributes else "no" for name in ("_COR", "ROTATION_CENTER")]
        tables.row(label, str(bones), str(shapes), *present)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # Blender's 4.2 module can crash while Python shuts down after an export
