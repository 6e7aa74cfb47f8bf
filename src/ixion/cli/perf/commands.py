"""`ixion perf`: measures how fast a cluster takes and returns records."""

from __future__ import annotations

from typing import Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, UsageError, number, whole
from ixion.cli.options import AS_JSON, administer, reading
from ixion.cli.output import show_json
from ixion.cli.produce.commands import ACKS_OPTION, COMPRESSION_OPTION, producer_settings


def produce(
    topic: str,
    records: int,
    size: int,
    rate: float | None,
    acks: str,
    compression: str,
    batch: int,
    linger: float,
    as_json: bool,
    access: Access,
) -> None:
    from ixion.cli.perf.load import produce_load
    from ixion.clients.admin.starts import find_topic
    from ixion.clients.producer import Producer

    if linger < 0:
        raise UsageError(f"--linger must be at least 0 ms, not {linger:g}")
    if rate is not None and not rate > 0:
        raise UsageError(f"--rate must be more than 0 records per second, not {rate:g}")
    settings = producer_settings(acks, compression, access)
    settings["batch_size"] = batch
    settings["linger_ms"] = linger
    with administer(access) as admin:
        admin.run(find_topic, topic, create=True)
    with Producer(access.bootstrap, **settings) as producer:
        load = produce_load(producer, topic, records, size, rate)
    if as_json:
        options = {"topic": topic, "size": size, "acks": acks, "compression": compression, "batch": batch}
        show_json([{**options, "linger_ms": linger, **load.as_json()}])
    else:
        print("\n".join(load.lines()))


def consume(topic: str, records: int | None, start: str, as_json: bool, access: Access) -> None:
    from ixion.cli.perf.load import consume_load
    from ixion.cli.places import place
    from ixion.clients.admin.offsets import LATEST
    from ixion.clients.admin.starts import choose_partitions, offsets_at, resolve_start
    from ixion.clients.reader import Reader

    begin = place(start)
    with administer(access) as admin:
        places = admin.run(choose_partitions, topic)
        offsets = admin.run(resolve_start, places, begin)
        ends = None if records is not None else admin.run(offsets_at, places, LATEST, False)
    with Reader(access.bootstrap, offsets, **reading(access)) as reader:
        load = consume_load(reader, records, ends)
    if as_json:
        show_json([{"topic": topic, **load.as_json()}])
    else:
        print("\n".join(load.lines()))


TOPIC: Final = Argument("topic", "TOPIC", complete="topic")

PERF: Final = Group(
    "perf",
    "Measure a cluster under load.",
    Command(
        "produce",
        "Send random values; latency is from the call to the acknowledgement.",
        produce,
        arguments=(TOPIC,),
        options=(
            Option(
                "records",
                "--records -n",
                "Records to send.",
                metavar="N",
                kind=whole(1, LARGEST_OFFSET),
                default=100_000,
            ),
            Option("size", "--size -s", "Bytes of each value.", metavar="BYTES", kind=whole(0, 1 << 30), default=100),
            Option("rate", "--rate", "Records per second (default: as fast as possible).", metavar="N", kind=number),
            ACKS_OPTION,
            COMPRESSION_OPTION,
            Option("batch", "--batch", "Bytes of one batch.", metavar="BYTES", kind=whole(1), default=16_384),
            Option(
                "linger", "--linger", "How long a batch waits for more records.", metavar="MS", kind=number, default=5.0
            ),
            AS_JSON,
            *CLUSTER,
        ),
    ),
    Command(
        "consume",
        "Read a topic to its end, or N records, with every key and value; latency is that of a fetch.",
        consume,
        arguments=(TOPIC,),
        options=(
            Option(
                "records",
                "--records -n",
                "Stop after N records (default: at the end).",
                metavar="N",
                kind=whole(1, LARGEST_OFFSET),
            ),
            Option(
                "start",
                "--offset -o",
                "Where to begin: see 'ixion help offsets'.",
                metavar="WHERE",
                default="earliest",
                hidden="--from",
            ),
            AS_JSON,
            *CLUSTER,
        ),
    ),
)
