# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the suites inside a Blender program, with the extension installed from its package into a temporary profile."""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import environment, package, suite
from .environment import ROOT, Failure

REPOSITORY = "user_default"
LIMIT_SECONDS = 1800
# More parts than processes, so that the processes finish at about the same time.
PARTS_PER_PROCESS = 4
# Tests of demos/, which are programs for the Python of .venv.
DEMOS = re.compile(r"^test_demo\.py$|_pictures\.py$")


def find(name: str) -> str:
    """The path of a program given by path or name. Raises Failure."""
    found = shutil.which(name) or shutil.which(ROOT / name)
    if found is None:
        raise Failure(f"There is no program {name}.")
    return str(Path(found).absolute())


def test(python: Path, program: str, window: str | None, rest: list[str]) -> int:
    """Install the package and run tests/blender in the program, then tests/gui if there is a screen.

    python: that of .venv; window: the program that opens this Blender's window, if it is another one; rest: arguments
    for pytest. Returns 0 only if everything passed. Raises Failure.
    """
    program = find(program)
    version, python_version = versions(program)
    print(f"== {version} with Python {python_version}, {program}", flush=True)
    tools = environment.ensure_program_tools(python, python_version)
    archive = for_this_platform(package.build(python))
    with tempfile.TemporaryDirectory(prefix="skinning_tools_profile_", ignore_cleanup_errors=True) as folder:
        profile = Path(folder) / "installed"
        install(program, archive, profile)
        failed = [
            what
            for what, run in (
                ("the package", lambda: validated(program, archive)),
                ("the installed extension", lambda: installed_extension(program, archive, Path(folder))),
                ("the background suite", lambda: background_suite(python, program, profile, tools, rest)),
                ("the window suite", lambda: window_suite(python, program, window, profile, tools)),
            )
            if run()
        ]
    print(f"build.py: failed in {version}: {', '.join(failed)}" if failed else f"{version}: all passed", flush=True)
    return int(bool(failed))


def versions(program: str) -> tuple[str, str]:
    """The program's name and version, such as "Blender 5.2.2 LTS", and the version of its Python, such as "3.13".
    Raises Failure."""
    code = "import bpy, sys; print('versions', *sys.version_info[:2], bpy.app.version_string)"
    result = _run([program, "--background", "--factory-startup", "--python-expr", code])
    for line in result.stdout.splitlines():
        if line.startswith("versions "):
            _, major, minor, blender = line.split(maxsplit=3)
            return f"Blender {blender}", f"{major}.{minor}"
    raise Failure(f"{program} is not a Blender that starts: {(result.stdout + result.stderr).strip() or 'no message'}")


def for_this_platform(zips: list[Path]) -> Path:
    """The package for this machine. Raises Failure."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    processor = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower())
    name = f"{system}_{processor or platform.machine().lower()}"
    for path in zips:
        if path.stem.endswith(name):
            return path
    raise Failure(f"There is no package for {name}.")


def install(program: str, archive: Path, profile: Path) -> None:
    """Install and enable the package like `blender --command extension install-file`. Raises Failure."""
    profile.mkdir()
    command = [program, "--background", "--command", "extension", "install-file", "--repo", REPOSITORY, "--enable"]
    result = _run([*command, str(archive)], profile)
    if result.returncode or not list(profile.glob("extensions/.local/lib/*/site-packages/scipy")):
        raise Failure(f"{archive.name} cannot be installed: {(result.stdout + result.stderr).strip()}")


def validated(program: str, archive: Path) -> int:
    """Let the program check the package; 0 if it finds no fault."""
    result = _run([program, "--background", "--command", "extension", "validate", str(archive)])
    if result.returncode:
        print(result.stdout + result.stderr, flush=True)
    return result.returncode


def installed_extension(program: str, archive: Path, folder: Path) -> int:
    """Install inside the program and convert with the package's scipy, and check the message without scipy."""
    status = 0
    for without in ((), ("--without-scipy",)):
        profile = folder / f"from_inside{len(without)}"
        profile.mkdir()
        command = [program, "--background", "--python", str(ROOT / "tests" / "installed_extension.py")]
        result = _run([*command, "--", str(archive), *without], profile)
        lines = (result.stdout + result.stderr).strip().splitlines()
        print(*(lines if result.returncode else lines[-1:]), sep="\n", flush=True)
        status = status or result.returncode
    return status


