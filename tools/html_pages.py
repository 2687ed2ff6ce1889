# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the pages of docs/ as web pages with Sphinx."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import environment
from .environment import ROOT, Failure

SITE = ROOT / "build" / "html"
# Files that a browser loads automatically from another site.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b[^>]*\brel=["']?(?:stylesheet|preload|icon)[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""",
    re.IGNORECASE,
)


def build(python: Path) -> Path:
    """Rebuild all pages; returns the first one. Raises Failure for a broken link, or a page without links to it."""
    tools = environment.ensure_site_tools(python)
    shutil.rmtree(SITE, ignore_errors=True)
    # Sphinx does not repeat warnings for unchanged pages: read all pages again.
    command = [str(python), "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--fresh-env"]
    paths = "--doctree-dir", str(SITE.with_name("doctrees")), str(ROOT / "docs"), str(SITE)
    result = subprocess.run([*command, "--quiet", *paths], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tools)})
    if result.returncode:
        raise Failure("The pages were not built: see above.")
    for path in SITE.rglob("*"):
        found = path.suffix in (".html", ".css") and FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise Failure(f"{path.relative_to(ROOT)} would load something from the internet: {found[0]}")
    return SITE / "index.html"
