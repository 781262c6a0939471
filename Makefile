# `make test` and `make demo` set up all they need on a fresh machine: a virtual environment in .venv, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test lint types demo setup clean

test: lint types  ## everything CI runs
	$(BIN)/python -m pytest

demo: setup  ## trains on the embedded sample, intents and slots, in about a minute
	$(BIN)/sentence-state demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch numpy
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -c "import triton" 2>/dev/null || $(BIN)/pip install --quiet --no-deps triton==3.6.0  # interpreter tests
	touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache
