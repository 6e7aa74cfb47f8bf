"""What a pipeline keeps in its checkpoint besides Spark's own files: its owner, the schema, the figures of its
batches.

<checkpoint>/metadata, offsets, commits, state      Spark's
<checkpoint>/ixion/owner.json                       the pipeline's name and topics
<checkpoint>/ixion/topics.json                      the ids of the topics that were read
<checkpoint>/ixion/partitions.json                  how many partitions each topic had when it was first read
<checkpoint>/ixion/tables.json                      the tables that were written
<checkpoint>/ixion/schema.sql                       the schema that was inferred on the first run
<checkpoint>/ixion/added.json                       fields that came later and were added, with their types
<checkpoint>/ixion/registry.json                    schemas of a registry, by their ids
<checkpoint>/ixion/rules.json                       the rules that the last batch was judged by (see `rules_begun_with`)
<checkpoint>/ixion/kept/                            rows of the batch that is being written (see `stable_rows`)
<checkpoint>/ixion/replay/                          records that are on their way out of the quarantine (see `replay`)
<checkpoint>/ixion/backfill/                        what backfills have read (see `backfill`)
<checkpoint>/ixion/history/000000012.json           figures of a batch
<checkpoint>/ixion/totals.json                      the sum of the figures of older batches
<checkpoint>/ixion/runs/20261117T123000….json       when a run was active, and how it ended (see `run_records`)
<checkpoint>/ixion/upkeep.json                      when each table had its upkeep, and the result
<checkpoint>/ixion/lock                             held while the pipeline runs

If the checkpoint is not on this machine, the lock is a file in this machine's folder for temporary files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from ixion.pipelines.batch.metrics import BatchFigures, Offsets, RunFigures, total
from ixion.pipelines.checkpoint.lock import free_for_upkeep, held_for_run, private_folder
from ixion.pipelines.checkpoint.run_records import KEPT as KEPT_RUNS
from ixion.pipelines.checkpoint.run_records import RunRecord, record_of
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.sinks.reached import Reached
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.upkeep.results import Totals, plus

KEPT: Final = 1000  # batches in the history


class Store(Protocol):
    """A folder, here or elsewhere; `Files` is one too."""

    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> str: ...
    def write(self, path: str, text: str) -> None: ...
    def names(self, path: str) -> list[str]: ...
    def remove(self, path: str) -> None: ...


class LocalFiles:
    """Needs no Spark, so that commands that only read do not start it."""

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read(self, path: str) -> str:
        return Path(path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(f"{path}.unfinished")
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path)) if os.path.isdir(path) else []

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)


class Checkpoint:
    def __init__(self, path: str, store: Store) -> None:
        self.path: Final = path
        self._store: Final = store
        self._own: Final = f"{path}/ixion"

    @property
    def query(self) -> str:
        """The id that Spark gave to this checkpoint on first use."""
        try:
            query: str = json.loads(self._store.read(f"{self.path}/metadata"))["id"]
        except ValueError:
            message = f"the file {self.path}/metadata is torn, so the id of this checkpoint is lost"
            raise PipelineError(message, hint="put the checkpoint back from a backup") from None
        return query

    @property
    def used(self) -> bool:
        return self._store.exists(f"{self.path}/metadata")

    def claim(self, spec: PipelineSpec) -> None:
        """Refuse the checkpoint of another pipeline, and record its owner."""
        self.refuse_foreign(spec)
        path = f"{self._own}/owner.json"
        if not self._store.exists(path):
            self._store.write(path, json.dumps(_owner(spec)))

    def refuse_foreign(self, spec: PipelineSpec) -> None:
        path = f"{self._own}/owner.json"
        if not self._store.exists(path):
            if self.used:
                raise self._foreign("a Spark job that is not an ixion pipeline", [])
            return
        owner = json.loads(self._store.read(path))
        if owner != _owner(spec):
            raise self._foreign(f"pipeline {owner['pipeline']}", owner["topics"])

    def position(self) -> Offsets | None:
        """Where the next run begins: after the last batch that Spark has noted as done; None if there was no run.

        Before the first batch is done, it is where that batch began. A stream that is read twice has two sources at the
        same place.
        """
        done = self._newest("commits")
        if done is None:
            return self.begun()
        return self._offsets_in(f"offsets/{done}", 2)

    @property
    def has_done_any(self) -> bool:
        """Whether a batch is noted as done."""
        return self._newest("commits") is not None

    def begun(self) -> Offsets | None:
        """Where the first run began; later partitions are read from their beginning. None if there was no run."""
        return self._offsets_in("sources/0/0", 1)

    def offsets(self, batch: int) -> Offsets:
        """Where BATCH ends; Spark notes it before it begins the batch. Empty for an unknown batch."""
        return self._offsets_in(f"offsets/{batch}", 2) or {}

    def newest_offsets(self) -> Offsets:
        """Where the last batch that was begun ends."""
        newest = self._newest("offsets")
        return {} if newest is None else self.offsets(newest)

    def _offsets_in(self, place: str, line: int) -> Offsets | None:
        if not self._store.exists(f"{self.path}/{place}"):
            return None
        try:
            offsets: Offsets = json.loads(self._store.read(f"{self.path}/{place}").splitlines()[line])
        except (IndexError, ValueError):
            raise self.torn_error(place) from None
        return offsets

    def torn(self, log: str) -> int | None:
        """The number of the newest batch in one of Spark's two logs, if its file is torn (see `run.torn`)."""
        newest = self._newest(log)
        if newest is None:
            return None
        lines = self._store.read(f"{self.path}/{log}/{newest}").splitlines()
        whole = len(lines) > (2 if log == "offsets" else 1) and all(line == "-" or _is_json(line) for line in lines[1:])
        return None if whole else newest

    def torn_error(self, place: str) -> PipelineError:
        message = f"the file {self.path}/{place} is torn: empty, or it ends too early; did the machine lose its power?"
        hint = "`ixion pipeline run` puts it right if the tables tell which offsets they have; else restore a backup"
        return PipelineError(message, hint=hint)

    def drop(self, log: str, number: int) -> None:
        """Remove a batch from one of Spark's logs, with the checksum that Hadoop keeps beside the file."""
        self._store.remove(f"{self.path}/{log}/{number}")
        self._store.remove(f"{self.path}/{log}/.{number}.crc")

    def rewrite_offsets(self, number: int, offsets: Offsets) -> None:
        """Let batch NUMBER end at OFFSETS; all else as for the batch before."""
        lines = self._store.read(f"{self.path}/offsets/{number - 1}").splitlines()
        self.drop("offsets", number)
        ends = [json.dumps(offsets, separators=(",", ":"))] * (len(lines) - 2)
        self._store.write(f"{self.path}/offsets/{number}", "\n".join([*lines[:2], *ends]))

    @property
    def settled(self) -> bool:
        """Whether every begun batch is noted as done; the next run continues one that is not."""
        return self.unfinished is None

    def _newest(self, log: str) -> int | None:
        """The number of the last batch in one of Spark's two logs."""
        return max((int(name) for name in self._store.names(f"{self.path}/{log}") if name.isdigit()), default=None)

    def topic_ids(self) -> dict[str, str]:
        path = f"{self._own}/topics.json"
        ids: dict[str, str] = json.loads(self._store.read(path)) if self._store.exists(path) else {}
        return ids

    def remember_topics(self, ids: Mapping[str, str]) -> None:
        """Remember topic ids, also of topics that a pattern no longer finds."""
        known = self.topic_ids()
        if {**known, **ids} != known:
            self._store.write(f"{self._own}/topics.json", json.dumps({**known, **ids}))

    def first_partitions(self) -> dict[str, int]:
        """Topic -> the number of its partitions when it was first read; as far back as the checkpoint tells."""
        path = f"{self._own}/partitions.json"
        stored: dict[str, int] = json.loads(self._store.read(path)) if self._store.exists(path) else {}
        read = self.begun() or self.position() or {} if self.used else {}
        return {**{topic: len(offsets) for topic, offsets in read.items()}, **stored}

    def remember_partitions(self, partitions: Mapping[str, int]) -> None:
        known = self.first_partitions()
        if {**partitions, **known} != known or not self._store.exists(f"{self._own}/partitions.json"):
            self._store.write(f"{self._own}/partitions.json", json.dumps({**partitions, **known}))

    def reached(self, pipeline: str, number: int) -> Reached:
        """What a table has after batch NUMBER."""
        offsets, ids = self.offsets(number), self.topic_ids()
        known = {topic: ids[topic] for topic in offsets if topic in ids}
        return Reached(writer=f"{pipeline}-{self.query}", batch=number, offsets=offsets, ids=known)

    def tables(self) -> list[str]:
        """The tables that batches of this checkpoint were written to."""
        path = f"{self._own}/tables.json"
        tables: list[str] = json.loads(self._store.read(path)) if self._store.exists(path) else []
        return tables

    def remember_tables(self, tables: Iterable[str]) -> None:
        known = self.tables()
        if new := [table for table in tables if table not in known]:
            self._store.write(f"{self._own}/tables.json", json.dumps([*known, *new]))

    def schema(self) -> str | None:
        path = f"{self._own}/schema.sql"
        return self._store.read(path) if self._store.exists(path) else None

    def pin_schema(self, ddl: str) -> None:
        self._store.write(f"{self._own}/schema.sql", ddl)

    def added_fields(self) -> dict[str, str]:
        """Name -> type of fields that were added to the schema later."""
        path = f"{self._own}/added.json"
        added: dict[str, str] = json.loads(self._store.read(path)) if self._store.exists(path) else {}
        return added

    def remember_added(self, fields: Mapping[str, str]) -> None:
        self._store.write(f"{self._own}/added.json", json.dumps(fields))

    def registered(self) -> dict[int, str | None]:
        """Id -> schema; None for an id that the registry did not have."""
        path = f"{self._own}/registry.json"
        found = json.loads(self._store.read(path)) if self._store.exists(path) else {}
        return {int(number): schema for number, schema in found.items()}

    def remember_registered(self, schemas: Mapping[int, str | None]) -> None:
        self._store.write(f"{self._own}/registry.json", json.dumps({**self.registered(), **schemas}))

    def forget_unregistered(self) -> None:
        """Forget unknown ids: the registry may know them by now."""
        known = self.registered()
        if None in known.values():
            found = {number: schema for number, schema in known.items() if schema is not None}
            self._store.write(f"{self._own}/registry.json", json.dumps(found))

    def rules(self) -> dict[str, Any] | None:
        """The rules of the last run; None if there was no run, or its version did not keep them."""
        path = f"{self._own}/rules.json"
        rules: dict[str, Any] | None = json.loads(self._store.read(path)) if self._store.exists(path) else None
        return rules

    def remember_rules(self, rules: Mapping[str, Any]) -> None:
        if rules != self.rules():
            self._store.write(f"{self._own}/rules.json", json.dumps(rules))

    @property
    def unfinished(self) -> int | None:
        """The number of a batch that was begun and is not done."""
        newest = self._newest("offsets")
        return None if newest == self._newest("commits") else newest

    def remember(self, figures: BatchFigures) -> None:
        path = self._history(figures.batch)
        if figures.repeated and not figures.rows_in and self._store.exists(path):
            return  # not counted again, because the counts of the first attempt are known
        self._store.write(path, json.dumps(figures.to_json()))
        self._forget(figures.batch - KEPT)

    def has_figures(self, number: int) -> bool:
        return self._store.exists(self._history(number)) or number <= self._totals()[0]

    def _forget(self, number: int) -> None:
        """Replace the figures of the batches up to NUMBER by their sum. Killed in between, a file stays, but `history`
        skips it."""
        if number < 0:
            return
        through, totals = self._totals()
        numbers = range(max(through + 1, number - KEPT), number + 1)
        paths = [path for each in numbers if self._store.exists(path := self._history(each))]
        if paths:
            totals = total((_figures(json.loads(self._store.read(path))) for path in paths), totals)
            known = {"through": number, "figures": totals.to_json()}
            self._store.write(f"{self._own}/totals.json", json.dumps(known))
        for path in paths:
            self._store.remove(path)

    def history(self) -> list[BatchFigures]:
        """The figures of the last batches."""
        through, _ = self._totals()
        names = [name for name in self._store.names(f"{self._own}/history") if name.endswith(".json")]
        newer = [name for name in names if int(name.removesuffix(".json")) > through]
        return [_figures(json.loads(self._store.read(f"{self._own}/history/{name}"))) for name in newer]

    def totals(self) -> RunFigures:
        """The figures of all batches."""
        return total(self.history(), self._totals()[1])

    def _totals(self) -> tuple[int, RunFigures]:
        """The last batch whose figures are no longer in the history, and the sum up to there."""
        path = f"{self._own}/totals.json"
        if not self._store.exists(path):
            return -1, RunFigures()
        known = json.loads(self._store.read(path))
        del known["figures"]["rows_per_s"]  # computed from the others
        return int(known["through"]), RunFigures(**known["figures"])

    def remember_run(self, record: RunRecord) -> None:
        """Store the record of a run; the oldest are deleted."""
        self._store.write(f"{self._own}/runs/{record.name}.json", json.dumps(record.to_json()))
        for name in self._run_names()[:-KEPT_RUNS]:
            self._store.remove(f"{self._own}/runs/{name}")

    def runs(self) -> list[RunRecord]:
        """The oldest first."""
        return [record_of(json.loads(self._store.read(f"{self._own}/runs/{name}"))) for name in self._run_names()]

    def _run_names(self) -> list[str]:
        return [name for name in self._store.names(f"{self._own}/runs") if name.endswith(".json")]

    def upkeep(self) -> dict[str, dict[str, Any]]:
        """Table -> the result of its last upkeep (see `upkeep.Upkept`)."""
        path = f"{self._own}/upkeep.json"
        found: dict[str, dict[str, Any]] = json.loads(self._store.read(path)) if self._store.exists(path) else {}
        return found

    def remember_upkeep(self, table: str, result: Mapping[str, Any]) -> None:
        """Store RESULT; `totals` beside it is the sum of all upkeep of TABLE."""
        known = self.upkeep()
        totals = plus(known.get(table, {}).get("totals", {}), result)
        self._store.write(f"{self._own}/upkeep.json", json.dumps({**known, table: {**result, "totals": totals}}))

    def upkeep_totals(self) -> dict[str, Totals]:
        """Table -> what upkeep has saved there so far."""
        return {table: result.get("totals", {}) for table, result in self.upkeep().items()}

    @contextmanager
    def free(self, jvm: int = 0) -> Iterator[bool]:
        """Hold the lock for upkeep, if no run has it; a run that begins meanwhile waits. Yields whether it is held."""
        with free_for_upkeep(self._lock(), jvm) as held:
            yield held

    @contextmanager
    def locked(self, jvm: int = 0) -> Iterator[None]:
        """Hold the lock against a second run on this machine. Spark notices if another machine writes the same
        checkpoint. JVM is the process in which Spark runs (see `lock`)."""
        with held_for_run(self._lock(), jvm):
            yield

    def _lock(self) -> str:
        if isinstance(self._store, LocalFiles):
            os.makedirs(self._own, exist_ok=True)
            return f"{self._own}/lock"
        name = hashlib.sha256(self.path.encode()).hexdigest()[:16]
        return os.path.join(private_folder(), f"{name}.lock")

    def _history(self, number: int) -> str:
        return f"{self._own}/history/{number:09d}.json"

    def _foreign(self, owner: str, topics: list[str]) -> PipelineError:
        read = f", which reads {', '.join(topics)}" if topics else ""
        hint = "give this pipeline a checkpoint of its own, or its old name and topics back"
        return PipelineError(f"the checkpoint {self.path} belongs to {owner}{read}", hint=hint)


def is_here(path: str) -> bool:
    """Whether PATH is a folder of this machine, which needs no Spark."""
    return "://" not in path.removeprefix("file://")


def open_checkpoint(path: str, elsewhere: Store | None = None) -> Checkpoint:
    """ELSEWHERE accesses checkpoints that are not on this machine."""
    if is_here(path):
        return Checkpoint(path.removeprefix("file://"), LocalFiles())
    if elsewhere is None:
        raise PipelineError(f"the checkpoint {path} is not on this machine, and there is no Spark to reach it")
    return Checkpoint(path, elsewhere)


def _owner(spec: PipelineSpec) -> dict[str, Any]:
    topics = [*spec.source.topics] if spec.source.pattern is None else [spec.source.pattern]
    return {"pipeline": spec.name, "topics": topics}


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _figures(values: dict[str, Any]) -> BatchFigures:
    return BatchFigures(**values)
