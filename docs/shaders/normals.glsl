// SPDX-License-Identifier: GPL-3.0-or-later
// Normals and tangents of linear blend skinning (the smooth skinning chapter, equations 3.6 to 3.10) for a vertex shader,
// GLSL ES 3.00 or desktop 3.30 and newer. The engine provides each joint's matrix, as for the positions:
//   mat4 joint_matrix(uint joint);
// Choose one of the five, for unit normals:
//   rigid_normal            equations 3.6 and 3.7: joints that only rotate and move
//   blended_normal          equations 3.8 and 3.7: joints that scale and shear, too
//   equalized_normal        the same, each joint's normal at unit length before it is blended: very different scales
//   rigid_strongest_normal  the joint with the largest weight alone: rotations keep the length, so nothing is normalized
//   strongest_normal        the same for joints that scale and shear, too
// and, where the material needs them, tangents with the sign of the bitangent in w, as glTF has them:
//   blended_tangent         equations 3.9 and 3.10

const float NEGLIGIBLE = 1e-6;  // beside the largest term, what is left of a sum is rounding

// The inverse transpose. A joint that flattens counts as one with a tiny thickness.
mat3 normal_matrix(mat3 linear)
{
  float size = max(length(linear[0]), max(length(linear[1]), length(linear[2])));
  if (size == 0.0) {
    return mat3(0.0);
  }
  mat3 scaled = linear / size;
  mat3 cofactors = mat3(cross(scaled[1], scaled[2]), cross(scaled[2], scaled[0]), cross(scaled[0], scaled[1]));
  float volume = dot(scaled[0], cofactors[0]);
  return cofactors / (size * (volume < 0.0 ? min(volume, -NEGLIGIBLE) : max(volume, NEGLIGIBLE)));
}

vec3 unit_or(vec3 value, float least, vec3 otherwise)
{
  float size = length(value);
  return size > least ? value / size : otherwise;
}

mat3 strongest_joint(uvec4 joints, vec4 weights)
{
  int slot = 0;
  for (int i = 1; i < 4; i++) {
    slot = weights[i] > weights[slot] ? i : slot;
  }
  return mat3(joint_matrix(joints[slot]));
}

vec3 rigid_strongest_normal(vec3 normal, uvec4 joints, vec4 weights)
{
  return strongest_joint(joints, weights) * normal;
}

vec3 strongest_normal(vec3 normal, uvec4 joints, vec4 weights)
{
  return unit_or(normal_matrix(strongest_joint(joints, weights)) * normal, 0.0, normal);
}

vec3 rigid_normal(vec3 normal, uvec4 joints, vec4 weights)
{
  vec3 sum = vec3(0.0);
  for (int i = 0; i < 4; i++) {
    sum += weights[i] * (mat3(joint_matrix(joints[i])) * normal);
  }
  return unit_or(sum, NEGLIGIBLE, rigid_strongest_normal(normal, joints, weights));
}

vec3 blended_normal(vec3 normal, uvec4 joints, vec4 weights)
{
  vec3 sum = vec3(0.0);
  float largest = 0.0;
  for (int i = 0; i < 4; i++) {
    vec3 moved = weights[i] * (normal_matrix(mat3(joint_matrix(joints[i]))) * normal);
    largest = max(largest, length(moved));
    sum += moved;
  }
  return unit_or(sum, NEGLIGIBLE * largest, strongest_normal(normal, joints, weights));
}

vec3 equalized_normal(vec3 normal, uvec4 joints, vec4 weights)
{
  vec3 sum = vec3(0.0);
  for (int i = 0; i < 4; i++) {
    sum += weights[i] * unit_or(normal_matrix(mat3(joint_matrix(joints[i]))) * normal, 0.0, vec3(0.0));
  }
  return unit_or(sum, NEGLIGIBLE, strongest_normal(normal, joints, weights));
}

vec4 blended_tangent(vec4 tangent, uvec4 joints, vec4 weights)
{
  mat3 linear = mat3(0.0);
  float largest = 0.0;
  for (int i = 0; i < 4; i++) {
    mat3 joint = mat3(joint_matrix(joints[i]));
    largest = max(largest, length(weights[i] * (joint * tangent.xyz)));
    linear += weights[i] * joint;
  }
  if (length(linear * tangent.xyz) <= NEGLIGIBLE * largest) {
    linear = strongest_joint(joints, weights);
  }
  vec3 direction = unit_or(linear * tangent.xyz, 0.0, tangent.xyz);
  return vec4(direction, determinant(linear) < 0.0 ? -tangent.w : tangent.w);
}
