# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way to name an output file, with every kind of existing file at its path.

A stage is a folder with a shot and all that it refers to; ``attempts`` lists what is tried, ``attempt`` tries one and
compares the whole stage before and after. Only what the rule allows may change: docs/command_line.md, What is replaced.
"""

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

import skinning_tools
from skinning_tools import command_line
from skinning_tools.features.shots import blender_child
from skinning_tools.ui.command_line.arguments import PathType
from tests.blender import moving_meshes, scenes
from tests.blender.skinned_meshes import rigged_tube

REPLACED, STAYS = "replaced", "stays"
SETTINGS = ("--object=Flag", "--bones=2", "--iterations=1", "--quiet")
FOREIGN = b"what somebody else has written\n"

# What may be at the path: name in the stage's folder, by the path's ending; and the outcome, without and with
# --overwrite where that is about the place.
NOTHING, EMPTY, OWN, EDITED, SAME_SORT, OTHER_SORT = (
    "nothing", "an empty file", "own, of an earlier run", "own, saved again since", "same kind, another program's",
    "another kind",
)  # fmt: skip
INPUT, LIBRARY, TEXTURE, CACHE, NOTE, OWN_IN_USE = (
    "the input", "a library of the scene", "a texture of the scene", "a point cache of the scene",
    "a text of the scene", "own, and the scene refers to it",
)  # fmt: skip
OTHER_OUTPUT, FOLDER, DEVICE, READ_ONLY, LOOP = (
    "another output of the run", "a folder", "a pipe", "own, but read-only", "a link to itself"
)  # fmt: skip
FREE = (NOTHING, EMPTY, OWN)
WITH_OVERWRITE = (EDITED, SAME_SORT, OTHER_SORT)
NEVER = (
    INPUT, LIBRARY, TEXTURE, CACHE, NOTE, OWN_IN_USE, OTHER_OUTPUT, FOLDER, DEVICE, READ_ONLY, LOOP,
)  # fmt: skip
ROLES = (*FREE, *WITH_OVERWRITE, *NEVER)
_FIXED = {INPUT: "shot.blend", LIBRARY: "library.blend", TEXTURE: "texture.png", CACHE: "cloth.pc2", NOTE: "note.txt"}

PLAIN, RELATIVE, LINK, LINK_TO_LINK, HARD_LINK, LINKED_FOLDER, OTHER_CASE = (
    "as it is", "relative", "link", "link to a link", "hard link", "through a linked folder", "other letter case"
)  # fmt: skip
SPELLINGS = (PLAIN, RELATIVE, LINK, LINK_TO_LINK, HARD_LINK, LINKED_FOLDER, OTHER_CASE)


@dataclass(frozen=True)
class Place:
    """Something that is written. run(stage, path, overwrite): exit code. ending: of its files. also: what else a run
    makes, and report: whether that is its report, which it has of a failure, too. overwrites: whether --overwrite is
    about it. done: the exit code where it is written."""

    name: str
    ending: str
    run: Callable[[Path, str, bool], int]
    also: str = ""
    report: bool = False
    overwrites: bool = False
    done: int = 0


@dataclass(frozen=True)
class Attempt:
    place: Place
    role: str
    spelling: str
    overwrite: bool = False

    @property
    def expected(self) -> str:
        free = self.role in FREE or (self.overwrite and self.role in WITH_OVERWRITE)
        return REPLACED if free else STAYS

    def __str__(self) -> str:
        return f"{self.place.name}: {self.role}, {self.spelling}{', --overwrite' if self.overwrite else ''}"


def command(*arguments) -> int:
    """Exit code of a subcommand, whose words are kept off the terminal; its errors are in ``said``."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = command_line.main([str(argument) for argument in arguments])
    said[:] = [errors.getvalue()]
    return code


said: list[str] = []


def _convert(stage: Path, *arguments) -> int:
    return command("convert", *SETTINGS, "--input", stage / "shot.blend", *arguments)


def _allowed(overwrite: bool) -> list[str]:
    return ["--overwrite"] if overwrite else []


def _result(stage: Path, path: str, overwrite: bool) -> int:
    return _convert(stage, "--output", path, "--report", stage / "other.blend", *_allowed(overwrite))


