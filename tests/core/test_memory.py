# SPDX-License-Identifier: GPL-3.0-or-later
"""The free memory of the machine, as each operating system reports it."""

import os

import pytest

from skinning_tools.core import memory
from skinning_tools.core.errors import NotEnoughMemory


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="no sysconf to compare with")
def test_available_memory_is_a_part_of_all_memory():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory.available_memory() < total


def test_unknown_system(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "plan9")
    assert memory.available_memory() is None


def test_a_system_that_does_not_answer(monkeypatch):
    def fail():
        raise OSError("no such file")

    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory, "_linux", fail)
    assert memory.available_memory() is None


def test_available_memory_on_linux():
    text = "MemTotal:       16316412 kB\nMemFree:          812340 kB\nMemAvailable:    9123456 kB\nBuffers: 1 kB\n"
    assert memory.parse_meminfo(text) == 9123456 * 1024
    assert memory.parse_meminfo("MemTotal: 1 kB\n") is None


def test_available_memory_on_macos():
    text = (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
        "Pages free:                               10.\n"
        "Pages active:                            999.\n"
        "Pages inactive:                          200.\n"
        "Pages speculative:                      3000.\n"
        "Pages wired down:                        999.\n"
        "Pages purgeable:                       40000.\n"
    )
    assert memory.parse_vm_stat(text) == 16384 * 43210
    assert memory.parse_vm_stat("") is None


def test_the_limit_is_exact(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    memory.check_available(10**9, "Positions")
    with pytest.raises(NotEnoughMemory, match=r"^Positions need 2.5 GB of memory, and the machine has 1.0 GB free"):
        memory.check_available(2_500_000_000, "Positions")


def test_an_unknown_amount_stops_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_available(10**18, "Positions")
