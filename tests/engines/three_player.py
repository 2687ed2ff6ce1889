# SPDX-License-Identifier: GPL-3.0-or-later
"""three.js in a headless Chromium plays an exported file and says where each vertex is at each time.

A small server on this machine alone hands the browser the page, three.js of ``node_modules`` and the file, and takes
what the page posts. There is no driver between: the browser runs until the answer is here, and is ended.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
THREE = HERE / "node_modules" / "three"
BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
_TYPES = {".html": "text/html", ".js": "text/javascript"}


class PlayerFailed(Exception):
    """The browser did not start, or three.js could not play the file."""


@dataclass(frozen=True)
class Playback:
    """The result of three.js for a file with R vertices, in the file's axes: glTF has Y up."""

    rest: np.ndarray  # (R, 3) as in the file
    positions: np.ndarray  # (F, R, 3) in the scene, computed on the processor
    shaded: np.ndarray  # (F, R, 3) the same, computed by the shaders that draw the mesh
    attribute: np.ndarray | None  # (R, width) of the requested custom attribute
    facts: dict  # version of three.js, its warnings, names of clips and attributes, counts of bones and morph targets


def missing() -> str | None:
    """Why this machine cannot play files in three.js, and what to do; None if it can."""
    if _browser() is None:
        return "there is no Chromium on this machine (Debian: apt-get install chromium)"
    if not THREE.is_dir():
        return "three.js is not installed (npm ci --ignore-scripts, in tests/engines)"
    return None


class Player:
    """A browser with three.js in it, which plays one file after another. A context manager."""

    def __init__(self, timeout: float = 120.0):
        """timeout: seconds per file."""
        self._timeout = timeout
        self._jobs: queue.Queue[_Job] = queue.Queue()
        self._served: dict[int, _Job] = {}

    def __enter__(self) -> "Player":
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(_server(self._jobs, self._served))
            self._log = stack.enter_context(chromium(f"http://127.0.0.1:{server.server_port}/player.html"))
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._running.close()

    def play(
        self,
        path: Path,
        times,
        *,
        attribute: str | None = None,
        weights: dict | None = None,
        clip: str | None = None,
        picture: dict | None = None,
    ) -> Playback:
        """Play the .glb, .fbx or .usdc file at ``path``.

        times: seconds. attribute: name of a custom attribute of the vertices, as three.js spells it: in small letters.
        weights: {"base": name, "clips": {name: weight}} to add up what clips add to a base; otherwise all play, or
        only the one called ``clip``.
        picture: {"path", "time", "width", "height", "eye", "target", "span"} of a picture to write, in the file's axes.
        Raises PlayerFailed.
        """
        number = len(self._served)
        settings = {key: value for key, value in (picture or {}).items() if key != "path"}
        times = np.float32(times).tolist()
        text = {
            "number": number,
            "format": path.suffix[1:],
            "times": times,
            "attribute": attribute,
            "weights": weights,
            "clip": clip,
            "picture": settings or None,
        }
        job = self._served[number] = _Job(path, json.dumps(text))
        self._jobs.put(job)
        if not job.done.wait(self._timeout):
            said = self._log.read_text("utf-8", "replace")[-2000:]
            raise PlayerFailed(f"no answer in {self._timeout:g} s; the browser says: {said}")
        if "failure" in job.answers:
            raise PlayerFailed(job.answers["failure"].decode("utf-8"))
        if picture:
            Path(picture["path"]).write_bytes(job.answers["picture"])
        return _read(job.answers["result"], len(times))


@dataclass(frozen=True)
class _Job:
    model: Path
    text: str
    answers: dict[str, bytes] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)


def _read(result: bytes, frame_count: int) -> Playback:
    head, _, binary = result.partition(b"\n")
    facts = json.loads(head)
    values = np.frombuffer(binary, "<f4")
    rows = facts["rows"]
    moving = 3 * rows * frame_count
    rest, positions, shaded, others = np.split(values, np.cumsum([3 * rows, moving, moving]))
    attribute = others.reshape(rows, -1) if "attribute" in facts["arrays"] else None
    shape = (frame_count, rows, 3)
    return Playback(rest.reshape(rows, 3), positions.reshape(shape), shaded.reshape(shape), attribute, facts)


@contextlib.contextmanager
def _server(jobs: queue.Queue, served: dict[int, _Job]):
    """GET /job waits for the next of ``jobs``; /N/model is the file of job N, /N/result or /N/failure its answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            number, _, name = self.path[1:].partition("/")
            if self.path == "/job":
                try:
                    self._answer(jobs.get(timeout=5).text.encode(), "application/json")
                except queue.Empty:
                    self._answer(b"null", "application/json")
            elif name == "model":
                self._answer(served[int(number)].model.read_bytes(), "application/octet-stream")
            else:
                self._send_file(self.path)

        def do_POST(self):
            number, name = self.path[1:].split("/")
            job = served[int(number)]
            job.answers[name] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(b"", "text/plain")
            if name in ("result", "failure"):
                job.done.set()

        def _send_file(self, path):
            file = THREE / path[len("/three/") :] if path.startswith("/three/") else HERE / path[1:]
            if file.suffix in _TYPES and file.is_file():
                self._answer(file.read_bytes(), _TYPES[file.suffix])
            else:
                self.send_error(404)

        def _answer(self, body, kind):
            with contextlib.suppress(ConnectionError):  # the browser was ended while it waited for a job
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def chromium(address: str):
    """Yields the path of what the browser prints. Ends all of its processes."""
    with tempfile.TemporaryDirectory(prefix="three-player-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    _browser(),
                    "--headless",
                    # Only our own pages are opened; containers often do not permit a sandbox.
                    "--no-sandbox",
                    "--disable-dev-shm-usage",
                    "--use-angle=swiftshader",  # WebGL without a graphics card
                    "--enable-unsafe-swiftshader",
                    "--no-first-run",
                    "--no-proxy-server",
                    "--disable-background-networking",
                    "--disable-component-update",
                    "--disable-extensions",
                    f"--user-data-dir={folder}/profile",
                    address,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield log
            finally:
                # The session is the browser's own: its helpers are ended with it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)
