# Every target that needs .venv sets it up first; if it is up to date, this takes a tenth of a second.
VENV ?= .venv
export VENV
PYTHON_OF_VENV := $(VENV)/bin/python
ARGS ?=
TASK ?= image_classification

.DEFAULT_GOAL := help
.PHONY: help setup demo test trainers coverage check docs format structure options mutants lock release audit sbom image image-test tested clean

# The tests of a module stay in one process, because they share fixtures.
PYTEST := -m pytest -n auto --maxprocesses 4 --dist loadfile --max-worker-restart 0

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with versions that fit this machine (LEG=tfx-1.21|tfx-1.16|no-tfx to choose)
	@scripts/setup

demo: setup ## run the demonstration from sample data to a trained model (TASK=object_detection, text_entities, tabular, …)
	@$(PYTHON_OF_VENV) -m pipelines.demo --task $(TASK) $(ARGS)

test: setup ## run the tests on all cores, four at most (ARGS="-m 'not slow'" passes options to pytest)
	@$(PYTHON_OF_VENV) $(PYTEST) $(ARGS)

trainers: ## test with PyTorch, Grain, JAX and Keras, in an environment without TensorFlow (ARGS go to pytest)
	@scripts/trainers $(ARGS)

coverage: setup ## list the lines of the package that no test runs; includes processes that tests start
	@rm -rf .coverage && mkdir .coverage
	@$(PYTHON_OF_VENV) -m coverage run $(PYTEST) $(ARGS)
	@$(PYTHON_OF_VENV) -m coverage combine --quiet
	@$(PYTHON_OF_VENV) -m coverage report --show-missing --skip-covered

check: setup ## check format, lint, types, the direction of imports, the site, and the budget of the structure
	$(PYTHON_OF_VENV) -m ruff format --check .
	$(PYTHON_OF_VENV) -m ruff check .
	$(PYTHON_OF_VENV) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	@scripts/docs
	@$(PYTHON_OF_VENV) scripts/structure --check

docs: ## build the site from docs/ into build/site (scripts/docs serve shows it while you write)
	@scripts/docs

format: setup ## format, and fix what the linter can fix
	$(PYTHON_OF_VENV) -m ruff format .
	$(PYTHON_OF_VENV) -m ruff check --fix .

options: setup ## renew the lists of options in component.yaml and docs/ from ConvertOptions
	@$(PYTHON_OF_VENV) scripts/options

structure: setup ## measure the structure: lines, options, members, and the modules that a row enters
	@$(PYTHON_OF_VENV) scripts/structure $(ARGS)

mutants: setup ## find faults in core modules that no test notices (ARGS="core.dataset.splits --survivors")
	@$(PYTHON_OF_VENV) scripts/mutants $(ARGS)

lock: ## renew locks/ with the newest versions that work together
	@scripts/lock

audit: ## look up all locked versions in a database of vulnerabilities; needs network (ARGS go to pip-audit)
	@scripts/setup --tool audit
	@.venv-audit/bin/python scripts/audit $(ARGS)

sbom: ## write build/sbom.json: the packages of the image, as CycloneDX
	@scripts/setup --tool audit
	@.venv-audit/bin/python scripts/sbom

release: setup ## build wheel and sdist into dist/, and check them, changelog and README (ARGS="--wheel" runs tests, too)
	@$(PYTHON_OF_VENV) scripts/release $(ARGS)

image: ## build the container image (ENGINE=docker|podman|buildah, ARGS="--build-arg …")
	@scripts/image $(ARGS)

image-test: ## run all tests inside the image (ARGS go to pytest)
	@scripts/image test $(ARGS)

tested: setup ## write the results of .ci/run into docs/tested.md
	@$(PYTHON_OF_VENV) scripts/tested

clean: ## remove .venv and everything else that was made here
	rm -rf .venv .venv-* .setup .setup.part .containers .tested .coverage build dist components/*.egg-info
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
