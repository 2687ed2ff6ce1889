# SPDX-License-Identifier: GPL-3.0-or-later
"""Without scipy, the extension registers, so that its panels can say what is missing."""

import subprocess
from pathlib import Path

import bpy
import pytest

from tests.blender import another_process

ROOT = Path(__file__).resolve().parents[2]
START = f"""
import os, sys, traceback
import bpy
# As where it is not installed; a module that is None could still be in sys.modules.
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
sys.meta_path.insert(0, Missing())
sys.path.insert(0, {str(ROOT)!r})
try:
    import skinning_tools
    skinning_tools.register()
    print("REGISTERED", flush=True)
except Exception:
    traceback.print_exc()
sys.stderr.flush()
os._exit(0)
"""


@pytest.mark.skipif(bool(bpy.app.binary_path), reason="a Blender program is given a package without wheels instead")
def test_the_extension_registers():
    done = subprocess.run(another_process.command(START), capture_output=True, text=True, timeout=120)
    assert "REGISTERED" in done.stdout, done.stderr
