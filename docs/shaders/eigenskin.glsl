// SPDX-License-Identifier: GPL-3.0-or-later
// EigenSkin (Kry, James, Pai 2002, section 2.5) for a vertex shader, GLSL ES 3.00 or desktop 3.30 and newer: the
// eigendisplacements are a texture, each vertex has a run of its texels. The engine provides the texels of the table
// "displacements", and the values of the components in this frame, from eigenskin_values.glsl:
//   vec4 eigenskin_displacement(int texel);    float eigenskin_value(int component);
// position = skin matrix * vec4(eigenskin_position(POSITION, _EIGENSKIN), 1.0), by any skin matrix.

vec3 eigenskin_position(vec3 position, vec2 run)
{
  int first = int(run.x);
  for (int i = first; i < first + int(run.y); i++) {
    vec4 displacement = eigenskin_displacement(i);
    position += eigenskin_value(int(displacement.w)) * displacement.xyz;
  }
  return position;
}