def _report(stage: Path, path: str, overwrite: bool) -> int:
    return _convert(stage, "--output", stage / "other.blend", "--report", path)


def _report_of_a_usage_error(stage: Path, path: str, overwrite: bool) -> int:
    given = ("--input", stage / "shot.blend", "--output", stage / "other.blend", "--bones", "many", "--report", path)
    return command("convert", "--object=Flag", *given)


def _curve(stage: Path, path: str, overwrite: bool) -> int:
    return _convert(stage, "--output", stage / "other.blend", "--target-error=900", "--curve", path)


def _table(stage: Path, path: str, overwrite: bool) -> int:
    given = ("--output", path, "--report", stage / "other.csv", *_allowed(overwrite))
    with _opened(stage / "shot.blend"):
        return command("gather-reports", stage / "reports", *given)


def _report_of_many(stage: Path, path: str, overwrite: bool) -> int:
    with _opened(stage / "shot.blend"):
        return command("gather-reports", stage / "reports", "--output", stage / "other.csv", "--report", path)


def _cache(stage: Path, path: str, overwrite: bool) -> int:
    with _opened(stage / "shot.blend"):
        ob = bpy.data.objects["Arm"]
        bpy.context.view_layer.objects.active = ob
        ob.select_set(True)
        try:
            bpy.ops.skinning.crs_to_pc2(filepath=os.path.abspath(path), frame_end=2)
        except RuntimeError:
            return 2
        return 0


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[None]:
    bpy.ops.wm.open_mainfile(filepath=str(path))
    yield


PLACES = (
    Place("result", ".blend", _result, also="other.blend", report=True, overwrites=True),
    Place("report", ".json", _report, also="other.blend"),
    Place("report of a wrong command line", ".json", _report_of_a_usage_error, done=2),
    Place("curve of error", ".png", _curve, also="other.blend"),
    Place("table", ".csv", _table, also="other.csv", report=True, overwrites=True),
    Place("report of a table", ".json", _report_of_many, also="other.csv"),
    Place("point cache", ".pc2", _cache),
)


def make_stage(folder: Path) -> Path:
    """The folder that every attempt gets a copy of."""
    folder.mkdir()
    (folder / "reports").mkdir()
    (folder / "real").mkdir()
    _write_png(folder / "texture.png")
    (folder / "note.txt").write_bytes(FOREIGN)
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid("Banner")
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "library.blend"))
    moving_meshes.saved_flag(folder / "flag.blend")
    given = ("--object=Flag", *SETTINGS[1:], "--input", folder / "flag.blend", "--target-error=900")
    assert command("convert", *given, "--output", folder / "used.blend", "--curve", folder / "used.png") == 0
    for name in ("own", "used"):
        assert _own(folder / "flag.blend", folder / name) == 0
    shutil.copyfile(folder / "own.json", folder / "reports" / "flag.json")
    for name in ("own", "used"):
        assert command("gather-reports", folder / "reports", "--output", folder / f"{name}.csv") == 0
    assert command("gather-reports", folder / "reports", "--report", folder / "table.json") == 0
    _write_shot(folder)
    assert _cache(folder, str(folder / "own.pc2"), False) == 0
    bpy.ops.wm.open_mainfile(filepath=str(folder / "own.blend"))
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "edited.blend"), copy=True)
    for path in folder.glob("*.blend1"):
        path.unlink()
    return folder


def _own(source: Path, stem: Path) -> int:
    given = ("--input", source, "--output", stem.with_suffix(".blend"), "--report", stem.with_suffix(".json"))
    return command("convert", *SETTINGS, *given, "--target-error=900", "--curve", stem.with_suffix(".png"))


