// SPDX-License-Identifier: GPL-3.0-or-later
// Plays the files of one /job after another in three.js, and posts where each vertex is at each of the job's times: as
// three.js computes it on the processor, for picking and bounds, and as its shaders do, for the picture.

import * as THREE from "three";
import { FBXLoader } from "three/addons/loaders/FBXLoader.js";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";
import { USDLoader } from "three/addons/loaders/USDLoader.js";

const LOADERS = { glb: GLTFLoader, fbx: FBXLoader, usdc: USDLoader };

let messages = [];
for (const kind of ["warn", "error"]) {
  const shown = console[kind];
  console[kind] = (...parts) => {
    messages.push(parts.join(" "));
    shown(...parts);
  };
}
const renderer = new THREE.WebGLRenderer({ antialias: true, preserveDrawingBuffer: true });

async function main() {
  for (;;) {
    let job;
    try {
      job = await (await fetch("/job")).json();
    } catch {
      window.close(); // whoever started the browser is gone
      return;
    }
    if (job === null) continue;
    messages = [];
    try {
      await play(job);
    } catch (error) {
      await post(`/${job.number}/failure`, `${error?.stack ?? error}\n${messages.join("\n")}`);
    }
  }
}

async function play(job) {
  const loaded = await new LOADERS[job.format]().loadAsync(`/${job.number}/model`);
  const root = loaded.scene ?? loaded;
  const scene = new THREE.Scene();
  scene.add(root);
  const meshes = [];
  root.traverse((node) => node.isMesh && meshes.push(node));
  const clips = loaded.animations ?? root.animations;
  const mixer = new THREE.AnimationMixer(root);
  const played = clips.filter((clip) => !job.clip || clip.name === job.clip);
  const actions = job.weights ? added(clips, job.weights, mixer) : played.map((clip) => mixer.clipAction(clip));

  const rest = meshes.map(rowsAtRest);
  const count = rest.reduce((sum, rows) => sum + rows.length / 3, 0);
  const shaders = meshes.map((mesh) => new VertexReader(mesh));
  const positions = new Float32Array(3 * count * job.times.length);
  const shaded = new Float32Array(positions.length);
  let filled = 0;
  for (const time of job.times) {
    showAt(scene, mixer, actions, time);
    meshes.forEach((mesh, index) => {
      shaders[index].write(shaded, filled);
      filled = writePositions(mesh, positions, filled);
    });
  }
  const answer = {
    three: THREE.REVISION,
    messages,
    rows: count,
    skinned: meshes.every((mesh) => mesh.isSkinnedMesh),
    bones: meshes[0]?.skeleton?.bones.length ?? 0,
    morphs: meshes[0]?.morphTargetInfluences?.length ?? 0,
    attributes: Object.keys(meshes[0]?.geometry.attributes ?? {}),
    clips: clips.map((clip) => clip.name),
    duration: Math.max(0, ...clips.map((clip) => clip.duration)),
    arrays: ["rest", "positions", "shaded"],
  };
  const parts = [merged(rest), positions, shaded];
  if (job.attribute && meshes.every((mesh) => mesh.geometry.attributes[job.attribute])) {
    answer.arrays.push("attribute");
    parts.push(merged(meshes.map((mesh) => attributeRows(mesh, job.attribute))));
  }
  if (job.picture) {
    showAt(scene, mixer, actions, job.picture.time);
    await post(`/${job.number}/picture`, await drawn(scene, root, job.picture));
  }
  const head = new TextEncoder().encode(`${JSON.stringify(answer)}\n`);
  await post(`/${job.number}/result`, new Blob([head, ...parts]));
}

// The clips that have a weight, as what they add to the base.
function added(clips, weights, mixer) {
  const base = clips.find((clip) => clip.name === weights.base).clone();
  return clips
    .filter((clip) => clip.name in weights.clips)
    .map((clip) => {
      // A copy, since clips of a file share arrays.
      const action = mixer.clipAction(THREE.AnimationUtils.makeClipAdditive(clip.clone(), 0, base));
      action.setEffectiveWeight(weights.clips[clip.name]);
      return action;
    });
}

function showAt(scene, mixer, actions, time) {
  // Played once and held, since a loop shows its first frame again at its last time.
  for (const action of actions) {
    action.reset().setLoop(THREE.LoopOnce, 1).play();
    action.clampWhenFinished = true;
  }
  mixer.setTime(time);
  scene.updateMatrixWorld(true);
}

function rowsAtRest(mesh) {
  return attributeRows(mesh, "position");
}

