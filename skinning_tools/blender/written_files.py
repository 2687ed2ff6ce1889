# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way in which the extension writes files: what it may replace, and how a file becomes whole at once.

A file in the place is replaced where the extension wrote it, by a mark inside the file, or where the user has allowed
it; never where the run reads it, where the scene refers to it, or where another file of the same run goes.
"""

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import sys
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import bpy

from ..core.errors import BadPath

# A half-written file of another machine, whose processes nobody can ask for, is left behind once it is as old as this.
ABANDONED_SECONDS = 24 * 3600.0

_PART = re.compile(r"\.skinning_tools\.([0-9a-f]{8})\.(\d+)\.[0-9a-f]{8}\.part(?:\.blend)?@?")
_ANOTHER = "Choose another file"


@dataclass(frozen=True)
class Kind:
    """A sort of file that the extension writes. is_own: whether the extension wrote the file of that path, by its mark;
    may raise OSError."""

    noun: str
    is_own: Callable[[Path], bool]


class WrittenFiles:
    """The files of one run: those that stay as they are, and those that it writes."""

    def __init__(self) -> None:
        self._kept: dict[tuple, str] = {}
        self._targets: dict[tuple, Target] = {}
        self._swept: set[Path] = set()

    def keep(self, path: str | os.PathLike, what: str) -> None:
        """From here on nothing is written there. what: such as "the file to work on".

        Raises BadPath where the path is claimed already.
        """
        key = identity(path)
        self._kept.setdefault(key, what)
        target = self._targets.get(key)
        if target is not None:
            target.give_up()
            raise BadPath(f"The {target.noun} cannot be saved to {target.path}, as that is {what}. {target.hint}")

    def keep_scene(self, opened: Path | None = None, replaced: Collection[tuple] = ()) -> None:
        """Keep the open file and all that it refers to, apart from ``opened`` and the files of the identities
        ``replaced``, which may be replaced. Raises BadPath."""
        apart = {*replaced} if opened is None else {*replaced, identity(opened)}
        if opened is None and bpy.data.filepath:
            self.keep(bpy.data.filepath, "the file that is open")
        for ob in bpy.data.objects:
            for modifier in (each for each in ob.modifiers if each.type == "MESH_CACHE" and each.filepath):
                path = bpy.path.abspath(modifier.filepath, library=ob.library)
                if identity(path) not in replaced:
                    self.keep(path, f'what the object "{ob.name}" plays')
        for path in bpy.utils.blend_paths(absolute=True, packed=False, local=False):
            if identity(path) not in apart:
                self.keep(path, "a file that the scene refers to")

    def claim(
        self,
        path: Path,
        kind: Kind,
        hint: str = _ANOTHER,
        allowed: bool | None = None,
        check: bool = True,
    ) -> "Target":
        """The Target of a file that will be written. hint: what to do where it must not. allowed: to replace what is
        there whoever wrote it, None where --overwrite cannot allow it. check: already whether it can be written.

        Raises BadPath.
        """
        target = Target(path, kind, hint, allowed)
        key = identity(target.real)
        other = self._targets.get(key)
        if key in self._kept:
            raise BadPath(f"The {kind.noun} cannot be saved to {path}, as that is {self._kept[key]}. {hint}")
        if other is not None:
            other.give_up()
            raise BadPath(f"The {kind.noun} cannot be saved to {path}, as the {other.noun} goes there, too. {hint}")
        if check:
            target.check()
            target.check_folder()
        self._targets[key] = target
        self.sweep(target.real.parent)
        return target

    def set_aside(self, target: "Target") -> None:
        """Take away what is in a claimed place until ``write``, or until the place is given up, which puts it back.

        Raises OSError, BadPath.
        """
        target.set_aside()
        self._targets[identity(target.real)] = target

    def sweep(self, folder: Path) -> None:
        """Remove what processes that are no more have left half-written in that folder; once in a run."""
        if folder not in self._swept:
            self._swept.add(folder)
            remove_halves(folder)


class Target:
    """A place for a file. path: as it was named; a link stays one, and what it leads to is replaced."""

    def __init__(self, path: Path, kind: Kind, hint: str, allowed: bool | None):
        self.path, self.kind, self.hint, self.allowed = path, kind, hint, allowed
        self.real = Path(os.path.realpath(path))
        self.given_up = False
        self._aside: Path | None = None

    @property
    def noun(self) -> str:
        return self.kind.noun

    def is_own(self) -> bool:
        """Whether the extension wrote what is there."""
        with contextlib.suppress(OSError):
            return self.kind.is_own(self.real)
        return False

    def check(self) -> None:
        """Raises BadPath where something is in the place that must stay."""
        try:
            found = file_status(self.real)
        except OSError as error:
            # A link to itself, a name that is too long, a folder that nobody may enter.
            reason = error.strerror or error
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}: {reason}. {self.hint}") from error
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}, as that is a folder. {self.hint}")
        if not stat.S_ISREG(found.st_mode):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}, as that is no ordinary file. {self.hint}")
        # The user of all rights may write what is protected all the same.
        if not found.st_mode & 0o222 or not os.access(self.real, os.W_OK):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}: the file there is read-only. {self.hint}")
        # An empty file has nothing to lose: programs make such ones to reserve a name.
        if found.st_size and not self.allowed and not self.is_own():
            allow = "" if self.allowed is None else ", or add --overwrite to replace it"
            raise BadPath(
                f"The {self.noun} cannot be saved to {self.path}: this extension did not write the file there, or it "
                f"was changed since. {self.hint}{allow}"
            )

    def check_folder(self) -> None:
        """Raises BadPath where no file can be written beside the target."""
        folder = self.real.parent
        if not folder.is_dir():
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}: there is no folder {folder}. {self.hint}")
        part = _part_beside(self.real)
        try:
            part.open("xb").close()
            part.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise BadPath(
                f"The {self.noun} cannot be saved to {self.path}, as nothing can be written to its folder ({reason}). "
                f"{self.hint}"
            ) from error

    def write(self, data: bytes) -> None:
        """All of it or nothing. Raises OSError, also where something has come into the place meanwhile."""
        with self.part() as part:
            part.write_bytes(data)

    @contextlib.contextmanager
    def part(self, suffix: str = "") -> Iterator[Path]:
        """The path of a file to write beside the target, which becomes it once the block has ended. Raises as
        ``write``; then, or after an exception of the block, the target is as it was and nothing else is left."""
        part = _part_beside(self.real, suffix)
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            try:
                self.check()
            except BadPath as error:
                raise FileExistsError(errno.EEXIST, "something else has come into its place meanwhile") from error
            found = file_status(self.real)
            # A link to what stays has the rights of that.
            if found is not None and part.stat().st_nlink == 1:
                with contextlib.suppress(OSError):
                    part.chmod(stat.S_IMODE(found.st_mode))
            os.replace(part, self.real)
        finally:
            _remove(part, part.with_name(f"{part.name}@"))

    def remove(self) -> None:
        """What is there, where it may be replaced. Raises OSError, BadPath."""
        self.check()
        self.real.unlink(missing_ok=True)

    def set_aside(self) -> None:
        """As ``WrittenFiles.set_aside``."""
        self.check()
        if file_status(self.real) is not None:
            aside = _part_beside(self.real)
            os.replace(self.real, aside)
            self._aside = aside

    def forget_aside(self) -> None:
        if self._aside is not None:
            _remove(self._aside)
            self._aside = None

    def give_up(self) -> None:
        """Nothing is to be written here after all."""
        self.given_up = True
        if self._aside is not None:
            with contextlib.suppress(OSError):
                os.replace(self._aside, self.real)
            self._aside = None


def identity(path: str | os.PathLike) -> tuple:
    """What two spellings of one file have in common: links, letter case and the like.

    Of a file that does not exist, the folder and the name as file systems take it that know no letter case: two files
    that only some file systems tell apart are not written in one run.
    """
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):
        found = file_status(real)
        if found is not None and found.st_ino:
            return found.st_dev, found.st_ino
        parent = file_status(os.path.dirname(real))
        if parent is not None and parent.st_ino:
            return parent.st_dev, parent.st_ino, folded(os.path.basename(real))
    return (folded(real),)


def folded(name: str) -> str:
    """As file systems see a name that know no letter case, forms of accents or dots at the end."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold()).rstrip(". ")


