# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of an update in Blender: an EigenSkin's drivers in several layouts, and the shape keys that they drive.

Updates of all variants alternate, and times are differences from an update without the measured part, so that other
work on the machine affects all alike.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import bpy
import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from skinning_tools.core.eigenskin import EigenSkin, PoseSpace, Support, hinge_angles
from skinning_tools.features.eigenskin import drivers as eigenskin_drivers
from skinning_tools.features.eigenskin.driver_network import Element, Expression, Network, Rotation, Term

JOINTS, COMPONENTS, EXAMPLES = 20, 3, 6
SHAPE_KEY_VERTICES = 10_000

# The data-block with the values between bones and shape keys, and whether they are arrays or single properties.
KEPT = (
    ("Key, arrays", "key", True),
    ("Key, single", "key", False),
    ("mesh, arrays", "mesh", True),
    ("armature, arrays", "armature", True),
)


def layouts(repeats: int):
    """(joints, layout, where values are kept, drivers, seconds (n,) on the wall, of the processor (n,)) of each way to
    write the drivers of JOINTS joints, all hinges or all balls; and what that is measured on."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    plain = _Character("plain", None)
    variants = []
    for joints, model in (("hinges", model_of(hinge)), ("balls", model_of(ball))):
        for layout, plan in (
            ("used", eigenskin_drivers.plan),
            ("basis kept", basis_kept),
            ("rotations kept", rotations_kept),
        ):
            network = plan(model)
            for where, owner, arrays in KEPT:
                character = _Character(f"{joints} {layout} {where}", network, owner, arrays)
                variants.append((joints, layout, where, network.driver_count, character))
    wall, processor = _updates([plain, *(variant[-1] for variant in variants)], repeats)
    rows = [
        (*variant[:-1], wall[index] - wall[0], processor[index] - processor[0])
        for index, variant in enumerate(variants, start=1)
    ]
    return rows, (
        f"Blender {bpy.app.version_string}, {JOINTS} joints, {COMPONENTS} components, {EXAMPLES} examples a joint"
    )


def deformation(repeats: int):
    """(name, seconds (n,) on the wall, of the processor (n,)) of what the shape keys cost without any drivers; and what
    that is measured on."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    plain = _Character("plain", None, vertex_count=SHAPE_KEY_VERTICES, keys=False)
    states = (("all 0", 0.0, False), ("all 0.5", 0.5, False), ("all 0.5, muted", 0.5, True))
    variants = []
    for name, value, mute in states:
        character = _Character(name, None, vertex_count=SHAPE_KEY_VERTICES)
        for block in character.key.key_blocks[1:]:
            block.value, block.mute = value, mute
        variants.append(character)
    wall, processor = _updates([plain, *variants], repeats)
    rows = [
        (state[0], wall[index] - wall[0], processor[index] - processor[0])
        for index, state in enumerate(states, start=1)
    ]
    return rows, (
        f"Blender {bpy.app.version_string}, {JOINTS * COMPONENTS} shape keys of {SHAPE_KEY_VERTICES:,} vertices, each "
        "of which moves all vertices"
    )


def model_of(space: Callable) -> EigenSkin:
    """JOINTS joints with random weights in spaces that ``space(random)`` makes."""
    random = np.random.default_rng(0)
    spaces = {joint: space(random) for joint in range(JOINTS)}
    nothing = np.zeros(0)
    supports = [
        Support(
            bone_name(joint),
            (joint,),
            nothing,
            nothing.astype(int),
            np.zeros((COMPONENTS, 0, 3)),
            None,
            random.normal(size=(EXAMPLES + 1, COMPONENTS)),
            None,
            np.full(COMPONENTS, 10.0),
            nothing,
        )
        for joint in spaces
    ]
    return EigenSkin(tuple(bone_name(joint) for joint in spaces), 0, spaces, tuple(supports), ())


def hinge(random) -> PoseSpace:
    axis = random.normal(size=3)
    axis /= np.linalg.norm(axis)
    half = np.append(0.0, np.radians([-100, -66, -33, 33, 66, 100]) / 2)
    return PoseSpace(np.column_stack([np.cos(half), np.sin(half)[:, None] * axis]), axis, 1.15)


