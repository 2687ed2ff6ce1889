# SPDX-License-Identifier: GPL-3.0-or-later
"""Every text that users see has a translation in each catalog, and messages with values find theirs."""

from pathlib import Path

import pytest

import skinning_tools
from skinning_tools.blender.translation import texts_for_blender
from skinning_tools.core import catalog
from skinning_tools.core.catalog import Catalog, fields
from tools import translations

pytestmark = pytest.mark.usefixtures("extension")

PACKAGE = Path(skinning_tools.__file__).parent


@pytest.fixture(scope="module")
def german():
    return catalog.translations(catalog.read(translations.LANGUAGES / "de.po"))


def test_texts_are_english_until_they_are_shown():
    """What is stored or reported to programs must not depend on the interface: ``translated`` is the only way."""
    assert [path.name for path in PACKAGE.rglob("*.py") if "pgettext" in path.read_text("utf-8")] == []


@pytest.mark.parametrize("path", sorted(translations.LANGUAGES.glob("*.po")), ids=lambda path: path.stem)
def test_every_text_has_a_translation_with_the_same_fields(path):
    """If this fails: python -m tools.translations adds new texts to the catalogs, to be translated there."""
    wanted, known = translations.texts(), catalog.translations(catalog.read(path))
    assert len(wanted) > 2000
    assert translations.missing(known, wanted) == []
    assert sorted(known.keys() - set(wanted)) == [], "texts that are gone"
    assert [text for text in wanted if fields(text) != fields(known[text])] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'The object "Cube" has no vertices. Choose a mesh that has vertices',
            'Objekt "Cube" hat keine Eckpunkte. Ein Mesh mit Eckpunkten wählen',
        ),
        # A value that is itself a text; a name that is one stays.
        (
            'The object "Mesh" is already deformed by the modifier "Bones". Disable one of them in the viewport, or '
            "remove it",
            'Objekt "Mesh" wird bereits verformt von dem Modifikator "Bones". Einen davon im Ansichtsfenster '
            "deaktivieren oder entfernen",
        ),
        ("Iterations must be at least 1, not 0", "Wiederholungen: muss mindestens 1 sein, nicht 0"),
        # Texts that are joined.
        (
            "the weights from before the bake are back; Preserve Volume on again; 2 helper bones removed",
            "die Gewichte von vor dem Backen sind zurück; Volumen erhalten wieder an; 2 Hilfsknochen entfernt",
        ),
        # Capitalized where it is shown.
        ("About 12 s", "Etwa 12 s"),
        ('"Body" to "Rig"', '"Body" an "Rig"'),
        ("Something else altogether", "Something else altogether"),
    ],
)
def test_messages_with_values(german, text, expected):
    assert Catalog(german).translate(text) == expected


EDITED = r"""# By an editor for gettext.
msgid ""
msgstr ""
"Language: de\n"

# A bone is
# meant.
msgid "Bulge"
msgstr "Wölbung"

msgctxt "Operator"
msgid "Bulge"
msgstr "Wölben"

#, fuzzy
msgid "Guessed by \"the\" editor"
msgstr "Knochen"

msgid ""
"First line\n"
"second"
msgstr ""
"Erste Zeile\n"
"zweite"

msgid "vertex"
msgid_plural "vertices"
msgstr[0] "Eckpunkt"
msgstr[1] "Eckpunkte"

msgid "To do"
msgstr ""
"""


def test_files_of_editors_for_gettext(tmp_path):
    path = tmp_path / "de.po"
    path.write_text(EDITED, encoding="utf-8")
    lines = {"First line\nsecond": "Erste Zeile\nzweite"}
    assert catalog.translations(catalog.read(path)) == {"Bulge": "Wölbung"} | lines
    shown = texts_for_blender(path)
    assert (shown["*", "Bulge"], shown["Operator", "Bulge"]) == ("Wölbung", "Wölben")

    wanted = ["New", 'Guessed by "the" editor', "Bulge"]
    updated = translations.updated(catalog.read(path) * 2, wanted)
    catalog.write(path, updated, "Head")
    written = path.read_text("utf-8")
    assert "# meant.\nmsgid" in written
    assert '#, fuzzy\nmsgid "Guessed by \\"the\\" editor"\nmsgstr "Knochen"' in written
    assert 'msgctxt "Operator"\nmsgid "Bulge"' in written
    assert catalog.read(path)[1:] == updated
