"""`ixion consume`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from ixion.cli.consume.format import local_time, writer
from ixion.clients.metadata import TopicPartition
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record
from tests.cli.harness import Ixion

PLACE = TopicPartition("orders", 3)


def numbered(ixion: Ixion, count: int) -> str:
    """A topic with one partition and so many records of 1970, a second apart."""
    name = ixion.topic(retention_ms="-1")
    lines = [f'{{"value": "{number}", "timestamp": {1_000_000 + 1000 * number}}}\n' for number in range(count)]
    ixion("produce", name, "--json", stdin="".join(lines))
    return name


@pytest.mark.parametrize(
    ("start", "first"),
    [
        *(("earliest", 0), ("beginning", 0), ("7", 7), ("-3", 7), ("-99", 0), ("latest", 10), ("end", 10)),
        *(("@1004500", 5), ("1970-01-01T00:16:45Z", 5), ("@1970-01-01T00:16:45Z", 5)),
    ],
)
def test_where_it_begins(ixion: Ixion, start: str, first: int) -> None:
    name = numbered(ixion, 10)
    assert ixion("consume", name, "-o", start, "-e").split() == [str(number) for number in range(first, 10)]
    assert ixion("consume", name, "--from", start, "--exit-at-end").split() == [
        str(number) for number in range(first, 10)
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--until", "4"], range(4)),
        (["-o", "2", "--until", "-3"], range(2, 7)),
        (["-o", "@1002000", "--until", "@1005000"], range(2, 5)),
        (["-o", "@1970-01-01T00:16:42Z", "--until", "1970-01-01T00:16:45Z"], range(2, 5)),
        (["--until", "latest"], range(10)),
        (["--until", "2999-01-01"], range(10)),
        (["-o", "8", "--until", "5"], range(0)),
    ],
)
def test_where_it_ends(ixion: Ixion, words: list[str], expected: range) -> None:
    name = numbered(ixion, 10)
    assert ixion("consume", name, *words).split() == list(map(str, expected))


def test_a_broker_is_named_before_or_behind_the_command(ixion: Ixion, monkeypatch: pytest.MonkeyPatch) -> None:
    name = numbered(ixion, 1)
    monkeypatch.setenv("IXION_BOOTSTRAP", "127.0.0.1:1")
    here = ixion.bootstrap
    for words in (
        ["-b", here, "topic", "list", name],
        ["topic", "--bootstrap", here, "list", name],
        ["topic", "list", name, f"--bootstrap={here}"],
        ["--bootstrap-server", here, "topic", "ls", name],
        ["--timeout", "20", "topic", "ls", name, "--bootstrap-server", here],
    ):
        assert ixion(*words).splitlines()[1].split()[0] == name
    assert "there is no option --bootstrap for this command" in ixion.refused("-b", here, "wheel", code=2)


def test_so_many_and_no_more(ixion: Ixion) -> None:
    name = numbered(ixion, 10)
    assert ixion("consume", name, "--max", "3").split() == ["0", "1", "2"]
    assert ixion("consume", name, "--max", "3", "--from", "8", "--exit-at-end").split() == ["8", "9"]


def test_a_missing_offset_becomes_the_nearest_with_a_note(ixion: Ixion) -> None:
    name = numbered(ixion, 3)
    assert ixion("consume", name, "--from", "50", "--exit-at-end") == ""
    assert ixion.errors == f"ixion: {name}-0 has no offset 50; starting at 3\n"


def test_only_some_partitions(ixion: Ixion) -> None:
    name = ixion.topic(3)
    for number in range(3):
        ixion("produce", name, "--partition", str(number), stdin=f"{number}\n")
    assert sorted(ixion("consume", name, "-p", "0", "-p", "2", "-e").split()) == ["0", "2"]
    assert ixion.refused("consume", name, "-p", "3") == f"ixion: topic '{name}' has partitions 0 to 2, not 3"


def test_formats(ixion: Ixion) -> None:
    name = ixion.topic(retention_ms="-1")
    ixion.raw("produce", name, "--json", stdin=b'{"key": "k", "value": "v", "headers": {"a": "1"}, "timestamp": 5000}')
    ixion.raw("produce", name, "--json", stdin=b'{"key": "gone", "value": null, "timestamp": 5000}')
    time = local_time(5000)
    assert ixion("consume", name, "-e") == "v\nnull\n"
    assert ixion("consume", name, "-e", "--null-marker", "-") == "v\n-\n"
    assert ixion("consume", name, "-e", "-f", "text") == f"0:0\t{time}\tk\tv\ta=1\n0:1\t{time}\tgone\tnull\t\n"
    form = r"{topic} {partition} {offset} {timestamp} {{{key}}}\0"
    assert ixion("consume", name, "-e", "-f", form) == f"{name} 0 0 5000 {{k}}\0{name} 0 1 5000 {{gone}}\0"


def test_what_was_aborted_is_left_out_on_request(ixion: Ixion) -> None:
    name = ixion.topic()
    producer = Producer({"bootstrap.servers": ixion.bootstrap, "transactional.id": f"{name}-txn"})
    producer.init_transactions(20)
    for value, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush(20)
        end(20)
    assert ixion("consume", name, "-e").split() == ["kept", "dropped"]
    assert ixion("consume", name, "-e", "--read-committed").split() == ["kept"]


def follow(ixion: Ixion, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "ixion", "consume", *words]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ})


def test_it_follows_until_it_is_interrupted(ixion: Ixion) -> None:
    name = numbered(ixion, 1)
    with follow(ixion, name) as process:
        assert process.stdout
        assert process.stdout.readline() == "0\n"
        ixion("produce", name, stdin="later\n")
        assert process.stdout.readline() == "later\n"
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)
    assert (process.returncode, rest) == (0, ("", ""))


def test_a_reader_that_leaves_early_gets_no_traceback(ixion: Ixion) -> None:
    name = ixion.topic()
    ixion("produce", name, stdin="x" * 100 + "\n" + ("y" * 1000 + "\n") * 2000)
    with follow(ixion, name, "--exit-at-end") as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "x" * 100 + "\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_what_makes_no_sense_is_refused(ixion: Ixion) -> None:
    name = ixion.topic()
    assert "use earliest" in ixion.refused("consume", name, "--from", "later", code=2)
    assert "has no field 'values'; did you mean 'value'? (fields: topic, partition" in ixion.refused(
        "consume", name, "--format", "{values}", code=2
    )
    assert "--follow never ends" in ixion.refused("consume", name, "--follow", "-e", code=2)
    assert "--follow never ends" in ixion.refused("consume", name, "--follow", "--until", "5", code=2)
    assert "--format must be value, text, json" in ixion.refused("consume", name, "--format", "xml", code=2)
    assert f"did you mean '{name}'" in ixion.refused("consume", f"{name}x")


def record(key: bytes | None, value: bytes | None, timestamp: int = 0) -> Record:
    builder = BatchBuilder(base_offset=8)
    builder.append(key, value, [("h", b"\xff"), ("n", None)], timestamp)
    (found,) = BatchView(builder.build())
    return found


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("value", b"v\n"),
        ("{value}", b"v\n"),
        (r"{value}\n", b"v\n"),
        (r"{key}\t{value}", b"~\tv\n"),
        ("{headers}", b"h=\xff,n=~\n"),
        ("{topic}-{partition}@{offset}", b"orders-3@8\n"),
        ("{{}}{timestamp}", b"{}0\n"),
        ("%k=%v", b"~=v\n"),
        ("%s", b"v\n"),
        (r"%t %p %o %T %h\n", b"orders 3 8 0 h=\xff,n=~\n"),
        ("%K %S", b"-1 1\n"),
        ("%R%s%k", b"\0\0\0\x01v"),
        ("%%R%s", b"%Rv\n"),
        (r"%v\xff\x41", b"v\xffA\n"),
        ("100%%", b"100%\n"),
        ("100%% of %v", b"100% of v\n"),
        ("%%%v%%", b"%v%\n"),
        (r"%v\0", b"v\0"),
        (r"%v\r\n", b"v\r\n"),
        ('{"v": "%v"}', b'{"v": "v"}\n'),
    ],
)
def test_a_format_by_itself(form: str, expected: bytes) -> None:
    assert writer(form, "~")(PLACE, record(None, b"v")) == expected


def test_a_null_value_beside_its_binary_length() -> None:
    assert writer("%R%s", "~")(PLACE, record(None, None)) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ("{", "cannot be read"),
        ("{value", "cannot be read"),
        ("{value!r}", "the field 'value' takes no ':' or '!'"),
        ("{offset} {value:>9}", "the field 'value' takes no ':' or '!'"),
        ("{key.x}", "has no field 'key.x'"),
        ("{offset} {vale}", "has no field 'vale'; did you mean 'value'?"),
        ("{0}", "has no field '0'"),
        ("{}", "has no field ''"),
        ("%q", "has no field '%q'"),
        ("%v %q", "has no field '%q'"),
        ("%v %", "has no field '%'"),
    ],
)
def test_a_template_that_cannot_be_read(form: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="--format") as caught:
        writer(form, "~")
    assert str(caught.value).startswith(f"--format {form!r}")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(("timestamp", "shown"), [(-1, "-"), (2**62, str(2**62))])
def test_times_that_are_none(timestamp: int, shown: str) -> None:
    assert local_time(timestamp) == shown


def test_several_topics_and_filters(ixion: Ixion) -> None:
    one, two = ixion.topic(), ixion.topic(2)
    ixion("produce", one, "-K", ":", stdin="a:apple\nb:banana\n")
    ixion("produce", two, "-K", ":", stdin="a:avocado\nc:cherry\n")
    assert sorted(ixion("consume", one, two, "-e").split()) == ["apple", "avocado", "banana", "cherry"]
    assert sorted(ixion("consume", one, two, "-e", "-k", "a").split()) == ["apple", "avocado"]
    assert ixion("consume", one, "-e", "--grep", "^b.n").split() == ["banana"]
    assert ixion("consume", one, "--grep", "an", "-n", "1").split() == ["banana"], "-n counts what is printed"
    assert sorted(ixion("consume", one, two, "-g", f"{one}-g", "-e", "--grep", "a$").split()) == ["banana"]
    assert ixion("consume", one, two, "-g", f"{one}-g", "-e") == "", "records that are left out are committed, too"
    assert "--partition is for one topic" in ixion.refused("consume", one, two, "-p", "0", "-e", code=2)
    assert "is not a regular expression" in ixion.refused("consume", one, "--grep", "(", code=2)
    found = ixion(
        "consume", one, two, "-e", "--filter", 'value startswith "a" and partition == 0 or key == "b"'
    ).split()
    assert {"apple", "banana"} <= set(found) <= {"apple", "banana", "avocado"}
    assert "a text has quotes" in ixion.refused("consume", one, "--filter", "key == a", code=2)


def test_a_time_ago(ixion: Ixion, monkeypatch: pytest.MonkeyPatch) -> None:
    name = ixion.topic()
    now_ms = 1_750_000_000_000
    monkeypatch.setattr("time.time", lambda: now_ms / 1000)
    lines = [{"value": f"{hours}h", "timestamp": now_ms - hours * 3_600_000} for hours in (30, 5, 1, 0)]
    ixion("produce", name, "--json", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert ixion("consume", name, "-e", "-o", "@-2h").split() == ["1h", "0h"]
    assert ixion("consume", name, "-e", "-o", "@-1d", "--until", "@-90m").split() == ["5h"]
    assert "write @-90m, with one of the units s, m, h, d, w" in ixion.refused("consume", name, "-o", "@-2y", code=2)
