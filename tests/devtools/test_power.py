"""What a power failure of the cluster soak takes away: of the active segment, what no recovery point covers."""

from __future__ import annotations

import random
from pathlib import Path

from devtools.soak.power import CHECKPOINT, lose_unsynced


def log(directory: Path, partition: str, *bases: int) -> list[Path]:
    (directory / partition).mkdir(parents=True)
    segments = [directory / partition / f"{base:020}.log" for base in bases]
    for segment in segments:
        segment.write_bytes(b"x" * 1_000)
        segment.with_suffix(".index").write_bytes(b"i")
    return segments


def test_only_what_was_never_synced_is_lost(tmp_path: Path) -> None:
    old, active = log(tmp_path, "a-topic-0", 0, 50)
    (synced,) = log(tmp_path, "b-1", 0)
    (unknown,) = log(tmp_path, "c-0", 0)
    (tmp_path / CHECKPOINT).write_text("0\n2\na-topic 0 50\nb 1 7\n")
    lost = lose_unsynced(tmp_path, random.Random(3))
    assert old.read_bytes() == synced.read_bytes() == b"x" * 1_000
    left = [each.read_bytes().rstrip(b"\0") for each in (active, unknown)]
    assert lost == 2_000 - sum(map(len, left)) > 0
    assert all(set(each) <= {ord("x")} for each in left)


def test_zeros_may_take_the_place_of_what_is_lost(tmp_path: Path) -> None:
    segments = [log(tmp_path, f"t-{number}", 0)[0] for number in range(40)]
    lose_unsynced(tmp_path, random.Random(1))
    sizes = {segment.stat().st_size == 1_000 for segment in segments}
    assert sizes == {True, False}
    assert any(not segment.with_suffix(".index").exists() for segment in segments)


def test_the_next_start_looks_like_one_after_a_boot(tmp_path: Path) -> None:
    (tmp_path / ".ixion_kept").write_text("{}")
    lose_unsynced(tmp_path, random.Random(1))
    assert not (tmp_path / ".ixion_kept").exists()
