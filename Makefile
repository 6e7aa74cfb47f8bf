# These targets create .venv with pinned packages and build what they need; a fresh machine needs only Python and make.
PYTHON ?= python3
BIN := .venv/bin
# Some shells set it. Without bytecode files every test process would compile each module that it imports.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := $(shell find src -name '*.py') setup.py pyproject.toml

# Eight processes share the tests, a file or a folder at a time (tests/shares.py). Most tests spend more time waiting (for
# a JVM, another process or a timeout) than computing, so even two cores can use several processes. All of them are forks
# of one process that has collected the tests (tests/forks.py). Plain pytest runs the tests one after the other.
FORKS ?= 8
SIDE_BY_SIDE = IXION_FORKS=$(FORKS)
# Up to five failed tests run once more, alone; the summary names those that pass the second time (tests/unsteady.py).
RERUN = IXION_RERUN=5
# Temporary files go into memory if there is room: on a disk the tests would mostly wait for syncs.
PYTEST = $(BIN)/python -m devtools.in_memory $(BIN)/python -m pytest
# What the tools in devtools/ and benchmarks/ need: the packages of the tests, and the compiled broker.
TOOLS := .venv/.ready .venv/.built

.DEFAULT_GOAL := help
EVERYDAY := run quick test check format
.PHONY: $(EVERYDAY) help build test-compiled test-interpreted first-hour fuzz sim soak soak-cluster soak-kill soak-crowd soak-amplify soak-hostile soak-features soak-lake spark-versions soak-catalogs soak-delay soak-faults judges judges-move judges-matrix judges-differential apps support bench site dist lock clean

help: ## show this list
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { line = sprintf("  %-19s %s\n", $$1, $$2); \
	  if (index(" $(EVERYDAY) ", " " $$1 " ")) days = days line; else others = others line } \
	  END { printf "Every day:\n%s\nNow and then:\n%s", days, others }' $(MAKEFILE_LIST)

run: .venv/.runnable ## start a broker on 127.0.0.1:9092 with its data in ./ixion-data
	@$(BIN)/python -m devtools.run $(ARGS)

quick: .venv/.ready ## run the fast tests: interpreted, without Java and Spark
	$(SIDE_BY_SIDE) IXION_QUICK=1 IXION_EXPECT=interpreted PYTHONPATH=$(CURDIR)/src $(PYTEST) $(ARGS)

# Compiling keeps one core busy for minutes; the interpreted tests need no build and run meanwhile.
test: .venv/.ready ## run all tests, first interpreted, then compiled
	$(MAKE) --no-print-directory --jobs 2 test-interpreted .venv/.testable
	$(MAKE) --no-print-directory test-compiled

test-compiled: .venv/.testable
	$(SIDE_BY_SIDE) $(RERUN) IXION_EXPECT=compiled $(PYTEST) $(ARGS)

test-interpreted: .venv/.ready
	$(SIDE_BY_SIDE) $(RERUN) IXION_AGAIN=1 IXION_EXPECT=interpreted PYTHONPATH=$(CURDIR)/src $(PYTEST) $(ARGS)

check: .venv/.ready ## check format, lint rules, types, layers, generated pages and phrasing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	PYTHONPATH=src $(BIN)/python -m devtools.protocol_support --check
	$(BIN)/python -m devtools.phrases
	$(BIN)/python -m devtools.blocking --check

format: .venv/.ready ## format, fix lint, and make the blocking faces of the clients
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m devtools.blocking

build: .venv/.built ## compile the broker (takes minutes); make run then starts the compiled one

first-hour: .venv/.ready ## run every example of README.md and docs/ in an empty environment
	$(BIN)/python -m devtools.first_hour $(ARGS)

fuzz: $(TOOLS) ## mutate requests and records; run long random histories of logs, groups, transactions and timers
	IXION_EXPECT=compiled IXION_FUZZ_ROUNDS=$${IXION_FUZZ_ROUNDS:-300000} IXION_FUZZ_SEED=$${IXION_FUZZ_SEED:-$$(date +%s)} \
	  IXION_LIVES=$${IXION_LIVES:-2000} \
	  $(BIN)/python -m pytest --timeout=0 tests/records/test_fuzz.py tests/protocol/test_fuzz.py tests/log/test_machine.py \
	  tests/log/test_compaction_model.py \
	  tests/coordinators/group/test_classic_machine.py tests/coordinators/group/test_consumer_machine.py \
	  tests/coordinators/group/test_streams_machine.py \
	  tests/coordinators/txn/test_machine.py tests/delay/test_machine.py tests/delay/test_life.py tests/timer/test_model.py \
	  $(ARGS)

sim: $(TOOLS) ## simulate a cluster in virtual time with faults drawn by seed   ARGS="--seeds 1000"
	$(BIN)/python -m devtools.sim $(ARGS)

soak: $(TOOLS) ## run transactions for minutes while broker and clients are killed, and check every guarantee
	$(BIN)/python -m devtools.soak $(ARGS)

soak-cluster: $(TOOLS) ## kill, pause and partition three brokers in network namespaces; needs root   ARGS="--runs 20"
	$(BIN)/python -m devtools.soak.cluster $(ARGS)

soak-kill: $(TOOLS) ## kill -9 a broker under load twenty times; no acknowledged record may be lost
	$(BIN)/python -m tests.kill.soak $(ARGS)

soak-crowd: $(TOOLS) ## open ten thousand connections, many of them slow or stuck, and measure memory and waiting times
	$(BIN)/python -m tests.crowd.soak $(ARGS)

soak-faults: $(TOOLS) ## fail each disk call in turn, fill the disk or kill the broker there; nothing may be lost
	IXION_EXPECT=compiled IXION_FAULTS=all $(SIDE_BY_SIDE) $(BIN)/python -m pytest --timeout=0 tests/faults $(ARGS)

