# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking helper bones away again, with their constraints, drivers, weights and notes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...blender.armatures import deformed_meshes
from ...blender.weight_tools import check_meshes, check_unlocked
from .rig import BULGE, LINKS, Helper, find_helpers, mark_made_animation, remove_helper_bones
from .weights import concerned_meshes, give_back


@dataclass(frozen=True)
class Removed:
    """joints: what the helpers were called by; painted: vertices whose weights had been painted since."""

    armature_name: str
    joints: tuple[str, ...]
    painted: int

    def summary(self) -> str:
        """The result in one line."""
        joints = f"{', '.join(self.joints[:6])}{' …' if len(self.joints) > 6 else ''}"
        text = f"{self.armature_name}: links and bulges removed ({joints}), weights as they were"
        if self.painted:
            text += f", but for {self.painted} vertices painted since: their weights went to the bones beside"
        return text


def remove_helpers(context, armature, helpers: list[Helper]) -> Removed:
    """Remove helpers with all that was made for them. Raises BadScene where a mesh cannot be changed, before anything
    is."""
    meshes = deformed_meshes(armature)
    concerned = {helper.number: concerned_meshes(meshes, helper) for helper in helpers}
    objects = list(dict.fromkeys(ob for found in concerned.values() for ob in found))
    check_meshes(objects, "the weights of its links and bulges cannot be given back")
    check_unlocked(objects, [name for helper in helpers for name in (*helper.skin, helper.start, helper.end) if name])
    painted = 0
    staying = {helper.number: helper for helper in find_helpers(armature)}
    # The latest first: the others then find the weights that they have written.
    for helper in reversed(helpers):
        del staying[helper.number]
        later = [each for number, each in staying.items() if number > helper.number]
        for ob in concerned[helper.number]:
            painted += give_back(ob, helper, _shares(helper), later)
    names = [name for helper in helpers for name in helper.bones]
    made_animation = any(helper.made_animation for helper in helpers)
    driven = next((helper for helper in staying.values() if helper.kind == BULGE), None)
    if made_animation and driven is not None:
        mark_made_animation(armature, driven.skin[0])
    remove_helper_bones(context, armature, names, made_animation)
    for ob in objects:
        ob.data.update_tag()
    return Removed(armature.name, tuple(helper.joint for helper in helpers), painted)


@contextmanager
def removed_on_failure(context, armature, numbers) -> Iterator[None]:
    """Where the block fails that makes the helpers ``numbers``, nothing of them is left."""
    try:
        yield
    except BaseException:
        made = [helper for helper in find_helpers(armature) if helper.number in numbers]
        if made:
            remove_helpers(context, armature, made)
        raise


def _shares(helper: Helper) -> dict[str, list[tuple[str, float]]]:
    """Where the weights of a helper's bones go."""
    shares = {}
    for place, name in enumerate(helper.skin, 1):
        part = place / (len(helper.skin) + 1) if helper.kind == LINKS and helper.end else 0.0
        shares[name] = [
            (bone, share) for bone, share in ((helper.start, 1 - part), (helper.end, part)) if bone and share
        ]
    return shares
