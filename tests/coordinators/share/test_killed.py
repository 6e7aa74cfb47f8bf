"""A broker that is killed again and again while states are written: every answered write is there afterwards."""

from __future__ import annotations

import random
from pathlib import Path

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k85_write_share_group_state import StateBatch
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.share_group_kit import beat, read_state, write_state
from tests.apis.test_k76_share_group_heartbeat import topic_id

ROUNDS = 8
WRITES = 40


def test_answered_writes_survive_kills(tmp_path: Path) -> None:
    settings = {"log.dirs": tmp_path / "log", "share.coordinator.snapshot.update.records.per.snapshot": 7}
    chance = random.Random(5)
    model: dict[int, tuple[int, int]] = {}  # by offset: state, deliveries
    start = 0
    for number in range(ROUNDS):
        broker = Broker(settings).start()
        try:
            if number == 0:
                broker.create_topic("t", 3)
            with Raw(broker.bootstrap) as raw:
                if number == 0:
                    raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g", key_type=0))
                    assert beat(raw, "g").error_code == 0
                ours = topic_id(broker)
                found = read_state(raw, "g", ours, 1)
                while found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    found = read_state(raw, "g", ours, 1)
                assert found.start_offset == (start if number else -1)
                assert {
                    offset: (batch.delivery_state, batch.delivery_count)
                    for batch in found.state_batches
                    for offset in range(batch.first_offset, batch.last_offset + 1)
                } == model
                for _ in range(WRITES):
                    first = start + chance.randrange(50)
                    last, state = first + chance.randrange(4), chance.choice((0, 2, 4))
                    start += chance.randrange(3)
                    batch = StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=1)
                    assert write_state(raw, "g", ours, 1, batch, start=start) == 0
                    model |= dict.fromkeys(range(first, last + 1), (state, 1))
                    model = {offset: each for offset, each in model.items() if offset >= start}
        finally:
            broker.kill()
