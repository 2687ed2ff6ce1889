# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the extension's messages from its code and compares them with docs/troubleshooting.md.

Preconditions have the codes of their table on that page, each before the first sentence of its text.

python -m tools.messages lists messages that the page lacks, and lines of the page without a message.
python -m tools.messages WORDS lists the places in the code of the message with these words, or of a whole message.
"""

import ast
import itertools
import re
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skinning_tools"
PAGE = ROOT / "docs" / "troubleshooting.md"

# A name or a number.
BLANK = "…"
NAME = f'(?:{BLANK}|(?:object )?"{BLANK}")'
# With fewer words, a pattern matches too much.
ENOUGH_WORDS = 4
# These exceptions and their subclasses carry texts for the user.
FAMILIES = {"SkinningError", "UsageError"}
# By a function's name: the index of its argument that is a text for the user, outside of exceptions.
TELLING = {"poll_message_set": 0, "_tell": 1, "report": 1}
# Functions that pass on messages of others.
FORWARDING = {"error"}


class Module:
    """A source file of the package."""

    def __init__(self, path: Path):
        self.name = path.relative_to(PACKAGE).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self._assigned: dict[ast.AST, dict[str, list[ast.expr]]] = {}

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, tuple[ast.FunctionDef, ...]]]:
        """All nodes of the tree, each with its enclosing functions, the innermost first."""
        found = []

        def visit(node, around):
            found.append((node, around))
            inner = (node, *around) if isinstance(node, ast.FunctionDef) else around
            for child in ast.iter_child_nodes(node):
                visit(child, inner)

        visit(self.tree, ())
        return found

    def assigned(self, scope) -> dict[str, list[ast.expr]]:
        """By name, the expressions assigned to it anywhere in a function or the module."""
        if scope not in self._assigned:
            found = self._assigned[scope] = {}
            for node in ast.walk(scope):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    pairs = [(target, node.value)]
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = list(zip(target.elts, node.value.elts, strict=True))
                    for each, value in pairs:
                        if isinstance(each, ast.Name):
                            found.setdefault(each.id, []).append(value)
        return self._assigned[scope]

    @cached_property
    def texts(self) -> dict[str, str]:
        """The messages of a table TEXTS by their codes, if the module has one."""
        tables = self.assigned(self.tree).get("TEXTS", [])
        return {code: text for table in tables for code, text in ast.literal_eval(table).items()}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {node.name: node for node, _ in self.nodes if isinstance(node, ast.FunctionDef)}


def messages() -> dict[str, str]:
    """The first sentence of every message outside of tables, with its location in the code.

    Raises ValueError if a message is composed in a way that cannot be read: write it as one text.
    """
    modules = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    errors = _error_classes(modules)
    found: dict[str, str] = {}
    for module in modules:
        for node, around in module.nodes:
            for text in _messages_of(node, around, module, errors):
                if text:
                    found.setdefault(first_sentence(text), f"{module.name}:{node.lineno}")
    return found


def preconditions() -> dict[str, str]:
    """The first sentence of every text of a table, by its code."""
    texts = [text for path in sorted(PACKAGE.rglob("*.py")) for text in Module(path).texts.items()]
    return {code: first_sentence(re.sub(r"\{[^}]*\}", BLANK, text)) for code, text in texts}


def first_sentence(text: str) -> str:
    """What is wrong, without what to do about it."""
    sentence = re.split(rf"(?<=[.!?])\s+(?=[A-Z{BLANK}])", text.strip())[0]
    return re.sub(f"{BLANK}+", BLANK, sentence.rstrip("."))


def lines(page: str) -> list[str]:
    """The page's lines for messages: all items of its lists without a code."""
    return re.findall(r"^- (?!`[A-Z_]+`: )(.+)$", page, re.MULTILINE)


def coded_lines(page: str) -> dict[str, str]:
    """The page's lines of preconditions, by their codes."""
    return dict(re.findall(r"^- `([A-Z_]+)`: (.+)$", page, re.MULTILINE))


def pattern(line: str) -> re.Pattern:
    """The pattern of a line: its blanks match any words, but in short lines only names and numbers."""
    blank = ".*" if len(re.findall(r"\w+", line)) >= ENOUGH_WORDS else NAME
    return re.compile(blank.join(map(re.escape, line.split(BLANK))))


def differences(found: dict[str, str], coded: dict[str, str], page: str) -> tuple[list[str], list[str]]:
    """Messages without a line on the page, with their locations, and lines without a message.

    coded: the preconditions, whose lines must have their very words.
    """
    patterns = {line: pattern(line) for line in lines(page)}
    missing = [
        f"{text} ({place})"
        for text, place in found.items()
        if not any(each.fullmatch(text) for each in patterns.values())
    ]
    outdated = [line for line, each in patterns.items() if not any(map(each.fullmatch, found))]
    wanted, written = ({f"`{code}`: {text}" for code, text in each.items()} for each in (coded, coded_lines(page)))
    return missing + sorted(wanted - written), outdated + sorted(written - wanted)


