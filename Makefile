# Two commands matter: `make run` starts Ksana, `make test` proves it. A fresh machine needs python3 >= 3.11, make and pip.

VENV  := .venv
BIN   := $(VENV)/bin
ARGS  ?=
# One worker more than there are cores, because some tests wait for processes of their own.
JOBS  ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)))
PIP   := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Servers are started a hundred times by the tests; without bytecode each start compiles all of it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo test check web pictures bench clean docs
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  ARGS="…" adds arguments to run, test and bench; PYTHON=python3.12 chooses the interpreter of a new .venv'

setup: $(VENV)/.dev-stamp ## Make .venv with everything a contributor needs

run: $(VENV)/.run-stamp ## Start Ksana (makes .venv with the runtime packages if needed)
	@echo "ksana: starting; stop it with Ctrl-C"
	@exec $(BIN)/ksana serve $(ARGS)

demo: $(VENV)/.run-stamp ## See it work: a server with samples of everything
	@exec $(BIN)/ksana demo $(ARGS)

test: $(VENV)/.dev-stamp ## Run every test, in parallel and in random order
	@$(BIN)/python -m pytest -n $(JOBS) -p randomly $(ARGS)

check: $(VENV)/.dev-stamp ## Format, lint, strict types, import contracts
	@status=0; \
	check() { what=$$1; shift; if out=$$("$$@" 2>&1); then echo "$$what: ok"; else echo "$$out"; echo "$$what: FAILED ($$*)"; status=1; fi; }; \
	check format $(BIN)/ruff format --check .; \
	check lint $(BIN)/ruff check .; \
	check types $(BIN)/mypy --strict; \
	check imports $(BIN)/lint-imports; \
	exit $$status

web: web/node_modules/.stamp ## Build the console into src/ksana/console/dist (needs Node 20 or later)
	@cd web && npm run --silent build

web/node_modules/.stamp: web/package.json web/package-lock.json
	@cd web && npm ci --silent
	@touch $@

pictures: $(VENV)/.dev-stamp ## Take the pictures of docs/images anew (six minutes)
	@$(BIN)/python -m tests.browser.pictures

docs: $(VENV)/.dev-stamp ## Write the pages anew that are made from code
	@$(BIN)/python -c "from ksana.api.reference import render_api_reference as r; print(end=r())" > docs/reference/api.md
	@$(BIN)/python -c "from ksana.cli.reference import render_cli_reference as r; print(end=r())" > docs/cli.md
	@$(BIN)/python -c "from ksana.config.reference import render_reference as r; print(end=r())" > docs/configuration.md
	@$(BIN)/python -c "from ksana.domain.pictures import render_states as r; print(end=r())" > docs/states.md

bench: $(VENV)/.dev-stamp ## Measure; see bench/
	@$(BIN)/python bench/run.py $(ARGS)

clean: ## Remove .venv and every cache; data/ stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis .test-services .bench build dist
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.run-stamp: pyproject.toml constraints.txt | $(BIN)/python
	@echo "ksana: installing the runtime packages into $(VENV) (first time and after a change of dependencies)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev-stamp: pyproject.toml constraints.txt | $(BIN)/python
	@echo "ksana: installing the development packages into $(VENV) (first time and after a change of dependencies)"
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.run-stamp

# A name on the PATH may still be unusable (a version manager's shim, an older release), so each candidate has to prove itself.
$(BIN)/python:
	@for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "ksana: no Python >= 3.11 among: $(or $(PYTHON),python3.13 python3.12 python3.11 python3). Install one, or say make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "ksana: making $(VENV) with $$($$python --version)"; \
	if ! $$python -m venv --clear $(VENV); then \
	  rm -rf $(VENV); \
	  echo "ksana: $$python cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
	fi
