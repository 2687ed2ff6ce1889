# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: error over components as in the paper's figure 7, unseen poses, soft tissue, building, playing, memory.

The human rig of ../shared/data learns the shapes of dual quaternion skinning, its thumb those of finite elements, a
limb those of a soft body that Blender simulates. Errors, of shapes and in one table of normals, are
‖what is left‖ / ‖what plain linear blending misses‖ over all poses of a row. Processor time does not include other
work on the machine. Memory is the peak of a process.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import eigenskin_human as human  # noqa: E402 (in demos)
from _eigenskin_coupling import show_coupling  # noqa: E402 (beside this file)
from _eigenskin_functions import show_functions  # noqa: E402 (beside this file)
from _eigenskin_normals import show_normals  # noqa: E402 (beside this file)
from _eigenskin_poses import ratios, trained_axes  # noqa: E402 (beside this file)
from _eigenskin_thumb import PAPER_THUMB, show_thumb  # noqa: E402 (beside this file)
from _eigenskin_weights import show_weights  # noqa: E402 (beside this file)
from _process import in_own_process, peak_memory  # noqa: E402 (beside this file)
from _tables import Tables  # noqa: E402 (beside this file)
from human_rig import HUMAN  # noqa: E402 (in demos)

from skinning_tools.core.eigenskin import (  # noqa: E402 (the checkout's)
    EigenSkinSettings,
    build_eigenskin,
    example_errors,
    half_rotations,
    shell_turns,
)

MOST = 6
UNSEEN_COMPONENTS = (1, 3, 6, 10)

# Degrees: the range of the joints.
REACH = 100.0

SPREAD = "Ways take turns; other work on the machine shows in the spread."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="number of timed builds")
    parser.add_argument("--updates", type=int, default=400, help="number of timed updates")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown, too")
    parser.add_argument("--only", choices=list(ALONE), help="only this table; --write leaves the others as they are")
    options = parser.parse_args()
    tables = Tables()
    if not options.only:
        show_all_but_those_alone(tables, options)
    if HUMAN.is_file():
        for name, show in ALONE.items():
            if options.only in (None, name):
                show(tables)
    if options.write and options.only:
        tables.replace(options.write)
    elif options.write:
        command = "`python3 build.py bench eigenskin --write docs/eigenskin_figures.md`"
        tables.write(options.write, "EigenSkin in figures", f"Made by {command}.")
    return 0


def show_all_but_those_alone(tables: Tables, options: argparse.Namespace) -> None:
    blender = importlib.util.find_spec("bpy") is not None
    if not HUMAN.is_file():
        print("The human rig is not next to the checkout (../shared/data).")
    else:
        show_components(tables)
        show_unseen(tables)
    if not blender:
        print("The rest is not measured: there is no bpy here. Run it by build.py.")
    else:
        show_tissue(tables)
        if HUMAN.is_file():
            show_building(tables, options.runs)
            show_playing(tables, options.updates)
            show_sizes(tables)
        show_layouts(tables, options.updates)


def show_components(tables: Tables) -> None:
    body = human.Character.read()
    steps = ", ".join(f"±{angle}°" for angle in human.STEPS if angle > 0)
    tables.begin(
        "Error over components",
        f"One joint of the human rig at its examples: {steps} about one axis (elbow, knee: 6 examples) or each of "
        "three (shoulder, hip: 18). Optimum: the singular value decomposition of the whole mesh, without threshold. "
        "Rest pose: the error where components are added, which their choice minimizes. In the pose: the visible "
        "error, which their values minimize. "
        "Last row: the paper's figure 7, a thumb with soft tissue; ours: *Thumb of soft tissue*.",
        *("joint", *map(str, range(MOST + 1))),
    )
    for label, name in (human.HINGES | human.BALLS).items():
        examples = body.examples(human.turns_about(name, trained_axes(body, label, name)))
        at_rest, posed = [1.0], [1.0]
        for components in range(1, MOST + 1):
            model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=components))
            at_rest.append(human.rest_error(body.rig, examples, model))
            posed.append(example_errors(body.rig, examples, model).relative)
        tables.row(f"{label}, optimum", *ratios(human.optimum(body.rig, examples)[: MOST + 1]))
        tables.row(f"{label}, rest pose", *ratios(at_rest))
        tables.row(f"{label}, in the pose", *ratios(posed))
    tables.row("thumb of the paper", *ratios(PAPER_THUMB), *["–"] * (MOST + 1 - len(PAPER_THUMB)))