def copy(profile: Path, target: Path, ignore=()) -> Path:
    """A profile for one process: Blender writes into it, and removes scipy when a test disables the extension."""
    shutil.copytree(profile, target, symlinks=True, ignore=shutil.ignore_patterns(*ignore))
    return target


def test_files(rest: list[str]) -> list[Path]:
    """The files of tests/blender that can run inside a program, without those that ``rest`` ignores, largest first."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--ignore", action="append", default=[])
    options.add_argument("--ignore-glob", action="append", default=[])
    ignored, _ = options.parse_known_args(rest)
    # pytest itself ignores no file that is named to it.
    patterns = [str(ROOT / path) for path in ignored.ignore] + ignored.ignore_glob
    files = [
        path
        for path in (ROOT / "tests" / "blender").glob("test_*.py")
        if not DEMOS.search(path.name) and not any(path.match(pattern) for pattern in patterns)
    ]
    return sorted(files, key=lambda path: path.stat().st_size, reverse=True)


def background_suite(python: Path, program: str, profile: Path, tools: Path, rest: list[str]) -> int:
    """Run tests/blender, unless ``rest`` names others, inside the program without a window; 0 if all passed."""
    files = test_files(rest)
    processes = suite.process_count()
    parts = [
        [str(path.relative_to(ROOT)) for path in files[i :: processes * PARTS_PER_PROCESS]]
        for i in range(processes * PARTS_PER_PROCESS)
    ]
    if any((ROOT / argument.split("::")[0]).exists() for argument in rest):
        parts = [[]]
    with tempfile.TemporaryDirectory(prefix="skinning_tools_profiles_", ignore_cleanup_errors=True) as folder:
        # Tests begin with factory settings, with which Blender removes the libraries of extensions that are not
        # enabled.
        (scipy,) = profile.glob("extensions/.local/lib/*/site-packages")

        def run(number: int) -> subprocess.CompletedProcess:
            own = copy(profile, Path(folder) / str(number), ignore=(".local", "wheels"))
            path = os.pathsep.join(map(str, (tools, scipy)))
            command = [str(python), "-m", "pytest", "-p", "tests.installed_package", "-p", "no:cacheprovider"]
            command += ["-W", "ignore:config.inicfg", "--blender-executable", program, *rest, *parts[number]]
            command += ["--", "--factory-startup", "--python-use-system-env", "--python-exit-code", "1"]
            return _run(command, own, suite.one_thread_each() | {"PYTHONPATH": path})

        status = 0
        with ThreadPoolExecutor(processes) as pool:
            for number, result in enumerate(pool.map(run, range(len(parts))), start=1):
                summary = re.findall(r"^(?:=+ )?(.*\w in [\d.]+s\b.*?)(?: =+)?$", result.stdout, re.MULTILINE)
                print(f"-- part {number} of {len(parts)}: {summary[-1] if summary else 'ended early'}", flush=True)
                # 5: no test was selected, as -k may do. Blender exits with 0 if it does not find a script.
                if result.returncode not in (0, 5) or not summary:
                    status = 1
                    print(result.stdout, result.stderr, sep="\n", flush=True)
    return status


def window_suite(python: Path, program: str, window: str | None, profile: Path, tools: Path) -> int:
    """Run tests/gui if there is a screen; 0 if all passed or there is none."""
    if not (window or sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
        print("There is no screen here: the window suite is left out", flush=True)
        return 0
    command = [str(python), "tests/gui/run.py", find(window) if window else program, "--installed", str(profile)]
    if window:
        # Each has its own screen.
        command += ["--jobs", str(suite.process_count())]
    command += ["--pictures", str(ROOT / "build" / "pictures")]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tools)}).returncode


def _run(command: list[str], profile: Path | None = None, variables: dict[str, str] | None = None):
    """Run a program and capture its output. Raises Failure if it does not end."""
    own = {"BLENDER_USER_RESOURCES": str(profile)} if profile else {}
    try:
        return subprocess.run(
            command, cwd=ROOT, env=os.environ | (variables or {}) | own, capture_output=True, text=True,
            errors="replace", timeout=LIMIT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]} did not end within {LIMIT_SECONDS} s.") from None
