# SPDX-License-Identifier: GPL-3.0-or-later
"""A face with shape keys becomes bones with sliders: the file with both, and a picture of expressions.

Run by `python3 build.py demo face`, where the face is next to the checkout. Leaves face.blend and face_expressions.png.
"""

import sys
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from human_rig import DATA
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from program import leave, parse_options
from rendering import BACKGROUND, IN_THE_SUN, MUTED, TEXT, colored_by_error, plain, render, shape, turned_up

import skinning_tools

FACE = DATA / "ict_face.npz"
BONES = 40
SKIN = (0.55, 0.36, 0.28)
# Name of an expression, and its sliders.
EXPRESSIONS = {
    "Smile": {"mouthSmile_L": 1.0, "mouthSmile_R": 1.0, "cheekSquint_L": 0.6, "cheekSquint_R": 0.6},
    "Surprise": {
        "jawOpen": 0.6, "browInnerUp_L": 1.0, "browInnerUp_R": 1.0, "browOuterUp_L": 1.0, "browOuterUp_R": 1.0,
        "eyeWide_L": 1.0, "eyeWide_R": 1.0,
    },
    "Disgust": {
        "noseSneer_L": 1.0, "noseSneer_R": 1.0, "browDown_L": 0.8, "browDown_R": 0.8, "mouthUpperUp_L": 0.7,
        "mouthUpperUp_R": 0.7, "mouthFrown_L": 0.5, "mouthFrown_R": 0.5,
    },
    "Wink": {"eyeBlink_L": 1.0, "mouthLeft": 0.7, "cheekSquint_L": 1.0, "mouthPucker": 0.5},
}  # fmt: skip
# What the file plays: each expression reached and left in so many frames.
STEP = 12
APART = 0.24
HEIGHT = 40.0  # centimeters, of a row of the picture
CM_TO_MM = 10.0
APART_IN_FILE = 30.0  # centimeters between source and rig in face.blend


def main() -> int:
    options = parse_options(__doc__)
    if not FACE.is_file():
        print("The face is not next to the checkout (../shared/data)")
        return 0
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.unit_settings.scale_length = 0.01
    skinning_tools.register()
    face, triangles = make_face()
    animate(face)
    bpy.ops.skinning.convert_shape_keys(bone_count=BONES)
    skinned, rig = bpy.data.objects["Face_skinned"], bpy.data.objects["Face_rig"]
    face.location.x = -APART_IN_FILE
    bpy.context.scene.frame_end = STEP * (2 * len(EXPRESSIONS) + 1)
    path = options.output / "face.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    print(path, flush=True)
    # The actions no longer play; the drivers of the sliders stay.
    for animated in (face.data.shape_keys, rig):
        animated.animation_data.action = None
    rows = {"Shape keys": {}, f"{BONES} bones": {}, "Distance": {}}
    captions = []
    shown = {name: both(face, skinned, rig, sliders) for name, sliders in EXPRESSIONS.items()}
    errors = {name: CM_TO_MM * np.linalg.norm(rigged - keyed, axis=1) for name, (keyed, rigged) in shown.items()}
    largest = max(np.quantile(error, 0.995) for error in errors.values())
    for name, (keyed, rigged) in shown.items():
        for row, points in zip(rows.values(), (keyed, rigged, rigged), strict=True):
            row[name] = shape(turned_up(points), triangles, name)
        captions.append((name, f"{errors[name].mean():.3f} mm away on average, {errors[name].max():.1f} at most"))
    skin = plain("Skin", SKIN)
    for label, row in rows.items():
        for name, mesh in row.items():
            if label == "Distance":
                colored_by_error(mesh, errors[name], largest, IN_THE_SUN)
            else:
                mesh.materials.append(skin)
    path = options.output / "face_expressions.png"
    draw(path, rows, captions, largest, options.samples, options.percent)
    print(path, flush=True)
    return 0


def make_face() -> tuple[bpy.types.Object, np.ndarray]:
    """The face with its shape keys, and its triangles (T, 3)."""
    with np.load(FACE) as data:
        rest, deltas, faces = data["rest"].astype(float), data["deltas"], data["quads"]
        names = [str(name) for name in data["shape_names"]]
    mesh = bpy.data.meshes.new("Face")
    mesh.from_pydata(rest.tolist(), [], [[int(corner) for corner in face if corner >= 0] for face in faces])
    mesh.shade_smooth()
    face = bpy.data.objects.new("Face", mesh)
    bpy.context.collection.objects.link(face)
    face.shape_key_add(name="Basis")
    for name, delta in zip(names, deltas, strict=True):
        block = face.shape_key_add(name=name, from_mix=False)
        block.points.foreach_set("co", (rest + delta).ravel())
        # In Blender 5.2 a new shape key begins at 1.
        block.value = 0.0
    bpy.context.view_layer.objects.active = face
    face.select_set(True)
    four = faces[:, 3] >= 0
    return face, np.concatenate([faces[:, [0, 1, 2]], faces[four][:, [0, 2, 3]]])


def animate(face: bpy.types.Object) -> None:
    """Keys of the shape keys, from one expression to the next: the sliders take them over."""
    blocks = face.data.shape_keys.key_blocks
    for number, sliders in enumerate(EXPRESSIONS.values()):
        for name, value in sliders.items():
            for step, at in enumerate((0.0, value, value, 0.0)):
                blocks[name].value = at
                blocks[name].keyframe_insert("value", frame=1 + STEP * (2 * number + step * 0.75))


def both(face, skinned, rig, sliders: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N, 3) by the shape keys and by the bones, as Blender evaluates them."""
    for block in face.data.shape_keys.key_blocks[1:]:
        block.value = rig[block.name] = sliders.get(block.name, 0.0)
    rig.update_tag()
    bpy.context.view_layer.update()
    return positions(face), positions(skinned)


def positions(ob: bpy.types.Object) -> np.ndarray:
    mesh = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    points = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.attributes["position"].data.foreach_get("vector", points)
    return points.reshape(-1, 3).astype(float)


def draw(path: Path, rows, captions, largest: float, samples: int, percent: int) -> None:
    """One row of heads for each of ``rows``, below each other, with captions and a color bar."""
    strips = []
    for label, meshes in rows.items():
        strip = path.with_name(f"{path.stem}_{label.split()[0].lower()}.png")
        render(strip, meshes, samples, percent, height=HEIGHT, direction=(0.25, -1.0, 0.08), apart=APART)
        strips.append(plt.imread(strip)[..., :3])
        strip.unlink()
    below = np.empty((strips[0].shape[0] // 7, *strips[0].shape[1:]), np.float32)
    below[:] = to_rgb(BACKGROUND)
    picture = np.concatenate([*strips, below])
    height, width = picture.shape[:2]
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, aspect="auto")
    axes.axis("off")
    size = width / 100
    for label, top in zip(rows, np.linspace(1.0, len(below) / height, len(rows) + 1), strict=False):
        figure.text(0.01, top - 0.02, label, color=TEXT, fontsize=size, fontweight="bold", va="top")
    for number, (title, line) in enumerate(captions):
        x = 0.5 + (number - (len(captions) - 1) / 2) * APART
        figure.text(x, 0.028, title, color=TEXT, fontsize=0.9 * size, fontweight="bold", ha="center")
        figure.text(x, 0.012, line, color=MUTED, fontsize=0.6 * size, ha="center")
    x, y = 0.01, len(below) / height
    figure.text(x, y, f"Darkest: {largest:.1f} mm and more", color=MUTED, fontsize=0.6 * size, va="bottom")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    leave(main())
