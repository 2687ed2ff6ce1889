# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of examples of an EigenSkin: adding and removing them, and showing their poses."""

from ..scene import eigenskin_settings

registry = [*eigenskin_settings.registry]


def register() -> None:
    eigenskin_settings.register()


def unregister() -> None:
    eigenskin_settings.unregister()
