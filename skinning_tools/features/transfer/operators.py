# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer weights, and select what of them was matched or filled in."""

import bpy

from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import transfer
from .settings import SelectSettings, TransferSettings
from .targets import check_active


class SKINNING_OT_transfer_weights(Checked, SkinningJob, bpy.types.Operator):
    """Give the selected meshes the weights of another mesh beside them, as from a body to its clothes. Vertices close \
to its surface take the weights there; the weights of the others are filled in smoothly"""

    bl_idname = "skinning.transfer_weights"
    bl_label = "Transfer Weights"

    settings = TransferSettings
    require = staticmethod(check_active)
    work = staticmethod(transfer.transfer_chosen)


class SKINNING_OT_select_transferred(Checked, AtOnce, bpy.types.Operator):
    """Select the vertices whose weights were matched or filled in by the last transfer, in Edit Mode"""

    bl_idname = "skinning.select_transferred"
    bl_label = "Select Transferred"

    settings = SelectSettings
    require = staticmethod(transfer.transferred_mesh)
    work = staticmethod(transfer.select_transferred)


registry = [SKINNING_OT_transfer_weights, SKINNING_OT_select_transferred]
