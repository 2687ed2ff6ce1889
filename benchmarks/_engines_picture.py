# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of docs/engines.md: the same frame in Blender and in three.js, and the distances over time."""

import tempfile
from pathlib import Path

import bpy
import numpy as np
from mathutils import Vector
from matplotlib import pyplot as plt
from rendering import aim, link, plain, render_scene, sky  # in demos

from tests.engines import formats

SIZE = 720, 460
FRAME = 4
_BLUE = (0.105, 0.274, 0.672)  # 0x5b8fd6 on the screen, as in player.js


def draw(path: Path, bench, rig) -> None:
    """``rig`` (see engines.Rig)of the current scene, in both programs; below, the losses of formats and readers."""
    file = bench.write(rig, "glb")
    positions = rig.expected[FRAME]
    center = 0.5 * (positions.min(axis=0) + positions.max(axis=0))
    span = 1.2 * float(np.ptp(positions, axis=0).max())
    eye = center + span * 2 * np.array([0.75, -0.6, 0.35])
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = Path(folder) / "blender.png", Path(folder) / "three.png"
        camera = {"width": SIZE[0], "height": SIZE[1], "span": span}
        picture = {
            "path": theirs,
            "time": (rig.start + FRAME) / rig.fps,
            "eye": _y_up(eye),
            "target": _y_up(center),
        } | camera
        playback, found, vertices = bench.in_three(rig, file, np.arange(len(rig.expected)), picture=picture)
        _render(mine, rig.ob, rig.start + FRAME, Vector(eye), Vector(center), span)
        expected = rig.expected[:, vertices]
        shaded = formats.to_z_up(playback.shaded)
        _compose(path, plt.imread(mine), plt.imread(theirs), [_over_time(each, expected) for each in (found, shaded)])


def _y_up(point) -> list[float]:
    return [float(point[0]), float(point[2]), float(-point[1])]


def _over_time(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(F,) largest distance of a vertex, per mille of the diagonal."""
    return 1000 * np.linalg.norm(found - expected, axis=-1).max(axis=1) / formats.diagonal(expected)


def _render(path: Path, ob, frame: int, eye: Vector, center: Vector, span: float) -> None:
    scene = bpy.context.scene
    scene.frame_set(frame)
    for other in scene.objects:
        other.hide_render = other != ob
    ob.data.materials.clear()
    ob.data.materials.append(plain("Picture", _BLUE, roughness=0.6))
    camera = bpy.data.cameras.new("Picture")
    camera.type, camera.ortho_scale, camera.clip_end = "ORTHO", span, 20 * span
    scene.camera = link(scene, "Picture Camera", camera, eye)
    aim(scene.camera, center)
    sun = bpy.data.lights.new("Picture", "SUN")
    sun.energy, sun.angle = 2.5, 0.0
    aim(link(scene, "Picture Sun", sun, eye + Vector((-0.6 * span, 0, 1.2 * span))), center)
    sky(scene, (1, 1, 1), 0.7)
    scene.render.film_transparent = True
    render_scene(scene, path, SIZE, 24, bounces=0, denoised=False)


def _compose(path: Path, mine, theirs, curves) -> None:
    figure = plt.figure(figsize=(2 * SIZE[0] / 100, SIZE[1] / 100 + 2.7), dpi=100, facecolor="white")
    height = SIZE[1] / 100 / figure.get_figheight()
    for index, (picture, title) in enumerate(((mine, "Blender (Cycles)"), (theirs, "three.js in Chromium"))):
        axes = figure.add_axes((0.5 * index, 0.94 - height, 0.5, height))
        axes.imshow(picture)
        axes.axis("off")
        axes.set_title(title, fontsize=15, fontweight="bold")
    axes = figure.add_axes((0.08, 0.09, 0.89, 0.75 * (0.94 - height)))
    for curve, label, style in zip(
        curves, ("three.js on the processor", "three.js's shaders"), ("-", "--"), strict=True
    ):
        axes.semilogy(np.arange(1, len(curve) + 1), curve, style, label=label, linewidth=1.8)
    axes.axhline(0.1, color="#888888", linewidth=1)
    axes.text(len(curves[0]), 0.11, "1/10000 of the diagonal", ha="right", va="bottom", color="#555555")
    axes.set_xlim(1, len(curves[0]))
    axes.set_ylim(1e-5, 1)
    axes.set_xlabel("frame")
    axes.set_ylabel("largest distance\n‰ of the diagonal")
    axes.legend(frameon=False, loc="upper left", ncols=2)
    axes.grid(axis="y", linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)
