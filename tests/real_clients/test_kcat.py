"""kcat, as it is used at a terminal: list, produce, consume, ask for offsets."""

from __future__ import annotations

import json
import subprocess

import pytest

from devtools.parts import need
from ixion.testing import Broker
from tests.real_clients.drivers import CODECS


def kcat(broker: Broker, *arguments: str, said: str = "") -> str:
    done = subprocess.run(
        [need("kcat"), "-b", broker.bootstrap, *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_cluster(broker: Broker, topic: str) -> None:
    told = json.loads(kcat(broker, "-L", "-J", "-t", topic))
    (found,) = told["topics"]
    assert (found["topic"], len(found["partitions"])) == (topic, 1)
    assert [node["name"] for node in told["brokers"]] == [broker.bootstrap]


@pytest.mark.parametrize(("codec", "acks"), list(zip(CODECS, ("0", "1", "-1", "1", "-1"), strict=True)))
def test_there_and_back(broker: Broker, topic: str, codec: str, acks: str) -> None:
    lines = "".join(f"key{number}:value {number}\n" for number in range(50))
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K", ":", "-z", codec, "-X", f"acks={acks}", "-H", "a=b", said=lines)
    assert kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-K", ":") == lines
    assert kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q") == "value 47\nvalue 48\nvalue 49\n"
    (line,) = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "25", "-c", "1", "-q", "-J").splitlines()
    found = json.loads(line)
    assert (found["offset"], found["key"], found["headers"]) == (25, "key25", ["a", "b"])


def test_offsets(broker: Broker, topic: str) -> None:
    kcat(broker, "-P", "-t", topic, "-p", "0", said="a\nb\n")
    assert "offset 2" in kcat(broker, "-Q", "-t", f"{topic}:0:-1")
    assert "offset 0" in kcat(broker, "-Q", "-t", f"{topic}:0:-2")