function attributeRows(mesh, name) {
  const attribute = mesh.geometry.attributes[name];
  const rows = new Float32Array(attribute.count * attribute.itemSize);
  for (let row = 0; row < attribute.count; row++) {
    for (let axis = 0; axis < attribute.itemSize; axis++) {
      rows[row * attribute.itemSize + axis] = attribute.getComponent(row, axis);
    }
  }
  return rows;
}

// three.js's own morph targets and skin, on the processor.
function writePositions(mesh, into, start) {
  const point = new THREE.Vector3();
  const count = mesh.geometry.attributes.position.count;
  for (let row = 0; row < count; row++) {
    mesh.getVertexPosition(row, point).applyMatrix4(mesh.matrixWorld);
    point.toArray(into, start + 3 * row);
  }
  return start + 3 * count;
}

// What three.js's shaders make of a mesh: each vertex is drawn as a pixel whose color is its place in the scene.
class VertexReader {
  constructor(mesh) {
    const count = mesh.geometry.attributes.position.count;
    const width = Math.min(count, 1024);
    const height = Math.ceil(count / width);
    mesh.geometry.setAttribute("row", new THREE.BufferAttribute(Float32Array.from({ length: count }, (_, i) => i), 1));
    const material = new THREE.ShaderMaterial({
      uniforms: { size: { value: new THREE.Vector2(width, height) } },
      vertexShader: `
        #include <morphtarget_pars_vertex>
        #include <skinning_pars_vertex>
        attribute float row;
        uniform vec2 size;
        varying vec3 place;
        void main() {
          #include <skinbase_vertex>
          #include <begin_vertex>
          #include <morphtarget_vertex>
          #include <skinning_vertex>
          place = (modelMatrix * vec4(transformed, 1.0)).xyz;
          vec2 pixel = vec2(mod(row, size.x), floor(row / size.x)) + 0.5;
          gl_Position = vec4(2.0 * pixel / size - 1.0, 0.0, 1.0);
          gl_PointSize = 1.0;
        }`,
      fragmentShader: "varying vec3 place; void main() { gl_FragColor = vec4(place, 1.0); }",
      depthTest: false,
    });
    const points = new THREE.Points(mesh.geometry, material);
    points.frustumCulled = false;
    points.matrixWorldAutoUpdate = false;
    points.morphTargetInfluences = mesh.morphTargetInfluences;
    if (mesh.isSkinnedMesh) {
      // Points have no skin of their own; the renderer looks at these alone.
      const { skeleton, bindMatrix, bindMatrixInverse } = mesh;
      Object.assign(points, { isSkinnedMesh: true, skeleton, bindMatrix, bindMatrixInverse });
    }
    const target = new THREE.WebGLRenderTarget(width, height, { type: THREE.FloatType, depthBuffer: false });
    Object.assign(this, { mesh, points, target, count, pixels: new Float32Array(4 * width * height) });
  }

  write(into, start) {
    this.points.matrixWorld.copy(this.mesh.matrixWorld);
    renderer.setRenderTarget(this.target);
    renderer.render(this.points, new THREE.Camera());
    renderer.readRenderTargetPixels(this.target, 0, 0, this.target.width, this.target.height, this.pixels);
    renderer.setRenderTarget(null);
    for (let row = 0; row < this.count; row++) {
      into.set(this.pixels.subarray(4 * row, 4 * row + 3), start + 3 * row);
    }
  }
}

function merged(arrays) {
  const all = new Float32Array(arrays.reduce((sum, array) => sum + array.length, 0));
  let start = 0;
  for (const array of arrays) {
    all.set(array, start);
    start += array.length;
  }
  return all;
}

async function drawn(scene, root, { width, height, eye, target, span }) {
  renderer.setSize(width, height, false);
  renderer.setClearColor(0xffffff);
  const half = span / 2;
  const tall = (half * height) / width;
  const camera = new THREE.OrthographicCamera(-half, half, tall, -tall, 0.01 * span, 20 * span);
  camera.position.fromArray(eye);
  camera.lookAt(...target);
  const sun = new THREE.DirectionalLight(0xffffff, 2.5);
  sun.position.copy(camera.position).add(new THREE.Vector3(-0.6 * span, 1.2 * span, 0));
  sun.target.position.fromArray(target);
  scene.add(sun, sun.target, new THREE.AmbientLight(0xffffff, 0.7));
  root.traverse((node) => {
    if (node.isMesh) {
      node.material = new THREE.MeshStandardMaterial({ color: 0x5b8fd6, roughness: 0.6, side: THREE.DoubleSide });
      node.frustumCulled = false;
    }
  });
  renderer.render(scene, camera);
  return new Promise((resolve) => renderer.domElement.toBlob(resolve, "image/png"));
}

async function post(path, body) {
  await fetch(path, { method: "POST", body });
}

main();
