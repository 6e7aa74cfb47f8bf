"""A start imports what it needs: no coordinator before a request needs it, no tool of the command line at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from confluent_kafka import Consumer, Producer

from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.late_groups import LateGroups
from ixion.broker.startup.late_transactions import LateTransactions
from ixion.broker.startup.parts import Parts
from ixion.broker.startup.steps_service import import_if_kept
from ixion.testing import Broker
from tests.broker.served import environment

NOT_AT_START = (
    *(f"ixion.broker.{name}" for name in ("adopt", "certificates", "reopening")),
    "ixion.clients",
    "ixion.broker.controller.cluster",
    "ixion.broker.coordinators.group",
    "ixion.broker.coordinators.txn",
    "ixion.broker.log.compaction",
    "ixion.pipelines",
    "ixion.language.protocol.messages.k11_join_group",
    "ixion.broker.security.gate",
    *(f"ixion.broker.web.{name}" for name in ("families", "http", "pages")),
    *("backports.zstd", "cramjam", "ctypes", "lz4", "lzma", "pyspark", "random", "re2", "rich", "shutil"),
    *("typer", "uuid"),
)

# A dataclass takes half a millisecond to make, a NamedTuple a sixth of that. These change, are compiled, or are keys by
# their identity.
DATACLASSES = {
    *("ClusterImage", "LogConfig", "Logins", "Services", "Setting", "TopicImage", "TopicOutcome", "TopicRules"),
}

CODE = """
import sys
import ixion.cli.serve.run as serve
def announce(broker, quiet):
    print([name for name in {names!r} if name in sys.modules])
    modules = [module for name, module in sys.modules.items() if name.startswith("ixion.")]
    classes = [value for module in modules for value in vars(module).values()]
    print(*sorted({{each.__name__ for each in classes if "__dataclass_fields__" in getattr(each, "__dict__", ())}}))
    broker.failed.set()
serve.announce = announce
serve.main(["--port", "0", "--metrics-port", "0"])
"""


def test_a_start_imports_what_it_needs(tmp_path: Path) -> None:
    code = CODE.format(names=NOT_AT_START)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    late, made = done.stdout.splitlines() or ("", "")
    assert late == "[]", done.stderr
    assert set(made.split()) <= DATACLASSES


def consume_one(broker: Broker) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    message = consumer.poll(30)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return message.value()


def test_groups_come_when_they_are_needed_and_are_found_again(tmp_path: Path) -> None:
    async def made(real: RealBroker) -> bool:
        return real.parts.groups.made is not None

    with Broker(data=tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for value in (b"one", b"two"):
            producer.produce("t", value)
        assert producer.flush(30) == 0
        assert not broker.call(made)
        assert consume_one(broker) == b"one"
        assert broker.call(made)
    with Broker(data=tmp_path) as broker:
        assert broker.call(made)  # there are offsets, so it is needed at once
        assert consume_one(broker) == b"two"


def test_a_broker_that_only_follows_needs_no_coordinator() -> None:
    """To import it takes 30 ms or more, and this is called on the event loop."""
    groups = LateGroups(Parts.__new__(Parts))
    groups.follow(GROUP_OFFSETS, 0, -1)
    groups.on_transaction_marker(0, 17, committed=True)
    assert groups.made is None


def test_a_broker_with_a_replica_of_a_coordinators_topic_imports_its_code_on_a_worker_thread() -> None:
    """Such a broker may have led before, and is asked right after its start; no request should import on the loop."""
    asked: list[tuple[object, object]] = []
    parts = Parts.__new__(Parts)
    parts.loop = SimpleNamespace(run_in_executor=lambda *job: asked.append(job))  # type: ignore[assignment]
    parts.scheduler = SimpleNamespace(workers="workers")  # type: ignore[assignment]
    parts.logs = SimpleNamespace(logs={("t", 0): None, (GROUP_OFFSETS, 3): None})  # type: ignore[assignment]
    groups, transactions = LateGroups(parts), LateTransactions(parts)
    import_if_kept(parts, GROUP_OFFSETS, groups.import_code)
    import_if_kept(parts, TRANSACTION_STATE, transactions.import_code)
    assert asked == [("workers", groups.import_code)]
    parts.logs.logs[TRANSACTION_STATE, 0] = parts.logs.logs["t", 0]
    import_if_kept(parts, TRANSACTION_STATE, transactions.import_code)
    assert asked[1:] == [("workers", transactions.import_code)]
    transactions.import_code()
    assert "ixion.broker.apis.first_write" in sys.modules
