"""A job queue in thirty lines: workers take single jobs; what fails comes back later, after a longer pause each time.

Any number of workers can share one partition. A job that is stuck holds up no other: its lock ends, and another worker
gets it. The broker counts the deliveries.

Prints:

    job 1: done at attempt 1
    job 2: failed at attempt 1, again in 100 ms
    job 3: no such job
    job 2: failed at attempt 2, again in 200 ms
    job 2: done at attempt 3
"""

from __future__ import annotations

from datetime import timedelta

from ixion.clients import Admin, Producer, ShareConsumer
from ixion.clients.admin.configs import Resource
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker

WORKERS = Resource(ResourceType.GROUP, "workers")


def work(job: bytes, attempt: int) -> None:
    if job == b"job 3":
        raise LookupError("no such job")
    if job == b"job 2" and attempt < 3:
        raise TimeoutError("try again")


def worker(bootstrap: str, jobs: int) -> None:
    with ShareConsumer(bootstrap, group="workers", topics=["jobs"], share_acknowledgement_mode="explicit") as consumer:
        for record in consumer:
            name, attempt = record.value.decode(), record.delivery_count
            try:
                work(record.value, attempt)
            except TimeoutError:
                pause = timedelta(milliseconds=100 * 2 ** (attempt - 1))
                print(f"{name}: failed at attempt {attempt}, again in {pause.microseconds // 1000} ms")
                consumer.release(record, delay=pause)
                continue
            except LookupError as error:
                print(f"{name}: {error}")
                consumer.reject(record)
            else:
                print(f"{name}: done at attempt {attempt}")
                consumer.accept(record)
            jobs -= 1
            if jobs == 0:
                return


def main() -> None:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics(["jobs"]).check()
            admin.alter_configs({WORKERS: {"share.auto.offset.reset": "earliest"}}).check()
        with Producer(broker.bootstrap) as producer:
            for number in (1, 2, 3):
                producer.send("jobs", b"job %d" % number)
        worker(broker.bootstrap, 3)


if __name__ == "__main__":
    main()
