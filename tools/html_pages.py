# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of docs/ as web pages, by Sphinx."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import environment
from .environment import ROOT, Failure

SITE = ROOT / "build" / "html"
# What a browser fetches by itself, from another place than the page's own.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b[^>]*\brel=["']?(?:stylesheet|preload|icon)[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""",
    re.IGNORECASE,
)


def build(python: Path) -> Path:
    """Build all pages anew; returns the first one. Raises Failure where a link leads nowhere, or none to a page."""
    tools = environment.ensure_site_tools(python)
    shutil.rmtree(SITE, ignore_errors=True)
    # Warnings of pages that were read before are not repeated: all are read anew.
    command = [str(python), "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--fresh-env"]
    paths = "--doctree-dir", str(SITE.with_name("doctrees")), str(ROOT / "docs"), str(SITE)
    result = subprocess.run([*command, "--quiet", *paths], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tools)})
    if result.returncode:
        raise Failure("The pages were not built: see above.")
    for path in SITE.rglob("*"):
        found = path.suffix in (".html", ".css") and FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise Failure(f"{path.relative_to(ROOT)} would be loaded with something from the internet: {found[0]}")
    return SITE / "index.html"
