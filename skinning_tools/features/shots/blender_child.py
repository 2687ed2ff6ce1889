# SPDX-License-Identifier: GPL-3.0-or-later
"""A subcommand in a separate Blender process: its failures, crashes included, stay in that process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import bpy

from ...blender.written_files import Kind, Target, begins_with
from ...ui.command_line.stopping import PARENT_VARIABLE

# Seconds for a child to clean up after the signal to end.
END_SECONDS = 10.0
LAST_LINES = 3

_COMMAND = (["-c", "skinning"], ["--command", "skinning"])

# Limits for libraries that would use all cores in each of several children.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def blender_command(arguments: list[str]) -> list[str]:
    """The command that starts ``--command skinning`` with these arguments in the same way as this process was started.

    With Blender as a Python module there is no Blender program, so the command starts Python.
    """
    if bpy.app.binary_path:
        return [bpy.app.binary_path, *_blender_options(sys.argv), "--command", "skinning", *arguments]
    module = f"{__package__.removesuffix('.features.shots')}.command_line"
    # bpy before the module: an installed extension is found only once Blender is loaded.
    code = f"import bpy, runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", code, *arguments]


def _blender_options(argv: list[str]) -> list[str]:
    """The options for Blender itself, without the file: -b, -y, --offline-mode, -t and the like."""
    end = next((index for index in range(len(argv)) if argv[index : index + 2] in _COMMAND), 1)
    options = [text for text in argv[1:end] if not text.endswith(".blend")]
    return options if {"-b", "--background"} & set(options) else ["-b", *options]


_FIRST_LINE = "# skinning_tools.log: what Blender said of "
LOG = Kind("log", lambda path: begins_with(path, _FIRST_LINE.encode()))


class Child:
    """A running subcommand. It prints its progress in the format of Open Job Description; other output goes to the
    log."""

    def __init__(self, arguments: list[str], log: Target, share: int):
        """share: the number of children that run at once. Raises OSError, BadPath."""
        self.log = log
        self.fraction, self.stage = 0.0, ""
        log.remove()
        self._lines = log.real.open("x", encoding="utf-8", errors="replace")
        try:
            self._lines.write(f"{_FIRST_LINE}{log.path.stem}\n")
            self._lines.flush()
            self.process = subprocess.Popen(
                blender_command(arguments),
                # Nothing is written to it: when it closes, the child knows that this process is gone.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(share),
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except BaseException:
            self._lines.close()
            raise
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def exit_code(self) -> int | None:
        """The exit code; None while it runs, below 0 for the signal that ended it."""
        code = self.process.poll()
        if code is not None:
            self._reader.join(END_SECONDS)
            self._lines.close()
            self.let_go()
        return code

    def let_go(self) -> None:
        """Tell the process that nobody needs its result."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def last_words(self) -> str:
        """The end of the log."""
        with contextlib.suppress(OSError):
            lines = self.log.real.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
            return " | ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip())
        return ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "openjd_progress":
                with contextlib.suppress(ValueError):
                    self.fraction = float(value) / 100
            elif name == "openjd_status":
                self.stage = value
            else:
                with contextlib.suppress(OSError, ValueError):  # a full disk is no reason to stop the work
                    self._lines.write(line)


def end(children: list[Child]) -> None:
    """Stop the children: terminate them, then kill those that do not end."""
    running = [child for child in children if child.process.poll() is None]
    for child in running:
        child.process.terminate()
    deadline = time.monotonic() + END_SECONDS
    for child in running:
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.let_go()
            child.process.kill()
            child.process.wait()
    for child in children:
        child.exit_code()


def end_text(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"Blender ended with exit code {code} and left no report"
    with contextlib.suppress(ValueError):
        return f"Blender crashed or was ended ({signal.Signals(-code).name})"
    return f"Blender was ended by signal {-code}"


def _environment(share: int) -> dict[str, str]:
    """The environment of this process with the user's own settings, except what only parent and child use."""
    threads = {name: str(max(1, (os.cpu_count() or 1) // share)) for name in _THREADS} if share > 1 else {}
    environment = threads | dict(os.environ) | {PARENT_VARIABLE: "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    package = __package__.split(".")[0]
    if not bpy.app.binary_path and package in sys.modules and package != "bl_ext":
        # With Blender as a Python module, the child must find the package where this process found it.
        folder = str(Path(__file__).parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, environment.get("PYTHONPATH"))))
    return environment
