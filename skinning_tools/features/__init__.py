# SPDX-License-Identifier: GPL-3.0-or-later
"""The features: one folder and one line each."""

from importlib import import_module

# In the order of the sidebar.
NAMES = (
    "convert",
    "shape_keys",
    "shots",
    "partial",
    "export",
    "bind",
    "weights",
    "pose_test",
    "transfer",
    "deformers",
    "fit",
    "helpers",
    "centers",
    "preview",
    "eigenskin",
)

FEATURES = tuple(import_module(f".{name}", __name__).FEATURE for name in NAMES)
