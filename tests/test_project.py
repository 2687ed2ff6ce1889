# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's rules: allowed imports, the manifest, licence lines and the README."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import commands, package, requirements

ROOT = Path(__file__).resolve().parent.parent


PACKAGE = ROOT / "skinning_tools"


BLENDER_MODULES = {
    "bpy",
    "bmesh",
    "mathutils",
    "gpu",
    "gpu_extras",
    "blf",
    "bl_ui",
    "bpy_extras",
    "idprop",
    "imbuf",
    "bl_operators",
}


NUMERIC_MODULES = {"numpy", "scipy"}


# Layer: what it may import of the package beside itself (DESIGN, section 2).
ALLOWED = {
    "core": set(),
    "blender": {"core"},
    "ui": {"blender", "core"},
    "features": {"ui", "blender", "core"},
    "command_line": {"features", "ui", "blender", "core"},
}
# Features that use another one.
ON_TOP = {"shots": {"convert"}, "preview": {"centers"}}


def source_files() -> list[Path]:
    folders = ("skinning_tools", "tools", "tests", "demos", "benchmarks", "docs", ".ci")
    found = [ROOT / "build.py"]
    for folder in folders:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".glsl"} or path.name == "run"]
    return sorted(found)


def broken_imports(source: str, parts: tuple[str, ...]) -> list[str]:
    """Every import in ``source`` that the module at ``parts`` (path inside the package, no suffix) must not have."""
    layer = parts[0]
    outside = NUMERIC_MODULES | set(sys.stdlib_module_names) | (BLENDER_MODULES if layer != "core" else set())
    broken = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # `from .. import scene` names the module in the list, `from ..scene import x` before it.
            names = [node.module] if node.module else [alias.name for alias in node.names]
            targets = [(node.level, name) for name in names]
        else:
            continue
        for level, name in targets:
            if level == 0:
                if name.split(".")[0] not in outside:
                    broken.append(f"line {node.lineno}: {name}")
                continue
            target = (*parts[: len(parts) - level], *name.split("."))
            if len(parts) < level:
                broken.append(f"line {node.lineno}: {'.' * level}{name} leaves the package")
            elif target[0] != layer and target[0] not in ALLOWED.get(layer, set()):
                broken.append(f"line {node.lineno}: {layer} must not import {target[0]}")
            elif layer == target[0] == "features" and len(parts) > 2:
                feature, other = parts[1], target[1] if len(target) > 1 else ""
                if other not in {feature} | ON_TOP.get(feature, set()):
                    broken.append(
                        f"line {node.lineno}: the feature {feature} must not import {other or 'all features'}"
                    )
    return broken


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import bpy", "core/animation"),
        ("import mathutils", "core/animation"),
        ("from ..blender import actions", "core/animation"),
        ("from .. import blender", "core/animation"),
        ("from ...features.convert import x", "core/decomposition/solver"),
        ("from ..ui import x", "blender/actions"),
        ("from ..features.bind import x", "ui/drawing"),
        ("def f():\n    from ..features import FEATURES", "ui/drawing"),
        ("from ..bind import x", "features/convert/conversion"),
        ("from ...bind.targets import x", "features/convert/operators/convert"),
        ("from ..convert import x", "features/preview/panel"),
        ("from .. import FEATURES", "features/convert/conversion"),
        ("from .demos import x", "command_line"),
        ("import skinning_tools.core", "blender/actions"),
        ("import requests", "features/convert/conversion"),
    ],
)
def test_import_rule_finds_forbidden_imports(source, module):
    assert broken_imports(source, tuple(module.split("/")))


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import numpy as np\nfrom scipy import sparse\nfrom .errors import BadMesh", "core/animation"),
        ("from ..errors import BadMesh\nfrom . import types", "core/decomposition/solver"),
        ("import bpy\nfrom ..core import animation\nfrom . import measure", "blender/actions"),
        (
            "from ...core import errors\nfrom ...blender import actions\nfrom ...ui import drawing",
            "features/bind/panel",
        ),
        ("from ..conversion import convert\nfrom .results import x", "features/convert/operators/convert"),
        ("from ..convert import command", "features/shots/convert_shots"),
        ("from .features import FEATURES", "command_line"),
    ],
)
def test_import_rule_allows_permitted_imports(source, module):
    assert not broken_imports(source, tuple(module.split("/")))


