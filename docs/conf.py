# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx makes web pages of this folder; python3 build.py html starts it."""

import re
import tomllib
from pathlib import Path

MANIFEST = tomllib.loads((Path(__file__).parent.parent / "blender_manifest.toml").read_text(encoding="utf-8"))

project = MANIFEST["name"]
version = release = MANIFEST["version"]
author = MANIFEST["maintainer"]
extensions = ["myst_parser"]
# Anchors as code hosts make them, so that links work in both places.
myst_heading_anchors = 4
# Messages and code are searched for as they are written.
smartquotes = False
html_theme = "furo"
html_static_path = ["web"]
html_css_files = ["pages.css"]
html_title = f"{project} {version}"
html_copy_source = False
html_show_copyright = False


def setup(app) -> None:
    app.connect("source-read", add_contents)
    app.connect("source-read", add_anchors)


def add_contents(app, page: str, source: list[str]) -> None:
    """Give the first page's lists of links to the bar of contents, too; its Markdown stays that of any code host."""
    if page != "index":
        return
    for part in source[0].split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        links = re.findall(r"^ *- \[([^]]*)\]\((\w+)\.md\)", text, re.MULTILINE)
        pages = "\n".join(f"{name} <{file}>" for name, file in links)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def add_anchors(app, page: str, source: list[str]) -> None:
    """Give each code of a message an anchor of its name, which the panel opens."""
    if page == "troubleshooting":
        source[0] = re.sub(r"^- `([A-Z_]+)`:", r'- <a id="\1"></a>`\1`:', source[0], flags=re.MULTILINE)
