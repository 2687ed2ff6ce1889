# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the extension as Blender has installed it: `import skinning_tools` gives it instead of the source tree.

A pytest plugin for a pytest inside Blender, `-p tests.installed_package`; the window tests' driver calls `use_it`.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec

NAME = "skinning_tools"
INSTALLED = f"bl_ext.user_default.{NAME}"


class Alias:
    """Finds and loads modules of the name tests use as those of the name Blender uses: the same module, not a copy."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.split(".")[0] == NAME else None

    def create_module(self, spec):
        module = importlib.import_module(INSTALLED + spec.name.removeprefix(NAME))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        # The import has put the alias's there; relative imports go by it.
        module.__spec__ = module.__spec__.loader_state


def use_it() -> None:
    """Use the installed extension from now on; raises ModuleNotFoundError if it is not installed."""
    sys.meta_path.insert(0, Alias())
    importlib.import_module(NAME)


def pytest_configure(config):
    use_it()


def pytest_report_header(config):
    return f"extension: {sys.modules[NAME].__file__}"