def ball(random) -> PoseSpace:
    centers = np.concatenate([[[1.0, 0.0, 0.0, 0.0]], random.normal(size=(EXAMPLES, 4))])
    return PoseSpace(centers / np.linalg.norm(centers, axis=1, keepdims=True), None, 1.15)


def basis_kept(model: EigenSkin) -> Network:
    """Each basis function a property, which the shape keys only add up."""
    return _stepwise(model, rotations=False)


def rotations_kept(model: EigenSkin) -> Network:
    """As ``basis_kept``, and the joints' rotations as properties, too."""
    return _stepwise(model, rotations=True)


def _stepwise(model: EigenSkin, rotations: bool) -> Network:
    network = Network()
    for support in model.supports:
        (joint,) = support.joints
        name, space = model.joint_names[joint], model.spaces[joint]
        channels = [(Rotation(name, channel),) for channel in "WXYZ"]
        if rotations:
            channels = [network.store("rotations", [Term("{0}", (channel,))], 1.0, False) for channel in channels]
        if space.axis is None:
            basis = [(_ball_text(center, space), channels) for center in space.centers]
        else:
            angle = network.store("angles", [Term(_angle_text(space.axis), tuple(channels))], np.pi, False)
            angles = hinge_angles(space.centers, space.axis)
            basis = [(_hinge_text(other, space), [angle]) for other in angles]
        kept = [network.store("basis", [Term(text, tuple(values))], 1.0, False) for text, values in basis]
        for weights in support.basis_weights.T:
            terms = [Term(f"{weight:+.12g}*{{0}}", (value,)) for weight, value in zip(weights, kept, strict=True)]
            network.values.append(Expression.of(terms))
    return network


def _ball_text(center: np.ndarray, space: PoseSpace) -> str:
    product = "+".join(f"{{{index}}}*{factor:.10g}" for index, factor in enumerate(center))
    square = f"pow({product},2)"
    radial, quadratic = space.shares
    return f"{radial:.10g}*exp({4 / space.radius**2:.10g}*({square}-1))+{quadratic:.10g}*{square}"


def _hinge_text(angle: float, space: PoseSpace) -> str:
    away = f"({{0}}{-angle:+.12g})"
    radial, quadratic = space.shares
    return f"{radial:.10g}*exp(pow({away},2)/{-(space.radius**2):.10g})+{quadratic:.10g}*pow(cos({away}/2),2)"


def _angle_text(axis: np.ndarray) -> str:
    along = "+".join(f"{{{index}}}*{factor:.15g}" for index, factor in enumerate(axis, start=1))
    return f"2*atan2((1 if {{0}}>=0 else -1)*({along}),abs({{0}}))"


def bone_name(joint: int) -> str:
    return f"bone {joint:02}"


