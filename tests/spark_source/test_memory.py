"""A worker that frees what it has fetched and fetches more gets the same pages, not new ones."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FETCHES = """
import resource, sys
from ixion.spark.memory import keep_freed_memory

def fetch():
    frame = bytes(view)
    copy = bytes(view)
    return frame + copy

view = memoryview(bytes(1_000_000))
if sys.argv[1] == "keep":
    keep_freed_memory()
for _ in range(3):
    fetch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    fetch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_pages_are_used_again() -> None:
    def faults(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", FETCHES, how], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("keep") < faults("leave") / 10