def test_import_rule_holds():
    """core imports no Blender and nothing above it, no feature another one."""
    broken = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            broken += [f"{path.relative_to(ROOT)}, {text}" for text in broken_imports(path.read_text("utf-8"), parts)]
    assert not broken, "\n".join(broken)


def test_core_runs_without_blender():
    """Every module of core loads in a Python where bpy cannot be imported."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((PACKAGE / "core").rglob("*.py"))
    ]
    assert len(modules) > 3
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in sorted(BLENDER_MODULES))
    code = f"import sys, importlib\n{blocked}for name in {modules!r}:\n    importlib.import_module(name)\n"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_every_source_file_names_its_licence():
    missing = [
        str(path.relative_to(ROOT))
        for path in source_files()
        if "SPDX-License-Identifier: GPL-3.0-or-later" not in "\n".join(path.read_text("utf-8").splitlines()[:3])
    ]
    assert not missing, missing


def test_licence_is_the_gpl_3():
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 3" in (ROOT / "LICENSE").read_text("utf-8")


@pytest.fixture(scope="module")
def manifest() -> dict:
    return tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))


def test_manifest_says_what_the_platform_needs(manifest):
    assert manifest["id"] == "skinning_tools"
    assert PACKAGE.name == manifest["id"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert manifest["blender_version_min"] == "4.2.0"
    assert manifest["license"] == ["SPDX:GPL-3.0-or-later"]
    assert "Blender" not in manifest["name"]
    assert len(manifest["tagline"]) <= 64
    assert manifest["tagline"][-1].isalnum()
    assert all(re.match(r"\d{4}(-\d{4})? \S", holder) for holder in manifest["copyright"])
    # The platform's own limit and rule.
    assert all(len(reason) <= 64 for reason in manifest["permissions"].values())
    # Only the used permission is declared: files are read and written, nothing else.
    assert manifest["permissions"].keys() == {"files"}


def test_every_wheel_has_a_checksum_and_none_is_left_over(manifest):
    assert {wheel.removeprefix("./") for wheel in manifest["wheels"]} == set(package.read_checksums())
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in package.read_checksums().values())


def test_every_platform_has_scipy_for_every_python_that_blender_has_there(manifest):
    endings = {
        "linux-x64": r"manylinux\S*_x86_64",
        "linux-arm64": r"manylinux\S*_aarch64",
        "windows-x64": "win_amd64",
        "windows-arm64": "win_arm64",
        "macos-arm64": r"macosx_\d+_\d+_arm64",
        "macos-x64": r"macosx_\d+_\d+_x86_64",
    }
    assert set(endings) == set(manifest["platforms"])
    for platform, ending in endings.items():
        tags = {
            wheel.split("-")[2]
            for wheel in manifest["wheels"]
            if re.fullmatch(ending, wheel.split("-")[4][: -len(".whl")])
        }
        # Blender for Macs with Intel processors ended with Python 3.11; for Windows on ARM, scipy begins with 3.13.
        only = {"macos-x64": {"cp311"}, "windows-arm64": {"cp313"}}
        assert tags >= only.get(platform, {"cp311", "cp313"}), platform


def test_tests_run_with_the_scipy_that_the_extension_brings(manifest):
    brought = {wheel.split("-")[2]: wheel.split("-")[1] for wheel in manifest["wheels"]}
    for name, blender in requirements.BLENDERS.items():
        assert brought["cp{}{}".format(*blender.python)] == blender.scipy, name


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line.strip() for block in blocks for line in block.splitlines() if "build.py" in line]


def test_readme_shows_the_two_commands():
    assert {"python3 build.py demo", "python3 build.py test"} <= set(readme_commands())


def test_readme_commands_exist():
    for line in readme_commands():
        words = shlex.split(line, comments=True)
        assert words[:2] == ["python3", "build.py"] or re.fullmatch(r"python3\.1[13]", words[0]), line
        commands.argument_parser().parse_known_args(words[2:])


def test_readme_pictures_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text) + re.findall(r'<img[^>]*src="([^"]+)"', text)
    assert [name for name in pictures if not (ROOT / name).is_file()] == []