class _Character:
    """A skinned mesh with shape keys in a scene of its own. network: drives them, None leaves them still."""

    def __init__(self, name, network: Network | None, owner="key", arrays=True, vertex_count=2 * JOINTS, keys=True):
        self.scene = bpy.data.scenes.new(name)
        self.rig = self._armature(name)
        mesh = bpy.data.meshes.new(name)
        mesh.vertices.add(vertex_count)
        object = bpy.data.objects.new(name, mesh)
        self.scene.collection.objects.link(object)
        for joint in range(JOINTS):
            group = object.vertex_groups.new(name=bone_name(joint))
            group.add(range(joint, vertex_count, JOINTS), 1.0, "REPLACE")
        object.modifiers.new("Armature", "ARMATURE").object = self.rig
        if keys:
            object.shape_key_add(name="Basis", from_mix=False)
            self.key = mesh.shape_keys
            random = np.random.default_rng(0)
            for number in range(JOINTS * COMPONENTS):
                block = object.shape_key_add(name=f"key {number}", from_mix=False)
                block.points.foreach_set("co", random.normal(size=3 * vertex_count).astype(np.float32))
                block.slider_min, block.slider_max, block.value = -10.0, 10.0, 0.1
        if network is not None:
            self._write(network, {"key": self.key, "mesh": mesh, "armature": self.rig}[owner], arrays)

    def pose(self, rotations: np.ndarray) -> None:
        """rotations (JOINTS, 4) of the bones; nothing is evaluated yet."""
        self.rig.pose.bones.foreach_set("rotation_quaternion", rotations.astype(np.float32).ravel())
        self.rig.update_tag()

    def _armature(self, name: str):
        rig = bpy.data.objects.new(f"{name} rig", bpy.data.armatures.new(name))
        self.scene.collection.objects.link(rig)
        view_layer = self.scene.view_layers[0]
        view_layer.objects.active = rig
        with bpy.context.temp_override(scene=self.scene, view_layer=view_layer, object=rig, active_object=rig):
            bpy.ops.object.mode_set(mode="EDIT")
            for joint in range(JOINTS):
                bone = rig.data.edit_bones.new(bone_name(joint))
                bone.head, bone.tail = (0, joint, 0), (0, joint + 1, 0)
                # Chains of four.
                bone.parent = rig.data.edit_bones[joint - 1] if joint % 4 else None
            bpy.ops.object.mode_set(mode="OBJECT")
        for bone in rig.pose.bones:
            bone.rotation_mode = "QUATERNION"
        return rig

    def _write(self, network: Network, owner, arrays: bool) -> None:
        def place(element: Element) -> tuple:
            return (f'["{element.array}"]', element.index) if arrays else (f'["{element.array} {element.index}"]', -1)

        for array, size in network.sizes.items():
            if arrays:
                owner[array] = [0.0] * size
            else:
                for index in range(size):
                    owner[f"{array} {index}"] = 0.0
        drivers = [(owner, *place(element), expression) for element, expression in network.elements.items()]
        for number, expression in enumerate(network.values):
            drivers.append((self.key, f'key_blocks["key {number}"].value', -1, expression))
        for block, path, index, expression in drivers:
            curve = block.driver_add(path, index)
            curve.keyframe_points.clear()
            for modifier in list(curve.modifiers):
                curve.modifiers.remove(modifier)
            for name, part in expression.inputs.items():
                variable = curve.driver.variables.new()
                variable.name = name
                if isinstance(part, Rotation):
                    variable.type = "TRANSFORMS"
                    target = variable.targets[0]
                    target.id, target.bone_target, target.transform_space = self.rig, part.joint, "LOCAL_SPACE"
                    target.transform_type, target.rotation_mode = f"ROT_{part.channel}", "QUATERNION"
                else:
                    target = variable.targets[0]
                    target.id_type, target.id = owner.id_type, owner
                    source, element = place(part)
                    target.data_path = f"{source}[{element}]" if arrays else source
            curve.driver.expression = expression.text
            if not curve.driver.is_simple_expression:
                raise ValueError(expression.text)


def _updates(characters: list[_Character], repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """(characters, repeats) seconds of updates with a new pose, on the wall and of the processor."""
    random = np.random.default_rng(1)
    seconds = np.empty((2, len(characters), repeats))
    for turn in range(-2, repeats):
        rotations = [1, 0, 0, 0] + 0.3 * random.normal(size=(JOINTS, 4))
        rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
        for index in random.permutation(len(characters)):
            characters[index].pose(rotations)
            start = time.perf_counter(), time.process_time()
            characters[index].scene.view_layers[0].update()
            end = time.perf_counter(), time.process_time()
            # The first updates build data that later ones only evaluate.
            if turn >= 0:
                seconds[:, index, turn] = np.subtract(end, start)
    return seconds[0], seconds[1]


def main(repeats: int) -> None:
    """Print the medians in milliseconds."""
    rows, what = layouts(repeats)
    print(what)
    for joints, layout, where, count, wall, processor in rows:
        middle = [1000 * np.median(seconds) for seconds in (wall, processor)]
        print(f"{joints:8}{layout:16}{where:18}{count:5} drivers  wall {middle[0]:6.2f} ms  cpu {middle[1]:6.2f} ms")
    rows, what = deformation(repeats)
    print(what)
    for name, wall, processor in rows:
        print(f"{name:20} wall {1000 * np.median(wall):6.2f} ms  cpu {1000 * np.median(processor):6.2f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
