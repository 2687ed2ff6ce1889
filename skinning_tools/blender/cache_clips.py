# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache files as clips of one character: copies of its mesh, each of which plays a file and is named after it."""

from collections.abc import Sequence
from pathlib import Path

import bpy

from ..core.errors import BadPath, BadScene, BadSettings
from .clip_tracks import track_name
from .conversions import result_of
from .data_blocks import clear_shape_keys, cut_name, local_copy
from .object_checks import point_cache_head
from .preconditions import object_label
from .records import RESERVED
from .result_objects import CHARACTER, name_for_results
from .scene_state import SceneState
from .wording import listed

_POINT_CACHES = {".pc2": "PC2", ".mdd": "MDD"}
_USD = (".usd", ".usda", ".usdc", ".usdz")
# For Blender's importer of USD, which would also give the scene a world for the lights in the file.
_MESHES_ALONE = dict.fromkeys(
    ("import_cameras", "import_lights", "import_materials", "import_volumes", "create_world_material"), False
)
ENDINGS = (".abc", *_USD, *_POINT_CACHES)


def clip_files(path: Path) -> list[Path]:
    """The file, or the cache files in the folder, in alphabetical order. Raises BadPath if there are none in it."""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in ENDINGS and each.is_file())
    if not found:
        raise BadPath(f"The folder {path} has no cache files, whose names end in {', '.join(ENDINGS)}")
    return found


def cache_clips(
    context: bpy.types.Context, mesh: bpy.types.Object, paths: Sequence[Path]
) -> tuple[list[bpy.types.Object], tuple[int, int]]:
    """Copies of ``mesh``, in its collections, that play the files, and the range of frames that holds all of these.

    Their results are called after ``mesh``, or the character that it was made for. The files have its vertices. Of an
    Alembic or USD file with several such meshes the one of the same name is meant. Point caches begin at frame 1.
    Raises BadPath, BadScene, BadSettings.
    """
    if mesh.type != "MESH":
        raise BadScene(f"The {object_label(mesh)} is not a mesh. Name the mesh that the cache files are of")
    names = [track_name(cut_name(path.stem)) for path in paths]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadSettings(f'Two cache files have the name "{twice}", after which their clips are called: rename one')
    clips, spans, state, character = [], [], SceneState(context), _character_of(mesh)
    for path in (each.absolute() for each in paths):
        if path.suffix.lower() not in ENDINGS:
            raise BadPath(f"{path.name} is not a cache file, whose names end in {', '.join(ENDINGS)}")
        if not path.is_file():
            raise BadPath(f"There is no cache file {path}")
        clip = _bare_copy(mesh, cut_name(path.stem), character)
        clips.append(clip)
        kind = _POINT_CACHES.get(path.suffix.lower())
        spans.append(_play_scene_cache(context, clip, mesh, path) if kind is None else _play_points(clip, path, kind))
    # Blender's importers select what they have made and leave the user's mode, and copies are selected as their
    # original is.
    state.restore()
    return clips, (min(start for start, _ in spans), max(end for _, end in spans))


def _bare_copy(mesh: bpy.types.Object, name: str, character: str) -> bpy.types.Object:
    """A copy, as a clip of the ``character``, without shape keys, modifiers, animation, and what the extension notes on
    skinned meshes."""
    earlier = bpy.data.objects.get((name, None))
    if earlier is not None and earlier != mesh and earlier.get(CHARACTER) == character:
        # Of this clip, when it was read before.
        bpy.data.batch_remove([earlier, *([earlier.data] if earlier.data.users == 1 else [])])
    copy = local_copy(mesh)
    copy.data = mesh.data.copy()
    copy.name = copy.data.name = name
    for owner in (copy, copy.data):
        for key in [key for key in list(owner.keys()) if key.startswith(RESERVED)]:
            del owner[key]
    copy[CHARACTER] = character
    if copy.data.shape_keys is not None:
        clear_shape_keys(copy)
    copy.modifiers.clear()
    copy.animation_data_clear()
    for collection in mesh.users_collection:
        collection.objects.link(copy)
    if copy.name != name:
        raise BadScene(f'There is an object "{name}" in the file already: rename the cache file, or the object')
    return copy


def _character_of(mesh: bpy.types.Object) -> str:
    """The name of the character whose clips ``mesh``, or the source that it was made from, has."""
    result = result_of(mesh)
    return name_for_results((result and result.source) or mesh)


def _play_points(clip: bpy.types.Object, path: Path, kind: str) -> tuple[int, int]:
    modifier = clip.modifiers.new("Cache", "MESH_CACHE")
    modifier.cache_format, modifier.filepath, modifier.frame_start = kind, str(path), 1
    head = point_cache_head(str(path), kind, object_label(clip))
    if head is None:
        raise BadScene(f"The cache file of {object_label(clip)} is not in the {kind} format: {path}. Export it again")
    return 1, max(head.frames, 1)


def _play_scene_cache(
    context: bpy.types.Context, clip: bpy.types.Object, mesh: bpy.types.Object, path: Path
) -> tuple[int, int]:
    """Take from Blender's importer what plays the file: the cache, and the path of the mesh in it."""
    scene = context.scene
    before, own = set(bpy.data.objects), (scene.frame_start, scene.frame_end)
    try:
        if path.suffix.lower() in _USD:
            ended = bpy.ops.wm.usd_import(filepath=str(path), set_frame_range=True, **_MESHES_ALONE)
        else:
            ended = bpy.ops.wm.alembic_import(filepath=str(path), set_frame_range=True, as_background_job=False)
        if "FINISHED" not in ended:
            raise RuntimeError("the file is damaged. Export it again, or leave it out")
        span = scene.frame_start, scene.frame_end
        read = [ob for ob in bpy.data.objects if ob not in before]
        source = _meant(read, mesh, path)
        modifier = clip.modifiers.new("Cache", "MESH_SEQUENCE_CACHE")
        modifier.cache_file, modifier.object_path = source.cache_file, source.object_path
        modifier.read_data = {"VERT"}
    except (AttributeError, RuntimeError) as error:
        raise BadScene(f"Blender's importer cannot read {path}: {error}") from error
    finally:
        scene.frame_start, scene.frame_end = own
        bpy.data.batch_remove([ob for ob in bpy.data.objects if ob not in before])
    return span


def _meant(read: Sequence[bpy.types.Object], mesh: bpy.types.Object, path: Path) -> bpy.types.MeshSequenceCacheModifier:
    """The modifier of the moving mesh among the objects ``read`` that is meant for ``mesh``."""
    moving = {
        ob.name: each
        for ob in read
        for each in ob.modifiers
        if ob.type == "MESH" and each.type == "MESH_SEQUENCE_CACHE" and len(ob.data.vertices) == len(mesh.data.vertices)
    }
    fitting = [each for each in moving.values() if mesh.name in each.object_path.split("/")] or [*moving.values()]
    if len(fitting) == 1:
        return fitting[0]
    if moving:
        raise BadScene(
            f"{path.name} has several meshes with the vertices of {object_label(mesh)}: {listed(list(moving))}. Name "
            "the object like the one that is meant"
        )
    raise BadScene(
        f"{path.name} has no moving mesh with the {len(mesh.data.vertices):,} vertices of {object_label(mesh)}. Export "
        "the cache from the same mesh, with its positions in every frame, not as blend shapes or a skeleton"
    )
