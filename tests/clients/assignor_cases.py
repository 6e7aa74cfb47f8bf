"""Groups made at random, as text that our assignors and Kafka's read alike: `strategy topics member=instance=hex …`.

A case holds the bytes that members of a classic group send, so reading these is compared as well. A group lives for
some rounds: members come and go, change what they subscribe to, miss a generation, or claim what others own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ixion.clients.assignors import ASSIGNORS, COOPERATIVE, STICKY, Member
from ixion.clients.assignors.sticky_data import write_generation, write_sticky
from ixion.clients.core.consumer.classic import read_assignment, read_member, wire_places, write_assignment
from ixion.clients.metadata import TopicPartition
from ixion.language.protocol import storage
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolSubscription


def answer(case: str) -> str:
    """What our leader would send with SyncGroup."""
    strategy, topics = case.split(" ")[:2]
    places = dict(entry.split(":") for entry in topics.split(","))
    racks = {
        TopicPartition(topic, number): frozenset(names) - {"-"}
        for topic, all_racks in places.items()
        for number, names in enumerate(all_racks.split("/"))
    }
    counts = {topic: all_racks.count("/") + 1 for topic, all_racks in places.items()}
    found = ASSIGNORS[strategy](members_of(case), counts, racks)
    return " ".join(f"{name}={write_assignment(found[name]).hex()}" for name in sorted(found))


def members_of(case: str) -> dict[str, Member]:
    strategy, _, *members = case.split(" ")
    return {
        name: read_member(strategy, bytes.fromhex(data), None if instance == "-" else instance)
        for name, instance, data in (member.split("=") for member in members)
    }


class RandomGroup:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.strategy = dice.choice([*ASSIGNORS, STICKY, COOPERATIVE])
        self.racks = dice.choice(["", "", "ab", "abc"])
        self.is_even = dice.random() < 0.5
        self.topics = {
            f"{dice.choice(['t', 'orders-', 'Ω'])}{dice.randrange(99)}": "" for _ in range(dice.randrange(1, 6))
        }
        for topic in self.topics:
            self.topics[topic] = "/".join(self.some_racks() for _ in range(dice.randrange(1, 9)))
        self.members: dict[str, Told] = {}
        self.generation = dice.randrange(1, 9)
        for _ in range(dice.randrange(1, 20 if dice.random() < 0.2 else 7)):
            self.come()

    def some_racks(self) -> str:
        return "".join(self.dice.sample(self.racks, self.dice.randrange(1, len(self.racks) + 1))) if self.racks else "-"

    def come(self) -> None:
        name = f"client-{self.dice.randrange(16**8):08x}"
        self.members[name] = Told(self.dice, self.some_topics(), self.racks)

    def some_topics(self) -> list[str]:
        if self.is_even:
            return list(self.topics)
        # Beside members that subscribe to nothing, Java's sticky assignors give partitions to the wrong ones.
        least = self.strategy in (STICKY, COOPERATIVE)
        return self.dice.sample(list(self.topics), self.dice.randrange(least, len(self.topics) + 1))

    def rounds(self) -> Iterator[str]:
        for _ in range(self.dice.randrange(1, 6)):
            case = self.case()
            yield case
            self.generation += 1
            for word in answer(case).split():
                name, _, data = word.partition("=")
                if self.dice.random() < 0.9:  # else it has missed this round
                    self.members[name].owned = read_assignment(bytes.fromhex(data))
                    self.members[name].generation = self.generation
            self.change()

    def change(self) -> None:
        dice = self.dice
        if len(self.members) > 1 and dice.random() < 0.4:
            self.members.pop(dice.choice(list(self.members)))
        if dice.random() < 0.5:
            self.come()
        if dice.random() < 0.2:
            dice.choice(list(self.members.values())).topics = self.some_topics()
        if dice.random() < 0.2:
            told, other = dice.choices(list(self.members.values()), k=2)
            told.owned = list(dict.fromkeys([*told.owned, *other.owned[:2]]))
        if dice.random() < 0.2:
            self.topics[dice.choice(list(self.topics))] += f"/{self.some_racks()}"

    def case(self) -> str:
        topics = ",".join(f"{topic}:{racks}" for topic, racks in self.topics.items())
        members = [f"{name}={told.instance}={told.written(self.strategy).hex()}" for name, told in self.members.items()]
        return " ".join([self.strategy, topics, *members])


class Told:
    def __init__(self, dice: random.Random, topics: list[str], racks: str) -> None:
        self.topics = topics
        self.owned: list[TopicPartition] = []
        self.generation = -1
        self.rack = dice.choice([None, *racks]) if racks else None
        self.instance = f"i{dice.randrange(10**6)}" if dice.random() < 0.3 else "-"
        self.version = dice.choice([0, 1, 2, 3, 3, 3])  # of its client

    def written(self, strategy: str) -> bytes:
        data = None
        if strategy == STICKY and self.generation >= 0:
            data = write_sticky(self.owned, self.generation)
        elif strategy == COOPERATIVE:
            data = write_generation(self.generation)
        owned = wire_places(sorted(self.owned)) if strategy == COOPERATIVE else ()
        told = ConsumerProtocolSubscription(
            topics=tuple(sorted(self.topics)),
            user_data=data,
            owned_partitions=owned,
            generation_id=self.generation,
            rack_id=self.rack,
        )
        return storage.encode(told, self.version)


def some_cases(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        found += RandomGroup(dice).rounds()
    return found[:count]
