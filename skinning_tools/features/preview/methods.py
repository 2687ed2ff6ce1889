# SPDX-License-Identifier: GPL-3.0-or-later
"""What users read of core.deform's methods, in operators, panels and the preview."""

METHOD_ITEMS = (
    ("LBS", "Linear Blend", "Blended matrices, as the Armature modifier does"),
    ("DQS", "Dual Quaternion", "Blended dual quaternions, as the Armature modifier does with Preserve Volume"),
    ("CRS", "Centers of Rotation", "Blended rotations about the baked centers"),
)

LABELS = {method: label for method, label, _ in METHOD_ITEMS}
