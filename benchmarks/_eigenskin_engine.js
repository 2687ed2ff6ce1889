// SPDX-License-Identifier: GPL-3.0-or-later
// Times a skinned mesh in three.js: alone, with morph targets, and with the documentation's EigenSkin shaders. Gets
// /head and the arrays that it lists, posts /result. Each update turns all joints, and ends when its pixels are there.

import * as THREE from "three";

const head = await (await fetch("/head")).json();
const arrays = Object.fromEntries(
  await Promise.all(
    head.arrays.map(async (name) => [name, new Float32Array(await (await fetch(`/data/${name}`)).arrayBuffer())]),
  ),
);
const shaders = {};
for (const name of ["eigenskin.glsl", "eigenskin_values.glsl"]) shaders[name] = await (await fetch(`/shaders/${name}`)).text();

const renderer = new THREE.WebGLRenderer();
const screen = new THREE.WebGLRenderTarget(64, 64);
const pixel = new Uint8Array(4);
const camera = new THREE.OrthographicCamera(-head.size, head.size, head.size, -head.size, -10 * head.size, 10 * head.size);

const texture = (data, width, height, options = {}) => {
  const made = new THREE.DataTexture(data, width, height, THREE.RGBAFormat, THREE.FloatType);
  Object.assign(made, options, { needsUpdate: true });
  return made;
};

function skeleton() {
  const bones = head.bones.map(({ parent, place }) => {
    const bone = new THREE.Bone();
    bone.position.fromArray(place);
    return Object.assign(bone, { userData: { parent } });
  });
  bones.forEach((bone) => bone.userData.parent >= 0 && bones[bone.userData.parent].add(bone));
  return bones;
}

class Way {
  constructor(material, { morphs = false, runs = false } = {}) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(arrays.rest, 3));
    geometry.setAttribute("normal", new THREE.BufferAttribute(arrays.normals, 3));
    geometry.setAttribute("skinIndex", new THREE.BufferAttribute(Uint16Array.from(arrays.bones), 4));
    geometry.setAttribute("skinWeight", new THREE.BufferAttribute(arrays.weights, 4));
    geometry.setIndex(new THREE.BufferAttribute(Uint32Array.from(arrays.triangles), 1));
    if (runs) geometry.setAttribute("run", new THREE.BufferAttribute(arrays.runs, 2));
    if (morphs) {
      geometry.morphTargetsRelative = true;
      const length = arrays.rest.length;
      geometry.morphAttributes.position = Array.from(
        { length: head.components },
        (_, index) => new THREE.BufferAttribute(arrays.morphs.subarray(index * length, (index + 1) * length), 3),
      );
    }
    this.bones = skeleton();
    this.mesh = new THREE.SkinnedMesh(geometry, material);
    this.bones.forEach((bone) => bone.userData.parent < 0 && this.mesh.add(bone));
    this.mesh.updateMatrixWorld(true);
    this.mesh.bind(new THREE.Skeleton(this.bones));
    this.mesh.frustumCulled = false;
    this.scene = new THREE.Scene();
    this.scene.add(this.mesh, new THREE.AmbientLight(0xffffff, 1));
    if (morphs) this.mesh.updateMorphTargets();
  }

  pose(number) {
    head.joints.forEach((joint, index) => {
      this.bones[joint].quaternion.fromArray(arrays.turns, 4 * (number * head.joints.length + index));
    });
  }

  update(number) {
    this.pose(number);
    renderer.setRenderTarget(screen);
    renderer.render(this.scene, camera);
    renderer.readRenderTargetPixels(screen, 32, 32, 1, 1, pixel);
  }
}

class Morphs extends Way {
  constructor() {
    super(new THREE.MeshLambertMaterial(), { morphs: true });
  }
  pose(number) {
    super.pose(number);
    // As an animation of the file has them: the values are known.
    for (let index = 0; index < head.components; index++) {
      this.mesh.morphTargetInfluences[index] = arrays.values[number * head.components + index];
    }
  }
}

