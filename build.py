#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Demo, tests, package, benchmarks and pictures of skinning_tools, from a fresh checkout: python3 build.py --help.

Needs Python 3.11 or 3.13 and nothing else. This file alone must be readable by any older Python, so that a wrong one
gets a plain answer instead of a syntax error; the work is done by the modules in tools/.
"""

import sys

if sys.version_info[:2] not in ((3, 11), (3, 13)):
    sys.exit(
        "build.py needs Python 3.11 or 3.13 (Blender's Python module exists for these two only); this is Python %d.%d."
        % sys.version_info[:2]
    )

from tools.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
