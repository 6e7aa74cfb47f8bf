"""`ixion perf`: how fast a cluster takes records, and gives them back."""

from __future__ import annotations

from typing import Annotated

import typer

from ixion.cli.options import HERE, PATIENCE_S, AsJson, Bootstrap, Timeout, connect
from ixion.cli.output import show_json
from ixion.cli.produce import choose_acks, choose_codec

perf = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure a cluster under load.")

Topic = Annotated[str, typer.Argument(metavar="TOPIC")]


@perf.command()
def produce(
    topic: Topic,
    records: Annotated[int, typer.Option("--records", "-n", metavar="N", min=1)] = 100_000,
    size: Annotated[int, typer.Option("--size", "-s", metavar="BYTES", min=0, help="Of each value.")] = 100,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Records per second; as fast as it goes without.")
    ] = None,
    acks: Annotated[str, typer.Option("--acks", metavar="all|1|0")] = "all",
    compression: Annotated[str, typer.Option("--compression", "-z", metavar="none|gzip|snappy|lz4|zstd")] = "none",
    batch: Annotated[int, typer.Option("--batch", metavar="BYTES", min=1, help="Of one batch.")] = 16_384,
    linger: Annotated[float, typer.Option("--linger", metavar="MS", min=0, help="How long a batch may fill.")] = 5.0,
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Send random values; latency is from the call to the acknowledgement."""
    from ixion.cli.perf_load import produce_load
    from ixion.clients.producer import Producer

    if rate is not None and not rate > 0:
        raise typer.BadParameter(f"--rate must be more than 0 records per second, not {rate:g}")
    needed, codec = choose_acks(acks), choose_codec(compression)
    with connect(bootstrap, timeout) as cluster:
        producer = Producer(
            cluster,
            acks=needed,
            codec=codec,
            batch_bytes=batch,
            linger_ms=linger,
            delivery_timeout_s=timeout,
        )
        cluster.topic(topic, create=True)
        with producer:
            load = produce_load(producer, topic, records, size, rate)
    if as_json:
        options = {"topic": topic, "size": size, "acks": acks, "compression": compression, "batch": batch}
        show_json({**options, "linger_ms": linger, **load.as_json()})
    else:
        print("\n".join(load.lines()))


@perf.command()
def consume(
    topic: Topic,
    records: Annotated[
        int | None, typer.Option("--records", "-n", metavar="N", min=1, help="As many as there are without.")
    ] = None,
    start: Annotated[str, typer.Option("--from", "-f", metavar="WHERE", help="As for ixion consume.")] = "earliest",
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Read a topic to its end, or so many records, and look at every key and value; latency is of a fetch."""
    from ixion.cli.consume import choose_partitions, find_ends
    from ixion.cli.perf_load import consume_load
    from ixion.clients.reader import Reader
    from ixion.clients.starts import parse_start, resolve_start

    try:
        begin = parse_start(start)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with connect(bootstrap, timeout) as cluster:
        offsets = resolve_start(cluster, choose_partitions(cluster, topic, None), begin)
        ends = None if records is not None else find_ends(cluster, offsets, read_committed=False)
        with Reader(cluster, offsets, request_timeout_s=timeout) as reader:
            load = consume_load(reader, records, ends)
    if as_json:
        show_json({"topic": topic, **load.as_json()})
    else:
        print("\n".join(load.lines()))
