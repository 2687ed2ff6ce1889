# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of build.py; standard library only, so that they run before anything is installed."""
