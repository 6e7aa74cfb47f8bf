"""The hostile crowd of `tests.hostile.soak`: clients that send what no honest one does, with a login and without.

Each attack is a function of an address and of chance; it ends by itself, and a refusal is what it expects. `mallory`
has rights to the topic `own` alone.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.queues import Queue
from typing import Final

from ixion.broker.apis.served import SERVED
from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ixion.language.protocol.registry import ApiKey
from tests.hostile.amplify import worst_of
from tests.hostile.genes import COMPRESSED, Gene, records_of, shaped
from tests.hostile.inputs import asked, produced
from tests.hostile.residue import logged_in
from tests.hostile.witness import take
from tests.log.support import batch
from tests.records import forge

MALLORY: Final = "mallory"
OWN: Final = "own"
FORBIDDEN: Final = ("honest", "secret", "target")
IDS: Final = [bytes(15) + b"\1"]
TOPIC: Final = 2  # the type of a resource
LATER_S: Final = 60

Attack = Callable[[str, random.Random], None]


def garbage(address: str, chance: random.Random) -> None:
    """Bytes that are no frame, or a frame that is never completed."""
    with logged_in(address, "") as client:
        sent = (chance.randbytes(2_000), struct.pack(">i", 90_000) + b"x" * 500, b"GET / HTTP/1.1\r\n\r\n")
        client.sendall(chance.choice(sent))
        client.settimeout(0.2)
        take(client)


def strangers(address: str, chance: random.Random) -> None:
    """Connections that never log in."""
    host, _, port = address.rpartition(":")
    made = [socket.create_connection((host, int(port)), timeout=5) for _ in range(chance.randrange(1, 40))]
    time.sleep(chance.random() / 2)
    for each in made:
        each.close()


def floods(address: str, chance: random.Random) -> None:
    """The worst requests that a search has found, of every API."""
    api, size = chance.choice(SERVED), chance.choice((1_000, 10_000, 100_000))
    long = f"\N{HATCHING CHICK}{chance.randrange(10**9):0{chance.randrange(1, 8_000)}}"
    name = chance.choice(("x", f"{chance.random()}", long))
    for gene in worst_of(api, size):
        send(address, chance.choice(("", MALLORY)), shaped(api, gene, size, IDS, name))


def names(address: str, chance: random.Random) -> None:
    """Group ids, member ids, transactional ids and topics without end."""
    key = chance.choice((11, 12, 14, 22, 10, 9, 68, 3))
    gene = Gene(text="long", number="index")
    send(address, MALLORY, shaped(ApiKey(key), gene, 1_000, IDS, f"{chance.randrange(10**12)}"))


def bombs(address: str, chance: random.Random) -> None:
    send(address, MALLORY, produced(records_of(chance.choice((*COMPRESSED, "headers"))), OWN))


def forgeries(address: str, chance: random.Random) -> None:
    """Records for topics of others, at once and later."""
    records = chance.choice((batch(b"forged"), delayed(50)))
    for topic in FORBIDDEN:
        send(address, MALLORY, produced(records, topic))


def redirections(address: str, chance: random.Random) -> None:
    """A delayed record in one's own topic, then another topic as its target."""
    send(address, MALLORY, produced(delayed(300), OWN))
    setting = AlterableConfig(name="delivery.delay.target", config_operation=0, value=chance.choice(FORBIDDEN))
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=OWN, configs=(setting,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    send(address, MALLORY, asked(int(ApiKey.INCREMENTAL_ALTER_CONFIGS), 1, request))


def slow_reading(address: str, chance: random.Random) -> None:
    """Asks for much, and reads nothing for a while."""
    request = shaped(ApiKey.METADATA, Gene(flood="/topics", text="unknown"), 10_000, IDS)
    with logged_in(address, MALLORY) as client:
        client.settimeout(1)
        with suppress(OSError):
            for _ in range(200):
                client.sendall(request)
        time.sleep(chance.random())


def delayed(ms: int) -> bytes:
    key, value = b"x-deliver-after-ms", str(ms).encode()
    header = forge.varint(len(key)) + key + forge.varint(len(value)) + value
    return forge.batch(forge.record(value=b"forged", headers=forge.varint(1) + header))


ATTACKS: Final[Sequence[Attack]] = (
    garbage,
    strangers,
    floods,
    names,
    bombs,
    forgeries,
    redirections,
    slow_reading,
)


def send(address: str, user: str, request: bytes) -> None:
    with logged_in(address, user) as client:
        client.sendall(request)
        client.settimeout(1)
        with suppress(TimeoutError):  # some are not answered so soon, or ever
            take(client)


def besiege(addresses: Sequence[str], seconds: float, clients: int, seed: int, tell: Queue[dict[str, int]]) -> None:
    """Tells how many attacks of each kind were carried out to their end. On a busy machine the first ones may take
    longer than `seconds`: it goes on until there was one of each kind, for a minute at most."""
    until = time.monotonic() + seconds
    done: dict[str, int] = {attack.__name__: 0 for attack in ATTACKS}

    def run(number: int) -> None:
        chance = random.Random(seed + number)
        turn = number
        while time.monotonic() < until or (time.monotonic() < until + LATER_S and not all(done.values())):
            attack = ATTACKS[turn % len(ATTACKS)]
            turn += 1
            # A broker that does not answer any more is judged by the honest clients.
            with suppress(OSError, struct.error, AssertionError, TimeoutError):
                attack(chance.choice(addresses), chance)
                done[attack.__name__] += 1

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(seconds + LATER_S)
    tell.put(done)
