# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes all files of the extension: decides what it may replace, and writes each file completely or not at all.

An existing file is replaced if a mark inside it shows that the extension wrote it, or if the user has allowed it; never
if the run reads it, the scene refers to it, or another file of the same run is saved there.
"""

import contextlib
import errno
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

from ..core.errors import BadPath, BadScene
from .records import checksum

# A half-written file of another machine, whose processes cannot be checked, counts as abandoned at this age.
ABANDONED_SECONDS = 24 * 3600.0

_PART = re.compile(r"\.skinning_tools\.([0-9a-f]{8})\.(\d+)\.[0-9a-f]{8}\.part(?:\.[a-z]+)?@?")
_ANOTHER = "Choose another file"


@dataclass(frozen=True)
class Kind:
    """A kind of file that the extension writes. is_own: whether the extension wrote the file at a path, according to
    its mark; may raise OSError."""

    noun: str
    is_own: Callable[[Path], bool]


class WrittenFiles:
    """The files of one run: those that must not change, and those that it writes."""

    def __init__(self) -> None:
        self._kept: dict[tuple, str] = {}
        self._targets: dict[tuple, Target] = {}
        self._swept: set[Path] = set()

    def keep(self, path: str | os.PathLike, what: str) -> None:
        """Protect a path from now on. what: such as "the file to work on".

        Raises BadPath if the path is claimed already.
        """
        key = identity(path)
        self._kept.setdefault(key, what)
        target = self._targets.get(key)
        if target is not None:
            target.give_up()
            raise BadPath(f"The {target.noun} cannot be saved to {target.path}, as that is {what}. {target.hint}")

    def keep_scene(self, opened: Path | None = None, replaced: Collection[tuple] = ()) -> None:
        """Protect the open file and all files that it refers to, except ``opened`` and the files with the identities
        ``replaced``. Raises BadPath."""
        apart = {*replaced} if opened is None else {*replaced, identity(opened)}
        if opened is None and bpy.data.filepath:
            self.keep(bpy.data.filepath, "the file that is open")
        for ob in bpy.data.objects:
            for modifier in (each for each in ob.modifiers if each.type == "MESH_CACHE" and each.filepath):
                path = bpy.path.abspath(modifier.filepath, library=ob.library)
                if identity(path) not in replaced:
                    self.keep(path, f'a cache that the object "{ob.name}" plays')
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
        """The Target of a file that will be written. hint: what to do if that is not possible. allowed: whether to
        replace any existing file, None if --overwrite cannot allow it. check: check now whether it can be written.

        Raises BadPath.
        """
        target = Target(path, kind, hint, allowed)
        key = identity(target.real)
        other = self._targets.get(key)
        if key in self._kept:
            raise BadPath(f"The {kind.noun} cannot be saved to {path}, as that is {self._kept[key]}. {hint}")
        if other is not None:
            other.give_up()
            raise BadPath(f"The {kind.noun} cannot be saved to {path}, as the {other.noun} is saved there, too. {hint}")
        if check:
            target.check()
            target.check_folder()
        self._targets[key] = target
        self.sweep(target.real.parent)
        return target

    def set_aside(self, target: "Target") -> None:
        """Set the existing file of a claimed path aside until ``write``, or until the path is given up, which restores
        it.

        Raises OSError, BadPath.
        """
        target.set_aside()
        self._targets[identity(target.real)] = target

    def sweep(self, folder: Path) -> None:
        """Remove the half-written files of ended processes in that folder; once in a run."""
        if folder not in self._swept:
            self._swept.add(folder)
            remove_halves(folder)


class Target:
    """The path of a file to write. path: as it was given; a link stays a link, and its target is replaced."""

    def __init__(self, path: Path, kind: Kind, hint: str, allowed: bool | None):
        self.path, self.kind, self.hint, self.allowed = path, kind, hint, allowed
        self.real = Path(os.path.realpath(path))
        self.given_up = False
        self._aside: Path | None = None

    @property
    def noun(self) -> str:
        return self.kind.noun

    def is_own(self) -> bool:
        """Whether the extension wrote the existing file."""
        with contextlib.suppress(OSError):
            return self.kind.is_own(self.real)
        return False

    def failed(self, reason: str | Exception) -> BadScene:
        """The exception for a file that may be written there, but was not."""
        return BadScene(f"The {self.noun} could not be saved to {self.path}: {reason}")

    def check(self) -> None:
        """Raises BadPath if the path has something that must not be replaced."""
        try:
            found = file_status(self.real)
        except OSError as error:
            # A link to itself, a name that is too long, a folder without permission.
            reason = error.strerror or error
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}: {reason}. {self.hint}") from error
        if found is None:
            return
        if stat.S_ISDIR(found.st_mode):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}, as that is a folder. {self.hint}")
        if not stat.S_ISREG(found.st_mode):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}, as that is not a regular file. {self.hint}")
        # The root user could write the file despite its protection.
        if not found.st_mode & 0o222 or not os.access(self.real, os.W_OK):
            raise BadPath(f"The {self.noun} cannot be saved to {self.path}: the file there is read-only. {self.hint}")
        # An empty file has nothing to lose: programs create one to reserve a name.
        if found.st_size and not self.allowed and not self.is_own():
            allow = "" if self.allowed is None else ", or add --overwrite to replace it"
            raise BadPath(
                f"The {self.noun} cannot be saved to {self.path}: this extension did not write the file there, or it "
                f"was changed since. {self.hint}{allow}"
            )

    def check_folder(self) -> None:
        """Raises BadPath if no file can be written next to the target."""
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
        """Write the file completely or not at all. Raises OSError, also if another file was created there meanwhile."""
        with self.part() as part:
            part.write_bytes(data)

    def save(self, data: bytes) -> None:
        """As ``write``, but raises BadScene."""
        try:
            self.write(data)
        except OSError as error:
            raise self.failed(error.strerror or error) from error

    @contextlib.contextmanager
    def part(self, suffix: str = "") -> Iterator[Path]:
        """The path of a file to write next to the target, which replaces it after the block. Raises as ``write``; then,
        or after an exception in the block, the target is unchanged and nothing else is left."""
        part = _part_beside(self.real, suffix)
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            try:
                self.check()
            except BadPath as error:
                raise FileExistsError(errno.EEXIST, "another file was created there meanwhile") from error
            found = file_status(self.real)
            # A link to a protected file has that file's permissions.
            if found is not None and part.stat().st_nlink == 1:
                with contextlib.suppress(OSError):
                    part.chmod(stat.S_IMODE(found.st_mode))
            os.replace(part, self.real)
        finally:
            _remove(part, part.with_name(f"{part.name}@"))

    def remove(self) -> None:
        """Remove the existing file if it may be replaced. Raises OSError, BadPath."""
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
        """Give up writing here, and restore what was set aside."""
        self.given_up = True
        if self._aside is not None:
            with contextlib.suppress(OSError):
                os.replace(self._aside, self.real)
            self._aside = None


def claim_named(filepath: str, kind: Kind, ending: str, hint: str = _ANOTHER, allowed: bool | None = None) -> Target:
    """The Target of the file that an operator's caller names. ending: that its name should have, such as ".bin"; hint,
    allowed: as in ``WrittenFiles.claim``.

    Raises BadPath, also if there is no name, or if the file is open or the scene refers to it.
    """
    if not filepath:
        raise BadPath(f"The {kind.noun} needs a file name. Choose one that ends in {ending}")
    files = WrittenFiles()
    files.keep_scene()
    return files.claim(Path(bpy.path.abspath(filepath)), kind, hint, allowed)


def identity(path: str | os.PathLike) -> tuple:
    """A key that is equal for different spellings of one file: links, letter case and the like.

    For a missing file, the folder and the name as on case-insensitive file systems: a run does not write two files that
    only some file systems distinguish.
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
    """The name as seen by file systems that ignore letter case, Unicode forms and trailing dots."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold()).rstrip(". ")


def file_status(path: str | os.PathLike) -> os.stat_result | None:
    """The file's status, None if there is no file. Raises OSError if that is unknown."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def ends_with(path: Path, mark: bytes) -> bool:
    """Whether a file ends with these bytes. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(mark), 0))
        return file.read() == mark


def begins_with(path: Path, mark: bytes) -> bool:
    """Whether a file begins with these bytes. Raises OSError."""
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
    """Whether there is a process of that number, and not only a zombie."""
    if sys.platform == "win32":
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # It belongs to another user.
        return True
    with contextlib.suppress(OSError):
        # Linux: the state follows the name, which may contain any characters.
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return True


if sys.platform == "win32":

    def _is_running_on_windows(process: int) -> bool:
        """On Windows, os.kill would end the process."""
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
    """An identifier of the machine and container, in which process numbers are unique."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return checksum(f"{platform.node()} {space}")[:8]


def _part_beside(path: Path, suffix: str = "") -> Path:
    """A hidden path next to the file, kept short for any file name."""
    name = f".skinning_tools.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}.part{suffix}"
    return path.with_name(name)


def _remove(*paths: Path) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
