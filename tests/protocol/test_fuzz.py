"""Real frames mutated at random: whatever they became, they end in an error of ours or in a value to be said again.

Bounded here; `make fuzz` runs many more rounds from a fresh seed. A failure names the seed and the round.
"""

from __future__ import annotations

import os
import random
import tracemalloc

from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.envelope import (
    decode_request,
    decode_response,
    encode_request,
    encode_response_as,
    exchange,
)
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.registry import ApiKey
from tests.protocol.captures import Capture, captures

ROUNDS = int(os.environ.get("IXION_FUZZ_ROUNDS", "4000"))
SEED = int(os.environ.get("IXION_FUZZ_SEED", "4"))
EDGES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)
LENGTHS = (
    b"\x7f\xff",
    b"\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x00",
)
ALLOWANCE = 64 * 1024  # raising, formatting and catching an exception


def mutated(dice: random.Random, frame: bytes) -> bytes:
    """A few bytes changed, removed, repeated, cut, or replaced by a length that lies."""
    changed = bytearray(frame)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(changed) + 1)
        match dice.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << dice.randrange(8)
            case 1 if at < len(changed):
                changed[at] = dice.choice(EDGES)
            case 2:
                del changed[at : at + dice.randrange(1, 9)]
            case 3:
                changed[at:at] = dice.randbytes(dice.randrange(1, 9))
            case 4:
                changed[at:at] = changed[at : at + dice.randrange(1, 60)] * dice.choice((1, 2, 50))
            case 5:
                lie = dice.choice(LENGTHS)
                changed[at : at + len(lie)] = lie
            case 6:
                del changed[at:]
    return bytes(changed)


def expect_named(error: DecodeError, frame: bytes) -> bool:
    assert error.reason
    assert error.version >= 0 or len(frame) < 4, str(error)
    assert 0 <= error.offset <= len(frame), str(error)
    return False


def survive(capture: Capture, frame: bytes) -> bool:
    """True if the frame was understood; then it can be said again, and means the same."""
    try:
        if capture.direction == "request":
            header, body = decode_request(frame)
            again = decode_request(b"".join(encode_request(header, body)))
            assert again == (header, body)
        else:
            answer, body = decode_response(capture.key, capture.version, frame)
            again_frame = joined(encode_response_as(capture.key, capture.version, answer.correlation_id, body))
            assert decode_response(capture.key, capture.version, again_frame) == (answer, body)
    except UnsupportedVersionError:
        return False
    except DecodeError as error:
        return expect_named(error, frame)
    return True


def test_mutated_frames() -> None:
    dice = random.Random(SEED)
    seeds = captures()
    understood = 0
    for round_ in range(ROUNDS):
        capture = dice.choice(seeds)
        frame = mutated(dice, capture.frame)
        try:
            understood += survive(capture, frame)
        except Exception as error:
            raise AssertionError(f"seed {SEED}, round {round_}: {capture[:4]} {frame.hex()}") from error
    # Both ends are reached: mutation that never passes, or always, would test nothing.
    assert ROUNDS // 100 < understood < ROUNDS * 9 // 10


def test_mutated_frames_cost_no_more_than_their_size() -> None:
    dice = random.Random(SEED + 1)
    seeds = [capture for capture in captures() if capture.direction == "request"]
    for api in ApiKey:
        for version in range(api.oldest, api.newest + 1):
            exchange(api, version)  # what a first use loads is not the frame's doing
    tracemalloc.start()
    try:
        for round_ in range(ROUNDS // 4):
            capture = dice.choice(seeds)
            frame = mutated(dice, capture.frame * dice.choice((1, 1, 20)))
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            if not survive(capture, frame):
                _, peak = tracemalloc.get_traced_memory()
                place = f"seed {SEED}, round {round_}: {capture[:4]} {frame.hex()}"
                assert peak - before < 2 * len(frame) + ALLOWANCE, place
    finally:
        tracemalloc.stop()


def test_noise() -> None:
    """Every key and version gets bytes that mean nothing."""
    dice = random.Random(SEED + 2)
    for api in ApiKey:
        for version in range(api.oldest, api.newest + 1):
            for codec in (api.request(version), api.response(version)):
                for _ in range(max(3, ROUNDS // 2000)):
                    noise = dice.choice((dice.randbytes, bytes))(dice.randrange(200))
                    try:
                        value = codec.decode(noise)
                    except DecodeError as error:
                        expect_named(error, noise)
                    else:
                        assert codec.decode(codec.encode(value)) == value
