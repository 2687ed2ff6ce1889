# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation agrees with the code: messages, the Python reference and its example, links between pages."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import commands, environment, html_pages, messages, python_docs, references, requirements

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def without_code(text: str) -> str:
    """Markdown without its blocks and spans of code, in which nothing is a link or a heading."""
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as code hosts make them."""
    found: list[str] = []
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        before = sum(each == anchor for each in found)
        found.append(f"{anchor}-{before}" if before else anchor)
    return set(found)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken, broken


def test_architecture_names_files_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").replace("features/NAME", "features/bind")
    names = set(re.findall(r"`([\w/]+(?:\.py|/\w+))`", page))
    assert len(names) > 20
    assert [name for name in names if not any((*ROOT.glob(name), *(ROOT / "skinning_tools").rglob(name)))] == []


def test_every_row_of_the_sources_is_answered_by_files_that_exist():
    page = (ROOT / "docs" / "sources.md").read_text("utf-8")
    rows = [re.split(r" *\| *", line)[1:-1] for line in page.splitlines() if re.match(r"\| (?!---|in the )", line)]
    assert len(rows) > 70
    assert [row for row in rows if len(row) != 5 or not all(row)] == []
    # An answer without a file that shows it is open, or says why nothing can.
    assert [row[0] for row in rows if "`" not in row[4] and "open" not in row[1].lower() and "not " not in row[1]] == []
    names = set(re.findall(r"`([\w/]+/[\w/]+(?:\.\w+)?)(?:::(\w+))?`", page))
    found = {
        name: [base / name for base in (ROOT, ROOT / "skinning_tools") if (base / name).exists()] for name, _ in names
    }
    assert [name for name, paths in found.items() if not paths] == []
    tests = [(name, test) for name, test in names if test]
    assert [pair for pair in tests if f"def {pair[1]}(" not in found[pair[0]][0].read_text("utf-8")] == []


@pytest.fixture(scope="module")
def differences() -> tuple[list[str], list[str]]:
    return messages.differences(messages.messages(), messages.preconditions(), messages.PAGE.read_text("utf-8"))


def test_every_message_has_its_line_in_troubleshooting(differences):
    """Where this fails: add the message to the entry that it belongs to, or a new one; ``…`` stands for any words."""
    assert not differences[0], "\n".join(differences[0])


def test_troubleshooting_has_no_message_without_code(differences):
    assert not differences[1], "\n".join(differences[1])


def test_notes_of_troubleshooting_are_said_by_code():
    section = messages.PAGE.read_text("utf-8").partition("## Notes of a result")[2].partition("\n## ")[0]
    notes = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")][2:]
    trees = [ast.parse(path.read_text("utf-8")) for path in messages.PACKAGE.rglob("*.py")]
    said = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    said = "\n".join(text for text in said if isinstance(text, str))
    parts = [part.strip(" ,") for note in notes for part in note.split(messages.BLANK)]
    assert len(notes) > 5
    assert [part for part in parts if part not in said] == []


@pytest.mark.parametrize(
    ("line", "text", "fits"),
    [
        ("The … is in …", "The … is in …", True),
        ("The … is in …", 'The object "…" is in …', True),
        ("The … is in …", "The … is in Edit Mode", False),
        ("The … has a scale of zero", 'The object "…" or its armature "…" has a scale of zero', True),
        ("The … has a scale of zero", "The … has a scale of zero in …", False),
    ],
)
def test_blanks_of_a_line_are_any_words_where_it_has_some_of_its_own(line, text, fits):
    assert bool(messages.pattern(line).fullmatch(text)) == fits


def test_lines_of_preconditions_have_the_very_words_of_the_table():
    coded = {"HIDDEN": "The … is hidden", "MODE": "The … is in …"}
    page = "- `HIDDEN`: The … cannot be seen\n- `MODE`: The … is in …\n"
    expected = ["`HIDDEN`: The … is hidden"], ["`HIDDEN`: The … cannot be seen"]
    assert messages.differences({}, coded, page) == expected


def test_every_precondition_is_raised_by_its_code():
    sources = [path.read_text("utf-8") for path in messages.PACKAGE.rglob("*.py")]
    # Once in the table, and wherever it is raised.
    uses = {code: sum(source.count(f'"{code}"') for source in sources) for code in messages.preconditions()}
    assert [code for code, count in uses.items() if count < 2] == []


def test_messages_are_read_from_code(tmp_path, monkeypatch):
    """Choices are distinguished, numbers and unknown names are blank, and what to do is left out."""
    monkeypatch.setattr(messages, "PACKAGE", tmp_path)
    (tmp_path / "errors.py").write_text("class SkinningError(Exception): pass\nclass Bad(SkinningError): pass\n")
    (tmp_path / "work.py").write_text(
        "def check(name, locked):\n"
        "    how = 'locked' if locked else 'hidden'\n"
        "    raise Bad(f'The bone \"{name}\" is {how}. Show it')\n"
        "def other(cls, step):\n"
        "    cls.poll_message_set('Go home. Now')\n"
        "    return Bad('The step is {}'.format(step) + ', not 1')\n"
    )
    expected = ['The bone "…" is locked', 'The bone "…" is hidden', "Go home", "The step is …, not 1"]
    assert list(messages.messages()) == expected


def test_a_message_is_found_by_its_words(tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "PACKAGE", tmp_path)
    (tmp_path / "errors.py").write_text("class SkinningError(Exception): pass\n")
    (tmp_path / "table.py").write_text("TEXTS = {'HIDDEN': 'The {object} is hidden. Show it'}\n")
    (tmp_path / "work.py").write_text(
        "def check(name):\n    raise SkinningError(f'The bone \"{name}\" is locked. Unlock it')\n"
        "def other(ob):\n    raise unmet('HIDDEN', object=ob)\n"
    )
    bone = ['work.py:2: The bone "…" is locked']
    assert messages.places("bone locked") == messages.places('The bone "Arm" is locked. Unlock it') == bone
    assert messages.places('The object "Flag" is hidden') == ["work.py:4: HIDDEN, The … is hidden"]
    assert messages.places("unheard of") == []


def test_a_message_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "PACKAGE", tmp_path)
    (tmp_path / "work.py").write_text("def check(words):\n    raise SkinningError(' '.join(words))\n")
    with pytest.raises(ValueError, match=r"work\.py:2"):
        messages.messages()


def test_the_python_reference_is_up_to_date():
    """Where this fails: python -m tools.references, with the Python of .venv."""
    assert python_docs.PAGE.read_text("utf-8") == references.page(python_docs)


def test_the_example_of_the_python_reference_runs(capsys):
    (example,) = re.findall(
        r"```python\n(.*?)```", python_docs.PAGE.read_text("utf-8").partition("## Arrays")[0], re.DOTALL
    )
    found: dict = {}
    exec(example, found)
    assert re.match(r"E_RMS \d+\.\d\d, largest error \d+\.\d\d\n", capsys.readouterr().out)
    # The shapes that its comments tell.
    for name, shape in re.findall(r"^found\.(\w+)(?:, .*)?  # (\([\d, ]+\))", example, re.MULTILINE):
        assert str(getattr(found["found"], name).shape) == shape, name


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        ('<script src="https://example.org/x.js"></script>', True),
        ('<link rel="stylesheet" href="//example.org/x.css">', True),
        ("@font-face { src: url(https://example.org/x.woff2) }", True),
        ('<a href="https://example.org">there</a> <script src="_static/x.js"></script>', False),
    ],
)
def test_external_resources_of_a_page_are_found(text, fetched):
    assert bool(html_pages.FETCHED.search(text)) == fetched


def test_html_says_where_the_pages_are(monkeypatch, capsys):
    monkeypatch.setattr(environment, "choose_blender", lambda blender: "4.5")
    monkeypatch.setattr(environment, "ensure", lambda blender: Path("python"))
    monkeypatch.setattr(html_pages, "build", lambda python: ROOT / "build" / "html" / "index.html")
    assert commands.main(["html"]) == 0
    assert Path(capsys.readouterr().out.strip()) == Path("build/html/index.html")


def test_the_page_builder_is_installed_once(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(environment, "pip", lambda python, *arguments: calls.append(arguments) or _made(arguments))
    first = environment.ensure_site_tools(Path("python"))
    assert environment.ensure_site_tools(Path("python")) == first
    assert len(calls) == 1
    assert set(requirements.SITE_TOOLS) < set(calls[0])
    (first / "complete").unlink()
    (first / "rest").write_text("of an interruption")
    environment.ensure_site_tools(Path("python"))
    assert len(calls) == 2
    assert not (first / "rest").exists()


def _made(arguments) -> None:
    (target,) = (Path(argument.removeprefix("--target=")) for argument in arguments if argument.startswith("--target="))
    target.mkdir()


@pytest.mark.parametrize(
    ("status", "page", "message"),
    [(1, "", "not built"), (0, '<script src="https://example.org/x.js">', "index.html would load something")],
)
def test_wrong_pages_are_a_failure(tmp_path, monkeypatch, status, page, message):
    def sphinx(command, **options):
        html_pages.SITE.mkdir(parents=True)
        (html_pages.SITE / "index.html").write_text(page)
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(html_pages, "ROOT", tmp_path)
    monkeypatch.setattr(html_pages, "SITE", tmp_path / "build" / "html")
    monkeypatch.setattr(environment, "ensure_site_tools", lambda python: tmp_path)
    monkeypatch.setattr(html_pages.subprocess, "run", sphinx)
    with pytest.raises(environment.Failure, match=message):
        html_pages.build(Path("python"))
