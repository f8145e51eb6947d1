# Everything a fresh clone needs is Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ROOMS := synod/__init__.py proto/breaking.py common curator party deploy bench tests
VERSION := 0.1.0
PROTOS := proto/synod/v1/party.proto proto/synod/v1/query.proto proto/synod/v1/study.proto

COMPOSE := $(shell command -v docker-compose || echo docker compose)

.PHONY: image wheel demo-docker demo test coverage test-slow mutants fuzz lint format protos check-protos land-protos bench \
  bench-quick bench-crypto bench-counting bench-polling bench-crowd bench-parties bench-sources audit sbom audit-dependencies lock clean

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
# A lock names every package, so nothing is left to resolve: pip takes the newest `coverage[toml]` for pytest-cov otherwise.
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/pip check
	touch $@

demo: $(STAMP)
	rm -rf demo-release
	$(BIN)/synod demo --out demo-release

# BASE_IMAGE=python:3.11-slim@sha256:... pins what it starts from.
image:
	docker build --file deploy/Dockerfile --tag synod:$(VERSION) $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) . \
	  || { echo "If python:3.11-slim cannot be pulled here, deploy/base-image makes it from Debian's packages."; exit 1; }

# The sdist and, built from it, the wheel.
wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# A new run each time; the containers and volumes are removed at the end, the release stays.
demo-docker: image $(STAMP)
	rm -rf demo-docker-release
	$(COMPOSE) down --volumes --remove-orphans
	export SYNOD_RELEASES=releases; status=1; $(COMPOSE) build init && $(COMPOSE) up --detach --no-build \
	  && $(COMPOSE) logs --follow --no-log-prefix operator \
	  && operator=$$($(COMPOSE) ps --all --quiet operator) && status=$$(docker wait $$operator) \
	  && docker cp $$operator:/releases/synod-demo-release demo-docker-release; \
	$(COMPOSE) down --volumes; exit $$status
	$(BIN)/synod verify demo-docker-release
	@echo "Open demo-docker-release/report.html."

test: $(STAMP)
	$(BIN)/pytest -q -m "not slow and not docker" -n 2 --dist worksteal $(COVERAGE) tests

# The same, and the share of the code that it ran; of daemons that are processes of their own nothing is counted.
coverage: COVERAGE := --cov --cov-report=term:skip-covered
coverage: test

test-slow: $(STAMP)
	$(BIN)/pytest -q -m "slow or docker" -n 2 --dist loadscope --durations=30 tests

# Breaks a copy of the program in each of the ways that tests/mutants lists: a test must fail each time.
mutants: $(STAMP)
	$(BIN)/python -m tests.mutants

# Long; guided by coverage if atheris is installed, which needs `.venv/bin/pip install "atheris>=3.0"`. CORPUS is a folder
# that keeps the inputs which reach the most: tests/fuzz/units is the project's.
fuzz: $(STAMP)
	$(BIN)/python -m tests.support.fuzz --seconds $(or $(SECONDS),300) $(if $(CORPUS),--corpus "$(CORPUS)")

lint: $(STAMP) check-protos
	$(BIN)/ruff format --check $(ROOMS)
	$(BIN)/ruff check $(ROOMS)
	$(BIN)/mypy
	$(BIN)/mypy proto/breaking.py

format: $(STAMP)
	$(BIN)/ruff format $(ROOMS)
	$(BIN)/ruff check --fix $(ROOMS)

define generate
	mkdir -p $(1)
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=$(1) --grpc_python_out=$(1) \
	  --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	  --mypy_out=quiet:$(1) --mypy_grpc_out=quiet:$(1) $(PROTOS)
endef

define describe
	$(BIN)/python -m grpc_tools.protoc -Iproto --descriptor_set_out=$(1) $(PROTOS)
endef

protos: $(STAMP)
	rm -rf proto/gen
	$(call generate,proto/gen)

check-protos: $(STAMP)
	rm -rf build/gen
	$(call generate,build/gen)
	diff -r -x __pycache__ build/gen proto/gen || { echo "proto/gen is out of date: run make protos"; exit 1; }
	$(call describe,build/protos.binpb)
	$(BIN)/python proto/breaking.py proto/landed.binpb build/protos.binpb

# The protos as they are now become what later ones must stay readable for.
land-protos: $(STAMP)
	$(call describe,proto/landed.binpb)

# The papers' claims. DATA is a folder with the papers' tables; without it tables of their shapes are made.
bench: $(STAMP)
	$(BIN)/python -m bench.reproduction $(if $(DATA),--data "$(DATA)")

bench-quick: $(STAMP)
	$(BIN)/python -m bench.reproduction --quick

bench-crypto: $(STAMP)
	$(BIN)/python -m bench.crypto

bench-counting: $(STAMP)
	$(BIN)/python -m bench.counting

# ROWS=10000000 for more rows, BEFORE=FOLDER to measure another checkout beside this one.
bench-sources: $(STAMP)
	$(BIN)/python -m bench.sources $(if $(ROWS),--rows $(ROWS)) $(if $(BEFORE),--before "$(BEFORE)")

bench-polling: $(STAMP)
	$(BIN)/python -m bench.polling

bench-crowd: $(STAMP)
	$(BIN)/python -m bench.crowd

bench-parties: $(STAMP)
	$(BIN)/python -m bench.parties

# What is shipped, as a CycloneDX list of components: from the lock file alone, so the same for the same lock file.
sbom: $(STAMP)
	mkdir -p build
	$(BIN)/python -m synod.deploy.sbom requirements.lock > build/sbom.cdx.json
	@echo "build/sbom.cdx.json"

# Known weaknesses of what is shipped. Needs pip-audit, and a database that it can reach; skips where either is missing.
audit-dependencies:
	.ci/audit requirements.lock

# The table of docs/privacy.md, "Audited": what neighbouring tables show, with all of the noise and with half of it.
audit: $(STAMP)
	$(BIN)/python -m bench.audit

# The runtime pins are a part of the development pins, so that what is tested is what is shipped.
lock:
	$(BIN)/pip-compile --quiet --extra dev --strip-extras --generate-hashes --allow-unsafe --no-header \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-header -c requirements-dev.lock \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist *.egg-info demo-release demo-docker-release bench/results
