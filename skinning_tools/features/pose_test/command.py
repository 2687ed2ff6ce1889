# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommand of the pose test."""

from ...ui.command_line.command import Command
from . import pose_test
from .settings import PoseTestSettings

COMMANDS = (
    Command(
        "pose-test",
        "find where a skinned mesh tears when its bones turn",
        "Turn each bone of a skinned mesh about each of its axes, and count the edges that tear and the faces that run "
        "into each other, by bone. Nothing is saved.",
        settings=PoseTestSettings,
        work=pose_test.run_pose_test,
        saves=False,
    ),
)
