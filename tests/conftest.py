# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all tests: sample animations next to the checkout, the extension registered, and a clean end of a process
with Blender in it."""

import os
import sys
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_file(name: str) -> Path:
    """The sample file ``shared/data/<name>`` next to the checkout.

    Skips the test where it is missing, with the reason; in CI (environment variable CI) a missing file is a failure.
    """
    path = SHARED / name
    if not path.is_file():
        reason = f"the sample file {name} is not next to the checkout (../shared/data)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def shared_data():
    """Function from the name of a sample file to its path; see ``shared_file``."""
    return shared_file


@pytest.fixture(scope="module")
def extension():
    """The extension registered while a file's tests run: ``pytestmark = pytest.mark.usefixtures("extension")``."""
    # Not before: tests.installed_package puts the installed one in the source tree's place once pytest is configured.
    import skinning_tools

    skinning_tools.register()
    yield
    skinning_tools.unregister()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    session.config.stash[_EXIT_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """Leave at once where Blender was used: its modules before 5.2 can crash while Python shuts down, after the report.

    A registered operator with an ``execute`` is enough, nothing else imported: 4.2 crashes, 4.5 crashes or hangs. With
    4.2 a property group with an ``update`` or ``poll`` of Python is, too, where it has been unregistered before.
    """
    status = config.stash.get(_EXIT_STATUS, None)
    if status is None or "bpy" not in sys.modules:
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


_EXIT_STATUS = pytest.StashKey[int]()
