// SPDX-License-Identifier: GPL-3.0-or-later
// The values of EigenSkin's components (Kry, James, Pai 2002, section 2.4), from the joints: GLSL ES 3.00 or desktop 3.30
// and newer. For a pass that draws one pixel for each component, once a frame, into the texture that eigenskin.glsl
// reads. The engine provides the texels of the table "network", and how each joint of the table's list is turned against
// its rest pose, in its own axes, as a unit quaternion (x, y, z, w):
//   vec4 eigenskin_network(int texel);    vec4 joint_turn(int joint);
// joint_turn may be turn_between of the joint's and its parent's matrices, as for linear blend skinning, and of the
// joint's "axes" in the list.

const float TURN = 6.28318530717958647692;

float feature(int row, int center)
{
  vec4 joint = eigenskin_network(row);
  vec4 share = eigenskin_network(row + 2);
  vec4 turn = joint_turn(int(joint.x));
  vec4 known = eigenskin_network(center);
  if (joint.y == 0.0) {
    float cosine = dot(turn, known);
    return share.x * exp(-4.0 * (1.0 - cosine * cosine) / joint.w) + share.y * cosine * cosine;
  }
  // A hinge: its angle, which jumps half a turn away from the middle of the known ones.
  float along = dot(turn.xyz, eigenskin_network(row + 1).xyz);
  vec2 twist = vec2(abs(turn.w), turn.w < 0.0 ? -along : along);
  float angle = 2.0 * atan(twist.y, twist.x);
  float away = mod(angle - joint.z + 0.5 * TURN, TURN) + joint.z - 0.5 * TURN - known.x;
  // Of half the difference, from products: weights are large, and the cosine of a graphics card may be rough.
  float cosine = dot(twist, known.yz) / max(length(twist), 1e-20);
  return share.x * exp(-away * away / joint.w) + share.y * cosine * cosine;
}

// Zero at rest, if at_rest is what the feature is there.
float tied_feature(int row, int center, float at_rest)
{
  float rest = at_rest == 0.0 ? 0.0 : feature(row, int(eigenskin_network(row + 1).w));
  return feature(row, center) - at_rest * rest;
}

float eigenskin_value_of(int component)
{
  vec4 head = eigenskin_network(component);
  float value = 0.0;
  for (int i = 0; i < int(head.y); i++) {
    vec4 one = eigenskin_network(int(head.x) + 2 * i);
    vec4 other = eigenskin_network(int(head.x) + 2 * i + 1);
    float term = one.x * tied_feature(int(one.y), int(one.z), one.w);
    value += other.x < 0.0 ? term : term * tied_feature(int(other.x), int(other.y), other.z);
  }
  return clamp(value, -head.z, head.z);
}

vec3 turned(vec4 q, vec3 v) { return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v); }

vec4 turn_between(mat4 parent, mat4 joint, vec4 axes)
{
  mat3 frame = mat3(turned(axes, vec3(1, 0, 0)), turned(axes, vec3(0, 1, 0)), turned(axes, vec3(0, 0, 1)));
  mat3 m = transpose(frame) * (inverse(mat3(parent)) * mat3(joint)) * frame;
  m = mat3(normalize(m[0]), normalize(m[1]), normalize(m[2]));  // without the joint's own scale
  vec4 squares = vec4(m[0][0] - m[1][1] - m[2][2], m[1][1] - m[0][0] - m[2][2], m[2][2] - m[0][0] - m[1][1],
                      m[0][0] + m[1][1] + m[2][2]);
  float most = max(max(squares.x, squares.y), max(squares.z, squares.w));
  vec4 q;
  if (most == squares.w) {
    q = vec4(m[1][2] - m[2][1], m[2][0] - m[0][2], m[0][1] - m[1][0], 1.0 + most);
  } else if (most == squares.x) {
    q = vec4(1.0 + most, m[0][1] + m[1][0], m[2][0] + m[0][2], m[1][2] - m[2][1]);
  } else if (most == squares.y) {
    q = vec4(m[0][1] + m[1][0], 1.0 + most, m[1][2] + m[2][1], m[2][0] - m[0][2]);
  } else {
    q = vec4(m[2][0] + m[0][2], m[1][2] + m[2][1], 1.0 + most, m[0][1] - m[1][0]);
  }
  return normalize(q);
}
