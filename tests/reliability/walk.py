# SPDX-License-Identifier: GPL-3.0-or-later
"""Random sequences of operators, of edits that users make between them, and of undo and redo, with what must hold after
each step. Tasks of children.py; a sequence that fails is a list of steps, which ``shrunk`` makes short and ``replay``
runs again.

A step is a list: its kind and plain values, names in place of data-blocks.
"""

import logging
import traceback
from pathlib import Path

import bpy
import numpy as np

import skinning_tools
from skinning_tools.features import FEATURES
from tests.reliability import edits, file_state, paper_layout
from tests.reliability.random_settings import random_settings

STEPS = 14
# What writes into the user's own folders.
LEFT_OUT = {"skinning.add_conversion_preset"}
HELD, FAILED = "held", "failed"


def prepare(folder: Path) -> None:
    skinning_tools.register()
    logging.getLogger("skinning_tools").addHandler(_logged)


class _Logged(logging.Handler):
    """The boundary's log: our own bugs."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record) -> None:
        self.texts.append(logging.Formatter().format(record))


_logged = _Logged()


class Broken(AssertionError):
    """A condition does not hold after a step."""


def walk(seed: int, folder: Path) -> dict:
    """A task: STEPS random steps."""
    random = np.random.default_rng(seed)
    steps = [["scene", int(random.integers(len(edits.SCENES)))]]
    walker = Walker(folder)
    try:
        walker.take(steps[0])
        for _ in range(STEPS):
            steps.append(walker.next_step(random))
            walker.take(steps[-1])
    except Exception as error:  # noqa: BLE001 - any error must be reported with its sequence
        return {
            "outcome": FAILED,
            "error": f"{type(error).__name__}: {error}",
            "where": traceback.format_exc().splitlines()[-12:],
            "steps": steps,
        }
    return {"outcome": HELD, "taken": walker.taken, "refused": walker.refused, "undone": walker.undone}


def replay(steps, folder: Path) -> str:
    """Run a sequence of steps; returns the failure, or ""."""
    walker = Walker(folder)
    try:
        for step in steps:
            walker.take(step)
    except Exception as error:  # noqa: BLE001 - as in walk
        return f"{type(error).__name__}: {error}"
    return ""


def shrunk(steps: list, folder: Path) -> list:
    """A shorter sequence that fails in the same way, by leaving out single steps."""
    kind = replay(steps, folder).split(":")[0]
    if not kind:
        return steps
    number = 1
    while number < len(steps):
        shorter = steps[:number] + steps[number + 1 :]
        if replay(shorter, folder).split(":")[0] == kind:
            steps = shorter
        else:
            number += 1
    return steps


class Walker:
    """Takes steps, and checks all conditions after each. Raises Broken."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.taken, self.refused, self.undone = 0, 0, 0
        # The states that an undo goes back to, and whether an operator of ours led to each; the present one is at
        # ``place``.
        self._states: list[dict] = []
        self._ours: list[bool] = []
        self._place = 0

    def next_step(self, random) -> list:
        choice = random.random()
        if choice < 0.15 and len(self._states) > 1:
            return ["undo"] if random.random() < 0.7 else ["redo"]
        if choice < 0.4:
            return edits.random_edit(random)
        possible = [name for name in operator_names() if _poll(name)]
        name = str(random.choice(possible)) if possible else "skinning.preview"
        return ["operator", name, random_settings(_rna(name), random, self.folder), bool(random.random() < 0.3)]

    def take(self, step: list) -> None:
        kind, *values = step
        getattr(self, f"_{kind}")(*values)
        self._check()

    def _scene(self, number: int) -> None:
        _logged.texts.clear()
        list(edits.SCENES.values())[number](self.folder)
        # So that what is animated has the value of its frame.
        bpy.context.scene.frame_set(1)
        self._forget_past()

    def _edit(self, name: str, *values) -> None:
        """What a user does with Blender's own means: it may not be possible."""
        if edits.do(name, *values):
            self._forget_future()
            bpy.ops.ed.undo_push(message=name)
            self._note(ours=False)

    def _undo(self) -> None:
        if self._place == 0 or self._of_a_mode(self._place - 1):
            return
        bpy.ops.ed.undo()
        self._place -= 1
        self._compare("undo", self._ours[self._place + 1])

    def _redo(self) -> None:
        if self._place + 1 >= len(self._states) or self._of_a_mode(self._place + 1):
            return
        bpy.ops.ed.redo()
        self._place += 1
        self._compare("redo", self._ours[self._place])

    def _operator(self, name: str, settings: dict, invoked: bool) -> None:
        call = getattr(bpy.ops.skinning, name.split(".")[1])
        if not call.poll():
            return
        before, orphans = file_state.file_state(), file_state.orphans()
        mode = "INVOKE_DEFAULT" if invoked else "EXEC_DEFAULT"
        known = {key: value for key, value in settings.items() if key in _rna(name).properties}
        try:
            finished = call(mode, **known) == {"FINISHED"}
        except RuntimeError as error:
            _check_wording(name, str(error))
            finished = False
        after = file_state.file_state()
        changes = file_state.differences(before, after)
        if not finished:
            self.refused += 1
            if changes:
                raise Broken(f"{name} was refused and has changed {changes[:4]}")
            return
        self.taken += 1
        new = file_state.orphans() - orphans
        if new:
            raise Broken(f"{name} leaves what nothing uses: {sorted(new)}")
        if "UNDO" not in _class_of(name).bl_options:
            if changes:
                raise Broken(f"{name} cannot be undone and has changed {changes[:4]}")
            return
        self._forget_future()
        bpy.ops.ed.undo_push(message=name)
        self._note(ours=True)

    def _check(self) -> None:
        if _logged.texts:
            text = "\n".join(_logged.texts)
            _logged.texts.clear()
            raise Broken(f"a fault of our own: {text}")
        wrong = file_state.not_numbers()
        if wrong:
            raise Broken(f"not a number: {wrong[:4]}")
        for name in operator_names():
            _poll(name)
        paper_layout.draw_all()
        if _logged.texts:
            raise Broken(f"while drawing: {_logged.texts}")

    def _forget_past(self) -> None:
        bpy.ops.ed.undo_push(message="start")
        self._states, self._ours, self._place = [file_state.file_state()], [False], 0

    def _forget_future(self) -> None:
        del self._states[self._place + 1 :], self._ours[self._place + 1 :]

    def _note(self, ours: bool) -> None:
        self._states.append(file_state.file_state())
        self._ours.append(ours)
        self._place = len(self._states) - 1

    def _of_a_mode(self, place: int) -> bool:
        """Whether an undo to there is one of Blender's modes that undo their own edits alone, as Edit Mode does."""
        modes = {state["ui"]["mode"] for state in (self._states[place], self._states[self._place])}
        return not modes <= {None, "OBJECT", "POSE"}

    def _compare(self, what: str, ours: bool) -> None:
        """After an undo or redo of a step; how Blender restores its own edits is not checked."""
        present = file_state.file_state()
        changes = file_state.differences(self._states[self._place], present)
        self._states[self._place] = present
        self.undone += ours
        if changes and ours:
            raise Broken(f"{what} leaves {changes[:6]}")


def operator_names() -> list[str]:
    classes = (
        cls
        for feature in FEATURES
        for module in feature.operators
        for cls in module.registry
        if issubclass(cls, bpy.types.Operator)
    )
    return sorted(cls.bl_idname for cls in classes if cls.bl_idname not in LEFT_OUT)


def _class_of(name: str):
    classes = (
        cls
        for feature in FEATURES
        for module in feature.operators
        for cls in module.registry
        if issubclass(cls, bpy.types.Operator)
    )
    return next(cls for cls in classes if cls.bl_idname == name)


def _rna(name: str):
    return getattr(bpy.ops.skinning, name.split(".")[1]).get_rna_type()


def _poll(name: str) -> bool:
    """As Blender's own, but an exception is raised and not printed."""
    cls = _class_of(name)
    return cls.poll(bpy.context) if "poll" in dir(cls) else True


def _check_wording(name: str, text: str) -> None:
    if "Traceback" in text or "bug in Skinning Tools" in text:
        raise Broken(f"{name}: {text}")
    if len(text.split()) < 4:
        raise Broken(f"{name} does not say what is wrong: {text!r}")
