# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the window tests: python run.py BLENDER [--pictures FOLDER]; or make pictures for docs/: --docs-pictures

BLENDER is any Blender with a window, or a command that starts one on a virtual screen, 4.2 or newer, whose Python has
numpy and scipy (or a PYTHONPATH that has them). Events are simulated inside Blender, so that nothing outside it is
touched. Pictures are taken and compared with ImageMagick where Blender's process can start it.

A test passes where its conditions hold and Blender has written no traceback, which is all it says of a panel that
cannot be drawn.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Of a machine that does much else; one that is idle needs a fifth.
LIMIT_SECONDS = 600
DOCS_IMAGES = ROOT / "docs" / "images"
TESTS = (
    "bind_window.py",
    "buttons_window.py",
    "conversions_window.py",
    "convert_animation_window.py",
    "drag_vertex_window.py",
    "eigenskin_components_window.py",
    "eigenskin_window.py",
    "fit_weights_window.py",
    "joint_helpers_window.py",
    "lifecycle_window.py",
    "menus_window.py",
    "partial_solves_window.py",
    "pose_mode_window.py",
    "preview_window.py",
    "results_window.py",
    "rotation_centers_window.py",
    "states_window.py",
    "weights_window.py",
)

# By the script that takes them: the picture's name there, and that in docs/images.
DOCS_PICTURES = {
    "first_conversion_pictures.py": {
        f"{name}.png": f"first_{name}.png" for name in ("scene", "panel", "progress", "result", "error")
    },
    "preview_pictures.py": {name: name for name in ("preview_distance.png", "preview_methods.png")},
    "solver_pictures.py": {"conversion.png": "window.png", "partial_solves.png": "partial_solves.png"},
    "bind_window.py": {"bind_4_volumes_mirrored.png": "binding_volumes.png"},
    "weights_window.py": {"weights_2_found.png": "binding_rogue.png"},
    "drag_vertex_window.py": {"drag_4_radius.png": "binding_drag.png"},
    "eigenskin_components_window.py": {"components_2_amount.png": "eigenskin_component_view.png"},
    "fit_weights_window.py": {
        "weights_1_bones.png": "binding_weight_view.png",
        "fit_4_adjoining.png": "binding_reachable.png",
    },
    "joint_helpers_window.py": {"joint_helpers_6_bones.png": "binding_helpers.png"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blender", help="path of a Blender, or a command that starts one")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the window")
    parser.add_argument("--only", choices=TESTS, help="run one of the tests")
    parser.add_argument(
        "--installed", metavar="PROFILE", type=Path,
        help="test the extension that is installed there (BLENDER_USER_RESOURCES), instead of the source tree",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="how many at once, where each has a screen of its own")
    parser.add_argument(
        "--docs-pictures", action="store_true", help="no tests: make the windows' pictures in docs/images"
    )
    options = parser.parse_args()
    if options.docs_pictures:
        return make_docs_pictures(options.blender)
    tests = [test for test in TESTS if options.only in (None, test)]
    failed = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda test: run(options.blender, test, options.pictures, options.installed), tests)
        for test, (status, report) in zip(tests, runs, strict=True):
            sys.stdout.write(f"{test}\n{report}")
            sys.stdout.flush()
            failed += [test] if status else []
    sys.stdout.write(f"FAILED: {', '.join(failed)}\n" if failed else f"{len(tests)} window tests passed\n")
    return int(bool(failed))


def make_docs_pictures(blender: str) -> int:
    """Make the pictures of DOCS_PICTURES; a script's pictures are copied only if all of them were made."""
    status = 0
    for script, pictures in DOCS_PICTURES.items():
        with tempfile.TemporaryDirectory(prefix="skinning_tools_pictures_") as folder:
            failed, report = run(blender, script, Path(folder))
            sys.stdout.write(report)
            status = max(status, failed)
            for taken, name in () if failed else pictures.items():
                shutil.copyfile(Path(folder) / taken, DOCS_IMAGES / name)
                sys.stdout.write(f"{(DOCS_IMAGES / name).relative_to(ROOT)}\n")
    return status


def run(blender: str, test: str, pictures: Path | None, installed: Path | None = None) -> tuple[int, str]:
    """Run one test in a separate Blender; returns 0 if it passed, and a line about it."""
    with tempfile.TemporaryDirectory(prefix="skinning_tools_gui_") as folder:
        pictures = pictures.resolve() if pictures else Path(folder)
        pictures.mkdir(parents=True, exist_ok=True)
        outcome, printed, profile = (Path(folder) / name for name in ("outcome.json", "printed.txt", "profile"))
        if installed:
            # Blender writes into its profile, and takes scipy out where a test disables the extension.
            shutil.copytree(installed, profile, symlinks=True)
        use = "from tests import installed_package; installed_package.use_it(); " if installed else ""
        folders = [str(HERE), str(ROOT), str(ROOT / "demos")]
        start = f"import sys; sys.path[:0] = {folders}; {use}import driver; driver.run({Path(test).stem!r})"
        command = [blender, "--factory-startup", "--enable-event-simulate"]
        if "PYTHONPATH" in os.environ:
            command.append("--python-use-system-env")
        command += ["--python-exit-code", "1", "--python-expr", start, "--", str(outcome), str(pictures)]
        # Blender must not ask about, or load, what the user's profile has, nor leave files: it is ended abruptly.
        environment = os.environ | {"BLENDER_USER_RESOURCES": str(profile), "TMPDIR": folder}
        ended = start_and_wait(command, environment, printed)
        text = printed.read_text(errors="replace")
        result = json.loads(outcome.read_text()) if outcome.is_file() else {"passed": [], "failure": ended}
    report = "".join(f"  passed  {line}\n" for line in result["passed"])
    if not result["failure"] and "Traceback (most recent call last)" in text:
        result["failure"] = "Blender has written a traceback"
    if not result["failure"]:
        return 0, report
    return 1, f"{report}  FAILED  {result['failure']}\n{text}"


def start_and_wait(command: list[str], environment: dict[str, str], printed: Path) -> str:
    """Run Blender to its end, with its output in a file; returns how it ended."""
    with printed.open("w") as output:
        # A group of its own: a command that starts Blender on a virtual screen has children that must end with it.
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            return f"Blender ended with status {process.wait(LIMIT_SECONDS)} before the tests did"
        except subprocess.TimeoutExpired:
            return f"Blender did not end within {LIMIT_SECONDS} s"
        finally:
            if process.poll() is None:
                stop(process)


def stop(process: subprocess.Popen) -> None:
    """End a process and, where the system has groups of processes, its children."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.terminate()
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
