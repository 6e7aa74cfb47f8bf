# Everything a fresh machine needs is made here: .venv, pinned packages, the compiled build.
PYTHON ?= python3
BIN := .venv/bin
# Some shells forbid it. Without the compiled files every process of the tests compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := $(shell find src -name '*.py') setup.py pyproject.toml

# Eight processes share the tests, a file or a folder at a time (tests/shares.py). Most tests wait, for a JVM, another
# process or a timeout, for longer than they work, so two cores need several. They are forks of one process that has
# collected the tests (tests/forks.py): eight cost no more than two. pytest alone runs the tests one by one.
FORKS ?= 8
SIDE_BY_SIDE = IXION_FORKS=$(FORKS)
# A few tests that fail run again, alone; the closing lines name those that pass then (tests/unsteady.py).
RERUN = IXION_RERUN=5
# Their files are in memory, where there is room: on a disk most of the time is waiting for syncs.
PYTEST = $(BIN)/python -m devtools.in_memory $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help run quick test test-compiled test-interpreted first-hour fuzz sim soak soak-cluster soak-kill soak-crowd soak-amplify soak-lake soak-catalogs soak-delay soak-faults judges judges-move judges-matrix apps check format support bench dist lock clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 20

run: .venv/.built ## serve Kafka clients on 127.0.0.1:9092, data in ./ixion-data
	$(BIN)/ixion serve $(ARGS)

quick: .venv/.ready ## run the tests that need no JVM, no Spark and no minute, interpreted: the ones for every change
	$(SIDE_BY_SIDE) IXION_QUICK=1 IXION_EXPECT=interpreted PYTHONPATH=$(CURDIR)/src $(PYTEST) $(ARGS)

# The compiler needs one core for minutes; the interpreted tests need no build and run beside it.
test: .venv/.ready ## run the tests, interpreted beside the build, then compiled
	$(MAKE) --no-print-directory --jobs 2 test-interpreted .venv/.testable
	$(MAKE) --no-print-directory test-compiled

test-compiled: .venv/.testable
	$(SIDE_BY_SIDE) $(RERUN) IXION_EXPECT=compiled $(PYTEST) $(ARGS)

test-interpreted: .venv/.ready
	$(SIDE_BY_SIDE) $(RERUN) IXION_AGAIN=1 IXION_EXPECT=interpreted PYTHONPATH=$(CURDIR)/src $(PYTEST) $(ARGS)

first-hour: .venv/.ready ## every block of README and docs in an empty environment, as a newcomer types it; .first-hour/transcript.md
	$(BIN)/python -m devtools.first_hour $(ARGS)

fuzz: .venv/.built ## mutate what strangers may send, and live many lives of logs, groups, transactions and wheels
	IXION_EXPECT=compiled IXION_FUZZ_ROUNDS=$${IXION_FUZZ_ROUNDS:-300000} IXION_FUZZ_SEED=$${IXION_FUZZ_SEED:-$$(date +%s)} \
	  IXION_LIVES=$${IXION_LIVES:-2000} \
	  $(BIN)/python -m pytest --timeout=0 tests/records/test_fuzz.py tests/protocol/test_fuzz.py tests/log/test_machine.py \
	  tests/coordinators/group/test_classic_machine.py tests/coordinators/group/test_consumer_machine.py \
	  tests/coordinators/txn/test_machine.py tests/delay/test_machine.py tests/timer/test_model.py $(ARGS)

soak: .venv/.built ## minutes of transactions while broker and clients are killed; every promise is checked
	$(BIN)/python -m devtools.soak $(ARGS)

sim: .venv/.built ## a cluster in virtual time: brokers are killed, paused, cut off by seed   ARGS="--seeds 1000", "--mutant leader-alone"
	$(BIN)/python -m devtools.sim $(ARGS)

soak-cluster: .venv/.built ## three brokers in network namespaces, killed, paused and cut off; needs root   ARGS="--runs 20 --seed 1"
	$(BIN)/python -m devtools.soak.cluster $(ARGS)

soak-kill: .venv/.built ## twenty lives of a broker under load, each ended by kill -9; nothing acknowledged may be lost
	$(BIN)/python -m tests.kill.soak $(ARGS)

soak-crowd: .venv/.built ## ten thousand connections, slow readers, half-open TLS handshakes, ten thousand members, a hundred thousand ids; memory, and what others have to wait
	$(BIN)/python -m tests.crowd.soak $(ARGS)

