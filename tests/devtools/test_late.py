"""The judge of delayed records in the cluster soak tells a doubled record from one that its client sent twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.soak.late import doubles
from ixion.language.records.builder import BatchBuilder

VALUE = b"1.2.3"


def accepted(offset: int, epoch: int) -> bytes:
    """What a record that waits leaves in its partition: a batch of its producer with another value."""
    builder = BatchBuilder(base_offset=offset, producer_id=7, producer_epoch=epoch, base_sequence=0)
    builder.append(None, b"other %d" % offset, timestamp=1)
    return bytes(builder.build())


def delivered(offset: int, handle: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(None, VALUE, [("x-schedule-offset", b"%d" % handle)], timestamp=1)
    return bytes(builder.build())


@pytest.mark.parametrize(
    ("epoch", "handle", "found"),
    [
        pytest.param(3, 1, (1, False), id="sent under two producer epochs"),
        pytest.param(2, 1, (0, True), id="a batch accepted twice"),
        pytest.param(3, 0, (0, True), id="delivered twice"),
    ],
)
def test_a_doubled_record_is_told_from_one_that_was_sent_twice(
    tmp_path: Path, epoch: int, handle: int, found: tuple[int, bool]
) -> None:
    log = [accepted(0, 2), accepted(1, epoch), delivered(2, 0), delivered(3, handle)]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(log))
    again, anomalies = doubles(tmp_path)
    assert (again, bool(anomalies)) == found
