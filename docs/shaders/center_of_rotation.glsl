// SPDX-License-Identifier: GPL-3.0-or-later
// Skinning about centers of rotation (Le & Hodgins 2016) for a vertex shader, GLSL ES 3.00 or desktop 3.30 and newer.
// The engine provides, for each joint: its matrix as for linear blend skinning, and the rotation of that matrix.
//   mat4 joint_matrix(uint joint);    vec4 joint_rotation(uint joint);    // unit quaternion (x, y, z, w)
// position = (skin_matrix(_COR, JOINTS_0, WEIGHTS_0) * vec4(POSITION, 1.0)).xyz; normals as with any skin matrix.

vec3 rotated(vec4 q, vec3 v) { return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v); }

mat3 rotation_matrix(vec4 q)
{
  return mat3(rotated(q, vec3(1, 0, 0)), rotated(q, vec3(0, 1, 0)), rotated(q, vec3(0, 0, 1)));
}

mat4 skin_matrix(vec3 center, uvec4 joints, vec4 weights)
{
  mat4 blended = mat4(0.0);
  mat3 stretch = mat3(0.0);  // the identity where no joint scales
  vec4 sum = vec4(0.0);
  for (int i = 0; i < 4; i++) {
    mat4 joint = joint_matrix(joints[i]);
    vec4 q = joint_rotation(joints[i]);
    blended += weights[i] * joint;
    stretch += weights[i] * (transpose(rotation_matrix(q)) * mat3(joint));
    sum += weights[i] * (dot(sum, q) < -1e-6 ? -q : q);  // half turns, dot about 0, keep one side everywhere
  }
  mat3 linear = rotation_matrix(sum == vec4(0.0) ? vec4(0, 0, 0, 1) : normalize(sum)) * stretch;
  vec3 target = (blended * vec4(center, 1.0)).xyz;
  return mat4(mat4x3(linear[0], linear[1], linear[2], target - linear * center));
}