def _write_shot(folder: Path) -> None:
    """A scene to convert, to bake, and with something of every kind that a scene may refer to."""
    tube, _ = rigged_tube(bone_count=2, rings=5, segments=4)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    bpy.ops.skinning.crs_to_pc2(filepath=str(folder / "used.pc2"), frame_end=2)
    # The artist's own, not that of the copy, which would play what replaces it.
    bpy.data.objects[f"{tube.name}_crs"].modifiers[0].name = "Played"
    moving_meshes.waving_grid()
    cloth = moving_meshes.add_object("Cloth", *moving_meshes.grid(2, 2))
    rest = np.array([vertex.co for vertex in cloth.data.vertices])
    scenes.write_pc2(folder / "cloth.pc2", np.repeat(rest[None], 9, axis=0))
    scenes.point_cache(cloth, "//cloth.pc2", "PC2")
    for name in ("library.blend", "used.blend"):
        with bpy.data.libraries.load(str(folder / name), link=True) as (found, linked):
            linked.objects = [each for each in found.objects if each in ("Banner", "Flag_skinned")]
        for ob in linked.objects:
            bpy.context.scene.collection.objects.link(ob)
    for name in ("texture.png", "used.png"):
        bpy.data.images.load(str(folder / name)).use_fake_user = True
    for name in ("note.txt", "used.json", "used.csv"):
        bpy.data.texts.load(str(folder / name))
    bpy.context.view_layer.objects.active = tube
    # Relative, so that all copies of the folder are alike.
    bpy.ops.file.make_paths_relative()
    bpy.ops.wm.save_mainfile()


def _write_png(path: Path) -> None:
    image = bpy.data.images.new("texture", 4, 4)
    image.filepath_raw, image.file_format = str(path), "PNG"
    image.save()
    bpy.data.images.remove(image)


def attempts(places=PLACES, roles=ROLES, spellings=SPELLINGS) -> Iterator[Attempt]:
    """All attempts that are possible on this file system."""
    for place, role, spelling in itertools.product(places, roles, spellings):
        # A name without the ending of point caches gets it; a link may have it, whatever it leads to.
        longer = place.ending == ".pc2" and not _FIXED.get(role, ".pc2").endswith(".pc2")
        linked = spelling in (LINK, LINK_TO_LINK, HARD_LINK)
        if _can_be_spelled(role, spelling) and _has(place, role) and (linked or not longer):
            yield Attempt(place, role, spelling)
            if place.overwrites:
                yield Attempt(place, role, spelling, overwrite=True)


def _has(place: Place, role: str) -> bool:
    if role == EDITED:
        return place.ending == ".blend"
    if role == OTHER_OUTPUT:
        return bool(place.also)
    if role == FOLDER:
        return place.ending != ".pc2"  # it goes into the folder
    # With a wrong command line, nothing is opened that could tell what it refers to.
    return role != OWN_IN_USE or place.run is not _report_of_a_usage_error


def _can_be_spelled(role: str, spelling: str) -> bool:
    if spelling == OTHER_CASE:
        return role not in (NOTHING, LOOP) and _knows_no_case()
    if spelling == HARD_LINK:
        return role not in (NOTHING, FOLDER, LOOP, OTHER_OUTPUT)
    if role == LOOP:
        return spelling in (PLAIN, RELATIVE)
    return role != DEVICE or hasattr(os, "mkfifo")


def _knows_no_case() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a").touch()
        return (Path(folder) / "A").exists()


def attempt(template: Path, tried: Attempt) -> str | None:
    """Make the attempt; returns the failure, or None."""
    with tempfile.TemporaryDirectory(prefix="skinning_tools_roles_") as place:
        stage = Path(os.path.realpath(place)) / "stage"
        shutil.copytree(template, stage)
        return _on_stage(stage, tried)


def _on_stage(stage: Path, tried: Attempt) -> str | None:
    concerned = _put(stage, tried.place, tried.role)
    path = _spelled(stage, concerned, tried.spelling, tried.place.ending)
    before = _snapshot(stage)
    with contextlib.chdir(stage):
        code = tried.place.run(stage, path, tried.overwrite)
        real = Path(os.path.realpath(path))
    after = _snapshot(stage)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if tried.expected == STAYS:
        if tried.place.report and tried.role != OTHER_OUTPUT:
            changed.discard(tried.place.also)
        return None if code and not changed else f"{tried}: exit code {code}, changed {sorted(changed)}"
    wanted = real.relative_to(stage).as_posix()
    others = changed - {wanted, tried.place.also, f"{wanted}1" if tried.overwrite else ""}
    fine = code == tried.place.done and wanted in changed and not others
    return None if fine else f"{tried}: exit code {code}, changed {sorted(changed)}"


