# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to find the bones of a vertex: a file and a line each. Needs no scipy, so that interfaces can list them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BindingMethod:
    """identifier, label and tip: as interfaces show it. module: the one beside this with ``assign(request, progress)``,
    which returns an Assignment, whose borders are then smoothed; or (W,) the one bone of each place."""

    identifier: str
    label: str
    tip: str
    module: str


METHODS = (
    BindingMethod(
        "DELAUNAY",
        "Delaunay",
        "Ways through the inside of the body: for characters, above all where parts lie close, such as fingers",
        "delaunay",
    ),
    BindingMethod(
        "POINT_TO_LINE",
        "Point to Line",
        "Planes at the joints divide the body: for limbs apart from each other. The fastest of the smooth ones",
        "point_to_line",
    ),
    BindingMethod(
        "CONTAINMENT",
        "Containment",
        "Volumes around the bones, which you can edit: for parts that other methods give to the wrong bone",
        "containment",
    ),
    BindingMethod("RIGID", "Rigid", "One bone a vertex: for robots, machines and armor", "rigid"),
)
