"""The producer's remaining steps, and that no step of the two documents is left without a test named after it."""

from __future__ import annotations

import ast
import re
import threading
from pathlib import Path

import pytest

from ixion.clients import Producer
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.sender import GATHER_S, GATHERED_BYTES
from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.faults import TimedOutError
from tests.clients.core.sim import Simulation
from tests.clients.core.test_connection import METADATA, ask, numbers, ready
from tests.clients.core.test_steps import SMALL, box_of, carried, fill, started
from tests.clients.fake import FakeCluster, answer_bytes
from tests.clients.test_reader import ORDERS

CLIENTS = Path(__file__).parent.parent
SOURCE = Path(__file__).parents[3] / "src/ixion/clients"
# The numbers in the documents. The consumer's has no 10, and its 9 says that a number was lost.
PRODUCER = [
    *("1", "2", "3", "4", "5", "6", "7", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "9"),
    *(f"10.{number}" for number in range(1, 5)),
    *(f"11.{number}" for number in range(1, 25)),
]
CONSUMER = [
    *map(str, range(1, 9)),
    *(f"11.{number}" for number in range(1, 13)),
    *map(str, range(12, 18)),
]


def steps_of(file: Path) -> set[str]:
    """The steps that the tests of a file are named after, or take as their parameter `step`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_step_"):
            continue
        numbers: list[str] = []
        for word in [*node.name.removeprefix("test_step_").split("_"), "end"]:
            if word.isdigit():
                numbers.append(word)
            else:
                if numbers:
                    found.add(".".join(numbers))
                    numbers = []
                if word != "and":
                    break
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and isinstance(call.args[0], ast.Constant) and call.args[0].value == "step":
                found.update(ast.literal_eval(call.args[1]))
    return found


@pytest.mark.parametrize(
    ("steps", "files"),
    [
        (PRODUCER, ["core/test_steps.py", "core/test_steps_rest.py"]),
        (
            CONSUMER,
            ["core/test_consumer_steps.py", "core/test_consumer_steps_rest.py"]
            + ["consumer/test_consumer.py", "consumer/test_guard.py"],
        ),
    ],
    ids=["producer", "consumer"],
)
def test_every_step_of_the_document_has_a_test(steps: list[str], files: list[str]) -> None:
    named = set().union(*(steps_of(CLIENTS / file) for file in files))
    assert [step for step in steps if step not in named] == []


def steps_in(path: Path, document: str) -> set[str]:
    """The steps that a source file names. One that both clients use says whose step it means."""
    is_shared = not {"producer", "producer.py", "consumer"} & set(path.relative_to(SOURCE).parts)
    whose = f"the {document}'s " if is_shared else ""
    lists = re.findall(rf"\b{whose}steps? ([0-9.]*[0-9](?:(?: and | to |, )[0-9.]*[0-9])*)", path.read_text())
    found: set[str] = set()
    for each in lists:
        numbers = re.findall(r"[0-9.]*[0-9]", each)
        found.update(map(str, range(int(numbers[0]), int(numbers[1]) + 1)) if " to " in each else numbers)
    return found


@pytest.mark.parametrize(
    ("steps", "document", "folder"),
    [(PRODUCER, "producer", "producer*"), (CONSUMER, "consumer", "consumer")],
    ids=["producer", "consumer"],
)
def test_every_step_of_the_document_is_named_where_our_code_takes_it(
    steps: list[str], document: str, folder: str
) -> None:
    own = [*SOURCE.glob(f"{folder}/**/*.py"), *SOURCE.glob(f"core/{folder}/**/*.py"), *SOURCE.glob(f"{document}.py")]
    shared = [*SOURCE.glob("*.py"), *SOURCE.glob("core/*.py")]
    named = set().union(*(steps_in(path, document) for path in {*own, *shared}))
    assert [step for step in steps if step not in named] == []


def test_step_1_send_returns_before_the_record_is_acknowledged() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, linger_ms=3_600_000, delivery_timeout_ms=7_200_000) as producer:
            future = producer.send("orders", b"x", partition=0)
            assert not future.done()
            assert future.result(60).offset == 0  # a caller that waits lets nothing linger


def test_step_8_4_a_new_batch_takes_the_record_that_did_not_fit() -> None:
    sim = started()
    fill(sim, 1)
    first = box_of(sim).open
    assert first is not None
    while box_of(sim).open is first:
        assert sim.send(b"more", 0)
    box = box_of(sim)
    assert list(box.waiting) == [first]
    assert box.open is not None
    assert box.open.count == 1


def test_step_8_6_threads_append_one_at_a_time_and_none_is_lost() -> None:
    heard: list[Delivery] = []
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, batch_size=500) as producer:

            def append(name: int) -> None:
                for number in range(200):
                    producer.send("orders", b"%d-%d" % (name, number), partition=0, on_delivery=heard.append)

            threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        values = fakes.logs[ORDERS[0]].values()
    for name in range(4):
        prefix = b"%d-" % name
        mine = [value for value in values if value is not None and value.startswith(prefix)]
        assert mine == [b"%d-%d" % (name, number) for number in range(200)]
    assert sorted(delivery.offset for delivery in heard) == list(range(800))


@pytest.mark.parametrize("step", ["9", "10.1"])
def test_step_9_what_lingers_is_sent_though_the_caller_does_nothing(step: str) -> None:
    told = threading.Event()
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, linger_ms=20) as producer:
            producer.send("orders", b"x", partition=0, on_delivery=lambda _: told.set())
            assert told.wait(60), step


def test_step_10_4_a_closed_producer_has_no_connection() -> None:
    sim = started()
    fill(sim, 3)
    sim.finish()
    sim.machine.close(TimedOutError("closed"), sim.now_s)
    assert sim.machine.client.machines == []
    sim.run(60.0)
    assert sim.machine.client.machines == []


def test_step_11_4_a_topic_without_leaders_is_asked_for_until_it_has_one() -> None:
    sim = started()
    leaders = list(sim.leaders)
    sim.leaders = [-1] * len(leaders)
    fill(sim, 1)
    sim.machine.client.cluster.topics.clear()
    sim.machine.client.cluster.mark_stale()
    learnt = sim.machine.client.cluster.changes
    sim.run(2.0)
    assert sim.machine.client.cluster.changes - learnt > 2
    assert sim.produced == []
    sim.leaders = leaders
    sim.run(2.0)
    assert len(sim.logs[0].values) == 1


def test_step_11_12_nothing_is_slept_while_a_leader_is_ready() -> None:
    sim = started()
    fill(sim, 1)
    sim.run(1.0)  # it has its producer id now
    fill(sim, 30)
    assert sim.machine.sender.is_awake
    sim.machine.tick(sim.now_s)
    assert any(machine.unsent for machine in sim.machine.client.machines)


def is_awake(sim: Simulation) -> bool:
    return sim.machine.sender.is_awake


def test_step_11_12_full_batches_wait_a_moment_for_each_other_while_a_broker_is_busy() -> None:
    sim = started()
    fill(sim, 1)
    sim.run(1.0)
    fill(sim, 8)
    assert is_awake(sim)  # nothing is under way
    sim.machine.tick(sim.now_s)
    fill(sim, 8)
    assert not is_awake(sim)
    assert sim.machine.sender.wake_s == sim.now_s + GATHER_S
    sim.now_s += GATHER_S
    fill(sim, 8)
    assert is_awake(sim)  # the first has waited for long enough
    sim.machine.tick(sim.now_s)
    fill(sim, 8)
    assert not is_awake(sim)
    fill(sim, 8 * GATHERED_BYTES // SMALL.batch_size)
    assert is_awake(sim)  # there is enough
    sim.finish()


@pytest.mark.parametrize("linger_s", [0.0, GATHER_S])
def test_step_11_12_a_producer_that_hardly_lingers_sends_full_batches_at_once(linger_s: float) -> None:
    sim = started(ProducerSettings(batch_size=150, linger_s=linger_s))
    for _ in range(3):
        fill(sim, 8)
        assert sim.machine.sender.is_awake
        sim.machine.tick(sim.now_s)


@pytest.mark.parametrize("step", ["11.13", "11.16", "11.18"])
def test_step_11_13_a_request_to_each_leader_waits_on_its_connection_to_be_written(step: str) -> None:
    sim = started(nodes=2)
    fill(sim, 1, 0)
    fill(sim, 1, 1)
    sim.run(1.0)
    sim.produced.clear()
    fill(sim, 7, 0)
    fill(sim, 7, 1)
    sim.machine.seal_all()
    sim.machine.tick(sim.now_s)
    waiting = [machine for machine in sim.machine.client.machines if machine.unsent]
    assert sim.produced == [], step  # they are queued, not sent
    sim.run(1.0)
    assert {node for node, _ in carried(sim)} == set(sim.leaders), step
    assert len(waiting) == len(set(sim.leaders)), step


@pytest.mark.parametrize("step", ["11.19", "11.21"])
@pytest.mark.parametrize("is_reused", [False, True], ids=["bytes", "a buffer that is used again"])
def test_step_11_19_what_a_read_brings_is_taken_in_whole(step: str, is_reused: bool) -> None:
    """Two answers in one read, and a third in pieces."""
    machine, peer = ready()
    for number in range(3):
        ask(machine, number)
    answers = [answer_bytes(*request, METADATA) for request in peer.requests()]
    stream = b"".join(answers)
    cut = len(answers[0]) + len(answers[1]) + 7
    for piece, expected in ((stream[:cut], [0, 1]), (stream[cut : cut + 2], []), (stream[cut + 2 :], [2])):
        if is_reused:
            buffer = bytearray(piece)
            machine.receive_from(memoryview(buffer), 2.0)
            buffer[:] = bytes(len(buffer))
        else:
            machine.receive(piece, 2.0)
        assert numbers(machine) == expected, step