def show_unseen(tables: Tables) -> None:
    body = human.Character.read()
    tables.begin(
        "Unseen poses",
        "25 random poses of the same joints, up to ±100°, in the pose. A joint with three axes has examples about the "
        "axes only, or also half-way between any two of them (9 axes, 54 examples), or on two shells of angles over "
        "the ball, as Pose Joints makes them.",
        *("joint and its examples", "poses", *(f"{count} comp." for count in UNSEEN_COMPONENTS)),
    )
    for label, name in (human.HINGES | human.BALLS).items():
        axes = trained_axes(body, label, name)
        taught = {f"{label}, {len(axes)} {'axis' if len(axes) == 1 else 'axes'}": axes}
        poses = {"about them" if len(axes) > 1 else "about it": axes}
        if len(axes) == 3:
            nine = np.concatenate([axes, human.between(axes)])
            taught[f"{label}, {len(nine)} axes"] = nine
            poses = {"about the three": axes, "about any": human.random_directions()}
        turns = {row: human.turns_about(name, used) for row, used in taught.items()}
        if len(axes) == 3:
            reach = np.full(3, np.radians(REACH))
            turns |= {
                f"{label}, {count} over the ball": [(name, turn) for turn in shell_turns(count, -reach, reach)]
                for count in (24, 40)
            }
        for row, posed in turns.items():
            examples = body.examples(posed)
            models = [
                build_eigenskin(body.rig, examples, EigenSkinSettings(components=count)) for count in UNSEEN_COMPONENTS
            ]
            for where, directions in poses.items():
                unseen = body.examples(human.unseen_turns(name, directions))
                tables.row(row, where, *ratios(example_errors(body.rig, unseen, model).relative for model in models))


def show_half_rotations(tables: Tables) -> None:
    body = human.Character.read()
    tables.begin(
        "Half-rotation bones",
        "Joints at 25 unseen poses, as in *Unseen poses*, with and without a bone under the shape keys that takes half "
        "of the joint's rotation: hinges with 6 examples, joints with three axes with 24 over the ball. 0 components: "
        "the skin alone. All as a share of what plain linear blending without the bone misses.",
        *("joint", "0 comp.", *(f"{count} comp." for count in UNSEEN_COMPONENTS)),
    )
    reach = np.full(3, np.radians(REACH))
    for label, name in (human.HINGES | human.BALLS).items():
        axes = trained_axes(body, label, name)
        hinge = label in human.HINGES
        taught = human.turns_about(name, axes) if hinge else [(name, turn) for turn in shell_turns(24, -reach, reach)]
        directions = axes if hinge else human.random_directions()
        examples, unseen = body.examples(taught), body.examples(human.unseen_turns(name, directions))
        joint = body.rig.joint_names.index(name)
        halves = half_rotations(body.rig, examples.rotations, [(body.rig.parents[joint], joint, body.heads[joint])])
        most = body.rig.weights.shape[1]
        for row, (rig, told), (_, met) in (
            (label, (body.rig, examples), (body.rig, unseen)),
            (f"{label}, with the bone", halves.applied(examples, most), halves.applied(unseen, most)),
        ):
            errors = [
                example_errors(rig, met, build_eigenskin(rig, told, EigenSkinSettings(components=count)))
                for count in UNSEEN_COMPONENTS
            ]
            if row == label:
                plain = np.linalg.norm(errors[0].before)
            left = [errors[0].before, *(error.after for error in errors)]
            tables.row(row, *ratios(np.linalg.norm(left, axis=1) / plain))


def show_tissue(tables: Tables) -> None:
    tables.begin(
        "Soft tissue",
        "A limb whose soft body Blender simulates, ±22°, ±44°, ±66° about one axis (6 examples by Pose Joints and Add "
        "Frames) or each of three (18). Unseen: 25 other simulated poses about the same axes, compared with the "
        "corrected mesh in Blender. Last rows: bent up to 120° in steps of 20°. Near 80° the inner side folds "
        "suddenly; no interpolation of the pose follows such a jump.",
        *("joint", *map(str, range(MOST + 1))),
    )
    for name, count, seen, unseen in in_own_process(tissue, MOST):
        tables.row(f"{name}, {count} examples", *ratios(seen))
        tables.row(f"{name}, unseen", *ratios(unseen))


def show_building(tables: Tables, runs: int) -> None:
    stages, what = in_own_process(build_stages, runs)
    tables.begin(
        "Building",
        f"Human rig in Blender: {what}. Medians of {runs} builds; the last row is a separate build.",
        *("stage", "seconds", "wall time"),
    )
    for name, processor, wall in stages:
        tables.row(name, f"{np.median(processor):.2f}", f"{np.median(wall):.2f}")
    before, after = in_own_process(peak_of_examples), in_own_process(peak_of_build)
    tables.note(
        f"Peak memory: {after:.0f} MB, of which {before:.0f} MB for Blender with the rig and the stored examples."
    )


