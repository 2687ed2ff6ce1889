# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of docs/how_it_works.md, after those of the papers: the solvers on scenes made in code.

Run by `python3 build.py docs`. Nothing but the repository is needed; where the paper's sequences are beside the
checkout, the figure of the solver's convergence has them, too.
"""

import argparse
import os
import sys
from pathlib import Path

# Blender 4.2 keeps waiting threads spinning, which on a busy machine takes the processor from those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import bpy  # noqa: F401 (before what comes with it)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import how_binding
import how_decomposition
import how_eigenskin
import how_rotation_centers
from program import leave

METHODS = {
    "decomposition": how_decomposition,
    "rotation_centers": how_rotation_centers,
    "eigenskin": how_eigenskin,
    "binding": how_binding,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "demo", help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="coarse meshes and few sweeps, to see the pictures sooner")
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS), help="of these methods")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        METHODS[name].draw_all(options.output, options.quick)
    return 0


if __name__ == "__main__":
    leave(main())
