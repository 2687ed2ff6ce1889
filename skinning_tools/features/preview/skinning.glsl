// SPDX-License-Identifier: GPL-3.0-or-later
// Linear blend, dual quaternion and center-of-rotation skinning of one vertex, step for step as core/deform/blend.py.
// Before this file come: the sampler bone_texture, BONES_PER_ROW, GROUPS, and LBS, DQS and CRS as numbers.

// Influences come as GROUPS pairs of vertex inputs with four each.
#define INFLUENCES (4 * GROUPS)

struct Influences {
  uint bones[INFLUENCES];
  float weights[INFLUENCES];
};

// A bone from rest pose to frame: linear part, translation, and its rotation as a quaternion (x, y, z, w).
struct Bone {
  mat3 linear;
  vec3 translation;
  vec4 turn;
};

struct Skinned {
  vec3 position;
  mat3 linear;
};

#define GATHER(START, BONES, WEIGHTS) \
  for (int slot = 0; slot < 4; slot++) { \
    influences.bones[START + slot] = BONES[slot]; \
    influences.weights[START + slot] = WEIGHTS[slot]; \
  }

Influences gathered()
{
  Influences influences;
  GATHER(0, bones_0, weights_0)
#if GROUPS > 1
  GATHER(4, bones_1, weights_1)
#endif
#if GROUPS > 2
  GATHER(8, bones_2, weights_2)
#endif
#if GROUPS > 3
  GATHER(12, bones_3, weights_3)
#endif
#if GROUPS > 4
  GATHER(16, bones_4, weights_4)
#endif
#if GROUPS > 5
  GATHER(20, bones_5, weights_5)
#endif
  return influences;
}

// Four texels a bone: the three rows of its matrix, then its quaternion.
Bone bone_at(uint index)
{
  ivec2 texel = ivec2(int(index % uint(BONES_PER_ROW)) * 4, int(index / uint(BONES_PER_ROW)));
  vec4 x = texelFetch(bone_texture, texel, 0);
  vec4 y = texelFetch(bone_texture, texel + ivec2(1, 0), 0);
  vec4 z = texelFetch(bone_texture, texel + ivec2(2, 0), 0);
  Bone bone;
  bone.linear = mat3(vec3(x.x, y.x, z.x), vec3(x.y, y.y, z.y), vec3(x.z, y.z, z.z));
  bone.translation = vec3(x.w, y.w, z.w);
  bone.turn = texelFetch(bone_texture, texel + ivec2(3, 0), 0);
  return bone;
}

vec4 quaternion_product(vec4 left, vec4 right)
{
  return vec4(left.w * right.xyz + right.w * left.xyz + cross(left.xyz, right.xyz),
              left.w * right.w - dot(left.xyz, right.xyz));
}

mat3 rotation_matrix(vec4 q)
{
  return mat3(vec3(1.0 - 2.0 * (q.y * q.y + q.z * q.z), 2.0 * (q.x * q.y + q.w * q.z), 2.0 * (q.x * q.z - q.w * q.y)),
              vec3(2.0 * (q.x * q.y - q.w * q.z), 1.0 - 2.0 * (q.x * q.x + q.z * q.z), 2.0 * (q.y * q.z + q.w * q.x)),
              vec3(2.0 * (q.x * q.z + q.w * q.y), 2.0 * (q.y * q.z - q.w * q.x), 1.0 - 2.0 * (q.x * q.x + q.y * q.y)));
}

mat3 identity()
{
  return mat3(vec3(1.0, 0.0, 0.0), vec3(0.0, 1.0, 0.0), vec3(0.0, 0.0, 1.0));
}

mat3 zero()
{
  return mat3(vec3(0.0), vec3(0.0), vec3(0.0));
}

Skinned linear_blend(Influences influences, vec3 point)
{
  mat3 linear = zero();
  vec3 translation = vec3(0.0);
  for (int slot = 0; slot < INFLUENCES; slot++) {
    float weight = influences.weights[slot];
    if (weight > 0.0) {
      Bone bone = bone_at(influences.bones[slot]);
      linear += weight * bone.linear;
      translation += weight * bone.translation;
    }
  }
  Skinned result;
  result.position = linear * point + translation;
  result.linear = linear;
  return result;
}

// The sum of the weighted quaternions, each on the side of the sum before it. Half turns are left on theirs: rounding
// must not choose a side for each vertex anew.
float side(vec4 total, vec4 turn)
{
  return dot(total, turn) < -1e-6 * length(total) ? -1.0 : 1.0;
}

Skinned dual_quaternion_blend(Influences influences, vec3 point)
{
  vec4 total = vec4(0.0);
  vec4 dual = vec4(0.0);
  mat3 stretch = zero();
  for (int slot = 0; slot < INFLUENCES; slot++) {
    float weight = influences.weights[slot];
    if (weight > 0.0) {
      Bone bone = bone_at(influences.bones[slot]);
      mat3 rotation = rotation_matrix(bone.turn);
      vec4 turn = weight * side(total, bone.turn) * bone.turn;
      total += turn;
      vec3 shift = bone.translation + (bone.linear - rotation) * point;
      dual += 0.5 * quaternion_product(vec4(shift, 0.0), turn);
      stretch += weight * (transpose(rotation) * bone.linear);
    }
  }
  vec4 conjugate = vec4(-total.xyz, total.w);
  vec3 translation = 2.0 * quaternion_product(dual, conjugate).xyz / dot(total, total);
  mat3 rotation = rotation_matrix(normalize(total));
  Skinned result;
  result.position = rotation * point + translation;
  result.linear = rotation * stretch;
  return result;
}

Skinned turned_about_center(Influences influences, vec3 point, vec3 center)
{
  vec4 total = vec4(0.0);
  mat3 stretch = zero();
  vec3 target = vec3(0.0);
  for (int slot = 0; slot < INFLUENCES; slot++) {
    float weight = influences.weights[slot];
    if (weight > 0.0) {
      Bone bone = bone_at(influences.bones[slot]);
      mat3 rotation = rotation_matrix(bone.turn);
      total += weight * side(total, bone.turn) * bone.turn;
      target += weight * (bone.linear * center + bone.translation);
      stretch += weight * (transpose(rotation) * bone.linear);
    }
  }
  Skinned result;
  result.linear = rotation_matrix(normalize(total)) * stretch;
  result.position = result.linear * (point - center) + target;
  return result;
}

Skinned skinned(int method, Influences influences, vec3 point, vec3 center)
{
  // A vertex that no bone moves keeps its place.
  float sum = 0.0;
  for (int slot = 0; slot < INFLUENCES; slot++) {
    sum += influences.weights[slot];
  }
  if (sum <= 0.0) {
    Skinned still;
    still.position = point;
    still.linear = identity();
    return still;
  }
  if (method == DQS) {
    return dual_quaternion_blend(influences, point);
  }
  if (method == CRS) {
    return turned_about_center(influences, point, center);
  }
  return linear_blend(influences, point);
}

// The inverse transpose but for its scale, which exists for maps that flatten too; outside stays outside.
vec3 skinned_normal(mat3 linear, vec3 normal)
{
  mat3 cofactors = mat3(cross(linear[1], linear[2]), cross(linear[2], linear[0]), cross(linear[0], linear[1]));
  float mirrored = dot(linear[0], cofactors[0]) < 0.0 ? -1.0 : 1.0;
  return mirrored * (cofactors * normal);
}