class Eigen extends Way {
  constructor() {
    const values = new THREE.WebGLRenderTarget(head.components, 1, { type: THREE.FloatType, depthBuffer: false });
    const displacements = texture(arrays.displacements, 1024, head.displacementRows);
    const material = new THREE.MeshLambertMaterial();
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, { displacements: { value: displacements }, eigenValues: { value: values.texture } });
      shader.vertexShader = shader.vertexShader
        .replace(
          "#include <common>",
          `#include <common>
          attribute vec2 run;
          uniform highp sampler2D displacements, eigenValues;
          vec4 eigenskin_displacement(int i) { return texelFetch(displacements, ivec2(i % 1024, i / 1024), 0); }
          float eigenskin_value(int i) { return texelFetch(eigenValues, ivec2(i, 0), 0).x; }
          ${shaders["eigenskin.glsl"]}`,
        )
        .replace("#include <begin_vertex>", "vec3 transformed = eigenskin_position(position, run);");
    };
    super(material, { runs: true });
    this.values = values;
    this.turns = texture(new Float32Array(4 * head.joints.length), head.joints.length, 1);
    const pass = new THREE.RawShaderMaterial({
      glslVersion: THREE.GLSL3,
      depthTest: false,
      uniforms: { network: { value: texture(arrays.network, 1024, head.networkRows) }, turns: { value: this.turns } },
      vertexShader: "in vec3 position; void main() { gl_Position = vec4(position, 1.0); }",
      fragmentShader: `precision highp float; precision highp int; precision highp sampler2D;
        uniform sampler2D network, turns;
        out vec4 color;
        vec4 eigenskin_network(int i) { return texelFetch(network, ivec2(i % 1024, i / 1024), 0); }
        vec4 joint_turn(int joint) { return texelFetch(turns, ivec2(joint, 0), 0); }
        ${shaders["eigenskin_values.glsl"]}
        void main() { color = vec4(eigenskin_value_of(int(gl_FragCoord.x)), 0.0, 0.0, 1.0); }`,
    });
    const triangle = new THREE.BufferGeometry();
    triangle.setAttribute("position", new THREE.Float32BufferAttribute([-1, -1, 0, 3, -1, 0, -1, 3, 0], 3));
    this.pass = new THREE.Mesh(triangle, pass);
    this.pass.frustumCulled = false;
  }
  pose(number) {
    super.pose(number);
    const count = 4 * head.joints.length;
    this.turns.image.data.set(arrays.turns.subarray(number * count, (number + 1) * count));
    this.turns.needsUpdate = true;
    renderer.setRenderTarget(this.values);
    renderer.render(this.pass, camera);
  }
}

const ways = { "skin alone": new Way(new THREE.MeshLambertMaterial()), "morph targets": new Morphs(), "eigen shader": new Eigen() };
const milliseconds = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let turn = -3; turn < head.updates; turn++) {
  for (const [name, way] of Object.entries(ways)) {
    const begin = performance.now();
    way.update((turn + 3) % head.poses);
    // The first updates compile and upload.
    if (turn >= 0) milliseconds[name].push(performance.now() - begin);
  }
}
const eigen = ways["eigen shader"];
const found = new Float32Array(4 * head.components);
let away = 0;
for (let number = 0; number < head.poses; number++) {
  eigen.pose(number);
  renderer.readRenderTargetPixels(eigen.values, 0, 0, head.components, 1, found);
  for (let index = 0; index < head.components; index++) {
    away = Math.max(away, Math.abs(found[4 * index] - arrays.values[number * head.components + index]));
  }
}
const gl = renderer.getContext();
const info = gl.getExtension("WEBGL_debug_renderer_info");
const answer = { milliseconds, away, three: THREE.REVISION, renderer: gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER) };
await fetch("/result", { method: "POST", body: JSON.stringify(answer) });