def _error_classes(modules: list[Module]) -> set[str]:
    classes = [node for module in modules for node, _ in module.nodes if isinstance(node, ast.ClassDef)]
    family: set[str] = set()
    more = set(FAMILIES)
    while more - family:
        family |= more
        more = {each.name for each in classes if {getattr(base, "id", "") for base in each.bases} & family}
    return family


def _messages_of(node, around, module, errors) -> list[str]:
    """The texts for the user in a node; usually none."""
    reader = Reader(module, around)
    if isinstance(node, ast.Return) and around[0].name.startswith("reason") and _is_text(node.value):
        return reader.of(node.value)
    if not isinstance(node, ast.Call):
        return []
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in errors and node.args and around and around[0].name not in FORWARDING and not _of_table(node.args[0]):
        try:
            return reader.of(node.args[0])
        except LookupError as error:
            raise ValueError(f"{module.name}:{node.lineno}: no message can be read from {error}") from None
    told = list(map(_untranslated, node.args[TELLING.get(name, len(node.args)) :][:1]))
    if not told or not _is_text(told[0]) or (name == "report" and "WARNING" not in ast.unparse(node.args[0])):
        return []
    return reader.of(told[0])


def _of_table(node) -> bool:
    """Whether the node is a text of a table, which is read as a whole."""
    return ast.unparse(node).startswith("TEXTS[")


def _untranslated(node):
    """The text that is translated where it is told."""
    return node.args[0] if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "translated" else node


def _is_text(node) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and bool(node.value))


class Reader:
    """Reads the possible texts of an expression of a module, with blanks in them.

    around: its enclosing functions, the innermost first. ``of`` raises LookupError if there is no readable text.
    """

    def __init__(self, module: Module, around: tuple[ast.FunctionDef, ...]):
        self._module = module
        self._around = around
        # Names that are being looked up: a name that depends on itself is not readable.
        self._pending: list[str] = []

    def of(self, node) -> list[str]:
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return self._joined([[part.value] if _is_text(part) else self._inside(part.value) for part in parts])
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([self.of(left), self.of(right)])
            case ast.IfExp(body=first, orelse=second):
                return self.of(first) + self.of(second)
            case ast.Call(func=ast.Attribute(attr="format", value=template)):
                return [re.sub(r"\{[^}]*\}", BLANK, text) for text in self.of(template)]
            case ast.Call(func=ast.Name(id=name)) if name in self._module.functions:
                function = self._module.functions[name]
                reader = Reader(self._module, (function,))
                returned = (each.value for each in ast.walk(function) if isinstance(each, ast.Return))
                return [text for value in returned if value is not None for text in reader.of(value)]
            case ast.Name(id=name) if name not in self._pending:
                self._pending.append(name)
                try:
                    return self._assigned(name)
                finally:
                    self._pending.pop()
        raise LookupError(ast.unparse(node))

    def _joined(self, choices: list[list[str]]) -> list[str]:
        return ["".join(choice) for choice in itertools.product(*choices)]

    def _inside(self, node) -> list[str]:
        """The words of a name or a choice inside a message if they are readable; else a blank."""
        if isinstance(node, ast.Name | ast.IfExp):
            with suppress(LookupError):
                return self.of(node)
        return [BLANK]

    def _assigned(self, name: str) -> list[str]:
        for scope in (*self._around, self._module.tree):
            values = self._module.assigned(scope).get(name)
            if values:
                return [text for value in values for text in self.of(value)]
        raise LookupError(name)


def places(words: str) -> list[str]:
    """A line for each message that ``words`` is, or whose text has all of these words: its place in the code. For
    preconditions, the places that raise them."""

    def fits(text: str) -> bool:
        whole = ".*".join(map(re.escape, text.split(BLANK)))
        return all(word in text.lower() for word in words.lower().split()) or bool(re.search(whole, words))

    found = [f"{place}: {text}" for text, place in messages().items() if fits(text)]
    coded = {code: text for code, text in preconditions().items() if fits(text)}
    for module in map(Module, sorted(PACKAGE.rglob("*.py")) if coded else ()):
        for node, around in module.nodes:
            if around and isinstance(node, ast.Constant) and node.value in coded:
                found.append(f"{module.name}:{node.lineno}: {node.value}, {coded[node.value]}")
    return found


def main() -> int:
    if len(sys.argv) > 1:
        print(*places(" ".join(sys.argv[1:])), sep="\n")
        return 0
    missing, outdated = differences(messages(), preconditions(), PAGE.read_text(encoding="utf-8"))
    for head, found in (("Messages without a line", missing), ("Lines without a message", outdated)):
        if found:
            print(f"{head}:", *found, sep="\n  ")
    return int(bool(missing or outdated))


if __name__ == "__main__":
    sys.exit(main())
