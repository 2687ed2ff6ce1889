# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception family of the extension.

Raised deep, caught once at the boundary to the user (operator or command line), who sees the message unchanged.
So every message says what is wrong, where (object, frame, vertex), and what to do about it.
"""


class SkinningError(Exception):
    """An error that the user can understand and fix; the message is shown as it is.

    code: names the precondition that does not hold (``blender.preconditions``), "" for other reasons.
    """

    def __init__(self, message: str = "", code: str = ""):
        super().__init__(message)
        self.code = code


class BadScene(SkinningError):
    """The scene, the object or its state does not allow the operation."""


class BadPath(BadScene):
    """A file cannot be written to the place that was named for it."""


class BadAnimation(SkinningError):
    """The vertex animation itself cannot be used (frames, vertex counts, positions)."""


class BadMesh(SkinningError):
    """The mesh itself cannot be used (no vertices, no extent)."""


class BadWeights(SkinningError):
    """Bone indices or weights are unusable."""


class BadSettings(SkinningError):
    """A setting is out of range or does not fit the animation."""


class NotEnoughMemory(SkinningError):
    """The estimate of the memory needed exceeds what the machine has."""


class Cancelled(SkinningError):
    """The user, or the caller's progress function, stopped the work."""
