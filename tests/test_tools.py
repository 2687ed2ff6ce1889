# SPDX-License-Identifier: GPL-3.0-or-later
"""build.py and its tools: their messages if something is missing or wrong, and the commands that they run."""

import ast
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tools import blender_program, commands, environment, package, requirements

ROOT = Path(__file__).resolve().parent.parent


def test_build_answers_any_python_in_words():
    """Older Pythons must be able to read build.py, or they answer with a syntax error instead of its message."""
    ast.parse((ROOT / "build.py").read_text("utf-8"), feature_version=(3, 6))


def test_blender_that_does_not_fit_this_python_is_refused():
    other = next(name for name, blender in requirements.BLENDERS.items() if blender.python != sys.version_info[:2])
    with pytest.raises(environment.Failure, match=rf"Blender {other} has Python 3\.\d+; this is"):
        environment.choose_blender(other)
    with pytest.raises(environment.Failure, match=r"no set-up for Blender 3\.6; choose one of 4\.2, 4\.5, 5\.2"):
        environment.choose_blender("3.6")


def test_a_blender_newer_than_those_supported_is_taken_from_the_registry():
    """To see early what it deprecates: build.py test --blender 99.1."""
    assert environment.choose_blender("99.1") == "99.1"
    assert requirements.blender("99.1").requirements[:3] == ("bpy==99.1.*", "numpy", "scipy")
    assert not any(map(requirements.is_newer, requirements.BLENDERS))


def test_a_missing_system_library_does_not_repeat_the_download(tmp_path, monkeypatch):
    lacking, downloads, loaded = ["libGL.so.1"], [], []

    def make(name, folder):
        for python in ("bin/python", "Scripts/python.exe"):
            (folder / python).parent.mkdir(parents=True)
            (folder / python).touch()

    def check(folder):
        if lacking:
            raise environment.Failure(environment.missing_libraries_message(lacking))

    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(environment, "_make", make)
    monkeypatch.setattr(environment, "pip", lambda *arguments: downloads.append(arguments))
    monkeypatch.setattr(environment, "_check_system_libraries", check)
    monkeypatch.setattr(environment, "_check_import", loaded.append)
    with pytest.raises(environment.Failure, match="apt-get install libgl1"):
        environment.ensure("4.5")
    lacking.clear()
    python = environment.ensure("4.5")
    assert environment.ensure("4.5") == python
    assert len(downloads) == 1
    assert loaded == [python]


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
def test_output_of_pip_becomes_one_line(tmp_path, stderr, message):
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


@pytest.fixture
def made_environment(monkeypatch):
    """Pretend that .venv exists for Blender 4.5."""
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))


@pytest.mark.parametrize("name", ["rotation-centers", "rotation_centers"])
@pytest.mark.usefixtures("made_environment")
def test_benchmarks_go_by_names_with_hyphens_too(monkeypatch, name):
    calls = []
    monkeypatch.setattr(commands, "_run", lambda *arguments: calls.append(arguments) or 0)
    assert commands.main(["bench", name, "--frames", "5"]) == 0
    (call,) = calls
    assert ROOT / call[1] == ROOT / "benchmarks" / "rotation_centers.py"
    assert call[2:] == ("--frames", "5")


def test_a_benchmark_can_write_one_table_into_a_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from _tables import Tables

    def page(name: str, **figures: str) -> str:
        tables = Tables()
        for title, figure in figures.items():
            tables.begin(title, "What it shows.", "joint", "error")
            tables.row("knee", figure)
            tables.note("A line below.")
        tables.write(tmp_path / name, "In figures", "Made by a command.")
        return (tmp_path / name).read_text("utf-8")

    new = Tables()
    new.begin("Middle", "What it shows.", "joint", "error")
    new.row("knee", "5")
    new.note("A line below.")
    for before, after in (
        ({"First": "1", "Middle": "2", "Last": "3"}, {"First": "1", "Middle": "5", "Last": "3"}),
        ({"First": "1", "Middle": "2"}, {"First": "1", "Middle": "5"}),
        ({"First": "1"}, {"First": "1", "Middle": "5"}),
    ):
        page("page.md", **before)
        new.replace(tmp_path / "page.md")
        assert (tmp_path / "page.md").read_text("utf-8") == page("expected.md", **after)


@pytest.mark.usefixtures("made_environment")
def test_an_unknown_benchmark_is_answered_with_the_known_ones(capsys):
    assert commands.main(["bench", "speed"]) == 1
    assert "rotation-centers" in capsys.readouterr().out


@pytest.mark.parametrize(("asked", "installed"), [((), 0), (("--rivals",), 1)])
@pytest.mark.usefixtures("made_environment")
def test_rivals_of_a_benchmark_are_installed_where_asked_alone(monkeypatch, asked, installed):
    calls = []
    monkeypatch.setattr(environment, "pip", lambda python, *arguments: calls.append(arguments))
    monkeypatch.setattr(commands, "_run", lambda *arguments: 0)
    assert commands.main(["bench", "skinning-tables", *asked]) == 0
    assert len(calls) == installed
    assert all(rival in calls[0] for rival in requirements.RIVALS["skinning_tables"] if calls)


@pytest.mark.parametrize("blender", requirements.BLENDERS)
def test_types_are_checked_with_the_newest_blender_alone(monkeypatch, blender):
    calls = []
    monkeypatch.setattr(environment, "choose_blender", lambda blender: blender)
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    monkeypatch.setattr(commands, "_run", lambda *arguments, **_: calls.append(arguments) or 0)
    assert commands.main(["test", "--blender", blender]) == 0
    assert any("ruff" in call for call in calls)
    assert any("mypy" in call for call in calls) == (blender == "5.2")


def test_files_that_are_ignored_stay_out_of_a_program():
    ignored = ["--ignore=tests/blender/test_bind.py", "--ignore-glob=*/test_f*"]
    chosen = blender_program.test_files(["-k", "bones", *ignored])
    left_out = set(blender_program.test_files([])) - set(chosen)
    assert {"test_bind.py", "test_fit_weights.py"} <= {path.name for path in left_out}
    assert all(path.name == "test_bind.py" or path.name.startswith("test_f") for path in left_out)


def test_every_benchmark_with_rivals_is_there():
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in requirements.RIVALS)


@pytest.mark.usefixtures("made_environment")
def test_rivals_of_a_benchmark_that_has_none(capsys):
    assert commands.main(["bench", "eigenskin", "--rivals"]) == 1
    assert "does not compare with other programs" in capsys.readouterr().out


_DRAWS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_draws(number):
    with open({path!r}, "a") as file:
        print(number, file=file)
"""


def test_inputs_of_properties_follow_from_their_source_alone(tmp_path):
    """The same inputs without CI, after another run, and with other tests loaded; each seed gives its own inputs."""
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "core" / "conftest.py", folder)
    (tmp_path / "others.py").write_text("\n".join(f"LIMIT_{number} = {12_345_678 + number}" for number in range(500)))

    path = tmp_path / "drawn"
    (folder / "test_draws.py").write_text(_DRAWS.format(path=str(path)))

    def drawn(*arguments):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", *arguments]
        without_ci = {name: value for name, value in os.environ.items() if name != "CI"}
        subprocess.run(
            command, cwd=tmp_path, env=without_ci | {"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True
        )
        return path.read_text().split()

    first = drawn()
    assert len(set(first)) > 100
    assert drawn() == first
    assert drawn("-p", "others") == first
    seeded = drawn("--hypothesis-seed=7")
    assert seeded != first
    assert drawn("--hypothesis-seed=7") == seeded
