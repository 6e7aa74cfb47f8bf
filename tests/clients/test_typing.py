"""What mypy knows about the records of a consumer: the types of its deserializers."""

from __future__ import annotations

from typing import Any, assert_type

from ixion.clients import Consumer, ConsumerRecord, aio

NOWHERE = "127.0.0.1:1"


def price(data: bytes) -> float:
    return float(data)


def test_a_consumer_is_generic_over_the_results_of_its_deserializers() -> None:
    """`make check` checks the types; here the same lines run."""
    with Consumer(NOWHERE, key_deserializer=bytes.decode, value_deserializer=price) as consumer:
        assert_type(consumer, Consumer[str, float])
    with Consumer(NOWHERE) as plain:
        assert_type(plain, Consumer[Any, Any])


def of_both_faces(consumer: Consumer[str, float], other: aio.Consumer[str, float]) -> None:
    """Never called."""
    for record in consumer:
        assert_type(record, ConsumerRecord[str, float])
        assert_type(record.key, str)
        assert_type(record.value, float)
    assert_type(consumer.poll(), list[ConsumerRecord[str, float]])

    async def read() -> None:
        async for record in other:
            assert_type(record.value, float)
        assert_type(await other.poll(), list[ConsumerRecord[str, float]])

    del read


def test_the_names_can_be_subscripted() -> None:
    assert of_both_faces.__doc__
    assert Consumer[str, float] is not None
    assert ConsumerRecord[str, float] is not None
