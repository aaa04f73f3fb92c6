# Everything needs only python3 (3.11 or newer), make and a package index; the first target that needs it makes .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help

.PHONY: help demo test check fix docs bench soak fuzz collector programs constraints clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## captured agent traffic through the real processor, in under a minute
	@$(BIN)/luckrate-otel demo

test: check ## everything: lint, types, then unit, property and integration tests over real sockets
	$(BIN)/python -m pytest

check: $(READY) ## lint, format and types only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

fix: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY) ## write the tables of docs/ that the code knows: metrics, attributes, settings
	$(BIN)/python -m tests.docs.tables

collector: ## the real Collectors that the tests drive collector-config/ with (needs Go; minutes, once)
	@$(PYTHON) tests/programs/build.py otelcol otelcol-kafka

programs: ## those Collectors, Jaeger, Prometheus, agents and all else that is real in the tests (needs Go)
	@$(PYTHON) tests/programs/build.py

bench: $(READY) ## CPU time per span and memory on this machine
	$(BIN)/python benchmarks/run.py

FIGURES := .cache/figures.jsonl

soak: $(READY) ## fifty crash rounds, floods past the memory bound, every fault; writes docs/reliability.md
	@mkdir -p .cache && rm -f $(FIGURES)
	LUCKRATE_CRASH_ROUNDS=50 LUCKRATE_FLOOD_MIB=250 LUCKRATE_FIGURES=$(FIGURES) \
	  $(BIN)/python -m pytest -p no:randomly tests/faults
	$(BIN)/python -m tests.faults.figures $(FIGURES)

fuzz: $(READY) ## a million executions of all that reads strangers' bytes, coverage-guided where atheris installs; into docs/reliability.md
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python -m tests.fuzz --write

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up $(VENV) (once)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Resolves everything anew in an empty environment and writes down what was chosen.
constraints: ## renew constraints.txt
	rm -rf .cache/constraints
	$(PYTHON) -m venv .cache/constraints
	.cache/constraints/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	{ echo "# Versions that are tested together. Written by: make constraints"; \
	  .cache/constraints/bin/python -m pip freeze --exclude-editable --exclude luckrate-otel | LC_ALL=C sort -f; } > constraints.txt
	rm -rf .cache/constraints

clean: ## remove the environment and all caches
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