def show_playing(tables: Tables, repeats: int) -> None:
    rows, what = in_own_process(updates, repeats)
    tables.begin(
        "Playing",
        f"Milliseconds for an update in which all joints rotate. {what}, each with 3 components from 6 examples. "
        f"{SPREAD} "
        "Minimum, median and 90 % are wall time.",
        *("joints and what plays", "drivers", "minimum", "median", "90 % below", "processor"),
    )
    medians = {}
    for joints, name, count, wall, processor in rows:
        medians[joints, name] = 1000 * np.array([np.median(wall), np.median(processor)])
        least, median, most = 1000 * np.quantile(wall, (0, 0.5, 0.9))
        cells = f"{least:.2f}", f"{median:.2f}", f"{most:.2f}", f"{medians[joints, name][1]:.2f}"
        tables.row(f"{joints}, {name}", str(count or "–"), *cells)
    costs = [
        f"{joints} {' and '.join(f'{cost:.2f}' for cost in costs)} ms"
        for joints in ("hinges", "balls")
        for costs in [medians[joints, "shape keys and drivers"] - medians[joints, "shape keys alone"]]
    ]
    tables.note(f"The drivers alone, wall time and processor time: {', '.join(costs)} (difference of the medians).")


def show_sizes(tables: Tables) -> None:
    rows = in_own_process(sizes)
    tables.begin(
        "Memory",
        "Human rig, 20 joints with 6 examples and 3 components each, single precision: for the vertices of the "
        "supports only, as an engine may store them (12 bytes for each vertex and component), and as Blender's shape "
        "keys, which store all vertices. Both sides of the body are alike.",
        *("joint", "vertices", "keys", "kB, support", "kB, shape keys"),
    )
    total = np.zeros(4)
    for joint, vertices, keys, whole in rows:
        figures = np.array([vertices, keys, 12e-3 * vertices * keys, 12e-3 * whole * keys])
        total += figures
        if not joint.endswith(".R"):
            tables.row(joint, f"{vertices:,}", str(keys), *(f"{size:.1f}" for size in figures[2:]))
    tables.row("all 20", "–", f"{total[1]:.0f}", *(f"{size:.1f}" for size in total[2:]))
    whole = rows[0][-1]
    tables.note(
        f"{1000 * total[2] / whole:.0f} bytes for each of the {whole:,} vertices, on average, if only supports are "
        f"stored; {1000 * total[3] / whole:.0f} as shape keys."
    )


def show_layouts(tables: Tables, repeats: int) -> None:
    rows, what = in_own_process(driver_layouts, repeats)
    tables.begin(
        "Ways to write the drivers",
        f"Milliseconds that the drivers add to an update, medians. {what}. Kept: where the intermediate values are "
        "stored.",
        *("joints and layout", "kept on", "drivers", "wall time", "processor"),
    )
    for joints, layout, where, count, wall, processor in rows:
        if layout == "used" or where == rows[0][2]:
            tables.row(f"{joints}, {layout}", where, str(count), *map(milliseconds, (wall, processor)))
    rows, what = in_own_process(shape_key_costs, repeats)
    tables.begin(
        "Shape keys without drivers",
        f"Milliseconds that the shape keys add to an update, medians. {what}.",
        *("values", "wall time", "processor"),
    )
    for name, wall, processor in rows:
        tables.row(name, *map(milliseconds, (wall, processor)))


# By the name for --only.
ALONE = {
    "half-rotation": show_half_rotations,
    "normals": show_normals,
    "functions": show_functions,
    "weights": show_weights,
    "coupling": show_coupling,
    "thumb": show_thumb,
}


def milliseconds(seconds) -> str:
    """The median of differences, which noise may have made negative."""
    return f"{max(1000 * np.median(seconds), 0.0):.2f}"


# In processes of their own: Blender's module changes where its parent's children would look for modules.


def tissue(most: int):
    import _eigenskin_blender

    return _eigenskin_blender.tissue(most)


def build_stages(runs: int):
    import _eigenskin_blender

    return _eigenskin_blender.build_stages(runs)


def peak_of_examples() -> float:
    import _eigenskin_blender

    _eigenskin_blender.character_with_examples()
    return peak_memory()


def peak_of_build() -> float:
    import _eigenskin_blender

    _eigenskin_blender.corrected_character()
    return peak_memory()


def updates(repeats: int):
    import _eigenskin_blender

    return _eigenskin_blender.updates(repeats)


def sizes():
    import _eigenskin_blender

    return _eigenskin_blender.sizes()


def driver_layouts(repeats: int):
    import _eigenskin_drivers

    return _eigenskin_drivers.layouts(repeats)


def shape_key_costs(repeats: int):
    import _eigenskin_drivers

    return _eigenskin_drivers.deformation(repeats)


if __name__ == "__main__":
    sys.exit(main())
