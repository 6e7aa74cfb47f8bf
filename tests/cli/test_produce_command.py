"""`ixion produce`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ixion.cli.produce.lines import LineFormat, read_lines
from ixion.cli.record_json import Outgoing, parse_line
from tests.cli.harness import Ixion


def test_lines_become_records(ixion: Ixion) -> None:
    name = ixion.topic()
    ixion("produce", name, stdin="one\n\nthree")
    found = ixion.records(name)
    assert [(record["value"], record["key"], record["headers"]) for record in found] == [
        ("one", None, []),
        ("", None, []),
        ("three", None, []),
    ]
    assert [record["offset"] for record in found] == [0, 1, 2]


def test_keys_headers_and_nulls(ixion: Ixion) -> None:
    name = ixion.topic()
    options = ("--key-separator", r"\t", "--headers-separator", "|", "--null-marker", "NULL", "--header", "all=1")
    ixion("produce", name, *options, stdin="a=1,b=NULL|k1\tone\n|NULL\tNULL\n")
    assert [(record["key"], record["value"], record["headers"]) for record in ixion.records(name)] == [
        ("k1", "one", [["all", "1"], ["a", "1"], ["b", None]]),
        (None, None, [["all", "1"]]),
    ]


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_and_every_kind_of_acknowledgement(ixion: Ixion, acks: str, compression: str) -> None:
    name = ixion.topic()
    ixion("produce", name, "--acks", acks, "--compression", compression, stdin="x" * 1000 + "\n")
    values: list[str] = []
    while not values:  # acks=0 does not wait for the append
        values = [record["value"] for record in ixion.records(name)]
    assert values == ["x" * 1000]


def test_json_lines_and_back(ixion: Ixion) -> None:
    name, copy = ixion.topic(2), ixion.topic(2)
    lines = [
        '{"value": "text", "key": "k", "headers": [["h", "1"], ["h", null]], "timestamp": 1767225600000, '
        '"partition": 1}',
        '{"value": {"base64": "/wA="}, "headers": {"raw": {"base64": "/w=="}}, "partition": 0}',
        '{"value": {"a": [1, "ü"]}, "timestamp": "2026-01-01T00:00:00Z", "partition": 1}',
        '{"value": null, "key": 7, "partition": 1}',
    ]
    ixion("produce", name, "--json", stdin="\n".join(lines))
    found = ixion.records(name, "-p", "1")
    assert [(record["key"], record["value"], record["headers"]) for record in found] == [
        ("k", "text", [["h", "1"], ["h", None]]),
        (None, '{"a":[1,"ü"]}', []),
        ("7", None, []),
    ]
    assert [record["timestamp"] for record in found[:2]] == [1767225600000] * 2
    (binary,) = ixion.records(name, "-p", "0")
    assert (binary["value"], binary["headers"]) == ({"base64": "/wA="}, [["raw", {"base64": "/w=="}]])

    ixion.raw("produce", copy, "--json", stdin=ixion.raw("consume", name, "-e", "-f", "json"))
    again = ixion.records(copy)
    assert sorted(str({**record, "topic": name}) for record in again) == sorted(map(str, ixion.records(name)))


def test_files_instead_of_standard_input(ixion: Ixion, tmp_path: Path) -> None:
    name = ixion.topic(2)
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("one\ntwo\n")
    second.write_bytes(b"three\r\n\xff\n")
    ixion("produce", name, str(first), str(second), "--partition", "1")
    assert [record["value"] for record in ixion.records(name, "-p", "1")] == [
        *("one", "two", "three\r"),
        {"base64": "/w=="},
    ]
    assert "missing cannot be read: No such file" in ixion.refused("produce", name, str(tmp_path / "missing"))


def test_the_broker_creates_a_missing_topic_and_a_note_says_so(ixion: Ixion) -> None:
    near = ixion.topic()
    ixion("produce", f"{near}-auto", stdin="x\n")
    created = f"ixion: the broker created the topic '{near}-auto' with 1 partition"
    assert ixion.errors == f"{created} (did you mean '{near}'?)\n"
    assert [record["value"] for record in ixion.records(f"{near}-auto")] == ["x"]
    assert f"did you mean '{near}'" in ixion.refused("produce", f"{near}x", "--no-create", stdin="x\n")


def test_one_key_for_all_as_kcat_and_rpk_have_it(ixion: Ixion) -> None:
    name = ixion.topic(3)
    ixion("produce", name, "-k", "alice", stdin="1\n2\n")
    ixion("produce", name, "-K", "=", stdin="alice=3\n")
    assert ixion("consume", name, "-e", "--key", "alice").split() == ["1", "2", "3"]
    assert "--key is the key of every record" in ixion.refused("produce", name, "-k", "a", "-K", ":", stdin="", code=2)
    assert "leave out --key" in ixion.refused("produce", name, "-k", "a", "--json", stdin="", code=2)


def test_a_json_line_with_an_unknown_field_is_refused(ixion: Ixion) -> None:
    name = ixion.topic()
    line = ixion.refused("produce", name, "--json", stdin='{"value": "x", "header": {"a": "1"}}\n')
    assert "there is no field 'header'; did you mean 'headers'? (fields: topic, partition, " in line
    assert ixion("consume", name, "-e") == ""


def test_a_copy_into_a_topic_of_another_size(ixion: Ixion) -> None:
    many, few = ixion.topic(5), ixion.topic(2)
    for partition in range(5):
        lines = "".join(f"k{partition}={number}\n" for number in range(20))
        ixion("produce", many, "-K", "=", "-p", str(partition), stdin=lines)
    ixion("produce", few, "--json", stdin=ixion("consume", many, "-e", "--json"))
    found = ixion.records(few)
    assert len(found) == 100
    for partition in range(5):
        of_key = [record for record in found if record["key"] == f"k{partition}"]
        assert [record["value"] for record in of_key] == [str(number) for number in range(20)], "in their order"
        assert len({record["partition"] for record in of_key}) == 1
    assert {record["partition"] for record in found if record["key"] in ("k0", "k1")} == {0, 1}
    wrong = '{"value": "x", "partition": 2}\n'  # not a copy, but a wish
    assert "has partitions 0 to 1, not 2" in ixion.refused("produce", few, "--json", stdin=wrong)


def test_a_line_that_cannot_be_read_stops_it_there(ixion: Ixion) -> None:
    name = ixion.topic()
    line = ixion.refused("produce", name, "-K", ":", stdin="a:1\nb:2\nnothing\nc:3\n")
    assert (
        line == "ixion: line 3 of standard input: there is no ':' between key and the rest (2 records before it sent)"
    )
    assert [record["key"] for record in ixion.records(name)] == ["a", "b"]


def test_what_the_broker_refuses_is_said(ixion: Ixion) -> None:
    name = ixion.topic(max_message_bytes="1000")
    assert f"{name}-0" in ixion.refused("produce", name, stdin="x" * 2000)
    assert ixion.records(name) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--acks", "2"], "--acks must be all, 1 or 0, not '2'"),
        (["--compression", "rar"], "--compression must be none, gzip, snappy, lz4 or zstd, not 'rar'"),
        (["--header", "x"], "--header needs name=value, not 'x'"),
        (["--key-separator", ""], "a separator has at least one character"),
        (["--json", "-K", ":"], "a --json line has its key and headers itself"),
    ],
)
def test_options_that_make_no_sense(ixion: Ixion, options: list[str], complaint: str) -> None:
    assert complaint in ixion.refused("produce", "any", *options, code=2)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"[1]", 'an object with at least a "value"'),
        (b"{}", 'an object with at least a "value"'),
        (b"{", "Expecting"),
        (b'{"value": {"base64": "!"}}', "base64"),
        (b'{"value": 1, "partition": -1}', "-1 is not a partition number"),
        (b'{"value": 1, "headers": [["a"]]}', "headers are an object, or a list"),
        (b'{"value": 1, "headers": [[1, "a"]]}', "headers are an object, or a list"),
        (b'{"value": 1, "headers": 5}', "headers are an object, or a list"),
        (b'{"value": 1, "timestamp": true}', "timestamp True is neither milliseconds nor a time"),
        (b'{"value": 1, "timestamp": "noon"}', "'noon' is no"),
    ],
)
def test_a_line_of_json_that_is_no_record(line: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("[", r"\[")):
        parse_line(line)


def test_without_separators_all_of_a_line_is_the_value() -> None:
    assert LineFormat(None, None, None).parse(b"a:b\tc") == Outgoing(None, b"a:b\tc")


def test_only_the_first_separator_counts() -> None:
    assert LineFormat(b":", None, None).parse(b"a:b:c") == Outgoing(b"a", b"b:c")


def test_lines_are_read_whole_and_pauses_are_reported() -> None:
    reading, writing = os.pipe()
    told: list[int] = []

    def when_quiet() -> None:
        told.append(1)
        os.write(writing, b"d\ne")

    lines = read_lines(reading, when_quiet, lambda: None)
    os.write(writing, b"one\ntw")
    assert next(lines) == b"one"
    os.write(writing, b"o\n\n")
    assert [next(lines), next(lines)] == [b"two", b""]
    assert told == []
    assert next(lines) == b"d"  # written because it had become quiet
    os.close(writing)
    assert list(lines) == [b"e"]
    assert told == [1]
    os.close(reading)