soak-faults: .venv/.built ## the disk fails, fills up, or the process is killed, at every call in turn; nothing acknowledged may be lost
	IXION_EXPECT=compiled IXION_FAULTS=all $(SIDE_BY_SIDE) $(BIN)/python -m pytest --timeout=0 tests/faults $(ARGS)

soak-delay: .venv/.built ## a million records that wait, hundreds of lives of a schedule, the disk failing at every call
	IXION_EXPECT=compiled IXION_DELAY_RECORDS=$${IXION_DELAY_RECORDS:-1000000} IXION_LIVES=$${IXION_LIVES:-500} IXION_FAULTS=all \
	  IXION_DELAY_KILLS=$${IXION_DELAY_KILLS:-100} IXION_DELAY_SEEDS=$${IXION_DELAY_SEEDS:-500} \
	  IXION_DELAY_FAILOVERS=$${IXION_DELAY_FAILOVERS:-50} $(SIDE_BY_SIDE) $(BIN)/python -m pytest --timeout=0 tests/delay $(ARGS)

soak-amplify: .venv/.built ## searches for the requests that cost most; writes docs/amplification.md   ARGS="--seconds 60"
	$(BIN)/python -m tests.hostile.amplify $(ARGS)

soak-lake: .venv/.built ## a pipeline into three kinds of tables while its parts are killed; each record once and only once
	$(BIN)/python -m tests.pipelines.soak $(ARGS)

soak-catalogs: .venv/.built ## a pipeline into tables of a real REST catalog and of one in PostgreSQL
	$(BIN)/python -m tests.pipelines.catalogs

judges: .venv/.built ## Kafka's own programs look at three brokers on a real ZooKeeper   ARGS="tree replicas --zookeeper 3.8.4"
	$(BIN)/python -m devtools.judges $(ARGS)

judges-move: .venv/.built ## a cluster of Apache Kafka becomes one of ixion and goes back, broker by broker, under load
	$(BIN)/python -m tests.cluster.move

judges-matrix: .venv/.built ## every role on Apache Kafka and on ixion, killed under load beside the other   ARGS="leader-ixion"
	$(BIN)/python -m tests.cluster.matrix $(ARGS)

apps: .venv/.built ## applications written for Apache Kafka, run unmodified, beside Apache Kafka where one fails; ARGS="celery sarama"
	$(BIN)/python -m devtools.apps $(ARGS)

check: .venv/.ready ## format, lint, types, layers, generated pages, phrasings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	PYTHONPATH=src $(BIN)/python -m devtools.protocol_support --check
	$(BIN)/python -m devtools.phrases

format: .venv/.ready ## put the sources into their one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

support: .venv/.ready ## write docs/protocol-support.md anew from the message tables
	PYTHONPATH=src $(BIN)/python -m devtools.protocol_support

bench: .venv/.built ## measure side by side with Apache Kafka; tables, JSON, charts
	$(BIN)/python -m benchmarks $(ARGS)

dist: .venv/.ready ## build the sdist and a wheel into dist/, install both into empty environments and try them; ARGS="python3.13"
	$(BIN)/python -m devtools.dist $(ARGS)

lock: .venv/.ready ## write requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
	  --generate-hashes --group dev --all-extras --custom-compile-command "make lock" pyproject.toml -o requirements.lock

clean: ## remove what was built
	rm -rf .venv .first-hour build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

.venv/.ready: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("ixion needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	@touch $@

# The installed copy is the compiled one; the interpreted tests put src/ in front of it. Where there is a C compiler,
# failing to compile is an error here; elsewhere an installation goes on interpreted.
INSTALL = IXION_REQUIRE_COMPILED=$(shell command -v cc) $(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .

.venv/.built: .venv/.ready $(SOURCES)
	@echo "building ixion; compiling it takes minutes"
	rm -rf build/lib* build/bdist*
	$(INSTALL)
	@touch $@ .venv/.testable

# The same with less optimization, for the tests: the C compiler needs two thirds of the time. It is never measured or
# published: what needs .built compiles again, and a wheel is built by itself.
.venv/.testable: .venv/.ready $(SOURCES)
	@echo "building ixion for the tests; compiling it takes minutes"
	rm -rf .venv/.built build/lib* build/bdist*
	IXION_OPTIMIZE=1 $(INSTALL)
	@touch $@
