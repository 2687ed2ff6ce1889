# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual environment with Blender's Python module: made once, checked, and repaired after an interruption."""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .requirements import BLENDERS, DEFAULT_BLENDER, PROGRAM_TOOLS, SITE_TOOLS, SYSTEM_LIBRARIES, blender

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".venv"

# Marks an environment whose Blender module loads.
LOADS = "loads"

NO_NETWORK = re.compile(
    "NewConnectionError|ConnectionError|ConnectTimeout|ReadTimeout|name resolution|Network is unreachable|ProxyError"
)


class Failure(Exception):
    """Ends the program with a one-line message."""


def choose_blender(name: str | None) -> str:
    """The Blender to work with: the requested one, or the one for this Python. Raises Failure if Blender and Python do
    not fit."""
    here = sys.version_info[:2]
    name = name or DEFAULT_BLENDER[here]
    found = blender(name)
    if found is None:
        raise Failure(f"There is no set-up for Blender {name}; choose one of {', '.join(BLENDERS)}, or a newer one.")
    needed = found.python
    if needed != here:
        raise Failure(
            f"Blender {name} has Python {needed[0]}.{needed[1]}; this is {here[0]}.{here[1]}. "
            f"Run: python{needed[0]}.{needed[1]} build.py … --blender {name}"
        )
    return name


def ensure(name: str) -> Path:
    """The Python of the environment for that Blender, installed first if it is missing or incomplete."""
    folder = ENVIRONMENTS / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "complete"
    found = blender(name)
    assert found is not None, "choose_blender refuses others"
    wanted = [_fingerprint(sys.version, sys.base_prefix), _fingerprint(*found.requirements)]
    state = stamp.read_text().split() if stamp.exists() and python.exists() else []
    if state[:2] != wanted:
        # Download the 400 MB again only if more than the list of packages has changed, or after an interruption.
        if state[:1] != wanted[:1]:
            _make(name, folder)
        stamp.unlink(missing_ok=True)
        pip(python, "install", "--only-binary=:all:", *found.requirements)
        state = wanted
        stamp.write_text("\n".join(state))
    # The packages stay if the system lacks a library: once that is installed, the next run continues here.
    _check_system_libraries(folder)
    if LOADS not in state:
        # If it does not load for another reason, the environment is made again.
        stamp.unlink()
        _check_import(python)
        stamp.write_text("\n".join([*wanted, LOADS]))
    return python


def ensure_program_tools(python: Path, version: str) -> Path:
    """A folder with the test tools for the Python of a Blender program, such as 3.11, for its PYTHONPATH."""
    return _ensure_folder(python, f"program-{version}", PROGRAM_TOOLS, f"--python-version={version}")


def ensure_site_tools(python: Path) -> Path:
    """A folder with the tools that build the web pages, for the PYTHONPATH of ``python`` in .venv."""
    return _ensure_folder(python, f"site-{sys.version_info[0]}.{sys.version_info[1]}", SITE_TOOLS)


def _ensure_folder(python: Path, name: str, requirements: tuple[str, ...], *options: str) -> Path:
    """A folder of packages next to the environments, installed if it is missing, incomplete or outdated."""
    folder = ENVIRONMENTS / name
    stamp = folder / "complete"
    wanted = _fingerprint(*requirements)
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        pip(python, "install", "--quiet", "--only-binary=:all:", f"--target={folder}", *options, *requirements)
        stamp.write_text(wanted)
    return folder


def pip(python: Path, *arguments: str) -> None:
    """Run pip and show its progress; report its errors, as one line, only if it fails. Raises Failure."""
    command = [str(python), "-m", "pip", *arguments, "--disable-pip-version-check", "--retries", "2"]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    if result.returncode == 0:
        return
    if NO_NETWORK.search(result.stderr):
        raise Failure("The Python package index cannot be reached. Check the internet connection and run this again.")
    missing = re.search(r"No matching distribution found for (\S+)", result.stderr)
    if missing:
        raise Failure(
            f"There is no {missing[1]} for this system ({sys.platform}, {platform.machine()}, "
            f"Python {sys.version_info[0]}.{sys.version_info[1]})."
        )
    errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or [result.stderr.strip()]
    raise Failure(f"pip could not finish: {errors[-1]}")


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _make(name: str, folder: Path) -> None:
    """Make an empty virtual environment."""
    missing = [module for module in ("venv", "ensurepip") if importlib.util.find_spec(module) is None]
    if missing:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Failure(
            f"This Python has no module {missing[0]}, which makes virtual environments: "
            f"apt-get install python{version}-venv"
        )
    if folder.exists():
        print(f"The environment for Blender {name} is incomplete or has another Python: making it again", flush=True)
        shutil.rmtree(folder)
    print(f"Setting up Blender {name} in {folder.relative_to(ROOT)} (about 400 MB, once)", flush=True)
    result = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"No virtual environment can be made in {folder}: {(result.stderr or result.stdout).strip()}")


def _check_system_libraries(folder: Path) -> None:
    """Raise Failure naming every library that Blender's module needs and the system lacks (Linux)."""
    modules = list(folder.glob("lib/python*/site-packages/bpy/__init__.so"))
    if not (sys.platform.startswith("linux") and modules and shutil.which("ldd")):
        return
    listing = subprocess.run(["ldd", str(modules[0])], capture_output=True, text=True).stdout
    missing = sorted(set(re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)))
    if missing:
        raise Failure(missing_libraries_message(missing))


def missing_libraries_message(missing: list[str]) -> str:
    """One line for missing system libraries: their names, and the command that installs them on Debian."""
    known = sorted({SYSTEM_LIBRARIES[name] for name in missing if name in SYSTEM_LIBRARIES})
    unknown = [name for name in missing if name not in SYSTEM_LIBRARIES]
    advice = [f"apt-get install {' '.join(known)}"] if known else []
    advice += [f"then the package that has {', '.join(unknown)}"] if unknown else []
    noun = "library" if len(missing) == 1 else "libraries"
    return f"Blender's Python module needs the system {noun} {', '.join(missing)}. On Debian: {', '.join(advice)}"


def _check_import(python: Path) -> None:
    """Raise Failure with one line if Blender's module does not load."""
    # os._exit: the 4.2 module may crash while Python shuts down, although it works.
    code = "import bpy, os; os._exit(0)"
    result = subprocess.run([str(python), "-c", code], capture_output=True, text=True, errors="replace")
    if result.returncode:
        library = re.search(r"(\S+\.so[.\d]*): cannot open shared object file", result.stderr)
        if library:
            raise Failure(missing_libraries_message([library[1]]))
        raise Failure(
            f"Blender's Python module does not load: {(result.stderr.strip() or 'no message').splitlines()[-1]}"
        )
