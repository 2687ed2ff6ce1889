# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the scripts of demos/ that make pictures of the documentation, small and coarse."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_pictures(script: str, folder: Path, percent: int = 20) -> str:
    """Run ``script`` with ``folder`` for its pictures; returns what it prints. Raises AssertionError where it fails."""
    command = [sys.executable, f"demos/{script}", "--samples", "1", "--percent", str(percent), "--output", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
