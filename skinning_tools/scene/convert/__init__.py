# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: settings, the pipeline, what it writes, and its results."""
