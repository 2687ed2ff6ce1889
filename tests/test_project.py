# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own rules: who may import whom, the manifest, licence lines, the README, and the set-up's messages."""

import ast
import hashlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tools import commands, environment, package, requirements

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

# Layer: what it may import of the package beside itself (DESIGN: the import rule).
ALLOWED = {
    "core": set(),
    "scene": {"core"},
    "operators": {"scene", "core"},
    "panels": {"scene", "core"},
    "preview": {"scene", "core"},
    "commands": {"scene", "core"},
    "command_line": {"commands", "scene", "core"},
}


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
    return broken


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import bpy", "core/animation"),
        ("import mathutils", "core/animation"),
        ("from ..scene import rig_writer", "core/animation"),
        ("from .. import scene", "core/animation"),
        ("from ...operators.convert import x", "core/decomposition/solver"),
        ("from ..operators import x", "scene/rig_writer"),
        ("def f():\n    from ..panels import x", "operators/convert"),
        ("from ..operators import x", "panels/sidebar"),
        ("from .operators import x", "command_line"),
        ("import skinning_tools.core", "scene/rig_writer"),
        ("import requests", "operators/convert"),
    ],
)
def test_import_rule_finds_what_it_should(source, module):
    assert broken_imports(source, tuple(module.split("/")))


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import numpy as np\nfrom scipy import sparse\nfrom .errors import BadMesh", "core/animation"),
        ("from ..errors import BadMesh\nfrom . import types", "core/decomposition/solver"),
        ("import bpy\nfrom ..core import animation\nfrom . import measure", "scene/rig_writer"),
        ("from ..scene.conversion import convert", "operators/convert"),
        ("from .scene import conversion", "command_line"),
    ],
)
def test_import_rule_allows_what_it_should(source, module):
    assert not broken_imports(source, tuple(module.split("/")))


def test_import_rule_holds():
    """core imports no Blender and nothing above it, scene imports core, nothing imports operators."""
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
        and (path.stat().st_size or path.parent == PACKAGE)
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


def test_every_wheel_has_a_checksum_and_none_is_left_over(manifest):
    assert {wheel.removeprefix("./") for wheel in manifest["wheels"]} == set(package.read_checksums())
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in package.read_checksums().values())


