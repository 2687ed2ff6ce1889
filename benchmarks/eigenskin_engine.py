# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin's shader beside morph targets in three.js: milliseconds for an update of the human rig, in Chromium.

Needs what tests/engines needs (Chromium, and three.js by npm ci --ignore-scripts), and the human rig of ../shared/data.
Chromium draws in software here, as in the tests: the processor runs the shaders. A graphics card is faster by far, and
its ratios may differ.
"""

import argparse
import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "demos")]

import eigenskin_human as human  # noqa: E402 (in demos)
from _tables import Tables  # noqa: E402 (beside this file)
from human_rig import HUMAN  # noqa: E402 (in demos)
from scipy.spatial.transform import Rotation  # noqa: E402

from skinning_tools.core.deform import vertex_normals  # noqa: E402 (the checkout's)
from skinning_tools.core.eigenskin import EigenSkin, EigenSkinSettings, build_eigenskin  # noqa: E402 (the checkout's)
from skinning_tools.core.eigenskin.shader_tables import shader_tables  # noqa: E402 (the checkout's)
from tests.engines import three_player  # noqa: E402 (the checkout's)

COMPONENTS = (1, 3, 10)
POSES, WIDTH = 16, 1024
TYPES = {".html": "text/html", ".js": "text/javascript", ".glsl": "text/plain"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=40, help="number of timed updates")
    parser.add_argument("--write", type=Path, metavar="FILE", help="replace the table in this Markdown page")
    options = parser.parse_args()
    reason = three_player.missing() or ("" if HUMAN.is_file() else "the human rig is not in ../shared/data")
    if reason:
        print(f"Not measured: {reason}.")
        return 1
    body, tables = human.Character.read(), Tables()
    found = {count: timed(body, corrected(body, count), options.updates) for count in COMPONENTS}
    used = next(iter(found.values()))
    tables.begin(
        "In three.js",
        f"Milliseconds for an update in which 20 joints turn: the fastest and the median of {options.updates}, in "
        "which all ways take turns; other work on the machine shows in the medians. Human rig, "
        f"{len(body.rig.rest):,} vertices, {len(body.triangles):,} triangles, 64 × 64 pixels, three.js {used['three']} "
        f"in Chromium on {used['renderer']}: software, which runs the shaders on the processor. Morph targets get "
        "their values; the eigen shader computes them from the joints in a pass of its own. Memory: of what is added "
        "to the mesh on the graphics card; three.js keeps a texel of 16 bytes for each vertex and target.",
        *("components", "skin alone", "morph targets", "eigen shader", "kB, morph targets", "kB, eigen shader"),
    )
    for answer in found.values():
        times = [f"{min(each):.1f} / {np.median(each):.1f}" for each in answer["milliseconds"].values()]
        tables.row(str(answer["components"]), *times, *(f"{size / 1000:,.0f}" for size in answer["bytes"]))
    away = max(answer["away"] for answer in found.values())
    tables.note(
        f"The values in the texture differ from those of `core` by at most {away:.1g}, where 1 is a component's "
        "largest in the examples: the functions of software GL are rough, and the last components' weights large."
    )
    if options.write:
        tables.replace(options.write)
    return 0


def corrected(body: human.Character, components: int) -> EigenSkin:
    """The corrections of 20 joints all over the body, from 6 examples of each."""
    examples = body.examples([turn for name in human.MANY for turn in human.turns_about(name, body.axes(name)[:1])])
    return build_eigenskin(body.rig, examples, EigenSkinSettings(components=components, max_per_vertex=1000))


def timed(body: human.Character, model: EigenSkin, updates: int) -> dict:
    """What the page measures."""
    rig, tables, random = body.rig, shader_tables(model), np.random.default_rng(0)
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (POSES, len(rig.joint_names), 1))
    for row in rotations:
        for joint in tables.joints:
            axis = body.axes(rig.joint_names[joint])[0]
            row[joint] = np.roll(Rotation.from_rotvec(random.uniform(-1.2, 1.2) * axis).as_quat(), 1)
    strongest = np.argsort(-rig.weights, axis=1)[:, :4]
    weights = np.take_along_axis(rig.weights, strongest, axis=1)
    morphs = np.array([model.displacements(row) for row in np.eye(model.component_count)])
    network, displacements = (_rows(table) for table in (tables.network, tables.displacements))
    arrays = {
        "rest": rig.rest,
        "normals": vertex_normals(rig.rest, body.triangles),
        "triangles": body.triangles,
        "bones": np.take_along_axis(rig.bones, strongest, axis=1),
        "weights": weights / weights.sum(axis=1, keepdims=True),
        "morphs": morphs,
        "runs": tables.runs,
        "network": network,
        "displacements": displacements,
        "turns": np.roll(rotations[:, list(tables.joints)], -1, axis=2),
        "values": model.values(rotations),
    }
    above = np.where(rig.parents[:, None] >= 0, body.heads[rig.parents], 0.0)
    head = {
        "arrays": list(arrays),
        "components": model.component_count,
        "joints": list(tables.joints),
        "bones": [
            {"parent": int(parent), "place": place.tolist()}
            for parent, place in zip(rig.parents, body.heads - above, strict=True)
        ],
        "networkRows": len(network) // WIDTH,
        "displacementRows": len(displacements) // WIDTH,
        "poses": POSES,
        "updates": updates,
        "size": float(np.abs(rig.rest).max()),
    }
    sizes = (16 * len(rig.rest) * model.component_count, 16 * (len(network) + len(displacements)) + 8 * len(rig.rest))
    return answered(head, arrays) | {"components": model.component_count, "bytes": sizes}


def _rows(texels: np.ndarray) -> np.ndarray:
    filled = np.zeros((-(-len(texels) // WIDTH) * WIDTH, 4), np.float32)
    filled[: len(texels)] = texels
    return filled


def answered(head: dict, arrays: dict[str, np.ndarray]) -> dict:
    """What the page posts."""
    done = threading.Event()
    answers: list[dict] = []
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(serving(head, arrays, answers, done))
        log = stack.enter_context(three_player.chromium(f"http://127.0.0.1:{port}/_eigenskin_engine.html"))
        if not done.wait(280):
            raise RuntimeError(f"no answer; the browser says: {log.read_text('utf-8', 'replace')[-2000:]}")
    return answers[0]


@contextlib.contextmanager
def serving(head: dict, arrays: dict[str, np.ndarray], answers: list, done: threading.Event) -> Iterator[int]:
    """The port of a server on this machine alone, with the page, three.js, the shaders and the data."""
    folders = {"three": three_player.THREE, "shaders": ROOT / "docs" / "shaders", "": ROOT / "benchmarks"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first, _, rest = self.path[1:].partition("/")
            if first == "head":
                self._answer(json.dumps(head).encode(), "application/json")
            elif first == "data" and rest in arrays:
                self._answer(np.ascontiguousarray(arrays[rest], "<f4").tobytes(), "application/octet-stream")
            else:
                file = folders[first] / rest if first in folders else folders[""] / first
                if file.suffix in TYPES and file.is_file():
                    self._answer(file.read_bytes(), TYPES[file.suffix])
                else:
                    self.send_error(404)

        def do_POST(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"", "text/plain")
            done.set()

        def _answer(self, body: bytes, kind: str) -> None:
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
