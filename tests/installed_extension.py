# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the built zip into a fresh Blender profile and convert an animation with the installed extension.

python installed_extension.py ZIP [--without-scipy], in a Python with bpy; or blender -b --python
installed_extension.py -- ZIP [--without-scipy], with an empty folder in BLENDER_USER_RESOURCES. Exit status 0 only
where the conversion worked and neither the extension nor scipy came from anywhere but the profile. Without scipy, its
wheels are first taken out of the zip; then the extension must register, and say in one line what is missing.
"""

import contextlib
import os
import re
import sys
import tempfile
import traceback
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

REPOSITORY, NAME = "user_default", "skinning_tools"


def main(archive: Path, profile: Path, without_scipy: bool) -> None:
    os.environ["BLENDER_USER_RESOURCES"] = str(profile)
    os.chdir(profile)
    source_tree = Path(__file__).resolve().parent.parent
    sys.path[:] = [
        entry for entry in sys.path if Path(entry or ".").resolve() not in (source_tree, source_tree / "tests")
    ]
    sys.meta_path[sys.meta_path.index(PathFinder)] = OnlyFrom(profile, "scipy")
    import bpy

    bpy.ops.preferences.addon_enable(module="bl_pkg")
    if without_scipy:
        archive = without_wheels(archive, profile)
    bpy.ops.extensions.package_install_files(filepath=str(archive), repo=REPOSITORY, enable_on_install=True)
    module = f"bl_ext.{REPOSITORY}.{NAME}"
    assert module in bpy.context.preferences.addons, "the extension is not enabled after its installation"
    source = moving_grid(bpy)
    pages = check_pages(bpy, module, profile)
    said = say_what_is_missing(bpy) if without_scipy else convert(bpy, source)

    if not without_scipy:
        import scipy

        assert Path(scipy.__file__).resolve().is_relative_to(profile), f"scipy is {scipy.__file__}"
        said = f"scipy {scipy.__version__}: {said}"
    file = sys.modules[module].__file__
    assert Path(file).resolve().is_relative_to(profile), f"the extension is {file}"
    assert NAME not in sys.modules, "the source tree's package was loaded"
    print(f"Blender {bpy.app.version_string}, {archive.name}, {pages} pages of help, {said}")


def check_pages(bpy, module: str, profile: Path) -> int:
    """That *Online Manual* opens an installed page for every operator, and messages their entry; how many pages."""
    lookup = bpy.types.WM_OT_doc_view_manual._lookup_rna_url
    addresses = {lookup(f"bpy.ops.skinning.{name}", verbose=False) for name in dir(bpy.ops.skinning)}
    settings = type(bpy.context.scene.skinning_bind).__name__
    addresses.add(lookup(f"bpy.types.{settings}.method", verbose=False))
    entry = sys.modules[f"{module}.ui.manual"].page_address("troubleshooting.md", "NO_VERTICES")
    paths = {Path(url2pathname(urlsplit(address or "").path)) for address in (*addresses, entry)}
    for path in paths:
        assert path.is_relative_to(profile), f"the page {path} is not the extension's"
        assert path.is_file(), f"the page {path} was not installed"
    troubleshooting = Path(url2pathname(urlsplit(entry).path)).read_text(encoding="utf-8")
    assert 'id="NO_VERTICES"' in troubleshooting, "the entries of troubleshooting.html have no anchors"
    return len(paths)


def convert(bpy, source) -> str:
    """Convert, and compare the rig with the animation; returns the figures in one line."""
    bpy.ops.skinning.convert_animation(bone_count=4)
    skinned = bpy.data.objects[f"{source.name}_skinned"]
    figures = {key: skinned[key] for key in ("skinning_e_rms", "skinning_max_error", "skinning_bone_count")}
    assert figures["skinning_bone_count"] == 4, figures
    difference = largest_difference(bpy, source, skinned)
    # The grid spans two units; were its motion lost, the difference would be its amplitude, 0.4.
    assert difference < 0.1, f"the rig is {difference} away from the animation"
    e_rms = figures["skinning_e_rms"]
    return f"{source.name} converted, E_RMS {e_rms:.3f}, largest difference {difference:.4f} of 2 units"


def say_what_is_missing(bpy) -> str:
    """Try to convert; returns the message."""
    try:
        bpy.ops.skinning.convert_animation(bone_count=4)
    except RuntimeError as error:
        (line,) = str(error).strip().splitlines()
        assert "scipy is missing for Python {}.{}".format(*sys.version_info) in line, line
        return line
    raise AssertionError("converted without scipy")


def without_wheels(archive: Path, folder: Path) -> Path:
    """A copy of the package in ``folder`` that brings no libraries."""
    target = folder / "no_wheels.zip"
    with zipfile.ZipFile(archive) as full, zipfile.ZipFile(target, "w") as bare:
        for name in full.namelist():
            if not name.endswith(".whl"):
                content = full.read(name)
                if Path(name).name == "blender_manifest.toml":
                    content = re.sub(rb"^wheels = \[[^]]*\]", b"", content, flags=re.MULTILINE)
                bare.writestr(name, content)
    return target


class OnlyFrom:
    """Takes the place of the path finder: one package is seen in one folder only.

    The environment's own must not stand in for it.
    """

    invalidate_caches = PathFinder.invalidate_caches

    def __init__(self, folder: Path, package: str):
        self.folder, self.package = folder, package

    def find_spec(self, name, path=None, target=None):
        if name == self.package:
            path = [entry for entry in sys.path if Path(entry).is_relative_to(self.folder)]
        return PathFinder.find_spec(name, path, target)


def moving_grid(bpy):
    """A new mesh object, active and selected, that two keyed shape keys bend over 12 frames."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    # The factory settings disable every extension.
    bpy.ops.preferences.addon_enable(module=f"bl_ext.{REPOSITORY}.{NAME}")
    bpy.context.scene.frame_end = 12
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=12, y_subdivisions=12, size=2)
    grid = bpy.context.object
    grid.shape_key_add(name="Basis")
    for name, direction in (("Bend", 0), ("Wave", 1)):
        key = grid.shape_key_add(name=name)
        for point in key.data:
            point.co.z += 0.2 * (point.co[direction] ** 2)
        for frame, value in ((1, 0.0), (6, 1.0 if direction else 0.5), (12, 0.0 if direction else 1.0)):
            key.value = value
            key.keyframe_insert("value", frame=frame)
    return grid


def largest_difference(bpy, first, second) -> float:
    """Largest distance of corresponding vertices of two objects, world space, over the scene's frames."""
    largest = 0.0
    scene = bpy.context.scene
    depsgraph = bpy.context.evaluated_depsgraph_get()
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        pair = [ob.evaluated_get(depsgraph) for ob in (first, second)]
        points = [[ob.matrix_world @ vertex.co for vertex in ob.data.vertices] for ob in pair]
        largest = max(largest, *((a - b).length for a, b in zip(*points, strict=True)))
    return largest


if __name__ == "__main__":
    status = 1
    given = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else sys.argv[1:]
    with contextlib.ExitStack() as stack:
        folder = os.environ.get("BLENDER_USER_RESOURCES")
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="blender_profile_"))
        try:
            main(Path(given[0]).resolve(), Path(folder).resolve(), "--without-scipy" in given[1:])
            status = 0
        except Exception:  # noqa: BLE001
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    # The 4.2 module can crash while Python shuts down.
    os._exit(status)
