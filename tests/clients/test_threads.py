"""The producer's own thread, threads that share one, forked children: one clear error each, nothing left behind."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from ixion.clients import Producer
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.faults import TimedOutError
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault
from tests.clients.test_producer import SMALL, numbered, stored

pytestmark = pytest.mark.timeout(60)


def test_a_lingering_batch_is_sent_though_the_caller_does_nothing() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        settled = threading.Event()
        with Producer(fakes.bootstrap, linger_ms=1) as producer:
            for _ in range(3):
                settled.clear()
                producer.send("orders", b"x", on_delivery=lambda delivery: settled.set())
                assert settled.wait(30)


def test_a_future_waits_for_one_record_and_lets_nothing_linger() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap, linger_ms=3_600_000) as producer:
            first, second = producer.send("orders", b"1"), producer.send("orders", b"2")
            assert not first.done()
            assert second.result(30).offset == 1
            assert first.done()
            assert first.exception() is None
            fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
            late = producer.send("orders", b"3")
            with pytest.raises(TimedOutError, match=r"orders-0: not settled within 0\.01 s"):
                late.result(0.01)
            producer._end(TimedOutError("the end"))
            with pytest.raises(KafkaError, match="the end"):
                late.result()


def test_threads_share_a_producer_and_each_keeps_its_order() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        heard: list[Delivery] = []
        with Producer(fakes.bootstrap, batch_size=SMALL, buffer_memory=1000) as producer:

            def work(number: int) -> None:
                for value in numbered(50, 1000 * number):
                    producer.send("orders", value, partition=0, on_delivery=heard.append)
                producer.flush()

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = stored(fakes)
        assert len(heard) == len(found) == 200
        for number in range(4):
            mine = numbered(50, 1000 * number)
            assert [value for value in found if value in mine] == mine
        assert [delivery.offset for delivery in heard] == list(range(200))


def test_a_closed_producer_leaves_no_thread_and_no_file_behind() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap) as warm:
            warm.send("orders", b"x")
        before = os.listdir("/proc/self/fd")
        with Producer(fakes.bootstrap) as producer:
            producer.send("orders", b"x").result()
            mine = producer._engine._stand_in
            assert mine is not None
            assert mine.is_alive()
        assert mine not in threading.enumerate()
        fakes_own = len(os.listdir("/proc/self/fd")) - len(before)
        assert fakes_own <= 2  # the fake may not have noticed yet that the two connections are closed
        producer.close()  # once more does nothing
        for use in (lambda: producer.send("orders", b"x"), producer.flush, producer.poll):
            with pytest.raises(ValueError, match="the producer is closed"):
                use()


def test_a_forked_child_must_make_its_own() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap) as producer:
            producer.send("orders", b"x").result()
            read, write = os.pipe()
            with producer._lock:  # as the producer's own thread may hold it at this moment
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    try:
                        producer.send("orders", b"y")
                    except RuntimeError as error:
                        os.write(write, str(error).encode())
                    finally:
                        producer.close()
                        os._exit(0)
            os.close(write)
            assert (
                os.read(read, 1000) == b"this producer was made by another process; a forked child needs one of its own"
            )
            os.close(read)
            os.waitpid(child, 0)
            producer.send("orders", b"z").result()
        assert stored(fakes) == [b"x", b"z"]


def test_a_value_that_is_no_bytes_is_refused_before_it_harms_its_batch() -> None:
    with FakeCluster() as fakes:
        fakes.add_topic("orders", leaders=[1])
        with Producer(fakes.bootstrap) as producer:
            producer.send("orders", b"x")
            with pytest.raises(TypeError, match="the value is a str; give bytes, or set value_serializer"):
                producer.send("orders", "text")
            with pytest.raises(TypeError, match="the key is a int; give bytes, or set key_serializer"):
                producer.send("orders", b"x", key=5)
            producer.send("orders", bytearray(b"y"), key=memoryview(b"k"))
        assert stored(fakes) == [b"x", b"y"]