def _put(stage: Path, place: Place, role: str) -> Path:
    """The file of the attempt; made if the stage has none."""
    named = stage / _FIXED.get(role, f"place{place.ending}")
    if role in (OWN, READ_ONLY) and place.run is _report_of_many:
        named = stage / "table.json"
    elif role in (OWN, READ_ONLY):
        named = stage / f"own{place.ending}"
    elif role == OWN_IN_USE:
        named = stage / f"used{place.ending}"
    elif role == EDITED:
        named = stage / "edited.blend"
    elif role == OTHER_OUTPUT:
        named = stage / place.also
    elif role == EMPTY:
        named.touch()
    elif role == SAME_SORT:
        named.write_bytes(_foreign(stage, place.ending))
    elif role == OTHER_SORT:
        named.write_bytes(FOREIGN)
    elif role == FOLDER:
        named.mkdir()
    elif role == DEVICE:
        os.mkfifo(named)
    elif role == LOOP:
        named.symlink_to(named.name)
    if role == READ_ONLY:
        named.chmod(0o444)
    return named


def _foreign(stage: Path, ending: str) -> bytes:
    if ending == ".json":
        return b'{"schema": "another", "frames": [1, 2]}'
    if ending == ".csv":
        return b"shot,status\nsc01,final\n"
    if ending == ".glb":
        return b"glTF\x02\x00\x00\x00 of another program"
    names = {".blend": "library.blend", ".png": "texture.png", ".pc2": "cloth.pc2"}
    return (stage / names[ending]).read_bytes()


def _spelled(stage: Path, path: Path, spelling: str, ending: str) -> str:
    """Links have the ending that the option asks for, whatever they lead to."""
    given = stage / f"given{ending}"
    if spelling == RELATIVE:
        return f"./reports/../{path.name}"
    if spelling == LINK:
        given.symlink_to(path)
    elif spelling == LINK_TO_LINK:
        (stage / "real" / "between").symlink_to(path)
        given.symlink_to(Path("real", "between"))
    elif spelling == HARD_LINK:
        os.link(path, given)
    elif spelling == LINKED_FOLDER:
        (stage / "alias").symlink_to(stage)
        return str(stage / "alias" / path.name)
    elif spelling == OTHER_CASE:
        return str(path.with_name(path.name.swapcase()))
    else:
        return str(path)
    return str(given)


def _snapshot(stage: Path) -> dict[str, object]:
    """Each file's time and content, or its kind."""
    found: dict[str, object] = {}
    for path in sorted(stage.rglob("*")):
        name = path.relative_to(stage).as_posix()
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_file():
            # By time as well: a rewritten file may have the same content.
            found[name] = path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = ("folder",) if path.is_dir() else ("device",)
    return {name: state for name, state in found.items() if not name.startswith("alias/")}


def file_options(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.Action]]:
    """Every subcommand's options that take a file or a folder: its name, the option."""
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    found = [(name, action) for name, each in commands.choices.items() for action in each._actions]
    return [(name, action) for name, action in found if isinstance(action.type, PathType)]


def option_attempts(parser: argparse.ArgumentParser) -> Iterator[Attempt]:
    """Every option of every subcommand that names a file to write, against what must stay."""
    endings = {"report": ".json", "curve": ".png", "file": ".glb", "cache": ".pc2"}
    for name, action in file_options(parser):
        if action.type.written and not (name == "convert-shots" and action.dest == "output"):
            ending = endings.get(action.dest, ".csv" if name == "gather-reports" else ".blend")
            place = Place(f"{name} {action.option_strings[0]}", ending, _runner(parser, name, action))
            for role in (INPUT, LIBRARY, SAME_SORT, OWN_IN_USE):
                # A scene refers to no glTF file: what it reads of one is in the scene.
                if (role, ending) == (OWN_IN_USE, ".glb"):
                    continue
                yield Attempt(place, role, LINK)


