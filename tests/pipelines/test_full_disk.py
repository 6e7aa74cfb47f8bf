"""A disk that is full while tables are written: one sentence, and when there is room again each record is there once.

The disk is a small tmpfs. Only root may mount it, or a user whom sudo asks for no password, as on the machines of CI.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.parts import do_without
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import read_spec
from tests.pipelines.support import Lab, column
from tests.pipelines.three_tables import rows_of_tables

SMALL_MB, LARGE_MB = 3, 64
RECORDS, PAD = 1500, 1000  # 1.5 MB a table, and there are three
KINDS = ("parquet", "delta", "iceberg")
TABLES = "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n' for kind in KINDS)
FORMAT = '[format]\ntype = "json"\nschema = "n INT, pad STRING"\n'


def as_root(*words: str) -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*sudo, *words], check=True, capture_output=True, text=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    try:
        as_root("mount", "-t", "tmpfs", "-o", f"size={SMALL_MB}m,uid={os.geteuid()}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        do_without("a file system of its own", f"no tmpfs can be mounted: {getattr(error, 'stderr', '') or error}")
    yield path
    as_root("umount", "--lazy", str(path))


@pytest.mark.parametrize("checkpoint", ["disk/.ixion", "elsewhere"])
def test_nothing_is_lost_and_nothing_is_there_twice(lab: Lab, disk: Path, checkpoint: str) -> None:
    from ixion.pipelines import Pipeline

    chance = random.Random(1)  # text that does not shrink
    lab.send(*({"n": number, "pad": f"{chance.getrandbits(4 * PAD):x}"} for number in range(RECORDS)))
    source = f'[source]\nbootstrap = "{lab.bootstrap}"\ntopics = ["{lab.topic}"]\n'
    text = f'name = "full"\ncheckpoint = "{lab.folder / checkpoint}"\n{source}{FORMAT}{TABLES}'
    pipeline = Pipeline(read_spec(text, folder=disk))
    for _ in range(2):  # to try again does not make it worse
        with pytest.raises(PipelineError, match="the disk is full") as caught:
            pipeline.run(lab.spark)
        assert caught.value.retry
    as_root("mount", "-o", f"remount,size={LARGE_MB}m", str(disk))
    assert pipeline.run(lab.spark).lag == 0
    for kind, rows in rows_of_tables(disk, lab.spark).items():
        assert column(rows, "n") == list(range(RECORDS)), kind
