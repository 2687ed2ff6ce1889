# SPDX-License-Identifier: GPL-3.0-or-later
"""The methods that find the bones of a vertex: one file and one entry each. Needs no scipy, so that panels can list
them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BindingMethod:
    """identifier, label and tip: as panels show them. module: a module of this package with ``assign(request,
    progress)``, which returns an Assignment, whose borders are then smoothed, or (W,) the one bone of each place.
    number: stored in files, so it never changes. A new method takes the next one.
    """

    identifier: str
    label: str
    tip: str
    module: str
    number: int


METHODS = (
    BindingMethod(
        "AUTOMATIC",
        "Automatic",
        "Paths through the inside of the body, for each of its parts: for characters of any kind",
        "automatic",
        4,
    ),
    BindingMethod(
        "DELAUNAY",
        "Delaunay",
        "Paths between the vertices of a closed body: for characters of one part",
        "delaunay",
        0,
    ),
    BindingMethod(
        "POINT_TO_LINE",
        "Point to Line",
        "Planes at the joints divide the body: for limbs apart from each other. The fastest of the smooth methods",
        "point_to_line",
        1,
    ),
    BindingMethod(
        "CONTAINMENT",
        "Containment",
        "Volumes around the bones, which you can edit: for parts that other methods give to the wrong bone",
        "containment",
        2,
    ),
    BindingMethod("RIGID", "Rigid", "One bone for each vertex: for robots, machines and armor", "rigid", 3),
)
