# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects the texts that users see, and compares them with the catalogs in skinning_tools/languages.

python -m tools.translations: add new texts, without a translation, to each catalog, and remove texts that are gone.
Run it in an environment of build.py setup; it registers the extension.
"""

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from skinning_tools.core.catalog import Entry, fields, read, translations, write

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skinning_tools"
LANGUAGES = PACKAGE / "languages"

HEAD = """Translation of Skinning Tools, in the format of gettext. docs/translating.md explains it.
SPDX-License-Identifier: GPL-3.0-or-later"""

# The command line is English, and so are pictures for the documentation.
_LEFT_OUT = {"command.py", "command_line.py", "command_line", "shots", "presets", "curve_picture.py", "catalog.py"}
# For developers: texts of these exceptions, and of what is logged, reach nobody else.
_INTERNAL = {"ValueError", "TypeError", "RuntimeError", "AttributeError", "KeyError", "AssertionError", "LookupError"}
_LOGGING = {"exception", "warning", "debug", "info", "getLogger", "compile", "Thread", "cast", "counted"}
# Keywords whose values are not shown in Blender's interface, and functions whose arguments are code.
_UNSEEN = {"help", "metavar", "flag", "dest", "place", "form", "group", "thread_name_prefix"}
# Single words that messages insert, many of them kinds of data-blocks.
_INSERTED = (
    "mesh", "action", "collection", "image", "scene", "text", "library", "node tree", "geometry node tree", "world",
    "material", "curve", "lattice", "it", "them", "has", "have",
)  # fmt: skip
# Functions whose first argument is shown although it may be one word, and keywords likewise.
_SHOWN = {"Figure", "translated", "each"}
_SHOWN_KEYWORDS = {"text", "line", "panel", "title"}
_WORDS = re.compile(r"[A-Za-z]{2,}[,;:.]? |[ ][A-Za-z]{2,}")
_WORD = re.compile("[A-Za-z]{2}")
_NAME_IN_CODE = re.compile("[a-z]+_[a-z]+")
_CODE = re.compile(r"\||atan2|\bbpy\.|_[a-z]+ =|^[a-z0-9_. ]*=|^[0-9a-f]{6} |[\\]|;\n|\n")


def texts() -> list[str]:
    """All texts, as templates with the fields' names in braces."""
    found = dict.fromkeys(_of_classes())
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {*path.relative_to(PACKAGE).parts} & _LEFT_OUT:
            found |= dict.fromkeys(_Reader(ast.parse(path.read_text(encoding="utf-8"))).texts())
    found |= dict.fromkeys(_INSERTED)
    worded = (text for text in found if _WORD.search(re.sub(r"\{[^}]*\}", "", text)))
    return [text for text in worded if not _NAME_IN_CODE.fullmatch(text)]


def _of_classes() -> Iterator[str]:
    """Labels and tooltips of operators, panels, menus and settings."""
    import bpy

    import skinning_tools

    for module in skinning_tools._modules():
        for cls in getattr(module, "registry", ()):
            if issubclass(cls, bpy.types.Operator):
                rna = getattr(bpy.ops.skinning, cls.bl_idname.partition(".")[2]).get_rna_type()
                yield from (cls.bl_label, inspect.cleandoc(rna.description))
            elif issubclass(cls, bpy.types.PropertyGroup):
                rna = cls.bl_rna
            else:
                # Blender puts the chosen preset's name into the label of a menu of presets.
                yield "" if hasattr(cls, "presets") else getattr(cls, "bl_label", "")
                yield inspect.getdoc(cls) if issubclass(cls, bpy.types.Menu) else ""
                continue
            for prop in (prop for prop in rna.properties if prop.is_runtime and prop.name != prop.identifier):
                yield from (prop.name, prop.description)
                if prop.type == "ENUM":
                    for item in prop.enum_items_static:
                        yield from (item.name, item.description)


