"""Times by API key: which bucket, which sum, and what is left out."""

from __future__ import annotations

import pytest

from ixion.broker.network.request_times import BOUNDS_NS, RequestTimes


@pytest.mark.parametrize(
    ("took_ns", "bucket"),
    [(0, 0), (BOUNDS_NS[0], 0), (BOUNDS_NS[0] + 1, 1), (BOUNDS_NS[-1], len(BOUNDS_NS) - 1), (1 << 60, len(BOUNDS_NS))],
)
def test_a_bound_belongs_to_its_bucket(took_ns: int, bucket: int) -> None:
    times = RequestTimes()
    times.note(3, took_ns)
    found = times.by_key()[3]
    assert [index for index, count in enumerate(found.buckets) if count] == [bucket]
    assert (found.count, found.sum_ns) == (1, took_ns)


def test_keys_are_apart_and_failures_are_not_times() -> None:
    times = RequestTimes()
    times.note(0, 10)
    times.note(0, 20)
    times.note_failed(1)
    produce, fetch = times.by_key()[0], times.by_key()[1]
    assert (produce.count, produce.sum_ns, produce.failed) == (2, 30, 0)
    assert (fetch.count, fetch.sum_ns, fetch.failed) == (0, 0, 1)


@pytest.mark.parametrize("key", [-1, 128, 32767])
def test_an_api_key_that_is_not_served_leaves_no_trace(key: int) -> None:
    times = RequestTimes()
    times.note(key, 1)
    times.note_failed(key)
    assert times.by_key() == {}
