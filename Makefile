# Two commands do it all on a machine with Python 3.11 or later, git and make:
#   make demo    train a translator on the sample and see what it looks at: 3 minutes
#   make test    lint, types and tests
# Both make .venv first; a second time they start at once.
#   make test-gpu PYTHON=python3 [PARTS="dot hard"]    the tests that need a GPU, with that Python as it is

# The newest Python from 3.11 on, unless another is named. (A name may be there without a Python behind it.)
PYTHON ?= $(shell for name in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: demo test test-gpu lint format benchmark clean

demo: $(STAMP)
	$(BIN)/regard demo

test: $(STAMP) lint
	$(BIN)/pytest -n 2

test-gpu:
	$(PYTHON) -m tests.gpu $(PARTS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(STAMP)
	$(BIN)/python benchmarks/cpu_attention.py

# torch comes first and pinned, so that nothing pulls another build of it. Of argostranslate, only the client of
# LibreTranslate's API is tested, which needs none of its dependencies; in a folder of its own, because it brings a package `tests`.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "regard needs Python 3.11 or later, and there is none; name one: make PYTHON=…"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps --target .venv/clients argostranslate
	touch $(STAMP)

clean:
	rm -rf .venv
