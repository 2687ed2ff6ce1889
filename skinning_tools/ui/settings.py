# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a feature, each declared once for the panel, the operator and the command line.

    class SmoothSettings(Settings, stored="skinning_smooth"):
        strength = number("Strength", 0.5, least=0.0, soft_most=1.0, tip="How far ...", flag="--strength")

A panel shows the values stored in the scene or with the armature. An operator invoked from the interface uses these
for arguments that its caller left out; from Python and on the command line, only the arguments and the defaults count.
"""

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import bpy

from ..blender.character import armature_at
from ..blender.job_checks import active_object
from ..blender.preconditions import unmet
from .command_line import arguments

# Prevents entering values outside the range: for panels.
HARD = "HARD"
# Lets them pass to the check that refuses them with a message: a script's zero must not silently become one.
SOFT = "SOFT"

RANGE_NAMES = "frame_start", "frame_end"

# The keywords of a setting that are not keywords of Blender's property.
_OWN = "flag", "dest", "metavar", "help", "most", "required", "optional", "kept"


@dataclass(frozen=True)
class Setting:
    """One setting. kind: of Blender's property, such as "Float"; least and most: what is allowed; flag: its option on
    the command line, "" for none, with its metavar and, if that differs from its tooltip, its help; dest: the option's
    name in the parsed options.

    required: the command line must have the option; optional: the work gets the value only if it was given, and
    otherwise decides itself; kept: panels show and store it.
    """

    kind: str
    label: str
    tip: str
    default: Any
    least: float | None = None
    most: float | None = None
    flag: str = ""
    dest: str = ""
    metavar: str = ""
    help: str = ""
    required: bool = False
    optional: bool = False
    kept: bool = True
    more: dict = field(default_factory=dict)

    @property
    def of_numbers(self) -> bool:
        """Whether it is a choice of numbers, whose identifiers in Blender are texts."""
        return self.kind == "Enum" and self.default.isdecimal()

    @property
    def is_angle(self) -> bool:
        """Whether it is in radians, and in degrees on the command line."""
        return self.more.get("subtype") == "ANGLE"

    @property
    def default_value(self) -> Any:
        """The value of ``of_property`` if nothing is set."""
        return int(self.default) if self.of_numbers else self.default

    def of_property(self, owner: bpy.types.bpy_struct, name: str) -> Any:
        """Its value in an operator or a property group."""
        value = getattr(owner, name)
        return int(value) if self.of_numbers else self.checked(value)

    def checked(self, value: Any) -> Any:
        """The value. Raises BadSettings if it is a number outside the range."""
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        if self.kind not in _TYPES or value is None or isinstance(value, str):
            return value
        if not math.isfinite(value):
            allowed = "a finite number"
        elif least <= value <= most:
            return value
        elif math.isinf(most):
            allowed = f"at least {self._text(least)}"
        else:
            allowed = f"from {self._text(least)} to {self._text(most)}"
        raise unmet("OUT_OF_RANGE", setting=self.label, allowed=allowed, value=self._text(value))

    def _text(self, value: float) -> str:
        return f"{math.degrees(value):g}°" if self.is_angle else f"{value:g}" if self.kind == "Float" else str(value)

    def as_property(self, limit: str, remembered: bool = False, **more: Any) -> Any:
        """The property for Blender; ``more``: further keywords."""
        keywords = {"name": self.label, "description": self.tip, "default": self.default, **self.more, **more}
        for end, value in (("min", self.least), ("max", self.most)):
            if value is not None and limit == HARD:
                keywords[end] = value
            elif value is not None:
                keywords.setdefault(f"soft_{end}", value)
        keywords["options"] = (set() if remembered else {"SKIP_SAVE"}) | self.more.get("options", set())
        return getattr(bpy.props, f"{self.kind}Property")(**keywords)

    def add_option(self, command: argparse._ActionsContainer) -> None:
        """Add the option to a parser of the command line, or a group of it."""
        help = self.help or self.tip[:1].lower() + self.tip[1:]
        if self.kind == "Bool":
            command.add_argument(self.flag, dest=self.dest, action="store_true", help=help)
            return
        if "(default" not in help and self.default != "":
            help += " (default: %(default)s)"
        keywords: dict[str, Any] = {"dest": self.dest, "default": self.default, "help": help, "required": self.required}
        if self.kind == "Enum":
            keywords["choices"] = tuple(item[0] for item in self.more["items"])
            keywords["type"] = lambda text: text.upper().replace("-", "_")
            if self.of_numbers:
                keywords["type"], keywords["default"] = arguments.whole_number, int(self.default)
                keywords["choices"] = tuple(map(int, keywords["choices"]))
        else:
            keywords["metavar"] = self.metavar
            keywords["type"] = _TYPES[self.kind]
            # A default text, which argparse parses at the end, differs from an equal number that was given: see
            # --preset.
            keywords["default"] = f"{math.degrees(self.default):g}" if self.is_angle else str(self.default)
        if self.optional:
            keywords["default"] = None
        command.add_argument(self.flag, **keywords)

    def of_options(self, options: argparse.Namespace) -> Any:
        """Its value on a command line."""
        value = getattr(options, self.dest)
        if self.kind == "Bool":
            # --no-creases
            return value != self.default
        return self.checked(math.radians(value) if self.is_angle and value is not None else value)


# The functions that declare settings return Any for type checkers: instances of the class have values instead.
_TYPES = {"Int": arguments.whole_number, "Float": arguments.number, "String": str}


def count(
    label: str, default: int, *, tip: str, least: int | None = None, soft_most: int | None = 1000, **more: Any
) -> Any:
    """A whole number."""
    return _setting("Int", label, tip, default, least, more, metavar="N", soft_max=soft_most)


def number(label: str, default: float, *, tip: str, least: float | None = None, **more: Any) -> Any:
    """A number. Further keywords are those of ``bpy.props.FloatProperty``."""
    return _setting("Float", label, tip, default, least, more, metavar="X")


def factor(label: str, default: float, *, tip: str, most: float | None = None, **more: Any) -> Any:
    """A number from 0 to 1, drawn as a slider; without ``most``, larger values can be typed."""
    limits = {"most": most} if most is not None else {"soft_max": 1.0}
    return _setting("Float", label, tip, default, 0.0, more | limits, metavar="X", subtype="FACTOR")


def angle(label: str, default: float, *, tip: str, least: float | None = None, **more: Any) -> Any:
    """An angle in radians, which the command line takes in degrees."""
    return _setting("Float", label, tip, default, least, more, metavar="DEGREES", subtype="ANGLE")


def switch(label: str, default: bool, *, tip: str, **more: Any) -> Any:
    """Yes or no. Its flag on the command line inverts the default."""
    return _setting("Bool", label, tip, default, None, more)


def choice(label: str, items: Iterable[tuple], default: str, *, tip: str, **more: Any) -> Any:
    """One of several, each (identifier, label, tooltip) or with more, as ``bpy.props.EnumProperty`` has them."""
    return _setting("Enum", label, tip, default, None, more, items=tuple(items))


def name(label: str, default: str = "", *, tip: str, **more: Any) -> Any:
    """The name of something, empty by default."""
    return _setting("String", label, tip, default, None, more, metavar="NAME")


def influences(
    default: int = 4,
    least: int = 1,
    tip: str = "Most bones that may move one vertex. Game engines commonly allow 4",
    **more: Any,
) -> Any:
    """The most influences per vertex, at least ``least``."""
    keywords: dict[str, Any] = {
        "flag": "--influences",
        "soft_most": 12,
    } | more
    return count("Influences", default, least=least, tip=tip, **keywords)


def surface(default: float) -> Any:
    """How much normals count where errors are minimized."""
    return factor(
        "Surface",
        default,
        most=1.0,
        tip="How much normals count, compared with positions: 0 leaves the least distance, more keeps the skin smooth",
        flag="--surface",
        metavar="S",
    )


def smoothness(default: float = 0.0, **more: Any) -> Any:
    """The smoothness of solved weights."""
    return factor(
        "Smoothness",
        default,
        most=1.0,
        tip="How much error is allowed for weights that are smooth over the surface: 0 is off, except in new "
        "skeletons of rigid bones; 0.25 removes noise at almost no cost",
        flag="--smoothness",
        metavar="S",
        **more,
    )


def _frames(verb: str) -> dict[str, Setting]:
    """A range of frames and its step. verb: what is done with each frame, such as "measure"."""
    return {
        "frame_start": count("Frame Start", 1, tip=f"First frame to {verb}", soft_most=None, optional=True),
        "frame_end": count("Frame End", 250, tip=f"Last frame to {verb}", soft_most=None, optional=True),
        "frame_step": count(
            "Frame Step",
            1,
            least=1,
            soft_most=50,
            tip=f"{verb.capitalize()} every frame (1), every second frame (2), and so on",
        ),
    }


def _setting(kind: str, label: str, tip: str, default: Any, least: float | None, given: dict, **usual: Any) -> Setting:
    keywords = {each: value for each, value in {**usual, **given}.items() if value is not None}
    own = {each: keywords.pop(each) for each in _OWN if each in keywords}
    own.setdefault("dest", own.get("flag", "").lstrip("-").replace("-", "_"))
    return Setting(kind, label, tip, default, least, more=keywords, **own)


class Settings:
    """Subclasses declare settings as attributes; an instance has their values as attributes of the same names.

    stored: where they are kept, a path below the scene, "" for nowhere; inherited settings keep their path. kept_by:
    "armature" if the path is below the armature that is active or deforms the active object. frames: what is done with
    a range of frames, such as "measure", "" if there is none. one_of: settings of which the command line must have
    exactly one. remembered: the operator keeps the values of its last call, as for a dialog.
    """

    declared: dict[str, Setting] = {}
    places: dict[str, str] = {}
    stored = ""
    kept_by = "scene"
    frames = ""
    one_of: tuple[str, ...] = ()
    remembered = False
    # Only in settings with ``frames``.
    frame_start: int | None
    frame_end: int | None
    frame_step: int

    def __init_subclass__(
        cls, stored: str = "", kept_by: str = "", frames: str = "", one_of: tuple[str, ...] = (), **given: Any
    ) -> None:
        super().__init_subclass__(**given)
        own = {each: value for each, value in vars(cls).items() if isinstance(value, Setting)}
        cls.stored, cls.kept_by = stored or cls.stored, kept_by or cls.kept_by
        cls.frames, cls.one_of = frames or cls.frames, one_of or cls.one_of
        cls.declared = {**cls.declared, **own, **(_frames(frames) if frames else {})}
        kept = [each for each, setting in cls.declared.items() if setting.kept]
        cls.places = {each: cls.places.get(each) or cls.stored for each in kept}

    def __init__(self, **given: Any) -> None:
        """Set the given values, and the defaults of all others; None for optional ones. Raises BadSettings if a number
        is outside its range."""
        for each, setting in self.declared.items():
            setattr(self, each, setting.checked(given.pop(each, None if setting.optional else setting.default_value)))
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(given)}")

    @classmethod
    def group_annotations(cls) -> dict:
        """The properties of a property group that stores the settings."""
        here = [each for each, place in cls.places.items() if place == cls.stored]
        properties = {each: cls.declared[each].as_property(HARD) for each in here}
        if cls.frames and "frame_start" in here:
            properties["use_scene_range"] = bpy.props.BoolProperty(
                name="Scene Range",
                description=f"{cls.frames.capitalize()} from the scene's start frame to its end frame",
                default=True,
            )
        return properties

    @classmethod
    def operator_annotations(cls) -> dict:
        """The properties of an operator."""
        return {each: setting.as_property(SOFT, cls.remembered) for each, setting in cls.declared.items()}

    @classmethod
    def fill(cls, operator: bpy.types.Operator, context: bpy.types.Context, but: Iterable[str] = ()) -> None:
        """Set the properties that the operator's caller left unset, ``but`` some, from the stored settings, if any.

        This also sets the frame range, so that Adjust Last Operation shows and keeps it.
        """
        scene = context.scene
        keeper = armature_at(active_object(context)) if cls.kept_by == "armature" else scene
        for each, value in cls.unlike_stored(scene).items():
            if not operator.properties.is_property_set(each):
                setattr(operator, each, value)
        for each in cls.declared:
            place = cls.places.get(each)
            kept = attrgetter(place)(keeper) if place and keeper is not None else None
            of_scene = cls.frames and each in RANGE_NAMES and (kept is None or kept.use_scene_range)
            if (of_scene or kept is not None) and each not in but and not operator.properties.is_property_set(each):
                setattr(operator, each, getattr(scene if of_scene else kept, each))

    @classmethod
    def unlike_stored(cls, scene: bpy.types.Scene) -> dict[str, Any]:
        """For ``fill``: values that the scene stores by another name, or as another type."""
        return {}

    @classmethod
    def of_operator(cls, operator: bpy.types.Operator) -> dict:
        """The values for the work; optional ones only if the caller, or ``fill``, has set them."""
        return {
            each: setting.of_property(operator, each)
            for each, setting in cls.declared.items()
            if not setting.optional or operator.properties.is_property_set(each)
        }

    @classmethod
    def add_options(cls, command: argparse._ActionsContainer) -> None:
        """Add the options to the command line."""
        group = command.add_mutually_exclusive_group(required=True) if cls.one_of else command
        for each, setting in cls.declared.items():
            if setting.flag:
                setting.add_option(group if each in cls.one_of else command)
        if cls.frames:
            arguments.add_frames(command, cls.frames)
            arguments.add_incomplete(command)

    @classmethod
    def of_options(cls, options: argparse.Namespace) -> dict:
        """The values for the work; settings without an option keep the work's defaults."""
        values = {each: setting.of_options(options) for each, setting in cls.declared.items() if setting.flag}
        values = {each: value for each, value in values.items() if value is not None}
        if cls.frames:
            values |= {each: getattr(options, each) for each in (*RANGE_NAMES, "frame_step")}
        return values
