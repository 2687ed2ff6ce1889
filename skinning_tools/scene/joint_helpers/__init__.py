# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and bulge bones: helpers that keep twisted and bent joints in shape."""
