# Everything runs in .venv, which the first command makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps: what the program needs, and what working on it needs besides.
RUNS := $(VENV)/.runs
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DATA ?= $(STRAYS_DATA)
# Corpora that the default encoder reads; the Chinese one (5.3) needs an encoder of its own, given by hand.
ENGLISH := 5.1 5.2-ag 5.2-yelp 5.2-rct banking bbc csabstruct email newsgroups polarity

.PHONY: install demo test check bench page clean

$(RUNS): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[onnx,review,serve]"
	touch $@

$(INSTALLED): $(RUNS)
	$(PIP) -e ".[dev,onnx,ray,review,serve,study]"
	touch $@

install: $(INSTALLED)

# Rank the bundled example: 300 messages to a bicycle workshop, 20 of which do not belong.
demo: $(RUNS)
	$(BIN)/strays scan examples/workshop.csv --known examples/workshop_known.txt

test: $(INSTALLED)
	$(BIN)/python -m pytest

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Rerun the benchmarks; DATA is the folder with the corpora. What has rows in benchmarks/results is not run again.
bench: $(INSTALLED)
	$(PIP) -e ".[bench]"
	$(BIN)/python -m benchmarks.fit_speed
	$(BIN)/python -m benchmarks.auto_speed
	$(BIN)/python -m benchmarks.desk
	$(BIN)/python -m benchmarks.serve
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.attacks.models
	$(BIN)/python -m benchmarks.attacks.tables
	$(BIN)/python -m benchmarks.big_file --fit-rows 10000 --part-rows 25000
	$(BIN)/python -m benchmarks.encoding --data "$(DATA)"
	$(BIN)/python -m benchmarks.precision --data "$(DATA)"
	$(BIN)/python -m benchmarks.cascade --data "$(DATA)"
	$(BIN)/python -m benchmarks.report --data "$(DATA)"
	$(BIN)/python -m benchmarks.labelling --data "$(DATA)"
	$(BIN)/python -m benchmarks.auto_paper --data "$(DATA)"
	$(BIN)/python -m benchmarks.regret --data "$(DATA)" --corpora $(ENGLISH)
	$(BIN)/python -m benchmarks.validity --data "$(DATA)" --corpora $(ENGLISH)
	$(BIN)/strays study 5.1 5.2-ag --data "$(DATA)" --out benchmarks/results/paper

# Make docs/paper.md, docs/regret.md, docs/speed.md, the figures in docs/review.md, docs/operations.md and the README again from the rows.
page: $(INSTALLED)
	$(BIN)/strays study --out benchmarks/results/paper --page docs/paper.md
	$(BIN)/python -m benchmarks.regret --page
	$(BIN)/python -m benchmarks.speed_page
	$(BIN)/python -m benchmarks.desk_page
	$(BIN)/python -m benchmarks.operations_page

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis
