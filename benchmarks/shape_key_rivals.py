# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys to bones beside other programs: Dem Bones on the same face, and what the published method reports on its
own faces.

Played by linear blend skinning in double precision, without Blender, so that all play alike.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = str(ROOT), str(ROOT / "benchmarks")

from _baselines import dem_bones  # noqa: E402 (beside this file)
from _tables import Tables  # noqa: E402 (beside this file)

from skinning_tools.core.animation import Animation  # noqa: E402 (in the checkout)
from skinning_tools.core.deform.surface import vertex_normals  # noqa: E402 (in the checkout)
from skinning_tools.core.shape_rig import Settings, Shapes, solve_shapes  # noqa: E402 (in the checkout)

FACE = ROOT.parent / "shared" / "data" / "ict_face.npz"
MILLIMETERS = 10.0  # per unit of the face
BONES = 40
TUNED = "Dem Bones, tuned"
RIVALS = {"Dem Bones": dem_bones.DEFAULTS, TUNED: dem_bones.TUNED_8}
# Table 1 of Kavan et al. 2024: face, vertices, shapes, bones; transforms that are not zero, mean and largest error in
# millimeters by their method; the same by Dem Bones. 8 influences; 32 for Proteus HD.
PUBLISHED = (
    ("Aura", 5944, 267, 40, (1000, 0.0384, 5.82), (10680, 0.0391, 5.65)),
    ("Jupiter", 5944, 319, 40, (1000, 0.0297, 8.26), (12760, 0.0263, 7.64)),
    ("Proteus", 23735, 287, 40, (1000, 0.0300, 4.80), (11480, 0.0305, 6.23)),
    ("Bowen", 23735, 253, 40, (1000, 0.0339, 5.99), (10120, 0.0459, 10.75)),
    ("Proteus HD", 23735, 287, 200, (57400, 0.0147, 0.06), (57400, 0.0174, 3.45)),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the tables in this page, too")
    parser.add_argument(
        "--tuned",
        action="store_true",
        help="Dem Bones with 100 iterations, no affine softening and smoothness 1e-6, too: takes minutes",
    )
    options = parser.parse_args()
    if not FACE.is_file():
        print("The face is not next to the checkout (../shared).")
        return 1
    tables = Tables(first=20)
    _same_face(tables, options.tuned)
    _published(tables)
    if options.write:
        tables.replace(options.write)
    return 0


def _same_face(tables: Tables, tuned: bool) -> None:
    with np.load(FACE) as data:
        rest, deltas, quads = data["rest"].astype(float), data["deltas"].astype(np.float32), data["quads"]
    four = quads[:, 3] >= 0
    triangles = np.concatenate([quads[:, :3], quads[four][:, [0, 2, 3]]]).astype(np.int32)
    tables.begin(
        "Beside Dem Bones",
        f"The face of the table above, {BONES} rigid bones and 8 influences, each slider at 1, played without Blender. "
        "Dem Bones: EA's implementation of Le & Deng 2012 through py-dem-bones 0.13.1, with a frame for each shape "
        "and its own defaults. It has no sliders: mixes are not compared. "
        "Made by `python3.11 build.py bench shape-key-rivals --rivals --write docs/shape_keys_figures.md`.",
        "program", "mean mm", "largest mm", "normals", "processor s",
    )  # fmt: skip
    begin = time.process_time()
    rig = solve_shapes(Shapes(rest, deltas, triangles), Settings(bone_count=BONES))
    seconds = time.process_time() - begin
    transforms = np.stack([rig.transforms(values) for values in np.eye(len(deltas))])
    _row(tables, "ours", rest, deltas, triangles, (rig.bones, rig.weights, transforms, seconds))
    if not dem_bones.available():
        tables.note("Dem Bones is not installed: `build.py bench shape-key-rivals --rivals` does that (Python 3.11).")
        return
    animation = Animation(np.concatenate([rest[None], rest + deltas]).astype(np.float32), triangles)
    for name, parameters in RIVALS.items():
        if name == TUNED and not tuned:
            continue
        begin = time.process_time()
        found = dem_bones.approximate(animation, BONES, **parameters)
        seconds = time.process_time() - begin
        # The first frame is the neutral.
        skin = found.bones, found.weights, found.transforms[1:], seconds
        _row(tables, name, found.rest, deltas, triangles, skin, wanted=rest)


def _row(
    tables: Tables, name: str, rest: np.ndarray, deltas: np.ndarray, triangles: np.ndarray, skin: tuple, wanted=None
) -> None:
    bones, weights, transforms, seconds = skin
    wanted = rest if wanted is None else wanted
    dense = np.zeros((len(rest), transforms.shape[1]))
    np.add.at(dense, (np.arange(len(rest))[:, None], bones), weights)
    points = np.concatenate([rest, np.ones((len(rest), 1))], axis=1)
    means, largest, turned = [], [], []
    for delta, pose in zip(deltas, transforms, strict=True):
        blended = (dense @ pose.reshape(len(pose), 12)).reshape(-1, 3, 4)
        got, right = np.einsum("nij,nj->ni", blended, points), wanted + delta
        away = MILLIMETERS * np.abs(got - right)
        cosines = np.einsum("ni,ni->n", vertex_normals(got, triangles), vertex_normals(right, triangles))
        means.append(away.mean())
        largest.append(away.max())
        turned.append(np.quantile(np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))), 0.9))
    cells = f"{np.mean(means):.4f}", f"{np.max(largest):.2f}", f"{np.mean(turned):.2f}°", f"{seconds:.0f}"
    tables.row(name, *cells)


def _published(tables: Tables) -> None:
    tables.begin(
        "What the published method reports",
        "Table 1 of L. Kavan, J. Doublestein, M. Prazak, M. Cioffi and D. Roble, *Compressed Skinning for Facial "
        "Blendshapes* (2024), on the faces of that paper, beside its figures of Dem Bones. Our figures above are of "
        "another face, so that they only tell the order of size. Transforms: how many are not zero, of all bones in "
        "all shapes. A mean is over all vertices and shapes, and faces differ in how much of them a shape moves.",
        "face", "vertices", "shapes", "bones", "transforms", "mean mm", "largest mm", "Dem Bones: transforms",
        "mean mm ", "largest mm ",
    )  # fmt: skip
    for face, vertices, shapes, bones, published, rival in PUBLISHED:
        cells = [f"{number:,}" for number in (vertices, shapes, bones)]
        for transforms, mean, largest in (published, rival):
            cells += [f"{transforms:,}", f"{mean:.4f}", f"{largest:.2f}"]
        tables.row(face, *cells)


if __name__ == "__main__":
    sys.exit(main())
