# Two commands do it all on a machine with Python 3.11, git and make:
#   make demo    train a translator on the sample and see what it looks at: 3 minutes
#   make test    lint, types and tests
# Both make .venv first; a second time they start at once.

PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: demo test lint format benchmark clean

demo: $(STAMP)
	$(BIN)/regard demo

test: $(STAMP) lint
	$(BIN)/pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(STAMP)
	$(BIN)/python benchmarks/cpu_attention.py

# torch comes first and pinned, so that nothing pulls another build of it.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf .venv
