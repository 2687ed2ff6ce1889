# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates the reference in docs/python_reference.md from the docstrings of skinning_tools.core."""

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "python_reference.md"

# By task: modules of skinning_tools.core with their public names; without names, all that a package exports.
TASKS = {
    "Animations and their error": {"animation": ("Animation", "check_animation", "unit_scale", "ErrorMeter")},
    "Conversion to bones": {
        "decomposition": (),
        "decomposition.residual": ("ResidualShapes",),
        "bone_suggestion": ("suggest_bone_count",),
    },
    "Shapes to bones": {"shape_rig": ()},
    "Solve for an existing rig": {
        "decomposition.partial": ("Given",),
        "decomposition.partial_transforms": ("solve_transforms", "Joints"),
        "decomposition.helper_bones": ("add_helper_bones", "HelperBones"),
    },
    "Skinning of points, normals and tangents": {"deform": (), "rotations": ("polar_decomposition",)},
    "Centers of rotation": {
        "rotation_centers": ("bake_rotation_centers", "mirror_pairs", "symmetrized"),
    },
    "EigenSkin": {"eigenskin": (), "quaternions": ("rotation_angles",)},
    "Binding and weights": {
        "binding.types": ("Body", "Skeleton"),
        "binding.bind": ("bind",),
        "binding.rogue": ("rogue_islands", "remove_rogue_weights", "Island", "CleanWeights"),
        "binding.smoothing": ("smooth_weights",),
        "binding.binding_pose": ("bind_posed", "PosedBinding"),
        "binding.compression": ("compress_weights", "CompressedWeights"),
        "binding.partition": ("partition_faces", "Partition", "influence_shares"),
        "binding.fit": ("fit_weights", "WeightFit", "reachable_hull", "bone_predictions"),
        "binding.drag": ("DraggedVertices", "vertices_around"),
        "binding.links": ("link_weights", "link_matrices", "twist_weights"),
        "binding.bulge": ("soft_region", "add_soft_bone"),
    },
    "Transferred weights": {"transfer": ()},
    "Progress and errors": {
        "progress": ("ignore", "checkpoint", "span"),
        "errors": (
            *("SkinningError", "BadScene", "BadAnimation", "BadMesh", "BadWeights", "BadSettings"),
            *("NotEnoughMemory", "Cancelled"),
        ),
    },
}


def reference() -> str:
    """All public functions and classes, by task, as Markdown."""
    parts = []
    for task, modules in TASKS.items():
        parts.append(f"### {task}")
        for name, names in modules.items():
            module = importlib.import_module(f"skinning_tools.core.{name}")
            parts += [_entry(module, each) for each in names or _own(module)]
    return "\n\n".join(parts) + "\n"


def _own(package) -> list[str]:
    """The names that a package defines and exports."""
    things = ((name, getattr(package, name)) for name in package.__all__)
    return [
        name for name, thing in things if getattr(thing, "__module__", package.__name__).startswith(package.__name__)
    ]


def _entry(module, name: str) -> str:
    thing = getattr(module, name)
    heading = f"#### {name}"
    source = f"*from* `{module.__name__}`"
    if not callable(thing):
        return f"{heading}\n\n{source}\n\n`{_default(thing)}`"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        (base,) = thing.__bases__
        return f"{heading}\n\n{source}, a `{base.__name__}`\n\n{_prose(thing, ())}"
    parameters = {each.name: each for each in _parameters(thing)}
    parts = [heading, source, f"```python\n{_call(name, parameters.values())}\n```", _prose(thing, parameters)]
    if _is_dataclass(thing) and _field_texts(thing):
        parts.append("\n".join(_field_texts(thing)))
    members = _members(thing) if inspect.isclass(thing) else []
    return "\n\n".join([*parts, *(["Methods and properties:", "\n".join(members)] if members else [])])


def _parameters(thing) -> list[inspect.Parameter]:
    made = {each.name: each.default_factory for each in dataclasses.fields(thing)} if _is_dataclass(thing) else {}
    given = inspect.signature(thing).parameters.values()
    return [each.replace(default=made[each.name]()) if callable(made.get(each.name)) else each for each in given]


def _call(name: str, parameters, width: int = 100) -> str:
    """The call without types, which the text gives as shapes; one argument per line if it is long."""
    arguments, kind = [], None
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and kind is not each.kind:
            arguments.append("*")
        kind = each.kind
        arguments.append(each.name if each.default is each.empty else f"{each.name}={_default(each.default)}")
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= width:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def _default(value) -> str:
    if callable(value):
        return value.__name__
    return repr(value).replace("'", '"')


def _prose(thing, parameters) -> str:
    """The docstring, with its arguments and results marked, and its exceptions in a separate paragraph."""
    names = [re.escape(name) for name in parameters]
    text = inspect.getdoc(thing) if thing.__doc__ else ""
    if _is_dataclass(thing) and text.startswith(f"{thing.__name__}("):
        # Python's default docstring for a missing one.
        text = ""
    # In Markdown, text that follows a list without a blank line is part of its last item.
    text = re.sub(r"(^(?:- |  ).*\n)(?=[^\s-])", r"\1\n", text, flags=re.MULTILINE)
    if names:
        name = rf"(?<![\w`])(?:{'|'.join(names)})(?![\w`])"
        listed = rf"{name}(?:(?:, | and ){name})*"
        # Names before a shape, "bones and weights (N, K)", or, where a sentence begins, before what they mean.
        before = rf"{listed}(?= \([\w.]{{0,3}}(?:[,)]| [+−]))|(?:^|(?<=[.;] )){listed}(?=: )"
        text = re.sub(before, lambda found: re.sub(name, r"`\g<0>`", found[0]), text, flags=re.MULTILINE)
        # Each sentence that begins with one of them is an item of a list.
        text = re.sub(r"(?:(?<=\n\n)|(?<=[.:)])\s)(?=`)(?!``)", "\n- ", text)
        text = re.sub(r"^\n- ", "- ", re.sub(r"\n\n\n- ", "\n\n- ", text))
    return re.sub(r"(?<=[.)])\s+(?=(?:Raises?|Returns?) [\w(`])", "\n\n", text)


def _field_texts(cls) -> list[str]:
    """The texts below the fields of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    return [
        f"- `{field.target.id}`: {' '.join(text.value.value.split())}"
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    ]


def _is_dataclass(thing) -> bool:
    return inspect.isclass(thing) and dataclasses.is_dataclass(thing)


def _members(cls) -> list[str]:
    """Methods and properties with docstrings."""
    found = []
    for name, member in vars(cls).items():
        if name.startswith("_") or not getattr(member, "__doc__", None) or not _is_member(member):
            continue
        call = name
        if inspect.isfunction(member):
            call = _call(name, list(inspect.signature(member).parameters.values())[1:], width=1000)
        found.append(f"- `{call}`: {' '.join(inspect.getdoc(member).split())}")
    return found


def _is_member(member) -> bool:
    return inspect.isfunction(member) or isinstance(member, property) or type(member).__name__ == "cached_property"
