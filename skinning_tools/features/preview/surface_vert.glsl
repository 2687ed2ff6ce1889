// SPDX-License-Identifier: GPL-3.0-or-later
// A vertex of the skinned surface. Inputs and uniforms are declared in shaders.py.

void main()
{
  Influences influences = gathered();
  int method = int(surface.methods.x);
  int compared = int(surface.methods.y);
  Skinned own = skinned(method, influences, rest, center);
  // In the view's space, in which the eye is the origin and the light comes over its shoulder.
  view_position = (surface.to_view * vec4(own.position, 1.0)).xyz;
  view_normal = mat3(surface.normal_to_view) * skinned_normal(own.linear, normal);
  difference = 0.0;
  if (compared != method) {
    Skinned other = skinned(compared, influences, rest, center);
    difference = distance(mat3(surface.to_world) * own.position, mat3(surface.to_world) * other.position);
  }
  gl_Position = surface.to_clip * vec4(own.position, 1.0);
  // Into the nearest tenth of the depths, so that the original, which may lie at the same place, does not cover it.
  if (surface.options.x > 0.5) {
    gl_Position.z = 0.1 * gl_Position.z - 0.9 * gl_Position.w;
  }
}
