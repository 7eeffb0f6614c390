# Everything runs in .venv, which the first command makes. `make test` is all that a change needs before its review.
PYTHON ?= python3
VENV := .venv
# Further extras to test with, each after a comma.
WITH :=
BIN := $(VENV)/bin
# Stamps: what the program needs, what `make test` and `make check` need, and what all of the tests need.
RUNS := $(VENV)/.runs
TESTS := $(VENV)/.tests
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Tests of one file share fixtures, so they run in one process. More workers: make test WORKERS=8
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
# Markers of the tests that take long; pyproject.toml says what each means.
LONG := process or browser or cluster or attack or slow
# Library switches that give the results of a processor with AVX2 and without AVX-512. ONNX Runtime has no such switch.
AVX2 := OPENBLAS_CORETYPE=Haswell MKL_ENABLE_INSTRUCTIONS=AVX2 MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=avx2 \
	ONEDNN_MAX_CPU_ISA=AVX2 ARROW_USER_SIMD_LEVEL=AVX2 NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR"
DATA ?= $(STRAYS_DATA)
# Corpora that the default encoder reads; the Chinese one (5.3) needs an encoder of its own, given by hand.
ENGLISH := 5.1 5.2-ag 5.2-yelp 5.2-rct banking bbc csabstruct email newsgroups polarity

.PHONY: install demo test test-all test-torch test-avx2 coverage check check-js bench page clean

# Where the default encoder cannot be had now, its first use tries again, and tests that need it skip.
$(RUNS): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	-$(BIN)/strays encoders get default
	touch $@

$(TESTS): $(RUNS)
	$(PIP) -e ".[dev,review,serve,study$(WITH)]"
	touch $@

$(INSTALLED): $(TESTS)
	$(PIP) -e ".[dev,ray,review,serve,study$(WITH)]"
	touch $@

install: $(INSTALLED)

# Rank the bundled example: 300 messages to a bicycle workshop, 20 of which do not belong.
demo: $(RUNS)
	$(BIN)/strays scan examples/workshop.csv --known examples/workshop_known.txt

# The tests a change needs, and the examples in the docstrings: at most 4 minutes on two cores.
test: $(TESTS)
	$(PYTEST) -m "not ($(LONG))"

# The rest: the tests with one of the markers in LONG, and only those, so that nothing runs twice after `make test`.
test-all: $(INSTALLED)
	$(PYTEST) -m "$(LONG)"

# The tests of `make test` where PyTorch and transformers are installed, which many of them compare with.
test-torch:
	$(MAKE) test VENV=.venv-torch WITH=,torch

# The tests of `make test` as on a processor without AVX-512.
test-avx2: $(TESTS)
	$(AVX2) $(PYTEST) -m "not ($(LONG))"

# The lines of src/strays that `make test` does not run.
coverage: $(TESTS)
	$(PYTEST) -m "not ($(LONG))" --cov --cov-report=term --cov-report=html

check: $(TESTS) check-js
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The types of the pages' JavaScript; skipped, with a word, where npm or its registry is missing.
TSC := node_modules/.bin/tsc
check-js:
	@test $(TSC) -nt package-lock.json || npm ci --silent --no-audit --no-fund && touch $(TSC) || true
	@if test -x $(TSC); then $(TSC) --project jsconfig.json; \
	else echo "check-js: skipped, because npm could not install TypeScript"; fi

# Rerun the benchmarks; DATA is the folder with the corpora. What has rows in benchmarks/results is not run again.
bench: $(INSTALLED)
	$(PIP) -e ".[bench]"
	$(BIN)/python -m benchmarks.fit_speed
	$(BIN)/python -m benchmarks.auto_speed
	$(BIN)/python -m benchmarks.packages
	$(BIN)/python -m benchmarks.desk
	$(BIN)/python -m benchmarks.serve
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.attacks.models
	$(BIN)/python -m benchmarks.attacks.tables
	$(BIN)/python -m benchmarks.attacks.model_bits
	$(BIN)/python -m benchmarks.attacks.manifest_bits
	$(BIN)/python -m benchmarks.attacks.kept --n 4500
	$(BIN)/python -m benchmarks.attacks.faults.run --out benchmarks/results/faults.json
	$(BIN)/python -m benchmarks.big_file --fit-rows 10000 --part-rows 25000
	$(BIN)/python -m benchmarks.encoding --data "$(DATA)"
	$(BIN)/python -m benchmarks.precision --data "$(DATA)"
	$(BIN)/python -m benchmarks.cascade --data "$(DATA)"
	$(BIN)/python -m benchmarks.report --data "$(DATA)"
	$(BIN)/python -m benchmarks.labelling --data "$(DATA)"
	$(BIN)/python -m benchmarks.auto_paper --data "$(DATA)"
	$(BIN)/python -m benchmarks.planted --data "$(DATA)"
	$(BIN)/python -m benchmarks.marked_words --data "$(DATA)"
	$(BIN)/python -m benchmarks.no_labels --data "$(DATA)"
	$(BIN)/python -m benchmarks.form_speed --data "$(DATA)"
	$(BIN)/python -m benchmarks.published --data "$(DATA)"
	$(BIN)/python -m benchmarks.regret --data "$(DATA)" --corpora $(ENGLISH)
	$(BIN)/python -m benchmarks.validity --data "$(DATA)" --corpora $(ENGLISH)
	$(BIN)/python -m benchmarks.repeats --data "$(DATA)" --corpora $(ENGLISH)
	$(BIN)/python -m benchmarks.repeats_speed
	$(BIN)/strays study 5.1 5.2-ag --data "$(DATA)" --out benchmarks/results/paper

# Write the pages of results (docs/paper.md, regret.md, repeats.md, speed.md, figures.md) and the figures in docs/review.md,
# docs/operations.md and the README from the rows.
page: $(INSTALLED)
	$(BIN)/strays study --out benchmarks/results/paper --page docs/paper.md
	$(BIN)/python -m benchmarks.regret --page
	$(BIN)/python -m benchmarks.repeats --page
	$(BIN)/python -m benchmarks.speed_page
	$(BIN)/python -m benchmarks.desk_page
	$(BIN)/python -m benchmarks.operations_page
	$(BIN)/python -m benchmarks.install_page
	$(BIN)/python -m benchmarks.figures_page

clean:
	rm -rf $(VENV) .venv-torch node_modules build dist .coverage htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis
