// SPDX-License-Identifier: GPL-3.0-or-later
// The corrected normals of EigenSkin (Kry, James, Pai 2002, section 2) for a vertex shader, GLSL ES 3.00 or desktop 3.30
// and newer: components and values of their own, beside those of the positions in eigenskin.glsl. The engine provides
// the texels of the table "normals", and the values of the components in this frame, from eigenskin_values.glsl:
//   vec4 eigenskin_correction(int texel);    float eigenskin_value(int component);
// The result is of the rest pose: the skin moves it as any other normal, see normals.glsl.

vec3 eigenskin_normal(vec3 normal, vec2 run)
{
  vec3 sum = normal;
  int first = int(run.x);
  for (int i = first; i < first + int(run.y); i++) {
    vec4 correction = eigenskin_correction(i);
    sum += eigenskin_value(int(correction.w)) * correction.xyz;
  }
  float size = length(sum);
  return size > 1e-6 ? sum / size : normal;
}
