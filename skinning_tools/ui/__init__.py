# SPDX-License-Identifier: GPL-3.0-or-later
"""How a feature meets its user: in the sidebar and by scripts, on the command line, in reports."""
