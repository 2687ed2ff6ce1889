// SPDX-License-Identifier: GPL-3.0-or-later
// Babylon.js plays a .glb file on the processor: node babylon.mjs FILE TIMES OUTPUT
// TIMES: seconds, as JSON. OUTPUT gets the positions, float32, in the file's axes; standard output, facts as JSON.
import fs from "node:fs";

// Only the last line of the standard output is for the caller.
console.log = console.warn = console.error;
const { NullEngine } = await import("@babylonjs/core/Engines/nullEngine.js");
const { Scene } = await import("@babylonjs/core/scene.js");
const { FreeCamera } = await import("@babylonjs/core/Cameras/freeCamera.js");
const { Vector3 } = await import("@babylonjs/core/Maths/math.vector.js");
const { ImportMeshAsync } = await import("@babylonjs/core/Loading/sceneLoader.js");
const { AbstractEngine } = await import("@babylonjs/core/Engines/abstractEngine.js");
const { registerBuiltInLoaders } = await import("@babylonjs/loaders/dynamic.js");

const [file, times, output] = process.argv.slice(2);
registerBuiltInLoaders();
const scene = new Scene(new NullEngine());
scene.useRightHandedSystem = true; // as in the file
new FreeCamera("camera", Vector3.Zero(), scene);
const loaded = await ImportMeshAsync(new Uint8Array(fs.readFileSync(file)), scene, { pluginExtension: ".glb" });
const mesh = loaded.meshes.find((each) => each.skeleton);
mesh.alwaysSelectAsActiveMesh = true; // bones of meshes that the camera does not see are not updated
const [clip] = loaded.animationGroups;
const perSecond = clip.targetedAnimations[0].animation.framePerSecond;
clip.start(true);
clip.pause();

const frames = JSON.parse(times).map((time) => {
    clip.goToFrame(time * perSecond);
    scene.render();
    const local = mesh.getPositionData(true, true); // with bones and morph targets
    const world = mesh.computeWorldMatrix(true);
    const placed = new Float32Array(local.length);
    for (let i = 0; i < local.length; i += 3) {
        Vector3.TransformCoordinatesFromFloatsToRef(local[i], local[i + 1], local[i + 2], world, Vector3.Zero())
            .toArray(placed, i);
    }
    return Buffer.from(placed.buffer);
});
fs.writeFileSync(output, Buffer.concat(frames));
const facts = {
    version: AbstractEngine.Version,
    bones: mesh.skeleton.bones.length,
    morphs: mesh.morphTargetManager?.numTargets ?? 0,
    clips: loaded.animationGroups.map((each) => each.name),
};
process.stdout.write(JSON.stringify(facts), () => process.exit(0));
