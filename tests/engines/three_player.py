# SPDX-License-Identifier: GPL-3.0-or-later
"""three.js in a headless Chromium plays an exported file and says where each vertex is at each time.

A small server on this machine alone hands the browser the page, three.js of ``node_modules`` and the file, and takes
what the page posts. There is no driver between: the browser runs until the answer is here, and is ended.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
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
    """What three.js made of a file with R vertices. Its axes are the file's: glTF has Y up."""

    rest: np.ndarray  # (R, 3) as in the file
    positions: np.ndarray  # (F, R, 3) in the scene
    attribute: np.ndarray | None  # (R, width) of the custom attribute that was asked for
    facts: dict  # version of three.js, its warnings, names of clips and attributes, counts of bones and morph targets


def missing() -> str | None:
    """Why this machine cannot play files in three.js, and what to do; None where it can."""
    if _browser() is None:
        return "there is no Chromium on this machine (Debian: apt-get install chromium)"
    if not THREE.is_dir():
        return "three.js is not installed (npm ci --ignore-scripts, in tests/engines)"
    return None


def play(path: Path, times, *, attribute: str | None = None, picture: dict | None = None, timeout=120.0) -> Playback:
    """Play the .glb, .fbx or .usdc file at ``path``.

    times: seconds. attribute: name of a custom attribute of the vertices, as three.js spells it: in small letters.
    picture: {"path", "time", "width", "height", "eye", "target", "span"} of a picture to write, in the file's axes.
    Raises PlayerFailed.
    """
    settings = {key: value for key, value in (picture or {}).items() if key != "path"}
    job = {
        "format": path.suffix[1:],
        "times": np.float32(times).tolist(),
        "attribute": attribute,
        "picture": settings or None,
    }
    with (
        _server(path, job) as (server, answers),
        _chromium(f"http://127.0.0.1:{server.server_port}/player.html") as log,
    ):
        if not answers["done"].wait(timeout):
            raise PlayerFailed(
                f"no answer in {timeout:g} s; the browser says: {log.read_text('utf-8', 'replace')[-2000:]}"
            )
    if "failure" in answers:
        raise PlayerFailed(answers["failure"].decode("utf-8"))
    if picture:
        Path(picture["path"]).write_bytes(answers["picture"])
    return _read(answers["result"], len(job["times"]))


def _read(result: bytes, frame_count: int) -> Playback:
    head, _, binary = result.partition(b"\n")
    facts = json.loads(head)
    values = np.frombuffer(binary, "<f4")
    rows = facts["rows"]
    rest, positions, rest_of_it = np.split(values, [3 * rows, 3 * rows * (1 + frame_count)])
    attribute = rest_of_it.reshape(rows, -1) if "attribute" in facts["arrays"] else None
    return Playback(rest.reshape(rows, 3), positions.reshape(frame_count, rows, 3), attribute, facts)


@contextlib.contextmanager
def _server(model: Path, job: dict):
    answers = {"done": threading.Event()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            if path == "/job":
                self._answer(json.dumps(job).encode(), "application/json")
            elif path == f"/model{model.suffix}":
                self._answer(model.read_bytes(), "application/octet-stream")
            else:
                self._send_file(path)

        def do_POST(self):
            answers[self.path[1:]] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(b"", "text/plain")
            if self.path in ("/result", "/failure"):
                answers["done"].set()

        def _send_file(self, path):
            file = THREE / path[len("/three/") :] if path.startswith("/three/") else HERE / path[1:]
            if file.suffix in _TYPES and file.is_file():
                self._answer(file.read_bytes(), _TYPES[file.suffix])
            else:
                self.send_error(404)

        def _answer(self, body, kind):
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
        yield server, answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def _chromium(address: str):
    """Yields the path of what the browser prints. Ends all of its processes."""
    with tempfile.TemporaryDirectory(prefix="three-player-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    _browser(),
                    "--headless",
                    # Only pages of ours are opened; in a container there is often no right to make a sandbox.
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
