# `make demo` and `make test` need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test test-fast test-pythons check format bench docs clean

demo: $(VENV)/.explorer
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(PYTEST)
	@$(MAKE) --no-print-directory test-pythons

test-fast: $(VENV)/.test
	$(PYTEST) -m "not slow"

# The short suite on every other supported Python that this machine has.
test-pythons:
	@./tools/test-pythons

check: $(VENV)/.test $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/.check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test $(VENV)/.bench
	$(BIN)/python -m bench

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv* build dist site demo .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp says: these extras are installed as the constraints of this commit want them.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else \
	  f"counterpath needs Python 3.11 to 3.13, and $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.test $(VENV)/.check $(VENV)/.docs $(VENV)/.bench $(VENV)/.explorer: $(VENV)/.%: $(VENV)/.runtime
	$(PIP_INSTALL) --editable '.[$*]'
	@touch $@
