# SPDX-License-Identifier: GPL-3.0-or-later
"""Regenerates the references in docs/ from the code. Run python -m tools.references in a Python with bpy."""

import os
import sys

from . import command_line_docs, operator_docs, python_docs

MODULES = (command_line_docs, operator_docs, python_docs)
END = "<!-- end of the reference -->\n"


def main() -> None:
    for module in MODULES:
        module.PAGE.write_text(page(module), encoding="utf-8", newline="\n")
        print(module.PAGE.relative_to(module.PAGE.parents[1]), flush=True)


def page(module) -> str:
    """The module's page with a new reference; the rest of the page stays."""
    begin = f"<!-- reference, made by tools/{module.__name__.rpartition('.')[2]}.py -->\n"
    head, found, rest = module.PAGE.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise ValueError(f"{module.PAGE.name} has no line {begin.strip()}")
    return f"{head}{begin}\n{module.reference()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    main()
    # Blender's modules before 5.2 may crash while Python shuts down.
    sys.stdout.flush()
    os._exit(0)