def _runner(parser: argparse.ArgumentParser, name: str, action: argparse.Action) -> Callable[[Path, str, bool], int]:
    destinations = {each.dest: each for command, each in file_options(parser) if command == name}

    def run(stage: Path, path: str, overwrite: bool) -> int:
        given = [f"{action.option_strings[0]}={path}"]
        if "input" in destinations:
            given += ["--input", str(stage / "shot.blend")]
        else:
            bpy.ops.wm.open_mainfile(filepath=str(stage / "shot.blend"))
        # convert-shots has a folder there.
        output = destinations.get("output")
        if output and action is not output and (output.required or "input" in destinations):
            given += ["--output", str(stage / ("out" if name == "convert-shots" else "other.blend"))]
        if action.dest == "curve":
            given += ["--target-error=900"]
        for dest, ending in (("file", "glb"), ("cache", "pc2")):
            if dest in destinations and action.dest != dest:
                given += [f"--{dest}", str(stage / f"other.{ending}")]
        for each in destinations.values():
            if not each.option_strings:
                given.append(str(stage / ("reports" if each.dest == "folder" else "shot.blend")))
        return command(name, *required(parser, name), *given)

    return run


def required(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """Values for all required options of a subcommand, except files."""
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    chosen = commands.choices[name]
    one_of = [group._group_actions[0] for group in chosen._mutually_exclusive_groups if group.required]
    given: list[str] = []
    for action in (*(each for each in chosen._actions if each.required), *one_of):
        if not isinstance(action.type, PathType):
            value = [] if action.nargs == 0 else [str(action.choices[0]) if action.choices else "Flag"]
            given += [*action.option_strings[:1], *value]
    return given


def shot_attempts() -> Iterator[tuple[str, str, str]]:
    """Ending, role and spelling of what may be in a place of convert-shots, where it must stay."""
    for ending, role, spelling in itertools.product((".blend", ".json", ".log"), ROLES, (PLAIN, LINK, HARD_LINK)):
        stays = role in (*WITH_OVERWRITE[1:], LIBRARY, TEXTURE, CACHE, NOTE, FOLDER, DEVICE, LOOP, INPUT)
        if stays and _can_be_spelled(role, spelling):
            yield ending, role, spelling


def attempt_of_shots(template: Path, ending: str, role: str, spelling: str) -> str | None:
    """As ``attempt``. No Blender is to be started for the shot."""
    with tempfile.TemporaryDirectory(prefix="skinning_tools_roles_") as folder:
        stage = Path(os.path.realpath(folder)) / "stage"
        shutil.copytree(template, stage)
        place = Place("shot", ending, lambda *_: 0)
        if ending == ".log" and role == SAME_SORT:
            (stage / "place.log").write_bytes(b"the log of another program\n")
            concerned = stage / "place.log"
        else:
            concerned = _put(stage, place, role)
        (stage / "out").mkdir()
        given = stage / "out" / f"shot{ending}"
        if spelling == PLAIN and concerned.name.startswith("place") and role != LOOP:
            concerned.rename(given)
        elif spelling == HARD_LINK:
            os.link(concerned, given)
        else:
            given.symlink_to(concerned)
        before = _snapshot(stage)
        started = blender_child.blender_command
        blender_child.blender_command = lambda arguments: [sys.executable, "-c", "raise SystemExit(7)"]
        try:
            code = command("convert-shots", stage / "shot.blend", "--output", stage / "out", *SETTINGS)
        finally:
            blender_child.blender_command = started
        after = _snapshot(stage)
    changed = {name for name in before if before[name] != after.get(name)}
    made = after.keys() - before.keys() - {"out/shot.json"}
    words = f"shot{ending}: {role}, {spelling}: exit code {code}, changed {changed}, made {made}"
    return None if code in (1, 2) and not changed and not made else words


def tell(path: Path) -> None:
    """Try everything, and write the outcomes to ``path`` (JSON), for benchmarks/reliability.py."""
    with tempfile.TemporaryDirectory(prefix="skinning_tools_stage_") as folder:
        stage = make_stage(Path(os.path.realpath(folder)) / "stage")
        tried = [*attempts(), *option_attempts(command_line.parser())]
        results = [
            {"place": each.place.name, "role": each.role, "overwrite": each.overwrite, "expected": each.expected}
            | {"failure": attempt(stage, each)}
            for each in tried
        ]
        for given in shot_attempts():
            words = {"place": "file of a shot", "role": given[1], "overwrite": False, "expected": STAYS}
            results.append(words | {"failure": attempt_of_shots(stage, *given)})
    path.write_text(json.dumps(results))


if __name__ == "__main__":
    skinning_tools.register()
    tell(Path(sys.argv[1]))
    # Blender's modules before 5.2 can crash while Python shuts down.
    os._exit(0)
