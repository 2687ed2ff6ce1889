# SPDX-License-Identifier: GPL-3.0-or-later
"""Without scipy the extension still registers, and says in one line what is missing."""

import importlib.util
import platform
import sys

from ..core.errors import SkinningError

REMEDY = "Install the Skinning Tools package for this platform and Blender version"


class MissingDependency(SkinningError):
    """A library that the extension includes is missing."""


def missing_dependency() -> str:
    """One line that says what is missing and what to do, or "". Cheap enough for a panel's draw."""
    if "scipy" in sys.modules or importlib.util.find_spec("scipy") is not None:
        return ""
    return (
        f"scipy is missing for Python {sys.version_info.major}.{sys.version_info.minor} on {platform.system()} "
        f"{platform.machine()}. {REMEDY}"
    )


def require_dependencies() -> None:
    """Raises MissingDependency if scipy is missing or cannot be loaded."""
    missing = missing_dependency()
    if missing:
        raise MissingDependency(missing)
    try:
        import scipy.linalg  # noqa: F401
    except ImportError as error:
        raise MissingDependency(f"scipy is installed but cannot be loaded ({error}). {REMEDY}") from error
