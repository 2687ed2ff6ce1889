# SPDX-License-Identifier: GPL-3.0-or-later
"""A subcommand that works on one object of a file, declared by its object, work and result rows."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isgenerator

import bpy

from ...blender import background
from ..settings import Settings
from . import arguments
from .common import UsageError, find_object, progress_of
from .outcome import Outcome


@dataclass(frozen=True)
class Command:
    """name, help and description: for the command line. work: a function of (context, object) and the settings, or a
    generator function; its result has ``figures``, and may have ``seconds`` and ``notes``. find: returns the object, or
    other input of the work, from (scene, value of --object). check: raises UsageError for conflicting options. more:
    arguments of the work from options that are not settings. saves: whether the work changes the file, which is saved.
    """

    name: str
    help: str
    description: str
    settings: type[Settings]
    work: Callable
    add_object: Callable[[argparse.ArgumentParser], None] = arguments.add_skinned_object
    find: Callable = find_object
    check: Callable[[argparse.Namespace], None] | None = None
    more: Callable[[argparse.Namespace], dict] | None = None
    saves: bool = True

    def add(self, commands: argparse._SubParsersAction) -> None:
        """Declare the subcommand to argparse."""
        command = commands.add_parser(self.name, help=self.help, description=self.description)
        self.add_object(command)
        self.settings.add_options(command)
        (arguments.add_target if self.saves else arguments.add_input)(command)
        command.set_defaults(run=self.run)

    def run(self, options: argparse.Namespace) -> Outcome:
        """Do the work with the parsed ``options``."""
        if self.check is not None:
            self.check(options)
        context = bpy.context
        target = self.find(context.scene, options.object)
        given = self.settings.of_options(options) | (self.more(options) if self.more is not None else {})
        result = self.work(context, target, **given)
        if isgenerator(result):
            result = background.drain(result, progress_of(options))
        return Outcome(result.figures(), getattr(result, "seconds", None), getattr(result, "notes", ()))


def goes_with(option: str, other: str) -> Callable[[argparse.Namespace], None]:
    """A check that ``option`` is used only with ``other``."""

    def check(options: argparse.Namespace) -> None:
        given, needed = (getattr(options, name.lstrip("-").replace("-", "_")) for name in (option, other))
        if given and not needed:
            raise UsageError(f"{option} requires {other}")

    return check
