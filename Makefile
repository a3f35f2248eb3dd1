# Every verb does its own set-up: a fresh machine needs Python 3.11 or later and make, nothing else.

# Compiled modules are kept, whatever the shell says: tests start more than a hundred processes, and each would compile
# five hundred modules again.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Options for the verb, for example: make serve ARGS="--port 9000 --https"
ARGS ?=
# Markers of the client's own tests that `make conformance` runs.
MARKERS ?= cosmosLong or cosmosQuery or cosmosSplit or cosmosSearchQuery
# Options of its runner, for example: RUNNER="--workers 1 --server-args=--no-throttle"
RUNNER ?=
# What the server under test keeps its data in: lmdb (the embedded store) or postgres.
STORE ?= lmdb
TEST_WORKERS ?= 2
# Seeds of the simulation, from the first up to the second.
SEEDS ?= 0:200
# Tests that are also run against a server of two processes; ASTERISM_TEST_ARGS holds for all tests that start one.
WITH_WORKERS ?= tests/clients/test_sdk_sync.py tests/clients/test_sdk_transactions.py tests/clients/test_scripts.py \
	tests/clients/test_mongo_sharding.py tests/clients/test_gremlin_writes.py tests/clients/test_blobs_sync.py \
	tests/clients/test_queues_sync.py tests/clients/test_bus_sync.py tests/clients/test_hubs_sync.py
# Folders of the tests that need other processes or an engine on disk, so that the others are not collected twice.
WITH_PROCESSES ?= tests/browser tests/clients tests/contracts tests/faults tests/unit/amqp_engine tests/unit/documents tests/unit/keyspaces tests/unit/listeners
# Tests that are also run on PostgreSQL: the floor that moves data, and one file of official clients for each door.
ON_POSTGRES ?= tests/unit/keyspaces tests/clients/test_sdk_sync.py tests/clients/test_tables_sync.py \
	tests/clients/test_mongo_sharding.py tests/clients/test_gremlin_writes.py tests/clients/test_blobs_sync.py \
	tests/clients/test_queues_sync.py tests/clients/test_bus_sync.py tests/clients/test_hubs_sync.py
# Those of `make test-all`: every floor that touches storage, and all clients. Those left out name their stores
# themselves, or use none.
ALL_ON_POSTGRES ?= tests/clients tests/unit/documents tests/unit/keyspaces tests/unit/nosql tests/unit/query_pages \
	tests/unit/table tests/unit/blobs tests/unit/queues
NOT_ON_POSTGRES ?= tests/clients/test_fleet_commands.py tests/clients/test_fleet_gateways.py \
	tests/clients/test_migrate.py
PYTEST = $(BIN)/pytest -q -n $(TEST_WORKERS) --dist worksteal
CONFORMANCE_SET_UP = $(STAMPS)/conformance $(if $(filter postgres,$(STORE)),$(STAMPS)/postgresql)

.DEFAULT_GOAL := help
.PHONY: help serve test test-all tests tests-of-every-engine lint simulate bench conformance conformance-amqp conformance-clients conformance-gremlin conformance-mongo conformance-storage conformance-tables reference pictures portal-libraries screenshots format clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

serve: $(STAMPS)/run ## Start the server (options: ARGS="--port 9000 --https")
	@exec $(BIN)/asterism serve $(ARGS)

test: lint tests ## Check style and types, then run the tests that a merge must pass

test-all: test tests-of-every-engine conformance-clients ## The same on every engine, and official clients of several ages

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

# CONTRIBUTING.md has a table of what runs when. Stores are in memory where a test is not about an engine. Tests that need
# the machine to themselves run one at a time; pytest answers 5 when there is none.
tests: $(STAMPS)/test $(STAMPS)/postgresql $(STAMPS)/chromium $(STAMPS)/node_clients
	ASTERISM_TEST_STORE=memory $(PYTEST) -m "(pure or store) and not lmdb and not serial" $(ARGS)
	$(PYTEST) -m "(client or fault or fleet or lmdb) and not serial" $(WITH_PROCESSES) $(ARGS)
	$(BIN)/pytest -q -m serial $(WITH_PROCESSES) $(ARGS) || test $$? -eq 5
	ASTERISM_TEST_ARGS="--workers 2" $(PYTEST) $(WITH_WORKERS)
	ASTERISM_TEST_STORE=postgres $(PYTEST) $(ON_POSTGRES)

tests-of-every-engine: $(STAMPS)/test $(STAMPS)/postgresql
	ASTERISM_TEST_EXAMPLES=new $(PYTEST) -m pure
	ASTERISM_TEST_EXAMPLES=new ASTERISM_SIMULATION_SEEDS=2000 $(PYTEST) -m "store and not serial"
	ASTERISM_TEST_STORE=postgres $(PYTEST) $(ALL_ON_POSTGRES) $(NOT_ON_POSTGRES:%=--ignore=%)

simulate: $(STAMPS)/test ## Replay a seed of the simulation (SEED=123), or look for one that fails (SEEDS=0:2000)
	$(BIN)/python -m tests.simulation $(or $(SEED),$(SEEDS))

