# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of build.py."""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import blender_program, environment, html_pages, package, suite
from .environment import ROOT, Failure
from .requirements import NEWEST_BLENDER, RIVALS, is_newer

# Each with the pictures that the documentation takes from it.
DEMOS = {
    "flag": ("flag.png", "error.png"),
    "face": ("face_expressions.png",),
    "gallery": ("gallery_clips.png", "gallery_skeleton.png", "gallery_bind.png", "gallery_pose_test.png"),
}


def main(arguments: list[str]) -> int:
    """Run one command; the exit status is 0 only if everything succeeded."""
    reader = argument_parser()
    options, rest = reader.parse_known_args(arguments)
    if rest and options.command not in ("test", "bench"):
        reader.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        program = options.blender if options.command == "test" and is_program(options.blender) else None
        blender = environment.choose_blender(None if program else options.blender)
        python = environment.ensure(blender)
        if program:
            return blender_program.test(python, program, options.window, rest)
        return options.run(python, options, rest)
    except Failure as failure:
        print(f"build.py: {failure}", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nbuild.py: stopped", flush=True)
        return 130


def is_program(blender: str | None) -> bool:
    """Whether ``--blender`` names a Blender program: a path or command instead of a version."""
    return blender is not None and not re.fullmatch(r"[\d.]+", blender)


def argument_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="build.py", description="Each command sets up .venv with Blender's Python module on its first run."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    descriptions = (
        ("setup", _setup, "only make .venv; every other command does this first if needed"),
        (
            "demo",
            _demo,
            "convert a simulated flag, or a face, to bones, or draw the gallery; save files and pictures in demo/",
        ),
        ("test", _test, "style and type checks, then the whole suite; more arguments go to pytest"),
        ("package", _package, "build the extension for every platform into dist/"),
        ("bench", _bench, "run a benchmark of benchmarks/; more arguments go to it"),
        ("html", _html, "build web pages from docs/ in build/html; a broken link is an error"),
        ("docs", _docs, "redraw the pictures of docs/images and regenerate the references"),
    )
    for name, run, description in descriptions:
        command = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        command.set_defaults(run=run)
        also = "; or the path of a Blender program, to test the installed package in it" if name == "test" else ""
        command.add_argument(
            "--blender",
            metavar="VERSION",
            help=f"4.2, 4.5 (Python 3.11) or 5.2 (Python 3.13), or a newer one; default: the newest{also}",
        )
        if name == "test":
            command.add_argument(
                "--window",
                metavar="PROGRAM",
                help="with a Blender program as --blender: a program that starts its window on a separate screen",
            )
        if name == "demo":
            command.add_argument("name", nargs="?", choices=DEMOS, default="flag", help="default: %(default)s")
        if name == "bench":
            command.add_argument("name", help="the benchmark: the file's name in benchmarks/, without .py")
            command.add_argument(
                "--rivals", action="store_true", help="first install the programs that it compares with"
            )
    return parser


def _run(python: Path, *arguments: str, variables: dict[str, str] | None = None) -> int:
    return subprocess.run([str(python), *arguments], cwd=ROOT, env=variables).returncode


def _setup(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    print(f"Ready: {python.relative_to(ROOT)}", flush=True)
    return 0


def _demo(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    return _run(python, f"demos/{options.name}.py")


def _test(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    checks = [("ruff", "check", "."), ("ruff", "format", "--check", ".")]
    # Once is enough, with the newest numpy, which has the best annotations.
    blender = environment.choose_blender(options.blender)
    if blender == NEWEST_BLENDER:
        checks.append(("mypy",))
    failed = [" ".join(check) for check in checks if _run(python, "-m", *check)]
    # The tests run even after these fail: one call reports everything that must be fixed.
    if is_newer(blender):
        # All of them, each with its place, in pytest's summary of warnings: what the next release will remove.
        rest = [*rest, "-W", "always::DeprecationWarning", "-W", "always::PendingDeprecationWarning"]
    status = _run(python, "-m", "pytest", *suite.in_parallel(rest), variables=suite.one_thread_each())
    if failed:
        print(f"build.py: these checks failed: {', '.join(failed)}", flush=True)
    return status or int(bool(failed))


def _package(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    for path in package.build(python):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return 0


def _bench(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    script = ROOT / "benchmarks" / f"{options.name.replace('-', '_')}.py"
    if not script.is_file():
        names = sorted(path.stem.replace("_", "-") for path in script.parent.glob("[!_]*.py"))
        raise Failure(f"There is no benchmark {options.name}; there are: {', '.join(names) or 'none yet'}.")
    if options.rivals:
        wanted = RIVALS.get(script.stem)
        if wanted is None:
            raise Failure(f"The benchmark {options.name} does not compare with other programs.")
        environment.pip(python, "install", "--only-binary=:all:", "--no-deps", *wanted)
    return _run(python, os.path.relpath(script, ROOT), *rest)


def _html(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    print(html_pages.build(python).relative_to(ROOT), flush=True)
    return 0


def _docs(python: Path, options: argparse.Namespace, rest: list[str]) -> int:
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    status = 0
    for demo, pictures in DEMOS.items():
        status = status or _run(python, f"demos/{demo}.py")
        for name in pictures if status == 0 else ():
            shutil.copyfile(ROOT / "demo" / name, images / name)
            print(f"docs/images/{name}", flush=True)
    for name in ("rotation_centers", "eigenskin", "binding", "creature_pictures", "how_it_works"):
        status = status or _run(python, f"demos/{name}.py", "--output", str(images))
    status = status or _run(python, "-m", "tools.references")
    return status
