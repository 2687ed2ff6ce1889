# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the extension as one zip per platform, and validates it, with Blender's own tool."""

import hashlib
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from . import html_pages
from .environment import ROOT, Failure, pip

MANIFEST = ROOT / "blender_manifest.toml"
CHECKSUMS = ROOT / "wheels.sha256"
WHEELS = ROOT / "wheels"
DIST = ROOT / "dist"


def build(python: Path) -> list[Path]:
    """Download missing wheels, build and validate; returns the zips. Raises Failure."""
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    checksums = read_checksums()
    WHEELS.mkdir(exist_ok=True)
    for wheel in manifest["wheels"]:
        fetch(python, ROOT / wheel, checksums)

    tool = _blender_tool(python)
    html_pages.build(python)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory(prefix="skinning_tools_") as folder:
        tree = Path(folder) / manifest["id"]
        _lay_out(tree, manifest)
        _blender_extension(python, tool, "build", f"--source-dir={tree}", f"--output-dir={DIST}", "--split-platforms")
    zips = sorted(DIST.glob("*.zip"))
    if len(zips) != len(manifest["platforms"]):
        raise Failure(
            f"{len(manifest['platforms'])} platforms are listed in {MANIFEST.name}, but {len(zips)} were built."
        )
    for path in zips:
        _blender_extension(python, tool, "validate", str(path))
    return zips


def read_checksums() -> dict[str, str]:
    """Path of each wheel from the root to its SHA-256, from a file in the format of `sha256sum --check`."""
    lines = (line.split(maxsplit=1) for line in CHECKSUMS.read_text(encoding="utf-8").splitlines() if line.strip())
    return {path.strip(): checksum for checksum, path in lines}


def fetch(python: Path, path: Path, checksums: dict[str, str]) -> None:
    """Make sure that the wheel is at ``path`` with the right content. Raises Failure."""
    expected = checksums.get(f"{WHEELS.name}/{path.name}")
    if expected is None:
        raise Failure(f"{CHECKSUMS.name} has no checksum of {path.name}.")
    if path.exists() and _sha256(path) == expected:
        return
    path.unlink(missing_ok=True)
    name, version, tag, abi, platforms = path.stem.split("-")
    pip(
        python,
        "download",
        "--no-deps",
        "--only-binary=:all:",
        *(f"--platform={platform}" for platform in platforms.split(".")),
        f"--python-version={tag.removeprefix('cp')}",
        f"--abi={abi}",
        "--implementation=cp",
        f"--dest={path.parent}",
        f"{name}=={version}",
    )
    if not path.exists():
        raise Failure(f"The package index has no {path.name}.")
    if _sha256(path) != expected:
        path.unlink()
        raise Failure(f"{path.name} is not the file that {CHECKSUMS.name} expects; it was deleted.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lay_out(tree: Path, manifest: dict) -> None:
    """Copy the extension in Blender's layout: package and manifest in one folder, pages and wheels below it."""
    shutil.copytree(ROOT / manifest["id"], tree, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    # Its own sources and what only other projects' pages need stay out.
    shutil.copytree(html_pages.SITE, tree / "manual", ignore=shutil.ignore_patterns(".*", "objects.inv", "*.map"))
    for name in (MANIFEST.name, "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    for wheel in manifest["wheels"]:
        target = tree / wheel
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / wheel, target)


def _blender_tool(python: Path) -> Path:
    """Blender's extension builder, a plain Python program inside its module."""
    found = sorted(python.parent.parent.glob("[lL]ib/**/bl_pkg/cli/blender_ext.py"))
    if not found:
        raise Failure("Blender's extension builder (blender_ext.py) is not in its Python module.")
    return found[0]


def _blender_extension(python: Path, tool: Path, *arguments: str) -> None:
    result = subprocess.run([str(python), str(tool), *arguments], capture_output=True, text=True, errors="replace")
    # The builder reports some mistakes with exit status 0.
    errors = [line for line in (result.stdout + result.stderr).splitlines() if "error" in line.lower()]
    if result.returncode or errors:
        detail = "; ".join(errors) or (result.stdout + result.stderr).strip()
        raise Failure(f"Blender's tool refuses the extension ({arguments[0]}): {detail}")
