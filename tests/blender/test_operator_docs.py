# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/operators.md says what the operators are."""

from tools import operator_docs, references


def test_the_reference_is_up_to_date():
    """Where this fails: python -m tools.references, with the Python of .venv."""
    assert operator_docs.PAGE.read_text("utf-8") == references.page(operator_docs)