class _Reader:
    """The texts in the code of a module."""

    def __init__(self, tree: ast.Module):
        self._tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def texts(self) -> Iterator[str]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted":
                yield from _counted(node)
            parent = self._parents.get(node)
            if not _is_text(node) or isinstance(parent, ast.Expr) or self._inside_text(node) or self._unseen(node):
                continue
            alone = self._shown_alone(node)
            for text in map(str.strip, templates(node)):
                if alone or (_WORDS.search(re.sub(r"\{[^}]*\}", "{}", text)) and not _CODE.search(text)):
                    yield text

    def _inside_text(self, node: ast.AST) -> bool:
        """Whether the node is a part of a text that ``templates`` expands: a word, or a choice of words."""
        parent = self._parents.get(node)
        if isinstance(parent, ast.IfExp):
            return _is_choice(parent) and isinstance(self._parents.get(parent), ast.FormattedValue)
        return isinstance(parent, ast.JoinedStr)

    def _shown_alone(self, node: ast.AST) -> bool:
        parent = self._parents.get(node)
        if isinstance(parent, ast.IfExp):
            others = (parent.body, parent.orelse)
            return any(_is_text(each) and _WORDS.search(templates(each)[0]) for each in others)
        if isinstance(parent, ast.keyword):
            return parent.arg in _SHOWN_KEYWORDS
        if isinstance(parent, ast.Tuple) and (
            isinstance(self._parents.get(parent), ast.Yield) or self._in_table_of_buttons(parent)
        ):
            return parent.elts[-1] is node
        return isinstance(parent, ast.Call) and _name(parent) in _SHOWN and parent.args[:1] == [node]

    def _in_table_of_buttons(self, row: ast.Tuple) -> bool:
        table = self._parents.get(self._parents[row])
        return isinstance(table, ast.Assign) and ast.unparse(table.targets[0]) == "BUTTONS"

    def _unseen(self, node: ast.AST) -> bool:
        while not isinstance(node, ast.stmt | ast.Module):
            parent = self._parents[node]
            if isinstance(parent, ast.keyword) and parent.arg in _UNSEEN:
                return True
            if isinstance(parent, ast.Call) and _name(parent) in _INTERNAL | _LOGGING:
                return True
            if isinstance(parent, ast.AnnAssign | ast.arg) and parent.annotation is node:
                return True
            if isinstance(parent, ast.FunctionDef) and parent.returns is node:
                return True
            if isinstance(parent, ast.Compare | ast.Assert):
                return True
            node = parent
        return False


def templates(node: ast.expr) -> list[str]:
    """The text of a node with its fields' names in braces. Words that depend on a condition, such as a plural's s,
    give a template for each case; the same condition has the same case throughout."""
    if isinstance(node, ast.Constant):
        return [node.value]
    holes = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    tests = list(dict.fromkeys(ast.unparse(hole.test) for hole in holes if _is_choice(hole)))
    return [
        _template(node, dict(zip(tests, case, strict=True))) for case in itertools.product((1, 0), repeat=len(tests))
    ]


def _template(node: ast.JoinedStr, cases: dict[str, int]) -> str:
    parts, used, later = [], {}, itertools.count(1)
    for part in node.values:
        if isinstance(part, ast.Constant):
            # Fields that are filled in later.
            parts.append(re.sub(r"\{(\w*)[^}]*\}", lambda _: f"{{later{next(later)}}}", part.value))
        elif _is_choice(part.value):
            parts.append((part.value.body if cases[ast.unparse(part.value.test)] else part.value.orelse).value)
        else:
            shown = ast.unparse(part.value)
            if shown not in used:
                name = _field_name(part.value)
                same = sum(each.rstrip("0123456789") == name for each in used.values())
                used[shown] = f"{name}{same + 1}" if same else name
            parts.append(f"{{{used[shown]}}}")
    return "".join(parts)


def _field_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name.strip("_")
        case ast.Attribute(value=ast.Name(id=owner), attr="name"):
            return owner.strip("_") if owner != "self" else "name"
        case ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=noun), *_]):
            return noun.replace(" ", "_").replace("-", "_")
        case ast.Call(args=[first, *_]) if not isinstance(first, ast.Constant):
            return _field_name(first)
        case ast.Call(func=function):
            return _field_name(function)
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return _field_name(value)
        case ast.BinOp(left=left):
            return _field_name(left)
        case _:
            return "value"


def _counted(node: ast.Call) -> Iterator[str]:
    noun, *several = node.args[1:]
    for each in (noun.body, noun.orelse) if isinstance(noun, ast.IfExp) else (noun,):
        if isinstance(each, ast.Constant):
            yield f"{{number}} {each.value}"
            yield f"{{number}} {ast.literal_eval(several[0]) if several else each.value + 's'}"


def _is_choice(node: ast.expr) -> bool:
    return isinstance(node, ast.IfExp) and isinstance(node.body, ast.Constant) and isinstance(node.orelse, ast.Constant)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def missing(catalog: dict[str, str], wanted: list[str]) -> list[str]:
    """Texts without a translation, and those whose translation has other fields."""
    return [text for text in wanted if text not in catalog or set(fields(text)) != set(fields(catalog[text]))]


def updated(known: list[Entry], wanted: list[str]) -> list[Entry]:
    """The entries of the wanted texts, those that are new without a translation; comments and contexts stay."""
    by_text: dict[str, dict[str, Entry]] = {}
    for entry in known:
        # Where the file has a text twice, as after a merge, the first one counts.
        by_text.setdefault(entry.text, {}).setdefault(entry.context, entry)
    return [entry for text in wanted for entry in by_text.get(text, {"": Entry(text)}).values()]


def main() -> int:
    import skinning_tools

    skinning_tools.register()
    wanted = texts()
    for path in sorted(LANGUAGES.glob("*.po")):
        known = read(path)
        write(path, updated(known, wanted), HEAD)
        lacking = missing(translations(known), wanted)
        print(f"{path.name}: {len(wanted)} texts, {len(lacking)} without a translation", *lacking, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
