"""A real process, really killed: whatever it had appended is there afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.log.support import Box, stored

PROGRAM = """
import sys, time
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.language.records.builder import BatchBuilder

manager = LogManager(
    [sys.argv[1]], clock_ms=lambda: int(time.time() * 1000), config_of=lambda _: LogConfig(segment_bytes=20_000)
)
manager.load()
log = manager.create("orders", 0)
while True:
    builder = BatchBuilder()
    for number in range(3):
        builder.append(b"key", b"%d" % (log.end_offset + number), timestamp=1)
    log.append_as_leader(builder.build(), 0)
    if log.end_offset % 50 == 0:
        log.flush(log.end_offset - 20)
        manager.checkpoints.write_recovery_points()
    print(log.end_offset, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 100, 777])
def test_every_acknowledged_record_survives_kill_9(tmp_path: Path, lines: int) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = 0
        for _ in range(lines):
            acknowledged = int(process.stdout.readline())
        process.kill()
    assert acknowledged == lines * 3
    log = Box(tmp_path).open()
    found = stored(log)
    assert len(found) >= acknowledged
    assert found == [(offset, b"%d" % offset) for offset in range(log.end_offset)]
    log.abandon()
