"""`ixion config`."""

from __future__ import annotations

from tests.cli.harness import Ixion


def topic_settings(ixion: Ixion, name: str) -> dict[str, str]:
    rows = ixion.jsons("config", "get", "topic", name)
    return {row["name"]: row["value"] for row in rows if row["source"] == "topic"}


def test_settings_of_a_topic(ixion: Ixion) -> None:
    name = ixion.topic()
    assert ixion("config", "set", "topic", name, "segment.ms=1000", "cleanup.policy=compact") == (
        "segment.ms is 1000\ncleanup.policy is compact\n"
    )
    while len(chosen := topic_settings(ixion, name)) < 2:
        pass  # Apache Kafka's brokers learn of it a moment after the answer
    assert chosen == {"cleanup.policy": "compact", "segment.ms": "1000"}
    lines = ixion("config", "get", "topic", name, "segment.ms", "segment.bytes").splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "VALUE", "SOURCE"],
        ["segment.ms", "1000", "topic"],
        ["segment.bytes", "1073741824", "default"],
    ]
    assert ixion("config", "unset", "topic", name, "segment.ms") == "segment.ms is the default again\n"
    while len(topic_settings(ixion, name)) > 1:
        pass
    (row,) = ixion.jsons("config", "get", "topic", name, "segment.ms")
    assert (row["value"], row["source"]) == ("604800000", "default")


def test_all_of_them(ixion: Ixion) -> None:
    name = ixion.topic()
    few = ixion.jsons("config", "get", "topic", name)
    everything = ixion.jsons("config", "get", "topic", name, "--all")
    assert len(few) < 3
    assert len(everything) > 20
    assert {row["name"] for row in few} < {row["name"] for row in everything}


def test_settings_of_brokers(ixion: Ixion) -> None:
    broker = str(ixion.json("topic", "describe", ixion.topic())["partitions"][0]["leader"])
    ixion("config", "set", "broker", "default", "log.retention.ms=5000000")
    ixion("config", "set", "broker", broker, "log.cleaner.threads=2")
    try:
        rows: dict[str, dict[str, str]] = {}
        while "log.retention.ms" not in rows or rows.get("log.cleaner.threads", {}).get("value") != "2":
            rows = {row["name"]: row for row in ixion.jsons("config", "get", "broker", broker)}
        assert (rows["log.cleaner.threads"]["value"], rows["log.cleaner.threads"]["source"]) == ("2", "broker")
        assert (rows["log.retention.ms"]["value"], rows["log.retention.ms"]["source"]) == ("5000000", "all brokers")
        defaults = {row["name"]: row["value"] for row in ixion.jsons("config", "get", "broker", "default")}
        assert defaults["log.retention.ms"] == "5000000"
        assert "log.cleaner.threads" not in defaults
    finally:
        ixion("config", "unset", "broker", "default", "log.retention.ms")
        ixion("config", "unset", "broker", broker, "log.cleaner.threads")


def test_what_makes_no_sense_is_refused(ixion: Ixion) -> None:
    name = ixion.topic()
    assert "retention.ms" in ixion.refused("config", "set", "topic", name, "retention.ms=soon")
    assert "no.such" in ixion.refused("config", "set", "topic", name, "no.such=1")
    assert "did you mean 'retention.ms'" in ixion.refused("config", "get", "topic", name, "retention.m", code=2)
    assert "there is no broker '77', only" in ixion.refused("config", "get", "broker", "77")
    assert f"did you mean '{name}'" in ixion.refused("config", "get", "topic", f"{name}x")
    assert "settings belong to a topic, broker, group or logger" in ixion.refused("config", "get", "user", "me", code=2)
