# make demo | test | unit | lint | results | setup | peers: each does all the set-up it needs on a machine with Python 3.11+, git and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test unit lint results peers

setup: .venv/installed

# The stamp is newer than what it was made from, so a changed requirement installs again.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "SteadySeg needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,export,analyze]'
	touch $@

demo: setup
	$(BIN)/steadyseg demo

# What needs no export, browser or training: about 3 minutes.
unit: setup
	$(BIN)/python -m pytest -m 'not slow'

# A process for each room: in one for all, something of OpenVINO, numba, torch and a browser's threads together crashes at exit.
test: setup
	$(BIN)/python -m pytest tests/core tests/seg tests/test_arrows.py tests/test_demos.py tests/test_documents.py tests/test_results.py tests/test_robustness_runs.py
	$(BIN)/python -m pytest tests/classification
	$(BIN)/python -m pytest tests/export
	$(BIN)/python -m pytest tests/app

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every number, table and figure of docs/results.md, docs/robustness.md and the model cards; what is there already is kept
# (FRESH=--fresh measures all again). DATA holds camvid/, cifar10/ and video/.
DATA ?= ../shared/data
results: setup
	$(BIN)/python -m benchmarks.results --data $(DATA)/camvid $(FRESH)
	$(BIN)/python -m benchmarks.robustness --data $(DATA) $(FRESH)
	$(BIN)/python -m benchmarks.cards

# Its own environment (6 GB): a peer's pins must never move ours.
peers: .venv-peers/installed
	PYTHONPATH=. .venv-peers/bin/python benchmarks/peers/compare_mc_dropout.py

.venv-peers/installed: benchmarks/peers/requirements.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@
