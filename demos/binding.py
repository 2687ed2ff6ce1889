# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of binding: the human rig bound by each method and by Blender, then posed (Cycles on the CPU).

Run by `python3 build.py docs`, where the human rig is next to the checkout. Leaves binding_methods.png, the mesh as it
is, and binding_torn.png, the same with seams, on which automatic weights fail.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from binding_blender import bind_in_blender
from binding_human import HumanRig, torn
from eigenskin_human import Character
from human_rig import HUMAN
from program import leave, parse_options
from rendering import IN_THE_SUN, colored_by_error, compose, render, shape, turned_up
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.bind import bind
from skinning_tools.core.deform import skin_frame

AUTOMATIC = "automatic weights"
METHODS = {"CONTAINMENT": "Containment", "POINT_TO_LINE": "Point to Line", "DELAUNAY": "Delaunay", "RIGID": "Rigid"}
APART = 0.195
RAISED = np.array([0.0, 0.0, 0.55])  # above the captions

# Joints turned about an axis of the world (x to the character's left, y up, z to the front) by degrees.
TURNS = (
    ("upperarm01.L", "z", 55.0),
    ("upperarm01.R", "z", 35.0),
    ("lowerarm01.L", "y", -75.0),
    ("lowerarm01.R", "x", -85.0),
    ("upperleg01.L", "x", -70.0),
    ("lowerleg01.L", "x", 85.0),
    ("spine03", "z", -12.0),
    ("neck01", "y", 25.0),
)


def main() -> int:
    options = parse_options(__doc__)
    if not HUMAN.is_file():
        print("The pictures of binding are left out: the human rig is not next to the checkout (../shared/data)")
        return 0
    rig = HumanRig.read()
    for name, bound in (("methods", rig), ("torn", torn(rig, np.ones(len(rig.body.triangles), bool)))):
        path = options.output / f"binding_{name}.png"
        draw(path, bound, options.samples, options.percent)
        print(path, flush=True)
    return 0


def draw(path: Path, rig: HumanRig, samples: int, percent: int) -> None:
    """Each binding in the same pose, colored by the distance from the position by the rig's own weights."""
    body, skeleton, pose = rig.body, rig.skeleton, posed()
    wanted = skin_frame(body.rest, rig.bones, rig.weights, pose)
    bones = skeleton.heads, skeleton.tails, skeleton.parents, skeleton.names
    rows = {"Automatic weights": bind_in_blender(body.rest, body.triangles, *bones, AUTOMATIC)[:2]}
    rows |= {label: bind(body, skeleton, method) for method, label in METHODS.items()}
    points = {label: skin_frame(body.rest, *row, pose) for label, row in rows.items()}
    # The rig is measured in decimeters.
    errors = {label: 100 * np.linalg.norm(place - wanted, axis=1) for label, place in points.items()}
    largest = max(np.quantile(error, 0.995) for label, error in errors.items() if rows[label][1].any())
    middle = 0.5 * (turned_up(wanted).min(axis=0) + turned_up(wanted).max(axis=0))
    meshes = {}
    for label, place in points.items():
        mesh = shape(turned_up(place) - middle + RAISED, body.triangles)
        colored_by_error(mesh, errors[label], largest, IN_THE_SUN)
        meshes[label] = mesh
    render(path, meshes, samples, percent, height=22.0, direction=(0.35, -1.0, 0.1), apart=APART)
    captions = [
        (label, f"{errors[label].mean():.1f} mm away on average" if row[1].any() else "fails: no vertex is bound")
        for label, row in rows.items()
    ]
    text = "distance in mm from where the rig's own weights take it"
    compose(str(path), captions, largest, text, APART)


def posed() -> np.ndarray:
    """(P, 3, 4) from rest pose to pose."""
    body = Character.read()
    local = np.tile([1.0, 0.0, 0.0, 0.0], (len(body.rig.joint_names), 1))
    for name, axis, degrees in TURNS:
        turned = Rotation.from_euler(axis, degrees, degrees=True).as_quat()
        local[body.rig.joint_names.index(name)] = np.roll(turned, 1)
    return body.matrices(local)


if __name__ == "__main__":
    leave(main())
