# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that are installed into .venv, with pinned versions and a reason for each.

The packages inside the extension (scipy's wheels) are in blender_manifest.toml.
"""

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Blender:
    """Blender's Python module of one long-term release, with the numpy it ships and the scipy the extension brings."""

    python: tuple[int, int]
    bpy: str
    numpy: str
    scipy: str

    @property
    def requirements(self) -> tuple[str, ...]:
        pinned = {"bpy": self.bpy, "numpy": self.numpy, "scipy": self.scipy}
        return *(f"{name}=={version}" if version else name for name, version in pinned.items()), *TOOLS


TOOLS = (
    "matplotlib==3.10.9",  # the demo's plot of the error over time
    "pytest==9.2.0",  # runs the tests
    "pytest-xdist==3.8.0",  # runs them in as many processes as there are processors, each with a Blender of its own
    "hypothesis==6.170.15",  # property tests of the core
    "openjd-cli==0.8.0",  # runs the template of farm/ like a render manager
    "ruff==0.17.5",  # checks style and finds likely mistakes
    "mypy==2.4.1",  # checks annotations, with the types of the newest numpy among BLENDERS
)

# For the Python of a Blender program, which has numpy; scipy comes with the extension. pytest-blender starts the
# program and hands pytest's arguments to a pytest inside it.
PROGRAM_TOOLS = ("pytest-blender==3.0.8", *(tool for tool in TOOLS if tool.startswith(("pytest==", "hypothesis=="))))

# Builds docs/ as web pages: in a separate folder, only by `build.py html`.
SITE_TOOLS = (
    "sphinx==9.0.4",  # checks every link and anchor as well; the last series for Python 3.11
    "myst-parser==5.2.0",  # reads the pages as written for a code host: Markdown with relative links
    "furo==2025.12.19",  # plain pages for desktop and phone, light and dark, that load nothing from other sites
)

# Rivals of the benchmarks, by the benchmark's file: installed only by `build.py bench NAME --rivals`.
RIVALS = {
    # EA's Dem Bones with its C++ core; has wheels for Python 3.11 only.
    **dict.fromkeys(("skinning_tables", "shape_key_rivals"), ("py-dem-bones==0.13.1",)),
}

# From old to new.
BLENDERS = {
    "4.2": Blender(python=(3, 11), bpy="4.2.23", numpy="1.24.3", scipy="1.15.3"),
    "4.5": Blender(python=(3, 11), bpy="4.5.15", numpy="1.26.4", scipy="1.15.3"),
    "5.2": Blender(python=(3, 13), bpy="5.2.3", numpy="2.3.5", scipy="1.17.1"),
}

NEWEST_BLENDER = list(BLENDERS)[-1]


def blender(name: str) -> Blender | None:
    """The Blender of a version such as "5.2"; of one newer than all supported ones, the latest that the
    registry has for this Python, with any numpy and scipy that fit. None for other versions."""
    if name in BLENDERS or not is_newer(name):
        return BLENDERS.get(name)
    return Blender(python=sys.version_info[:2], bpy=f"{name}.*", numpy="", scipy="")


def is_newer(name: str) -> bool:
    """Whether a version is beyond the supported ones."""
    return [int(part) for part in name.split(".")] > [int(part) for part in NEWEST_BLENDER.split(".")]


DEFAULT_BLENDER = {(3, 11): "4.5", (3, 13): "5.2"}

SYSTEM_LIBRARIES = {
    # System libraries of the bpy wheels for Linux, with their Debian packages.
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libGLdispatch.so.0": "libglvnd0",
    "libICE.so.6": "libice6",
    "libOpenGL.so.0": "libopengl0",
    "libSM.so.6": "libsm6",
    "libX11.so.6": "libx11-6",
    "libXau.so.6": "libxau6",
    "libXdmcp.so.6": "libxdmcp6",
    "libXext.so.6": "libxext6",
    "libXfixes.so.3": "libxfixes3",
    "libXi.so.6": "libxi6",
    "libXrender.so.1": "libxrender1",
    "libXt.so.6": "libxt6",
    "libXxf86vm.so.1": "libxxf86vm1",
    "libbsd.so.0": "libbsd0",
    "libgcc_s.so.1": "libgcc-s1",
    "libgomp.so.1": "libgomp1",
    "libmd.so.0": "libmd0",
    "libstdc++.so.6": "libstdc++6",
    "libuuid.so.1": "libuuid1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
}
