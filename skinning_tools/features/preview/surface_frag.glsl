// SPDX-License-Identifier: GPL-3.0-or-later
// Shading of the skinned surface, by one color or by the distance between two methods.

// Blue, cyan, green, yellow, red: as the legend's stops in legend.py.
vec3 heat(float share)
{
  float t = 4.0 * clamp(share, 0.0, 1.0);
  return clamp(vec3(t - 2.0, min(t, 4.0 - t), 2.0 - t), vec3(0.0), vec3(1.0));
}

void main()
{
  vec3 normal = view_normal;
  if (surface.options.y > 0.5) {
    normal = cross(dFdx(view_position), dFdy(view_position));
  }
  float size = length(normal);
  normal = size > 0.0 ? normal / size : vec3(0.0, 0.0, 1.0);
  // Both sides are lit alike, whichever way a face is turned.
  vec3 to_eye = surface.options.w > 0.5 ? -view_position : vec3(0.0, 0.0, 1.0);
  if (dot(normal, to_eye) < 0.0) {
    normal = -normal;
  }
  vec3 color = surface.methods.z > 0.5 ? heat(difference / surface.options.z) : surface.color.rgb;
  float key = max(dot(normal, normalize(vec3(-0.4, 0.7, 0.6))), 0.0);
  float fill = max(dot(normal, normalize(vec3(0.8, -0.1, 0.5))), 0.0);
  shaded = vec4(color * (0.25 + 0.6 * key + 0.25 * fill), surface.color.a);
}
