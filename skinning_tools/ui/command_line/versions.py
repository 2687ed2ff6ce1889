# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of everything that affects a result."""

import importlib.metadata
import platform
import tomllib
from pathlib import Path

import bpy

MANIFEST = "blender_manifest.toml"


def versions() -> dict[str, str]:
    """Versions of Blender, the extension, Python, numpy and scipy; "" for a missing one."""
    import numpy

    return {
        "blender": bpy.app.version_string,
        "blender_build": _text(bpy.app.build_hash),
        "extension": extension_version(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": _scipy_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def extension_version() -> str:
    """The version in the manifest, which is inside the installed package, and next to the package in the source
    tree."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package, package.parent):
        manifest = folder / MANIFEST
        if manifest.is_file():
            return tomllib.loads(manifest.read_text(encoding="utf-8")).get("version", "")
    return ""


def _scipy_version() -> str:
    # From its metadata, as importing scipy takes longer than some commands.
    try:
        return importlib.metadata.version("scipy")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _text(value: bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
