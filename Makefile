# `make test` and `make demo` set up all they need on a fresh machine: a virtual environment in .venv, and for the
# tests of the page a Chromium where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS ?= 600

.PHONY: test fuzz lint types browser demo docs dist fuzz-server setup clean

test: lint types browser  ## everything CI runs
	$(BIN)/python -m pytest -n auto --maxprocesses 4  # side by side: two thirds of the time on two cores

demo: setup  ## trains on the embedded sample, intents and slots, in a minute or two
	$(BIN)/sentence-state demo

docs: setup  ## the pages of docs/, in site/
	$(BIN)/mkdocs build --strict

dist: setup  ## a wheel, in dist/
	$(BIN)/python -m build --wheel --no-isolation

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fuzz: setup  ## readers and loaders on damaged files, for SECONDS; with coverage where atheris is installed
	$(BIN)/python -m tests.fuzz $(SECONDS)

types: setup
	$(BIN)/mypy

browser: setup  ## a Chromium for the tests of the page, where there is none
	.ci/chromium $(BIN)

fuzz-server: setup  ## 10,000 hostile requests: ours, and schemathesis's for /v1/predict and /v1/trace
	$(BIN)/python -m tests.serving.fuzzer --requests 8000 --examples 1000

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch numpy
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -c "import triton" 2>/dev/null || $(BIN)/pip install --quiet --no-deps triton==3.6.0  # interpreter tests
	touch $@

clean:
	rm -rf $(VENV) dist build site .mypy_cache .pytest_cache .ruff_cache
