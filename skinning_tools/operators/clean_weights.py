# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools on the weights of a skinned mesh: rogue weights, smoothing, compression."""

registry: list = []
