# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates the reference in docs/command_line.md from the command line's own help."""

import argparse
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command_line.md"


def reference() -> str:
    """All exit codes and subcommands, as Markdown."""
    from skinning_tools import command_line
    from skinning_tools.ui.command_line.running import EXIT_CODES

    commands = _subcommands(command_line.parser())
    options = {name: {_form(action): _meaning(action) for action in _actions(each)} for name, each in commands.items()}
    common = dict(set.intersection(*(set(own.items()) for own in options.values())))
    shared = {form: common[form] for form in options["convert"] if form in common}
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    parts = [
        ["### Exit codes", "", "| code | meaning |", "|---|---|", *codes],
        ["### Options of all commands", "", *_table(shared)],
    ]
    for name, command in commands.items():
        own = {form: meaning for form, meaning in options[name].items() if common.get(form) != meaning}
        parts.append([f"### {name}", "", command.description, "", *_table(own)])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _table(options: dict[str, str]) -> list[str]:
    return ["| option | meaning |", "|---|---|", *(f"| {form} | {meaning} |" for form, meaning in options.items())]


def _form(action: argparse.Action) -> str:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    value = "" if action.nargs == 0 else value
    return f"`{' '.join(filter(None, (*action.option_strings[-1:], value)))}`".replace("|", "\\|")


def _meaning(action: argparse.Action) -> str:
    text = action.help % {**vars(action), "default": action.default}
    return (text + (" **(required)**" if action.required else "")).replace("|", "\\|")


def _actions(command: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse has no public list of a parser's options.
    return [action for action in command._actions if not isinstance(action, argparse._HelpAction)]


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (group,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return group.choices
