# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a data-block that Python holds is still there."""


def is_alive(block) -> bool:
    """False where the user, an undo or another file has removed the data-block."""
    try:
        return bool(block.name)
    except ReferenceError:
        return False
