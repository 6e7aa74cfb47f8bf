"""The compiled program that sends frames made beforehand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from benchmarks.loads.crowd import idle
from benchmarks.loads.prepared import check_answer, compile_repeat, fetch_all_request, framed, produce_request, repeat
from ixion.language.protocol.messages.k01_fetch import FetchResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def test_frames_are_sent_in_turn_and_each_connection_is_greeted_first(tmp_path: Path) -> None:
    program = compile_repeat(tmp_path)
    with Broker() as broker:
        broker.create_topic("spread", 3)
        port = int(broker.bootstrap.rsplit(":", 1)[1])
        frames = b"".join(framed(ApiKey.PRODUCE, 9, produce_request("spread", 1, 100, each)) for each in range(3))
        with idle(port, 5):
            answered = repeat(program, port, frames, connections=2, window=2, requests=11)
        wanted = fetch_all_request("spread", dict.fromkeys(range(3), 0))
        answer = cast(FetchResponse, check_answer(port, ApiKey.FETCH, 12, wanted))
    ends = [partition.high_watermark for partition in answer.responses[0].partitions]
    assert ends == [5, 4, 4]  # two to greet, then eleven
    assert answered.bytes > 11 * 20
    assert 0 < answered.p50_us <= answered.p99_us
    assert answered.seconds > 0


def test_half_a_frame_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="whole frames"):
        repeat(compile_repeat(tmp_path), 1, b"\0\0\0\x09short", connections=1, window=1, requests=1)
