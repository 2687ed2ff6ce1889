# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights as vertex groups: read, written, cleaned, fitted to poses and shown."""
