from __future__ import annotations

import os
from pathlib import Path

import pytest

from devtools.kafka import RealKafka, answers, free_port, new_cluster_id
from devtools.parts import need

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)


def test_a_real_broker_answers_inside_the_block_and_is_gone_after_it(tmp_path: Path) -> None:
    need("kafka-3.9.1")
    with RealKafka("3.9.1", tmp_path, heap="256m", properties={"num.partitions": "3"}) as kafka:
        assert answers("127.0.0.1", kafka.port)
        assert "num.partitions=3\n" in (tmp_path / "server.properties").read_text()
        process = Path("/proc", str(kafka.pid))
        assert process.exists()
    assert not process.exists()
    assert not answers("127.0.0.1", kafka.port)


def test_a_broker_that_cannot_start_shows_its_last_words(tmp_path: Path) -> None:
    need("kafka-3.9.1")
    with (
        pytest.raises(RuntimeError, match=r"log\.segment\.bytes"),
        RealKafka("3.9.1", tmp_path, properties={"log.segment.bytes": "1"}),
    ):
        pass


def test_a_free_port_has_no_server() -> None:
    assert not answers("127.0.0.1", free_port())


def test_cluster_ids_can_stand_on_a_command_line() -> None:
    ids = {new_cluster_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)