def test_every_platform_has_scipy_for_every_python_that_blender_has_there(manifest):
    endings = {
        "linux-x64": r"manylinux\S*_x86_64",
        "windows-x64": "win_amd64",
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
        # Blender for Macs with Intel processors ended with Python 3.11.
        assert tags >= ({"cp311"} if platform == "macos-x64" else {"cp311", "cp313"}), platform


def test_tests_run_with_the_scipy_that_the_extension_brings(manifest):
    brought = {wheel.split("-")[2]: wheel.split("-")[1] for wheel in manifest["wheels"]}
    for name, blender in requirements.BLENDERS.items():
        assert brought["cp{}{}".format(*blender.python)] == blender.scipy, name


def test_build_answers_any_python_in_words():
    """Older Pythons must be able to read build.py, or they answer with a syntax error instead of its message."""
    ast.parse((ROOT / "build.py").read_text("utf-8"), feature_version=(3, 6))


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


def test_blender_that_does_not_fit_this_python_is_refused():
    other = next(name for name, blender in requirements.BLENDERS.items() if blender.python != sys.version_info[:2])
    with pytest.raises(environment.Failure, match=rf"Blender {other} has Python 3\.\d+; this is"):
        environment.choose_blender(other)
    with pytest.raises(environment.Failure, match=r"no set-up for Blender 3\.6; choose one of 4\.2, 4\.5, 5\.2"):
        environment.choose_blender("3.6")


def test_missing_libraries_are_named_with_their_packages():
    message = environment.missing_libraries_message(["libXi.so.6", "libSM.so.6", "libstrange.so.3"])
    assert "\n" not in message
    for part in ("libXi.so.6", "libSM.so.6", "apt-get install libsm6 libxi6", "the package that has libstrange.so.3"):
        assert part in message


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Blender's module brings its libraries on other systems"
)
def test_every_system_library_of_the_module_has_its_package():
    """What the installed bpy loads from the system is in the table of Debian packages, or is the C library itself."""
    folder = Path(sysconfig.get_path("platlib")) / "bpy"
    listing = subprocess.run(["ldd", str(folder / "__init__.so")], capture_output=True, text=True, check=True).stdout
    system = {
        line.split()[0]
        for line in listing.splitlines()
        if "=>" in line and not line.split()[2].startswith(str(folder)) and "not found" not in line
    }
    c_library = {f"lib{name}.so.{number}" for name, number in (("c", 6), ("m", 6), ("dl", 2), ("rt", 1), ("util", 1))}
    assert system - c_library - {"libpthread.so.0"} <= set(requirements.SYSTEM_LIBRARIES)


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("WARNING: Retrying after connection broken by 'NewConnectionError(…)'", "cannot be reached"),
        ("ERROR: No matching distribution found for bpy==4.5.15", "There is no bpy==4.5.15 for this system"),
        ("WARNING: x\nERROR: No space left on device", "pip could not finish: ERROR: No space left on device"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for pip is a shell script")
def test_what_pip_says_becomes_one_line(tmp_path, stderr, message):
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\necho {shlex.quote(stderr)} >&2\nexit 1\n")
    stand_in.chmod(0o755)
    with pytest.raises(environment.Failure, match=re.escape(message)) as raised:
        environment.pip(stand_in, "install", "bpy")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("delivered", [b"something else", None])
def test_wheel_that_is_not_the_expected_one_is_refused(tmp_path, monkeypatch, delivered):
    """A wrong download is deleted, and a missing one said; neither gets into a package."""
    name = "scipy-1.15.3-cp311-cp311-win_amd64.whl"

    def download(python, *arguments):
        assert {"--platform=win_amd64", "--python-version=311", "scipy==1.15.3"} <= set(arguments)
        if delivered is not None:
            (tmp_path / name).write_bytes(delivered)

    monkeypatch.setattr(package, "pip", download)
    (tmp_path / name).write_bytes(b"left over from an interrupted download")
    with pytest.raises(environment.Failure, match=re.escape(name)):
        package.fetch(Path("python"), tmp_path / name, package.read_checksums())
    assert not (tmp_path / name).exists()


def test_wheel_that_is_there_is_not_downloaded_again(tmp_path, monkeypatch):
    monkeypatch.setattr(package, "pip", lambda *arguments: pytest.fail("pip was called"))
    wheel = tmp_path / "scipy-1.0.0-cp311-cp311-win_amd64.whl"
    wheel.write_bytes(b"content")
    package.fetch(Path("python"), wheel, {f"wheels/{wheel.name}": hashlib.sha256(b"content").hexdigest()})


@pytest.mark.parametrize("name", ["rotation-centers", "rotation_centers"])
def test_benchmarks_go_by_names_with_hyphens_too(monkeypatch, name):
    calls = []
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    monkeypatch.setattr(commands, "_run", lambda *arguments: calls.append(arguments) or 0)
    assert commands.main(["bench", name, "--frames", "5"]) == 0
    (call,) = calls
    assert ROOT / call[1] == ROOT / "benchmarks" / "rotation_centers.py"
    assert call[2:] == ("--frames", "5")


def test_an_unknown_benchmark_is_answered_with_the_known_ones(monkeypatch, capsys):
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    assert commands.main(["bench", "speed"]) == 1
    assert "rotation-centers" in capsys.readouterr().out


@pytest.mark.parametrize(("asked", "installed"), [((), 0), (("--rivals",), 1)])
def test_rivals_of_a_benchmark_are_installed_where_asked_alone(monkeypatch, asked, installed):
    calls = []
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    monkeypatch.setattr(environment, "pip", lambda python, *arguments: calls.append(arguments))
    monkeypatch.setattr(commands, "_run", lambda *arguments: 0)
    assert commands.main(["bench", "skinning-tables", *asked]) == 0
    assert len(calls) == installed
    assert all(rival in calls[0] for rival in requirements.RIVALS["skinning_tables"] if calls)


def test_every_benchmark_with_rivals_is_there():
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in requirements.RIVALS)


def test_rivals_of_a_benchmark_that_has_none(monkeypatch, capsys):
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    assert commands.main(["bench", "eigenskin", "--rivals"]) == 1
    assert "compares with nothing" in capsys.readouterr().out
