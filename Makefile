# make demo | docs | unit | test | test-all | lint | results | setup | lock | lowest: each does all the set-up it needs on a machine with Python 3.11+, git and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup lock demo docs unit test test-all lint results lowest

setup: .venv/installed

# Every package has the hashes that PyPI published, or is not installed. Hash mode takes no "-e .", so the project comes
# last, alone, built by the hatchling of the lock. A stamp is newer than what it was made from: a changed lock installs again.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
LOCKED := $(PIP) --require-hashes --only-binary :all: --requirement
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "SteadySeg needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv

# What running needs (1 GB): no torch, no CUDA. The versions are those of requirements.lock.
.venv/running: pyproject.toml requirements-running.lock | .venv/bin/python
	$(LOCKED) requirements-running.lock
	$(PIP) --no-build-isolation --editable .
	touch $@

# Everything: training, export, studies, tests (8 GB).
.venv/installed: pyproject.toml requirements.lock | .venv/bin/python
	$(LOCKED) requirements.lock
	$(PIP) --no-build-isolation --editable .
	-$(BIN)/python -m steadyseg.app.in_browser.runtime  # 33 MB for the page in a browser; without it its tests skip
	touch .venv/running $@

# Writes the locks anew after a change of pyproject.toml, with the hashes of all wheels for all platforms and Pythons. What
# still fits keeps its version; UPGRADE=--upgrade moves all.
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --custom-compile-command 'make lock' $(UPGRADE)
lock: setup
	$(COMPILE) --only-binary :all: pyproject.toml --all-extras --output-file requirements.lock
	echo 'hatchling editables' | tr ' ' '\n' | $(COMPILE) --only-binary :all: pyproject.toml - --constraint requirements.lock --output-file requirements-running.lock
	echo 'zensical mkdocstrings-python ruff' | tr ' ' '\n' | $(COMPILE) --only-binary :all: - --constraint requirements.lock --output-file docs/requirements.lock
	echo hatchling | $(COMPILE) --only-binary :all: pyproject.toml - --extra gpu --extra scale --constraint requirements.lock --output-file deploy/requirements.lock

# The site of the documents, build/docs/site, from the pages and the public docstrings (30 MB in an environment of its own).
docs: .venv-docs/installed
	.venv-docs/bin/python docs/site.py

.venv-docs/installed: docs/requirements.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --requirement $<
	touch $@

demo: $(if $(wildcard .venv/installed),.venv/installed,.venv/running)
	$(BIN)/steadyseg demo

# The tests, in processes of one thread and about 1.5 GB each: JOBS for the units, twice as many for the others, which wait
# a fifth of their time for a browser, a server or a process (on 2 cores 6:21 with 3, 5:54 with 4). Long ones measure the
# browser's memory, so test-all gives them the machine to themselves. On 2 cores with AVX-512 at most:
# unit 2 minutes, test 8, with the long ones 20. On 2 with AVX2 alone test takes 16; so .ci/run, which must end within 60,
# leaves the long ones out.
JOBS ?= 2
unexport PYTHONDONTWRITEBYTECODE  # the tests' bytecode is worth 6 s in each process that collects them
PYTEST := $(BIN)/python -m pytest
PARALLEL := $(PYTEST) --dist loadfile --no-loadscope-reorder --numprocesses

unit: setup
	$(PARALLEL) $(JOBS) -m 'not slow and not long and not browser'

test: setup
	$(PARALLEL) $$((2 * $(JOBS))) -m 'not long'

test-all: setup
	$(PARALLEL) $$((2 * $(JOBS))) -m 'not browser'
	$(PYTEST) -m browser

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/tracked_size.py
	$(BIN)/python tests/english.py

# Every record, table and figure of the included networks (NETWORKS names some of them) that is not of their weights, fits
# and data as they are. DATA holds camvid/, cifar10/, video/ and the others.
DATA ?= $(or $(STEADYSEG_DATA),data)
results: setup
	$(BIN)/python -m steadyseg.studies.figures --data $(DATA) $(NETWORKS)

# The tests of units and exports with the lowest versions that pyproject.toml admits, in an environment of its own (7 GB).
LOWEST := .venv-lowest/bin/python
lowest: setup
	test -x $(LOWEST) || $(PYTHON) -m venv .venv-lowest
	$(BIN)/uv pip compile --quiet --python $(LOWEST) --resolution lowest-direct --only-binary :all: --all-extras pyproject.toml --output-file .venv-lowest/lowest.txt
	$(BIN)/uv pip sync --quiet --python $(LOWEST) --only-binary :all: .venv-lowest/lowest.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST) --no-deps --no-build-isolation --editable .
	$(LOWEST) -m pytest --numprocesses $(JOBS) --dist loadfile -m 'not slow and not long and not browser'
	$(LOWEST) -m pytest --numprocesses $(JOBS) --dist loadfile -m 'slow and not long' tests/export tests/runtime
