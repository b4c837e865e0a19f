# Every target that needs .venv sets it up first; a finished one costs a tenth of a second.
VENV ?= .venv
export VENV
PYTHON_OF_VENV := $(VENV)/bin/python
ARGS ?=
TASK ?= image_classification

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage check docs format options mutants lock release audit sbom image image-test tested clean

# A module's tests stay in one process: they share what its fixtures made.
PYTEST := -m pytest -n auto --maxprocesses 4 --dist loadfile

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with what fits this machine (LEG=tfx-1.21|tfx-1.16|no-tfx to choose)
	@scripts/setup

demo: setup ## run the demonstration from sample data to a trained model (TASK=object_detection, text_entities, tabular, …)
	@$(PYTHON_OF_VENV) -m pipelines.demo --task $(TASK) $(ARGS)

test: setup ## run the tests on all cores, four at most (ARGS="-m 'not slow'" passes options to pytest)
	@$(PYTHON_OF_VENV) $(PYTEST) $(ARGS)

coverage: setup ## say which lines of the package no test runs, also of processes that tests start
	@rm -rf .coverage && mkdir .coverage
	@$(PYTHON_OF_VENV) -m coverage run $(PYTEST) $(ARGS)
	@$(PYTHON_OF_VENV) -m coverage combine --quiet
	@$(PYTHON_OF_VENV) -m coverage report --show-missing --skip-covered

check: setup ## format check, lint, types, that imports point down, and the site
	$(PYTHON_OF_VENV) -m ruff format --check .
	$(PYTHON_OF_VENV) -m ruff check .
	$(PYTHON_OF_VENV) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	@scripts/docs

docs: ## build the site from docs/ into build/site (scripts/docs serve shows it while you write)
	@scripts/docs

format: setup ## format, and repair what the linter can
	$(PYTHON_OF_VENV) -m ruff format .
	$(PYTHON_OF_VENV) -m ruff check --fix .

options: setup ## renew the lists of options in component.yaml and docs/ from ConvertOptions
	@$(PYTHON_OF_VENV) scripts/options
	@$(PYTHON_OF_VENV) -m pipelines.component

mutants: setup ## say which faults of core modules no test notices (ARGS="dataset.splits --survivors")
	@$(PYTHON_OF_VENV) scripts/mutants $(ARGS)

lock: ## renew locks/ to the newest versions that fit together
	@scripts/lock

audit: ## look the versions of all locks up in a database of vulnerabilities; needs network (ARGS go to pip-audit)
	@scripts/setup --tool audit
	@.venv-audit/bin/python scripts/audit $(ARGS)

sbom: ## write build/sbom.json: what is installed in the image, as CycloneDX
	@scripts/setup --tool audit
	@.venv-audit/bin/python scripts/sbom

release: setup ## build wheel and sdist into dist/, and check them, changelog and README (ARGS="--wheel" runs tests, too)
	@$(PYTHON_OF_VENV) scripts/release $(ARGS)

image: ## build the container image (ENGINE=docker|podman|buildah, ARGS="--build-arg …")
	@scripts/image $(ARGS)

image-test: ## run all tests inside the image (ARGS go to pytest)
	@scripts/image test $(ARGS)

tested: setup ## write into docs/tested.md what .ci/run tested here
	@$(PYTHON_OF_VENV) scripts/tested

clean: ## remove .venv and everything else that was made here
	rm -rf .venv .venv-* .setup .setup.part .containers .tested .coverage build dist components/*.egg-info
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
