"""A client's batch that was checked, and brought into the form in which it is stored, before its append.

Checking a batch may take long: 800 kB of gzip inflate to 64 MB, and a topic with another `compression.type` deflates
them again, which took 10 s on the event loop. So long batches are checked on a worker thread (`replica.checking`)
while their connection is not read. The append itself runs on the loop, afterwards, and looks at the state of the
partition as it is then: leader, epoch, in-sync replicas, sequence numbers. Only the settings of the topic must be those
that the batch was checked by; if they have changed, the client must send it again.

What the loop does itself, compiled, at most about 3 ms of work:

| batch | limit |
|---|---|
| stored as it was sent | 30 000 records and headers (90 and 35 ns each), 512 kB inflated |
| recoded | 16 kB inflated at the usual levels, 4 kB at the slow ones (4 kB at zstd's level 22: 2.3 ms) |
| of a topic that delays records | 200 records and headers (a cron expression: 100 µs) |

A batch of at most `SMALL` bytes that is stored as it was sent cannot exceed this. It is checked by the log itself.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final, final

from ixion._native import i64
from ixion.broker.log.prepare import as_stored
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import DEFAULT_LIMITS, Codec, InflateLimits
from ixion.language.records.faults import LongWorkError
from ixion.language.records.layout import ATTRIBUTES, CODEC_MASK, RECORDS, Buffer
from ixion.language.records.split import split
from ixion.language.records.validate import TopicRules, Validated, validate_produce
from ixion.language.records.walker import FAR

SMALL: Final = 64 * 1024
LARGE: Final = 16 * 1024 * 1024  # the checksum alone takes a millisecond or two
STEPS: Final = 30_000
DELAYING_STEPS: Final = 200
IN_PLACE_LIMITS: Final = InflateLimits(max_bytes=512 * 1024, free_bytes=512 * 1024)
RECODED_LIMITS: Final = InflateLimits(max_bytes=16 * 1024, free_bytes=16 * 1024)
SLOWLY_RECODED_LIMITS: Final = InflateLimits(max_bytes=4 * 1024, free_bytes=4 * 1024)
SLOW_SINCE: Final = {Codec.GZIP: 7, Codec.LZ4: 10, Codec.ZSTD: 9}  # levels; lz4's default is 9, and fast


@final
class CheckedBatch:
    """`refusal` if the batch must not be appended; otherwise what `validate_produce` found, and the batch as stored.

    `stored` is None if records must be taken out of the batch first: they are to be delivered later.
    """

    __slots__ = ("refusal", "rules", "stored", "validated")

    def __init__(self, rules: TopicRules) -> None:
        self.rules: Final = rules
        self.refusal: KafkaError | None = None
        self.validated: Validated | None = None
        self.stored: BatchView | None = None

    def result(self, rules: TopicRules) -> Validated:
        """What the check found; KafkaError if the batch was refused, or if it was checked by other rules."""
        if self.rules is not rules:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "the topic's settings changed while a batch was checked")
        if self.refusal is not None:
            raise self.refusal
        assert self.validated is not None
        return self.validated


def needs_check(records: Buffer, rules: TopicRules) -> bool:
    """Whether a batch must be checked before its append, because that might take long."""
    if len(records) > SMALL or len(records) < RECORDS:
        return len(records) > SMALL
    if rules.max_delay_ms >= 0:
        return True
    codec = records[ATTRIBUTES + 1] & CODEC_MASK
    return codec != 0 or (rules.codec is not None and rules.codec != codec)


def check_on_loop(records: Buffer, rules: TopicRules, now_ms: int) -> CheckedBatch | None:
    """The checked batch; None if that takes too long for the loop."""
    if len(records) > LARGE:
        return None
    limits = IN_PLACE_LIMITS
    if rules.codec is not None and len(records) >= RECORDS and records[ATTRIBUTES + 1] & CODEC_MASK != rules.codec:
        slow = rules.level is not None and rules.level >= SLOW_SINCE.get(rules.codec, FAR)
        limits = SLOWLY_RECODED_LIMITS if slow else RECODED_LIMITS
        if len(records) > limits.max_bytes:
            return None
    try:
        return check_batch(records, rules, now_ms, limits, DELAYING_STEPS if rules.max_delay_ms >= 0 else STEPS)
    except LongWorkError:
        return None


def check_batch(
    records: Buffer, rules: TopicRules, now_ms: int, limits: InflateLimits = DEFAULT_LIMITS, allowed: i64 = FAR
) -> CheckedBatch:
    """LongWorkError if the batch has more than `allowed` records and headers, or inflates beyond narrower limits."""
    checked = CheckedBatch(rules)
    try:
        found = validate_produce(records, rules, now_ms, limits, allowed)
        if found.wishes or rules.has_target:
            codec: Codec = found.batch.codec if rules.codec is None else rules.codec
            left, taken = split(found.batch, found.wishes, codec, rules.level)
            if rules.has_target:
                left, _ = split(found.batch, [], codec, rules.level)
            found.split = (left, taken)
        else:
            checked.stored = as_stored(found, records, rules)
        checked.validated = found
    except KafkaError as refusal:
        if refusal.code == ErrorCode.MESSAGE_TOO_LARGE and limits is not DEFAULT_LIMITS:
            raise LongWorkError from refusal  # perhaps only for these limits
        checked.refusal = refusal
    return checked
