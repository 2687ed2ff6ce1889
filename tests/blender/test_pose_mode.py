# SPDX-License-Identifier: GPL-3.0-or-later
"""Every tool in Pose Mode of an armature that deforms one mesh or several: a click makes none of them active there."""

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender.center_records import native_modifier
from skinning_tools.blender.character import chosen_mesh, target_mesh
from skinning_tools.blender.job_checks import reason_not_to_work
from skinning_tools.blender.records import has_eigenskin
from skinning_tools.blender.vertex_groups import read_weights
from skinning_tools.features.centers.baking import bake_record
from skinning_tools.features.partial.parts import reason_not_to_solve
from skinning_tools.features.preview import session
