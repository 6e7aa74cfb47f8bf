"""`reader` with our own consumer."""

from __future__ import annotations

import sys
from pathlib import Path

from devtools.soak.diary import Diary
from ixion.clients import Consumer, TopicPartition
from ixion.language.model.errors import KafkaError


def main(bootstrap: str, directory: str, name: str, topic: str, partitions: str, *options: str) -> None:
    diary = Diary(Path(directory), name)
    places = [TopicPartition(topic, number) for number in range(int(partitions))]
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        diary.write("assign", "ok", [])
        is_over = False
        ends = dict.fromkeys(places, 0)
        while not is_over:
            seen: dict[str, list[tuple[int, str]]] = {}
            try:
                if "--to-the-end" in options and all(consumer.position(place) >= ends[place] for place in places):
                    before, ends = ends, consumer.end_offsets(places)  # it waits behind a fetch that waits for records
                    is_over = ends == before
                for record in consumer.poll(0.5, 100):
                    value = (record.value or b"").decode()
                    seen.setdefault(f"{topic}-{record.partition}", []).append((record.offset, value))
            except KafkaError as fault:
                print(f"{name}: {fault}", flush=True)  # the broker was away for longer than a call waits
            if seen:
                diary.write("poll", "ok", [["poll", key, records] for key, records in seen.items()])


if __name__ == "__main__":
    main(*sys.argv[1:])
