# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line on real disks that are full or read-only. Linux, where a process may mount one for itself alone
(``unshare``)."""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from skinning_tools.core.canvas import png_beginning
from skinning_tools.core.curve_picture import HEIGHT, WIDTH
from tests.reliability.children import ROOT

# The disk in the folder "disk" of the present one, and what is on it before the command: mount options, size, remount.
FULL, READ_ONLY = "full", "read-only"
# What the extension has written there before, by its marks; anything else it would not replace on any disk.
OLDER = {
    "out.blend": b"an older file\nskinning_tools.result 1\n",
    "curve.png": png_beginning(WIDTH, HEIGHT) + b"an older file",
}
_SETUP = {
    FULL: "dd if=/dev/zero of=disk/filler bs=4k status=none 2>&1 || true; truncate -s -{free} disk/filler",
    READ_ONLY: "mount -o remount,ro disk",
}
_DISK = "mount -t tmpfs -o size=1m tmpfs disk && cp -a before/. disk/ && {setup} && {command}; code=$?; "
_DISK += "{unlock}; cp -a disk/. after/; rm -f after/filler; exit $code"
_UNLOCK = {FULL: "true", READ_ONLY: "mount -o remount,rw disk"}


def can_mount() -> bool:
    """Whether a process may mount its own disks here."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", folder]
        return subprocess.run(command, capture_output=True).returncode == 0


class OnDisk:
    """The outcome of a command: code, error (its error output), report (its document or None), and the files on the
    disk afterwards, by their names."""

    def __init__(self, arguments: list[str], kind: str, shot: Path, free: int = 0, old: tuple[str, ...] = ()):
        """arguments: of the command line, in which "disk/NAME" is on the disk. shot: a .blend file, as "shot.blend" off
        the disk. free: bytes that a FULL one has left. old: names of files of OLDER that are there already."""
        with tempfile.TemporaryDirectory(prefix="skinning_tools_disk_") as place:
            folder = Path(place)
            for name in ("disk", "before", "after"):
                (folder / name).mkdir()
            for name in old:
                (folder / "before" / name).write_bytes(OLDER[name])
            shutil.copyfile(shot, folder / "shot.blend")
            command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "skinning_tools.command_line", *arguments]
            setup = _SETUP[kind].format(free=free)
            script = _DISK.format(setup=setup, command=shlex.join(command), unlock=_UNLOCK[kind])
            done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=folder, capture_output=True, text=True)
            self.code, self.error = done.returncode, done.stderr
            self.files = {path.name: path.read_bytes() for path in (folder / "after").rglob("*") if path.is_file()}
            beside = folder / "report.json"
            text = self.files.get("report.json") or (beside.read_bytes() if beside.exists() else b"null")
            self.report = json.loads(text)
