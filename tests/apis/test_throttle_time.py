"""A client learns how long to wait from one place: `Call.encode`. Handlers and guards do not write the field."""

from __future__ import annotations

from pathlib import Path

import ixion

SOURCE = Path(ixion.__file__).parent


def test_only_one_place_writes_the_time_to_wait() -> None:
    writers = [
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "broker").rglob("*.py")
        if "throttle_time_ms=" in path.read_text()
    ]
    assert writers == ["broker/apis/call.py"]
