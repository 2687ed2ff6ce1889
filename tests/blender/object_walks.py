# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts what a call does in Python, by instructions, and how often it goes through the objects of a file: for tests of
what must not take longer in a large scene. Nothing is timed.
"""

import dis
import gc
import sys
from collections import Counter
from functools import cache

# Attributes of Blender that go through all objects, or through those of a scene or of a selection, in C or in Python.
WALKS = {"objects", "all_objects", "user_map", "users_scene", "users_collection", "children", "children_recursive"}
# The same of a context; our settings have such names, too.
CONTEXT_WALKS = {f"{kind}_objects" for kind in ("selected", "selected_editable", "visible", "editable", "selectable")}
# What follows them where they are not gone through.
_SINGLE = {"active", "link"}
_ATTRIBUTES = ("LOAD_ATTR", "STORE_ATTR", "LOAD_METHOD")


class Counted:
    """instructions: how many of Python were run; walks: how often each place in the code has asked for objects."""

    def __init__(self):
        self.instructions = 0
        self.walks: Counter[str] = Counter()

    def __str__(self) -> str:
        lines = [f"{count:4} × {place}" for place, count in self.walks.most_common()]
        return "\n".join([f"{self.instructions} instructions, {self.walks.total()} walks", *lines])


def counted(call, apart_from=()) -> Counted:
    """Count the work of ``call()``, except for code in the files ``apart_from``."""
    found = Counted()

    def trace(frame, event, _):
        if frame.f_code.co_filename in apart_from:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            found.instructions += 1
            name = _walks_in(frame.f_code).get(frame.f_lasti)
            if name is not None:
                found.walks[f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname} {name}"] += 1
        return trace

    before = sys.gettrace()
    # Callbacks of the garbage collector, which test tools have, would be counted in whatever it interrupts.
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return found


@cache
def _walks_in(code) -> dict[int, str]:
    """The instructions that ask for objects, by their offsets."""
    found = {}
    instructions = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "PRECALL")]
    for before, each, after in zip([None, *instructions], instructions, [*instructions[1:], None], strict=False):
        if not each.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            continue
        single = after is not None and after.opname.startswith(_ATTRIBUTES) and after.argval in _SINGLE
        if (each.argval in WALKS and not single) or (each.argval in CONTEXT_WALKS and _is_context(before)):
            found[each.offset] = each.argval
    return found


def _is_context(instruction) -> bool:
    """Whether it has put a context on the stack; some put two things there."""
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return names[-1] == "context"
