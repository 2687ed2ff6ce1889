# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on a conversion: settings without effect, and what a skeleton's user should know."""

from typing import TYPE_CHECKING

import numpy as np

from ...blender.wording import counted, listed
from ...core.geometry import diagonal
from ...core.run_time import Work
from .rig_writer import Rig
from .settings import ConvertSettings

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition

# Rotation Only is worth a note from this multiple of the error of free bones on, if the error is seen: from about a
# pixel where the body is 1000 pixels large, typically, and many where it is largest.
_COSTLY, _VISIBLE = 2.0, 1.5
# Names in a note: of bones that the user is to look at.
_NAMED = 8
# Of the rest pose's diagonal: a joint that slips by more is none. On clean rigs, joints slip by half of it at most, on
# captured clothes by twice as much.
_LOOSE = 0.02
# Percent of the size, which is the diameter of the ball, for an E_RMS of 1.
_PERCENT = 0.1 * np.sqrt(3.0) / 2.0


def notes_without_effect(settings: ConvertSettings) -> list[str]:
    """Notes on emphasis and surface where other settings leave them out."""
    notes = []
    if settings.emphasis or settings.surface:
        if settings.rotation_only:
            notes.append("Emphasis and Surface have no effect with Rotation Only")
        if settings.method == "KAVAN2010":
            notes.append("Emphasis and Surface have no effect with the method of Kavan et al. 2010")
    return notes


def notes_on_solve(
    decomposition: "Decomposition",
    rig: Rig,
    settings: ConvertSettings,
    free_e_rms: float | None,
    strays: np.ndarray,
) -> list[str]:
    """Notes on what the solve came to. free_e_rms: E_RMS of bones without joints, if known; strays (n,): the bones that
    begin trees of their own although their surface goes on in a larger one."""
    notes, still, stray, error = [], rig.bones.still, _named(rig, strays), decomposition.e_rms
    lopsided, unmatched = _sided(rig)
    loose = [] if settings.rotation_only else _loose(decomposition, rig)
    if settings.rotation_only and free_e_rms is not None and error > max(_COSTLY * free_e_rms, _VISIBLE):
        notes.append(
            f"Rotation Only costs much here: vertices typically miss by {error * _PERCENT:.2g} % of the size, "
            f"{free_e_rms * _PERCENT:.2g} % without joints (E_RMS {error:.2f} and {free_e_rms:.2f}). Allow a Joint "
            "Slip, or switch Rotation Only off"
        )
    if decomposition.surface_unchanged:
        notes.append("Surface changed nothing: normals came no closer within the error that it allows")
    if still:
        notes.append(
            f"{counted(len(still), 'bone')} hardly turning against the parent, so that the motion does not tell the "
            f"joint: {listed(still, _NAMED)}. Check such joints in Edit Mode, or convert more motion"
        )
    if rig.bones.hierarchy is not None and rig.bones.hierarchy.posed:
        notes.append(
            "Bones have no sides, as the body is posed in the first frame. If it has a symmetric rest pose, insert that"
            " before the animation, and convert from there"
        )
    if mirrored := rig.bones.mirrored:
        notes.append(
            f"{counted(len(mirrored), 'bone')} moving exactly as the parent does, such as of a side that stands still: "
            f"{listed(mirrored, _NAMED)}"
        )
    if loose:
        notes.append(
            f"{counted(len(loose), 'bone')} coming apart from the parent by more than {100 * _LOOSE:.0f} % of the "
            f"size: {listed(loose, _NAMED)}. Check what such bones hang from in Edit Mode, and Solve Again"
        )
    if stray:
        notes.append(
            f"{counted(len(stray), 'bone')} without a parent although the surface goes on there, as no joint holds: "
            f"{listed(stray, _NAMED)}. Parent in Edit Mode and Solve Again, or switch Rotation Only off"
        )
    if lopsided:
        notes.append(
            f"{counted(len(lopsided), 'bone')} of one side carrying the other side or the middle: "
            f"{listed(lopsided, _NAMED)}. Add a bone in the middle in Edit Mode, parent both sides to it, and Solve "
            "Again"
        )
    if unmatched:
        notes.append(
            f"{counted(len(unmatched), 'bone')} in a limb that the other side lacks: {listed(unmatched, _NAMED)}. "
            "Delete such bones or add their mirror images in Edit Mode, and Solve Again"
        )
    return notes


def _sided(rig: Rig) -> tuple[list[str], list[str]]:
    """Of a symmetric body: the bones of one side that something in the middle, or their own mirror image, hangs from,
    and those inside a limb that the other side lacks."""
    hierarchy = rig.bones.hierarchy
    if hierarchy is None:
        return [], []
    return _named(rig, np.flatnonzero(hierarchy.lopsided)), _named(rig, np.flatnonzero(hierarchy.unmatched))


def _loose(decomposition: "Decomposition", rig: Rig) -> list[str]:
    """The bones that no joint explains."""
    if rig.bones.hierarchy is None:
        return []
    slips, size = rig.bones.hierarchy.slips, diagonal(decomposition.rest)
    return _named(rig, np.flatnonzero(slips > _LOOSE * size))


def _named(rig: Rig, bones: np.ndarray) -> list[str]:
    """The bones that the user poses for the rows ``bones`` (n,)."""
    return [rig.bones.controls[bone] for bone in bones]


def shapes_note(work: Work) -> str:
    """The note if more residual shapes are asked for than there are frames, else ""."""
    asked, count = work.settings.residual_shapes, work.frame_count
    if not 0 < count < asked:
        return ""
    return f"{counted(count, 'residual shape')} instead of {asked}: there cannot be more shapes than frames"
