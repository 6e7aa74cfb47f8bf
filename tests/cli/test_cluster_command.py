"""`ixion cluster`, `ixion transaction`, and what `ixion topic` says of offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from ixion.clients.admin.transactions import OpenTransaction, hanging
from ixion.clients.metadata import TopicPartition
from tests.cli.harness import Ixion


def numbered(ixion: Ixion, count: int, partitions: int = 1) -> str:
    """Records a second apart, in partition 0."""
    name = ixion.topic(partitions, retention_ms="-1")
    lines = [f'{{"value": "{number}", "timestamp": {1_000_000 + 1000 * number}}}\n' for number in range(count)]
    ixion("produce", name, "--json", "--partition", "0", stdin="".join(lines))
    return name


def test_the_cluster(ixion: Ixion) -> None:
    name = ixion.topic(3)
    found = ixion.json("cluster", "info")
    (broker,) = found["brokers"]
    assert f"{broker['host']}:{broker['port']}" == ixion.bootstrap
    assert broker["broker"] == ixion.json("topic", "describe", name)["partitions"][0]["leader"]
    assert broker["leads"] == found["partitions"] >= 3
    assert (found["under_replicated"], found["leaderless"]) == (0, 0)
    head, columns, row = ixion("cluster", "info").splitlines()
    assert head.startswith(f"cluster {found['cluster']}, ")
    assert columns.split() == ["BROKER", "HOST", "PORT", "RACK", "CONTROLLER", "LEADS", "REPLICAS"]
    assert row.split()[0] == str(broker["broker"])


def test_log_directories(ixion: Ixion) -> None:
    name = numbered(ixion, 10, 2)
    found = ixion.jsons("cluster", "log-dirs", "-t", name)
    parts = [part for row in found for part in row["partitions"]]
    assert [(part["topic"], part["partition"], part["bytes"] > 0) for part in parts] == [
        (name, 0, True),
        (name, 1, False),
    ]
    assert {row["state"] for row in found} == {"ok"}
    assert all(row["free"] is None or 0 < row["free"] <= row["total"] for row in found)
    assert ixion("cluster", "log-dirs").splitlines()[0].split()[:3] == ["BROKER", "DIRECTORY", "REPLICAS"]
    assert f"did you mean '{name}'" in ixion.refused("cluster", "log-dirs", "-t", f"{name}x")


@pytest.mark.parametrize(("where", "at"), [("@1004500", 5), ("-3", 7), ("earliest", 0), ("latest", 10), ("4", 4)])
def test_offsets_of_a_place(ixion: Ixion, where: str, at: int) -> None:
    name = numbered(ixion, 10)
    assert ixion.jsons("topic", "offsets", name, "--at", where) == [
        {"topic": name, "partition": 0, "first": 0, "end": 10, "at": at}
    ]


def test_offsets_of_some_partitions(ixion: Ixion) -> None:
    name = numbered(ixion, 2, 3)
    rows = [line.split() for line in ixion("topic", "offsets", name, "-p", "0", "-p", "2").splitlines()]
    assert rows == [["PARTITION", "FIRST", "END"], ["0", "0", "2"], ["2", "0", "0"]]


def test_records_are_deleted_when_that_is_meant(ixion: Ixion) -> None:
    name = numbered(ixion, 10)
    plan = {"topic": name, "partition": 0, "first": 0, "keep_from": 4, "deleted": 4}
    assert ixion.jsons("topic", "delete-records", name, "@1003500") == [{**plan, "executed": False}]
    assert ixion("topic", "trim", name, "4").split()[-4:] == ["0", "0", "4", "4"]
    assert ixion.errors == "ixion: nothing was deleted; add --execute to do it\n"
    assert ixion("consume", name, "-e").split()[0] == "0"
    assert ixion.jsons("topic", "delete-records", name, "@1003500", "--execute") == [{**plan, "executed": True}]
    assert ixion("consume", name, "-e").split()[0] == "4"
    assert "is not a place" in ixion.refused("topic", "delete-records", name, "soon", code=2)


def test_topics_by_pattern(ixion: Ixion) -> None:
    name = ixion.topic()
    assert [row["topic"] for row in ixion.jsons("topic", "ls", f"{name[:-1]}[{name[-1]}]")] == [name]
    assert ixion("topic", "list", "no-such-*") == ""
    assert ixion.errors == "ixion: no topic matches 'no-such-*'\n"


def open_transaction(ixion: Ixion, topic: str) -> Producer:
    producer = Producer({"bootstrap.servers": ixion.bootstrap, "transactional.id": f"{topic}-txn"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(20) == 0
    return producer


def test_transactions(ixion: Ixion) -> None:
    topic = ixion.topic()
    producer = open_transaction(ixion, topic)
    name = f"{topic}-txn"
    (listed,) = [row for row in ixion.jsons("transaction", "list") if row["transactional_id"] == name]
    assert listed["state"] == "Ongoing"
    found = ixion.json("transaction", "describe", name)
    assert (found["producer_id"], found["state"]) == (listed["producer_id"], "Ongoing")
    assert found["partitions"] == [{"topic": topic, "partition": 0}]
    assert ixion("transaction", "describe", name).startswith(f"{name} is Ongoing, begun at ")
    assert ixion("transaction", "hanging", "-t", topic) == ""
    assert ixion.errors == "ixion: no transaction hangs\n"
    producer.commit_transaction(20)
    done: list[str] = []
    while name not in done:  # the coordinator answers a commit before all markers are written
        done = [row["transactional_id"] for row in ixion.jsons("transaction", "ls", "--state", "completecommit")]
    assert f"there is no transactional id '{name}x'" in ixion.refused("transaction", "describe", f"{name}x")


def test_a_transaction_is_aborted_on_its_partition(ixion: Ixion) -> None:
    topic = ixion.topic()
    producer = open_transaction(ixion, topic)
    ixion("produce", topic, stdin="behind\n")
    assert ixion("consume", topic, "-e", "--read-committed") == ""
    assert f"{topic}-0 has no transaction that begins at offset 7; open are: 0" in ixion.refused(
        "transaction", "abort", "--yes", topic, "0", "7"
    )
    assert ixion("transaction", "abort", "--yes", topic, "0", "0").startswith("aborted the transaction of producer ")
    assert ixion("consume", topic, "-e", "--read-committed").split() == ["behind"]
    producer.abort_transaction(20)


def test_which_transactions_hang() -> None:
    place, other = TopicPartition("t", 0), TopicPartition("t", 1)
    found = [
        OpenTransaction(place, 3, 7, 0, 0, 1),
        OpenTransaction(other, 9, 7, 0, 0, 1),
        OpenTransaction(place, 5, 8, 0, 0, 1),
    ]
    assert hanging(found, {7: [place]}) == found[1:]
    assert hanging(found, {7: [place, other], 8: [place]}) == []


def test_settings_of_groups_and_loggers(ixion: Ixion) -> None:
    group = f"{ixion.topic()}-group"
    ixion("config", "set", "group", group, "consumer.session.timeout.ms=50000")
    (row,) = ixion.jsons("config", "get", "group", group)
    assert (row["name"], row["value"], row["source"]) == ("consumer.session.timeout.ms", "50000", "group")
    ixion("config", "rm", "group", group, "consumer.session.timeout.ms")
    assert ixion.jsons("config", "get", "group", group) == []
    broker = str(ixion.json("cluster", "info")["controller"])
    logger = ixion.jsons("config", "get", "logger", broker)[0]["name"]
    ixion("config", "set", "logger", broker, f"{logger}=ERROR")
    (row,) = ixion.jsons("config", "get", "logger", broker, logger)
    assert (row["value"], row["source"]) == ("ERROR", "broker logger")
    ixion("config", "unset", "logger", broker, logger)
    assert "there is no broker '77'" in ixion.refused("config", "get", "logger", "77")
