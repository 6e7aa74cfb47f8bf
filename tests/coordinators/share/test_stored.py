"""The records of `__share_group_state`. That their tables are those of Apache Kafka is tested in tests/protocol."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.coordinators.share.runs import Runs
from ixion.broker.coordinators.share.stored import Stored, snapshot_record
from ixion.broker.replica.share_persister import StateBatch
from ixion.language.protocol.storage import decode, encode
from ixion.language.protocol.stored.share_state import ShareSnapshotValue
from tests.coordinators.share.test_runs import batches
from tests.coordinators.share.world import START_MS, key_of


@settings(max_examples=100, deadline=None)
@given(st.lists(batches, max_size=20), st.sampled_from([-1, 0, 300]), st.integers(0, 2))
def test_a_snapshot_is_what_the_codec_makes_of_it(changes: list[StateBatch], complete: int, start: int) -> None:
    state = Stored(snapshot_epoch=3, state_epoch=4, leader_epoch=5, start_offset=start)
    state.complete_count, state.created_ms, state.written_ms = complete, START_MS, START_MS + 1
    for change in changes:
        state.runs.apply(change, start)
    value = snapshot_record(key_of(), state)[1]
    assert value is not None
    read = decode(ShareSnapshotValue, value)
    assert encode(read, 0) == value
    found = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count, each.due_ms)
        for each in read.state_batches
    ]
    assert found == list(state.runs)


def test_a_large_state_has_a_longer_count() -> None:
    state = Stored(snapshot_epoch=0, state_epoch=0, leader_epoch=0, start_offset=0)
    state.runs = Runs(StateBatch(offset, offset, 0, 1, START_MS) for offset in range(0, 40_000, 2))
    value = snapshot_record(key_of(), state)[1]
    assert value is not None
    assert len(decode(ShareSnapshotValue, value).state_batches) == 20_000
