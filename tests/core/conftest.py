# SPDX-License-Identifier: GPL-3.0-or-later
"""The same examples of properties in every run."""

from hypothesis import settings
from hypothesis.internal.conjecture import providers


def pytest_configure(config):
    """The examples of a property follow from its source alone; --hypothesis-seed=NUMBER gives others, the same ones
    for the same number."""
    explores = config.getoption("--hypothesis-seed", None) is not None
    settings.register_profile("suite", deadline=None, database=None, derandomize=not explores)
    settings.load_profile("suite")
    # Otherwise examples may include numbers from any loaded module, which depend on the other tests.
    providers._get_local_constants = lambda: providers._local_constants
