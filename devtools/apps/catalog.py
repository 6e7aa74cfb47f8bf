"""The applications, each with the versions that were tried."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from devtools.apps.app import App, execute, go_app, node_app, python_app
from devtools.apps.jvm_apps import connect, mirror_maker, word_count
from devtools.apps.kafka_tools import kafka_tools
from devtools.apps.registry import registry
from devtools.programs import tool


def kcat(bootstrap: str, folder: Path) -> None:
    """Produces from a pipe and reads back in a group."""
    program = tool("kcat")
    (folder / "lines").write_text("".join(f"line {number}\n" for number in range(100)))
    execute([program, "-b", bootstrap, "-P", "-t", "kcat", "-l", str(folder / "lines")], bootstrap, folder)
    read = [program, "-b", bootstrap, "-q", "-c", "100", "-X", "auto.offset.reset=earliest", "-G", "kcat", "kcat"]
    said = execute(read, bootstrap, folder)
    if sorted(said.splitlines()) != sorted((folder / "lines").read_text().splitlines()):
        raise RuntimeError(f"other lines came back: {said[:500]}")


APPS: Final = (
    App("kcat", "produce a file, read it in a group", kcat),
    python_app("faststream", "handlers that subscribe and publish", "faststream[kafka]==0.7.8"),
    python_app("quixstreams", "a stateful sum with a changelog, exactly once", "quixstreams==3.28.1"),
    python_app("faust", "an agent with a table", "faust-streaming==0.15.3", "setuptools<81"),
    python_app("celery", "tasks through a topic", "celery==5.7.0", "kombu[confluentkafka]"),
    python_app("bytewax", "a dataflow from topic to topic", "bytewax[kafka]==0.21.1"),
    node_app("kafkajs", "admin, transactions, a group, ACLs", "kafkajs@2.2.4"),
    go_app("sarama", "admin, idempotent producer, a group", "github.com/IBM/sarama@v1.61.1"),
    go_app("kafka-go", "compressed writer, a group that resumes", "github.com/segmentio/kafka-go@v0.4.51"),
    App("connect", "file source and file sink", connect),
    App("mirrormaker", "a topic copied to a second broker, another one back", mirror_maker),
    App("streams", "a word count with a state store, exactly once, restored in a second life", word_count),
    App(
        "streams-group",
        "the same in a streams group, whose broker assigns its tasks",
        partial(word_count, protocol="streams"),
    ),
    App("kafka-tools", "every tool of Kafka's bin/ that talks to a broker", kafka_tools),
    App("apicurio", "a registry that keeps its schemas in a topic", registry),
)
