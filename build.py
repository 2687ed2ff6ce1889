#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Demo, tests, package, benchmarks and pictures of skinning_tools, from a fresh checkout: python3 build.py --help.

Needs only Python 3.11 or 3.13. This file must run in any older Python, to show a plain message instead of a syntax
error; the modules in tools/ do the work.
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
