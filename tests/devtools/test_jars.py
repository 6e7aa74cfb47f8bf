from __future__ import annotations

from pathlib import Path

import pytest

from devtools import jars


def test_a_set_is_fetched_once_and_needs_no_network_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IXION_CACHE", str(tmp_path))
    poms: list[str] = []
    monkeypatch.setattr(jars, "_fetch", lambda pom, directory: poms.append(pom))

    first = jars.classpath("clients-4.3.0")
    assert jars.classpath("clients-4.3.0") == first
    directory, star = first.split(":")
    assert Path(directory).parent == tmp_path / "jars"
    assert star == f"{directory}/*"
    assert len(poms) == 1
    assert "<artifactId>kafka-clients</artifactId><version>4.3.0</version>" in poms[0]


def test_a_classifier_reaches_the_pom() -> None:
    assert "<version>1</version><classifier>test</classifier>" in jars._pom(("group:artifact:1:test",))


def test_an_unknown_set_is_an_error() -> None:
    with pytest.raises(KeyError, match="kafka-0"):
        jars.classpath("kafka-0")
