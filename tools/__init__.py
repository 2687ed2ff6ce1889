# SPDX-License-Identifier: GPL-3.0-or-later
"""What build.py does; standard library only, so that nothing need be installed before it runs."""