def file_status(path: str | os.PathLike) -> os.stat_result | None:
    """None where there is no file. Raises OSError where that cannot be told."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def ends_with(path: Path, mark: bytes) -> bool:
    """Whether a file has these bytes at its end. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(mark), 0))
        return file.read() == mark


def begins_with(path: Path, mark: bytes) -> bool:
    """Whether a file has these bytes at its beginning. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def remove_halves(folder: Path) -> None:
    """Remove the half-written files in a folder whose processes have ended."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _PART.fullmatch(entry.name)
            if match is None:
                continue
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and _is_abandoned(match[1], int(match[2]), found.st_mtime):
                    os.unlink(entry.path)


def _is_abandoned(machine: str, process: int, modified: float) -> bool:
    if machine == _machine():
        return not is_running(process)
    return time.time() - modified > ABANDONED_SECONDS


def is_running(process: int) -> bool:
    """Whether there is a process of that number, and not only the entry of one that has ended (a zombie)."""
    if sys.platform == "win32":
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # That of another user.
        return True
    with contextlib.suppress(OSError):
        # Linux: the state follows the name, which may have any characters.
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return True


if sys.platform == "win32":

    def _is_running_on_windows(process: int) -> bool:
        """os.kill would end it there."""
        import ctypes

        query, still_active, access_denied = 0x1000, 259, 5
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(query, False, process)
        if not handle:
            return ctypes.get_last_error() == access_denied
        try:
            code = ctypes.c_ulong()
            known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
            return not known or code.value == still_active
        finally:
            kernel.CloseHandle(ctypes.c_void_p(handle))


def _machine() -> str:
    """Where the numbers of processes mean the same ones: the machine, and in it the container."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {space}".encode(errors="surrogateescape")).hexdigest()[:8]


def _part_beside(path: Path, suffix: str = "") -> Path:
    """Hidden, and as short as it can be whatever the file's name is."""
    name = f".skinning_tools.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}.part{suffix}"
    return path.with_name(name)


def _remove(*paths: Path) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