soak-delay: $(TOOLS) ## delay a million records, through restarts, fail-overs and disk faults
	IXION_EXPECT=compiled IXION_DELAY_RECORDS=$${IXION_DELAY_RECORDS:-1000000} IXION_LIVES=$${IXION_LIVES:-500} IXION_FAULTS=all \
	  IXION_DELAY_KILLS=$${IXION_DELAY_KILLS:-100} IXION_DELAY_SEEDS=$${IXION_DELAY_SEEDS:-500} \
	  IXION_DELAY_FAILOVERS=$${IXION_DELAY_FAILOVERS:-50} $(SIDE_BY_SIDE) $(BIN)/python -m pytest --timeout=0 tests/delay $(ARGS)

soak-amplify: $(TOOLS) ## search for the most expensive requests; writes docs/amplification.md   ARGS="--seconds 60"
	$(BIN)/python -m tests.hostile.amplify $(ARGS)

soak-hostile: $(TOOLS) ## besiege one broker and three with hostile clients for half an hour   ARGS="--minutes 6"
	$(BIN)/python -m tests.hostile.soak $(ARGS)

soak-features: $(TOOLS) ## run every pair of settings, clients and faults for an hour   ARGS="--minutes 10"
	$(BIN)/python -m devtools.soak.features $(ARGS)

soak-lake: $(TOOLS) ## kill parts of a pipeline into three kinds of tables; each record must arrive exactly once
	$(BIN)/python -m tests.pipelines.soak $(ARGS)

spark-versions: .venv/.ready ## install several versions of Spark and run the data source and a pipeline on each   ARGS="4.3.0"
	PYTHONPATH=$(CURDIR)/src $(BIN)/python -m tests.pipelines.on_version $(ARGS)

soak-catalogs: $(TOOLS) ## run a pipeline into tables of a REST catalog and of a PostgreSQL catalog
	$(BIN)/python -m tests.pipelines.catalogs

judges: $(TOOLS) ## let Kafka's own tools inspect three brokers on ZooKeeper   ARGS="tree replicas"
	$(BIN)/python -m devtools.judges $(ARGS)

judges-move: $(TOOLS) ## move a cluster from Apache Kafka to ixion and back, broker by broker, under load
	$(BIN)/python -m tests.cluster.move

judges-matrix: $(TOOLS) ## kill each role in clusters that mix Apache Kafka and ixion   ARGS="leader-ixion"
	$(BIN)/python -m tests.cluster.matrix $(ARGS)

judges-differential: $(TOOLS) ## compare answers to random histories with Apache Kafka 4.3   ARGS="--steps 20000"
	$(BIN)/python -m tests.differential.judge $(ARGS)

apps: $(TOOLS) ## run unmodified Kafka applications; compare with Apache Kafka where one fails   ARGS="celery"
	$(BIN)/python -m devtools.apps $(ARGS)

bench: $(TOOLS) ## measure beside Apache Kafka; writes tables, JSON and charts
	$(BIN)/python -m benchmarks $(ARGS)

support: .venv/.ready ## regenerate docs/protocol-support.md from the message tables
	PYTHONPATH=src $(BIN)/python -m devtools.protocol_support

site: .site-venv/.ready ## build the documents as a site with a search, into build/site
	.site-venv/bin/python -m devtools.site

dist: .venv/.ready ## build sdist and wheel into dist/, then install and try both in empty environments
	IXION_REPOSITORY=$(IXION_REPOSITORY) $(BIN)/python -m devtools.dist $(ARGS)

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
	  --generate-hashes --custom-compile-command "make lock"
lock: .venv/.ready ## pin the dependencies of pyproject.toml again
	$(LOCK) pyproject.toml --group dev --all-extras -o requirements.lock
	$(LOCK) pyproject.toml --group build --constraint requirements.lock -o requirements-run.lock
	$(LOCK) --group site -o requirements-site.lock

clean: ## remove .venv and everything that was built
	rm -rf .venv .site-venv .first-hour build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

# A broker that runs interpreted, from src/, and the compiler for it. It is small so that the first `make run` is quick.
.venv/.runnable: requirements-run.lock
	@$(PYTHON) -c 'import sys; sys.exit("ixion needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "installing the broker's packages into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements-run.lock
	@test -x $(BIN)/ixion || $(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Everything that tests and tools need; Spark makes most of it.
.venv/.ready: .venv/.runnable requirements.lock
	@echo "installing the packages of the tests into .venv, a gigabyte"
	@$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	@touch $@

.site-venv/.ready: requirements-site.lock
	$(PYTHON) -m venv .site-venv
	.site-venv/bin/pip install --quiet --require-hashes -r requirements-site.lock
	@touch $@

# The installed copy is the compiled one; the interpreted tests put src/ in front of it. If there is a C compiler, a
# failed compilation is an error here; without one, the installed copy stays interpreted.
INSTALL = IXION_REQUIRE_COMPILED=$(shell command -v cc) $(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .

.venv/.built: .venv/.runnable $(SOURCES)
	@echo "building ixion; compiling takes minutes"
	rm -rf build/lib* build/bdist*
	$(INSTALL)
	@touch $@ .venv/.testable

# The same with less optimization, for the tests: the C compiler needs two thirds of the time. This build is never
# measured or published: what needs .built compiles again, and a wheel is built separately.
.venv/.testable: .venv/.ready $(SOURCES)
	@echo "building ixion for the tests; compiling takes minutes"
	rm -rf .venv/.built build/lib* build/bdist*
	IXION_OPTIMIZE=1 $(INSTALL)
	@touch $@
