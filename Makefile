# Two commands set everything up from nothing but Python (3.11 or newer) and make, and use uv where it is present:
#
#   make demo    a first look at a robot arm, then the PUMA 560 experiment of 1990; opens a page in the browser
#   make test    run the tests
#
# Others: make shell (a shell in which `linkwise` and `python` are those of .venv), make test-scripts (examples, pages, benchmark
# scripts), make test-frameworks (JAX, PyTorch, CasADi, notebooks), make lint, make types, make format, make bench, make docs, make package, make release, make clean.

PYTHON ?= python3
# some tests wait for browsers and other processes: one worker more than two cores
WORKERS ?= 3
# without bytecode every process of the tests would compile the source of the package again
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
FRAMEWORKS := .venv-frameworks
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

# versions that are known to work; `make test CONSTRAINTS=` takes the newest ones
CONSTRAINTS ?= $(wildcard constraints.txt)
PINNED = $(if $(CONSTRAINTS),-c $(CONSTRAINTS))

ifeq ($(UV),)
  INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINNED)
else
  INSTALL = $(UV) pip install --quiet --python $(BIN)/python $(PINNED)
endif

# tests that run every example, every page of docs/ and every script of benchmarks/: as long as a quarter of the others
SCRIPTS := tests/test_examples.py tests/test_docs.py tests/test_benchmarks.py

.PHONY: demo shell test test-scripts test-frameworks lint types format bench docs docs-version package release clean

# ROBOT=arm.urdf looks at another robot
ROBOT ?= panda

demo: $(VENV)/.installed
	@mkdir -p linkwise-demo
	@$(BIN)/linkwise tour "$(ROBOT)" --out linkwise-demo/tour.html
	@echo
	@$(BIN)/linkwise demo
	@echo
	@echo "linkwise is in $(BIN): call $(BIN)/linkwise, or \`source $(BIN)/activate\` first, or use \`make shell\`"

shell: $(VENV)/.installed
	@echo "linkwise and python are those of $(VENV); exit leaves this shell"
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" $${SHELL:-/bin/sh}

test: $(VENV)/.with-test
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --ignore=tests/frameworks $(SCRIPTS:%=--ignore=%) $(PYTEST)

test-scripts: $(VENV)/.with-test
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(SCRIPTS) $(PYTEST)

test-frameworks: $(FRAMEWORKS)/.with-frameworks
	@$(FRAMEWORKS)/bin/python -m pytest -q -n $(WORKERS) tests/frameworks $(PYTEST)

lint: $(VENV)/.with-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.with-dev
	@$(BIN)/basedpyright

format: $(VENV)/.with-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.with-test
	@$(BIN)/linkwise bench

docs: $(VENV)/.with-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the documentation is in build/site/index.html"

package: $(VENV)/.with-test
	@$(BIN)/python benchmarks/distribution.py

# Builds, checks and signs (KEY=...) the files of a release into dist; uploads nothing. RELEASE=--rehearse: as far as possible.
# VERSION=0.3.1 or REPOSITORY=https://… instead write the version or the address into all files that state it.
release: $(VENV)/.with-test
	@$(BIN)/python benchmarks/release.py $(if $(KEY),--key $(KEY)) $(if $(REPOSITORY),--repository $(REPOSITORY)) $(if $(findstring command,$(origin VERSION)),--set-version $(VERSION)) $(RELEASE)

# The pages of one version beside those of the others, on the branch gh-pages, which is pushed.
docs-version: $(VENV)/.with-docs
	@$(INSTALL) mike
	@export PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1; \
	mike deploy --push --update-aliases $(VERSION:v%=%) latest && mike set-default --push latest

clean:
	rm -rf $(VENV) $(FRAMEWORKS) linkwise-demo .pytest_cache .ruff_cache .hypothesis

# Linkwise alone, which is all that the first pictures need.
$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing linkwise into $(VENV)"
	@$(INSTALL) -e .
	@touch $@

# One mark per extra: installing again is needed only when pyproject.toml or the constraints change.
$(VENV)/.with-%: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing linkwise[$*] into $(VENV)"
	@$(INSTALL) -e ".[$*]"
	@touch $@

# JAX, PyTorch and CasADi have an environment of their own, so that the other tests run without them. It also sees the
# packages of $(VENV), which need not be installed twice.
$(FRAMEWORKS)/.with-frameworks: $(VENV)/.with-test
	@echo "installing linkwise[frameworks] into $(FRAMEWORKS)"
	@$(BIN)/python -m venv $(FRAMEWORKS)
	@packages=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	    own=$$($(FRAMEWORKS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	    echo "import site; site.addsitedir('$$packages')" > $$own/linkwise_packages.pth
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check $(PINNED) -e ".[frameworks]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("linkwise needs Python 3.11 or newer, this is " + sys.version.split()[0]) \
	    if sys.version_info < (3, 11) else None'
	@echo "making $(VENV)"
ifeq ($(UV),)
	@$(PYTHON) -m venv $(VENV)
else
	@$(UV) venv --quiet --python $(PYTHON) $(VENV)
endif
