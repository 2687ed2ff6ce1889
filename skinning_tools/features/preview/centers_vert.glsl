// SPDX-License-Identifier: GPL-3.0-or-later
// One end of the line from a center of rotation, where the bones have taken it, to its vertex.

void main()
{
  Influences influences = gathered();
  vec3 position = at_center > 0.5 ? skinned(LBS, influences, center, center).position :
                                    skinned(int(surface.methods.x), influences, rest, center).position;
  nearness = at_center;
  gl_Position = surface.to_clip * vec4(position, 1.0);
  // Nearer than the surface: centers lie inside it.
  gl_Position.z = 0.05 * gl_Position.z - 0.95 * gl_Position.w;
  gl_PointSize = surface.options.z;
}
