# SPDX-License-Identifier: GPL-3.0-or-later
"""A subcommand that works on one object of a file and saves the file, declared by what it works on, does and tells."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isgenerator

import bpy

from ...blender import background
from ..settings import Settings
from . import arguments
from .common import UsageError, find_object, progress_of
from .outcome import Outcome, Row


@dataclass(frozen=True)
class Command:
    """name, help and description: as the command line shows them. work: a function of (context, object) and the
    settings, or a generator function. rows: the lines for its result, which may have ``seconds`` and ``notes``. find:
    the object, or what else the work takes, by (scene, value of --object). check: raises UsageError for options that do
    not go together. more: arguments of the work from options that are no settings.
    """

    name: str
    help: str
    description: str
    settings: type[Settings]
    work: Callable
    rows: Callable[[object], list[Row]]
    add_object: Callable[[argparse.ArgumentParser], None] = arguments.add_skinned_object
    find: Callable = find_object
    check: Callable[[argparse.Namespace], None] | None = None
    more: Callable[[argparse.Namespace], dict] | None = None

    def add(self, commands) -> None:
        """Declare it to argparse."""
        command = commands.add_parser(self.name, help=self.help, description=self.description)
        self.add_object(command)
        self.settings.add_options(command)
        arguments.add_target(command)
        command.set_defaults(run=self.run)

    def run(self, options: argparse.Namespace) -> Outcome:
        """Do the work; everything it needs is in ``options``."""
        if self.check is not None:
            self.check(options)
        context = bpy.context
        object = self.find(context.scene, options.object)
        given = self.settings.of_options(options) | (self.more(options) if self.more is not None else {})
        result = self.work(context, object, **given)
        if isgenerator(result):
            result = background.drain(result, progress_of(options))
        return Outcome(self.rows(result), getattr(result, "seconds", None), getattr(result, "notes", ()))


def goes_with(option: str, other: str) -> Callable[[argparse.Namespace], None]:
    """A check that ``option`` is given only together with ``other``."""

    def check(options: argparse.Namespace) -> None:
        given, needed = (getattr(options, name.lstrip("-").replace("-", "_")) for name in (option, other))
        if given and not needed:
            raise UsageError(f"{option} goes with {other}")

    return check
