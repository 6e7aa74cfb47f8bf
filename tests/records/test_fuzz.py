"""Batches mutated at random: whatever they became, they end in a KafkaError or in an honest answer.

Bounded here; `make fuzz` runs many more rounds from a fresh seed. A failure names the seed and the round.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches, iter_complete_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.columns import read_columns
from ixion.language.records.compression import Codec, InflateLimits, compress, inflate
from ixion.language.records.control import control_type, coordinator_epoch, transaction_marker
from ixion.language.records.layout import BATCH_LENGTH, HEADER_SIZE, LOG_OVERHEAD
from ixion.language.records.patch import I32, patch_crc
from ixion.language.records.recode import recode
from ixion.language.records.validate import TopicRules, validate_produce

ROUNDS = int(os.environ.get("IXION_FUZZ_ROUNDS", "3000"))
SEED = int(os.environ.get("IXION_FUZZ_SEED", "4"))
LIMITS = InflateLimits(max_bytes=1_000_000)
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)


def seeds() -> list[bytes]:
    made = []
    for codec in Codec:
        for count in (1, 30):
            builder = BatchBuilder(codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
            for number in range(count):
                builder.append(b"key", b"value" * number, [("h", b"x"), ("", None)], 1_000 + number)
            made.append(builder.build())
    made.append(transaction_marker(commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=1, timestamp=1_000))
    return made


def mutated(dice: random.Random, data: bytes) -> bytearray:
    """A few bytes changed, removed, repeated or cut."""
    changed = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        if not changed:
            break
        at = dice.randrange(len(changed))
        match dice.randrange(6):
            case 0:
                changed[at] ^= 1 << dice.randrange(8)
            case 1:
                changed[at] = dice.choice(EDGES)
            case 2:
                del changed[at : at + dice.randrange(1, 9)]
            case 3:
                changed[at:at] = dice.randbytes(dice.randrange(1, 9))
            case 4:
                changed[at:at] = changed[at : at + dice.randrange(1, 40)]
            case _:
                changed[at : at + 4] = dice.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0"])
    return changed


def repaired(dice: random.Random, data: bytearray) -> bytearray:
    """Mostly with a true length and CRC, to get past the first checks."""
    if len(data) < HEADER_SIZE or dice.random() < 0.2:
        return data
    I32.pack_into(data, BATCH_LENGTH, len(data) - LOG_OVERHEAD)
    data[16] = 2
    patch_crc(data, 0)
    return data


def mutated_inside(dice: random.Random, data: bytes) -> bytearray:
    """Records changed before they are compressed again, so that the codec does not stand in the way."""
    view = BatchView(data)
    records = mutated(dice, inflate(view.codec, view.payload()))
    made = bytearray(data[:HEADER_SIZE]) + compress(view.codec, bytes(records))
    return repaired(dice, made)


def look_at(data: bytearray) -> str:
    """Everything that can be asked of bytes from a stranger; what validation, asked last, said."""
    answers: list[Callable[[], object]] = [
        lambda: [view.size_in_bytes for view in iter_batches(data)],
        lambda: [view.size_in_bytes for view in iter_complete_batches(data)],
        lambda: control_type(BatchView(data)),
        lambda: coordinator_epoch(BatchView(data)),
        lambda: recode(BatchView(data), Codec.SNAPPY, limits=LIMITS),
        lambda: [(one.key, one.value, one.headers, one.offset) for one in BatchView(data).records(LIMITS)],
        lambda: columns_agree(bytes(data)),
        lambda: agree(data),
    ]
    said = ""
    for answer in answers:
        try:
            answer()
            said = "accepted"
        except KafkaError as error:
            said = error.code.name
    return said


def columns_agree(data: bytes) -> None:
    """What columns let in, iteration reads as well."""
    (view,) = iter_batches(data)
    columns = list(read_columns([view], -(2**40), limits=LIMITS, check_crcs=False))
    offsets = [offset for one in columns for offset in one.offsets]
    if 0 <= view.base_offset < 2**61:
        assert offsets == [record.offset for record in view.records(LIMITS)]


def agree(data: bytearray) -> None:
    """What validation lets in, iteration reads to the end, and finds what validation told."""
    result = validate_produce(data, TopicRules(compacted=True), 2_000, LIMITS)
    records = list(BatchView(bytes(data)).records(LIMITS))
    assert len(records) == result.count
    assert [record.offset for record in records] == list(range(result.count))
    assert max(-1, *(record.timestamp for record in records)) == result.max_timestamp
    assert all(record.key is not None for record in records)


@pytest.mark.parametrize("mutate", ["outside", "inside"])
def test_mutated_batches(mutate: str) -> None:
    dice = random.Random(SEED)
    corpus = seeds()
    said = set()
    for number in range(ROUNDS):
        seed = dice.choice(corpus)
        data = mutated_inside(dice, seed) if mutate == "inside" else repaired(dice, mutated(dice, seed))
        try:
            said.add(look_at(data))
        except Exception as error:
            pytest.fail(f"seed {SEED}, round {number}: {error!r} on {data.hex()}")
    # Otherwise the mutations would all be stopped at one door.
    assert said >= {"accepted", "CORRUPT_MESSAGE", "INVALID_RECORD"}
