"""A pipeline file as a declarative pipeline. `make spark-versions` runs one; here is what the files have."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ixion.cli.app import execute
from ixion.pipelines.declarative import project
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import read_spec
from tests.pipelines.on_version import DECLARATIVE


def files(text: str = DECLARATIVE) -> dict[str, str]:
    spec = read_spec(text.format(bootstrap="b:9092"), file="shop.toml", folder=Path("/home/eva"))
    return project(spec, Path("/home/eva/sdp"))


def constants(python: str) -> dict[str, object]:
    return {
        each.targets[0].id: ast.literal_eval(each.value)
        for each in ast.parse(python).body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id.isupper()
    }


def test_a_project_has_the_source_the_rules_the_steps_and_the_sinks() -> None:
    found = files()
    assert list(found) == ["spark-pipeline.yml", "transformations/shop.py", "transformations/shop.sql"]
    assert "storage: file:///home/eva/sdp/storage" in found["spark-pipeline.yml"]
    python, sql = found["transformations/shop.py"], found["transformations/shop.sql"]
    assert constants(python) == {
        "SOURCE": {
            "kafka.bootstrap.servers": "b:9092",
            "subscribe": "in",
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
        },
        "META": ["partition AS kafka_partition"],
        "REASONS": [
            ("not a JSON object of this schema", "_corrupt IS NOT NULL"),
            ("expectation not met: not seven", "NOT (n <> 7)"),
        ],
    }
    assert "options={'kafka.bootstrap.servers': 'b:9092', 'topic': 'clean'}" in python
    assert "WHERE _reason = '' AND (coalesce(n <> 9, false))" in sql
    assert "SELECT n, n * 2 AS twice, n % 2 AS half FROM STREAM(shop_good)" in sql
    assert re.findall(r"CREATE STREAMING TABLE (.*) AS", sql) == [
        "shop USING parquet PARTITIONED BY (half)",
        "shop_quarantine USING parquet",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type = "json"', 'type = "csv"', "format csv"),
        ('schema = "n INT"', "", "an inferred schema"),
        ('otherwise = "drop"', 'otherwise = "warn"', "the expectation 'not nine': only drop and quarantine"),
        ('sql = "SELECT n, n * 2 AS twice, n % 2 AS half FROM stream"', 'deduplicate = ["n"]', "DeduplicateStep"),
        ("FROM stream", "FROM (SELECT 1 AS n) AS stream", "SQL that does not read `FROM stream`"),
        ("exactly_once = true", "", "the sink topic clean without exactly_once"),
        ("[format]", '[source.options]\n"kafka.client.id" = "me"\n[format]', "[source.options] kafka.client.id"),
    ],
)
def test_what_has_no_counterpart_is_refused(old: str, new: str, said: str) -> None:
    assert old in DECLARATIVE
    with pytest.raises(PipelineError, match=re.escape(said)):
        files(DECLARATIVE.replace(old, new))


def test_the_command_writes_into_a_new_folder_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "shop.toml", tmp_path / "sdp"
    file.write_text(DECLARATIVE.format(bootstrap="b:9092"))
    words = ["pipeline", "export", str(file), "--sdp", str(folder)]
    assert execute(words) == 0
    assert f"now: spark-pipelines run --spec {folder}/spark-pipeline.yml" in capsys.readouterr().out
    ast.parse((folder / "transformations" / "shop.py").read_text())
    assert execute(words) == 1
    assert "is not an empty folder" in capsys.readouterr().err
