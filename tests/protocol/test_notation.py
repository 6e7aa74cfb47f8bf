"""Tables as values: frozen, equal by content, with defaults, known to the type checker."""

import copy
import pickle

import pytest

from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ixion.language.protocol.notation import Int32, Struct, field, versions


def topic(partition: int = 1) -> FetchTopic:
    return FetchTopic(
        topic="orders", partitions=(FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=9),)
    )


def test_values_are_frozen() -> None:
    value = topic()
    with pytest.raises(AttributeError, match="FetchTopic is frozen"):
        value.topic = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="FetchTopic is frozen"):
        del value.topic
    with pytest.raises(AttributeError, match="FetchTopic is frozen"):
        value.colour = "red"
    assert value == topic()


def test_values_are_slotted() -> None:
    assert not hasattr(topic(), "__dict__")


def test_equal_by_content() -> None:
    assert topic() == topic()
    assert hash(topic()) == hash(topic())
    assert topic(1) != topic(2)
    assert topic() != "orders"
    assert len({topic(), topic(), topic(2)}) == 2


def test_a_line_without_a_default_must_be_given() -> None:
    with pytest.raises(TypeError, match="partitions"):
        FetchTopic(topic="orders")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        FetchTopic("orders")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        FetchTopic(partitions=(), colour="red")  # type: ignore[call-arg]


def test_defaults_come_from_the_table() -> None:
    request = FetchRequest(max_wait_ms=1, min_bytes=2, topics=())
    assert request.max_bytes == 2**31 - 1
    assert request.cluster_id is None
    assert request.replica_state == ReplicaState(replica_id=-1, replica_epoch=-1)
    assert request.forgotten_topics_data == ()


def test_shown_as_it_is_written() -> None:
    assert repr(ReplicaState(replica_id=3)) == "ReplicaState(replica_id=3, replica_epoch=-1)"


def test_replace_makes_another() -> None:
    first = ReplicaState(replica_id=3)
    assert first.replace(replica_epoch=4) == ReplicaState(replica_id=3, replica_epoch=4)
    assert first == ReplicaState(replica_id=3)
    with pytest.raises(TypeError, match="colour"):
        first.replace(colour="red")


def test_copies_and_pickles() -> None:
    assert pickle.loads(pickle.dumps(topic())) == topic()
    assert copy.deepcopy(topic()) == topic()


@pytest.mark.parametrize(
    ("text", "expected"), [("3", (3, 3)), ("3-7", (3, 7)), ("3+", (3, 32767)), ("0+", (0, 32767)), ("none", (0, -1))]
)
def test_version_ranges(text: str, expected: tuple[int, int]) -> None:
    assert versions(text) == expected


def test_a_table_of_ones_own() -> None:
    class Inner(Struct):
        number: Int32

    class Outer(Struct, within="0-3", flexible="2+"):
        inner: Inner | None = field("1+", nullable="2+", tag=0)
        more: tuple[Inner, ...] = ()

    assert Outer.within == (0, 3)
    assert Outer().inner == Inner(number=0)
    assert Outer(inner=None, more=(Inner(number=1),)).more[0].number == 1
    assert [(column.name, column.versions, column.tag) for column in Outer.columns] == [
        ("inner", (1, 32767), 0),
        ("more", (0, 32767), -1),
    ]


def test_annotations_must_be_types() -> None:
    with pytest.raises(TypeError, match=r"Postponed\.number: 'Int32' is no type of a table"):
        exec("from __future__ import annotations\nclass Postponed(Struct):\n    number: Int32", dict(globals()))


def test_the_constructor_is_made_with_the_first_value() -> None:
    class Late(Struct):
        number: Int32
        name: Int32 = field(default=7)

    assert "__new__" not in vars(Late)
    assert (Late(number=1).number, Late(number=1).name) == (1, 7)
    assert "__new__" in vars(Late)
