# SPDX-License-Identifier: GPL-3.0-or-later
"""Random settings of an operator, within the ranges of its properties and slightly outside."""

from pathlib import Path

import bpy

NONSENSE = ("", "nothing of that name", "a, b, ,", "ä\u00fc\u732b \"'\\", "x" * 200, "Bone 0, Bone 1", "upper.L")
# Of a whole number far beyond what an interface offers, work that nobody waits for would follow.
MOST_ABOVE = 3
# These cost time.
SMALL = {"iterations": 3, "bone_count": 4, "steps": 2, "residual_shapes": 2, "frames_per_pose": 3, "hold_frames": 2}


def random_settings(rna, random, folder: Path) -> dict:
    """Plain values by the names of ``rna``'s properties, about half of them. random: a numpy Generator."""
    found = {}
    for prop in rna.properties:
        if prop.identifier == "rna_type" or (random.random() < 0.5 and prop.identifier not in SMALL):
            continue
        found[prop.identifier] = _value(prop, random, folder)
    return found


def _value(prop, random, folder: Path):
    if prop.type == "BOOLEAN":
        if prop.is_array:
            return [bool(value) for value in random.random(prop.array_length) < 0.5]
        return bool(random.random() < 0.5)
    if prop.type == "ENUM":
        names = [item.identifier for item in prop.enum_items]
        if prop.is_enum_flag:
            return {name for name in names if random.random() < 0.5}
        return str(random.choice(names)) if names else ""
    if prop.type == "INT":
        return _whole_number(prop, random)
    if prop.type == "FLOAT":
        numbers = [_number(prop, random) for _ in range(max(prop.array_length, 1))]
        return numbers if prop.is_array else numbers[0]
    if "path" in prop.identifier:
        return str(folder / str(random.choice(["cache.pc2", "missing/cache.pc2", ".", "cache"])))
    names = [*bpy.data.objects.keys(), *NONSENSE]
    for ob in bpy.data.objects:
        names += [*ob.vertex_groups.keys(), *(ob.pose.bones.keys() if ob.pose else ())]
    return str(random.choice(names))


def _whole_number(prop, random) -> int:
    most = SMALL.get(prop.identifier, min(prop.soft_max, prop.soft_min + 10))
    if prop.identifier.startswith("frame"):
        return int(random.integers(-2, 12))
    beyond = [-(10**6), -1, 0, prop.soft_min - 1, most + MOST_ABOVE]
    value = int(random.choice(beyond)) if random.random() < 0.2 else int(random.integers(prop.soft_min, most + 1))
    return min(max(value, prop.hard_min), prop.hard_max)


def _number(prop, random) -> float:
    if random.random() < 0.2:
        value = float(random.choice([0.0, -1.0, 1e-9, 1e9, prop.soft_min, prop.soft_max, float("inf"), float("nan")]))
    else:
        low, high = max(prop.soft_min, -10.0), min(prop.soft_max, 10.0)
        value = float(random.uniform(low, high))
    return min(max(value, prop.hard_min), prop.hard_max)
