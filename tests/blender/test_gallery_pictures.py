# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gallery says about its frog, without drawing it."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("extension")


def test_bind_is_close_where_automatic_weights_fail(shared_data, monkeypatch):
    pytest.importorskip("matplotlib")
    shared_data("rigs/Frog.glb")
    monkeypatch.setattr(sys, "path", [str(Path(__file__).resolve().parents[2] / "demos"), *sys.path])
    import gallery

    artists, automatic, bound = gallery.bind_frog()
    meshes, captions, _ = gallery.draw_bind(artists, automatic, bound)
    assert len(meshes) == len(captions) == 3
    assert captions[1] == ("Automatic weights", f"{len(artists.data.vertices):,} vertices without weights")
    assert 0 < float(captions[2][1].partition(" %")[0]) < 2
