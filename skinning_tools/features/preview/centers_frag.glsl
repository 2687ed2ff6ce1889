// SPDX-License-Identifier: GPL-3.0-or-later
// Centers and their lines, which fade towards the vertex.

void main()
{
  shaded = vec4(surface.color.rgb, surface.color.a * mix(0.15, 1.0, nearness));
}