bench: $(STAMPS)/run $(STAMPS)/postgresql ## Measure against bare building blocks and a peer (ARGS="--only point_read,create --against HEAD~1")
	$(BIN)/python -m benchmarks $(ARGS)

conformance: $(CONFORMANCE_SET_UP) ## Run the official client's own tests, write docs/conformance.md (STORE=postgres, MARKERS=..., ARGS=...)
	$(BIN)/python -m conformance.run --store $(STORE) --markers "$(MARKERS)" $(RUNNER) -- $(ARGS)

conformance-tables: $(CONFORMANCE_SET_UP) ## The same for the client for tables (STORE=postgres, RUNNER="--strict", ARGS=...)
	$(BIN)/python -m conformance.tables.run --store $(STORE) $(RUNNER) -- $(ARGS)

conformance-storage: $(CONFORMANCE_SET_UP) ## The same for the clients for queues and blobs (STORE=postgres, RUNNER="--only queue --workers 4 --strict", ARGS=...)
	$(BIN)/python -m conformance.storage.run --store $(STORE) $(RUNNER) -- $(ARGS)

conformance-amqp: $(CONFORMANCE_SET_UP) ## The same for the clients for queues, topics and hubs over AMQP (STORE=postgres, RUNNER="--only servicebus,administration,eventhub,checkpoint --workers 12 --strict", ARGS=...)
	$(BIN)/python -m conformance.amqp.run --store $(STORE) $(RUNNER) -- $(ARGS)

conformance-mongo: $(CONFORMANCE_SET_UP) ## Run the functional tests of DocumentDB and the tests of pymongo (STORE=postgres, RUNNER="--only driver --sample 5 --functional-tests FOLDER", ARGS=...)
	$(BIN)/python -m conformance.mongo.run --store $(STORE) $(RUNNER) -- $(ARGS)

conformance-gremlin: $(CONFORMANCE_SET_UP) ## Run TinkerPop's own scenarios (STORE=postgres, RUNNER="--only text --checkout FOLDER", ARGS="--only map/Order")
	$(BIN)/python -m conformance.gremlin.run --store $(STORE) $(RUNNER) -- $(ARGS)

conformance-clients: $(CONFORMANCE_SET_UP) $(STAMPS)/node ## Run checks with clients of several ages, write docs/conformance.md (STORE=postgres, ARGS="--only 4.9.0")
	$(BIN)/python -m conformance.clients.run --store $(STORE) $(ARGS)
	$(BIN)/python -m conformance.clients.snippets

reference: $(STAMPS)/run ## Write docs/reference.md from the options, ports and limits that the code declares
	$(BIN)/python -m scripts.reference

pictures: $(STAMPS)/test ## Write docs/pictures from the scripts; ARGS=--measure runs the examples of the guides for their figures
	$(BIN)/python -m scripts.pictures
	$(BIN)/python -m scripts.pattern_pictures $(ARGS)
	$(BIN)/python -m scripts.blob_pictures $(ARGS)

portal-libraries: $(STAMPS)/node ## Write the portal's editor and chart libraries from the versions in scripts/portal_libraries.py
	$(BIN)/python -m scripts.portal_libraries

screenshots: $(STAMPS)/test $(STAMPS)/chromium ## Take the pictures of the portal in docs/pictures, with a real browser
	$(BIN)/python -m scripts.screenshots

format: $(STAMPS)/test ## Put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove everything that the other verbs made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find asterism tests benchmarks conformance -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up: a stamp per set of packages, renewed when pyproject.toml changes -----------------------------------------

$(STAMPS)/run: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p $(STAMPS) && touch $@

# The tests start PostgreSQL servers of their own; whether the package starts one as well does not matter to them.
$(STAMPS)/postgresql: | $(BIN)/python
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
		|| { [ "$$(id -u)" = 0 ] && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; } \
		|| { echo "The tests need PostgreSQL 15 or later; run: sudo apt-get install postgresql" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

# The tests of the portal drive a real browser; the package for Python brings the means, not the browser.
$(STAMPS)/chromium: | $(BIN)/python
	@command -v chromium >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
		|| { echo "The tests need Chromium; run: sudo apt-get install chromium" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

# The JavaScript clients of the matrix need Node.js; nothing else does.
$(STAMPS)/node: | $(BIN)/python
	@command -v npm >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm >/dev/null; } \
		|| { echo "The JavaScript clients need Node.js and npm; run: sudo apt-get install nodejs npm" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

# Examples and tests for Node.js are run with its clients.
$(STAMPS)/node_clients: $(STAMPS)/node
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/node mongodb@7 gremlin@3.8 @azure/cosmos@4 @azure/service-bus@7 @azure/event-hubs@6
	@touch $@

$(STAMPS)/%: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@mkdir -p $(STAMPS) && touch $@

# Debian ships venv without ensurepip; as root it is fetched, otherwise the message says what to ask for.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Asterism needs Python 3.11 or later; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; } \
		|| { echo "Python cannot make virtual environments here; run: sudo apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
