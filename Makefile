# make run: sets everything up and compares three TensorFlows. make test: sets everything up and passes the tests.
# make check: the fast loop for those who change something.

# The first of these that is Python 3.11 or newer.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VERSIONS ?= 1.14,2.0,2.13
ARGS ?=
# Processes that share the tests; with fewer than two, one after another.
WORKERS ?= 2

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PIP_IN_LOWEST := $(BIN)/python -m pip --python .venv/lowest/bin/python install --quiet --disable-pip-version-check

.PHONY: run test check lint lowest docs bench fuzz soak gpu-check gpu-bundle locks verify-versions release-check clean

run: .venv/run
	$(BIN)/tfcompare run --versions $(VERSIONS) $(ARGS)

test: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

# The fast loop: what needs no Docker engine, no TensorFlow, no browser and no patience.
check: lint
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n $(WORKERS) \
		-m "not docker and not tensorflow and not browser and not slow" $(ARGS)

# What runs inside versions, with other rules.
INSIDE := workloads bench/workloads tests/workloads \
	$(addprefix tests/,engines/workloads engines/docker/workloads faults/workloads soak/workloads)
lint: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff check --config tools/ruff-inside.toml $(INSIDE)
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vermin --quiet --no-tips --violations --target=3.6- workloads tests/faults/workloads images/compose_check.py
	$(BIN)/python tools/lock.py --check
	$(BIN)/python -m tools.docs --check
	$(BIN)/python tools/english.py

# The fast unit tests of what calls dependencies, with the oldest that pyproject.toml allows, on the oldest Python. Tests
# that measure, wait or compute with our own code are left out. What is in one folder is named in one place, since pytest
# loses the fixtures of a folder that it comes back to.
CALLERS := $(addprefix tests/unit/,catalog exports \
	$(addprefix history/,terminal test_select.py test_sql.py test_store.py) \
	images reports results terminal test_model.py nightly/test_notify.py \
	$(addprefix cli/test_,completion.py options.py report.py screens.py))
lowest: .venv/lowest/made
	PATH="$(CURDIR)/.venv/lowest/bin:$$PATH" .venv/lowest/bin/python -m pytest -q -n $(WORKERS) \
		-m "not docker and not tensorflow and not browser and not slow" $(CALLERS) $(ARGS)

# The documentation as a site in build/docs; a broken link is an error.
docs: .venv/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Measures tfcompare itself and writes docs/benchmarks.md; let nothing else run meanwhile. ARGS=--stale only lists the
# parts that are older than the code they measure.
bench: .venv/dev
	$(BIN)/python -m bench $(ARGS)

# Hours of hostile input for everything that reads; make test has a few of each.
EXAMPLES ?= 100000
fuzz: .venv/dev
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/fuzz -n $(WORKERS) $(ARGS)

# Hours of kills at random points of real commands; make test has a few. SEED repeats those of another time.
KILLS ?= 200
SEED ?= $(shell date +%s)
soak: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" SOAK_KILLS=$(KILLS) SOAK_SEED=$(SEED) $(BIN)/python -m pytest -rA \
		tests/soak tests/engines/docker/test_kills.py -n $(WORKERS) $(ARGS)
	PATH="$(CURDIR)/$(BIN):$$PATH" SOAK_KILLS=$(KILLS) $(BIN)/python -m pytest -rA -m long \
		tests/engines tests/faults tests/install -n $(WORKERS) $(ARGS)

# Ten steps on a machine with an NVIDIA GPU, and a file with all that they saw; docs/gpu-check.md.
gpu-check: .venv/gpu
	$(BIN)/python -m tools.gpu_check $(ARGS)

# The same in a folder, for a machine with a GPU and no network.
gpu-bundle: .venv/run
	$(BIN)/python -m tools.gpu_bundle $(ARGS)

locks: .venv/dev
	tools/lock-host
	$(BIN)/python tools/lock.py

# Builds and runs every version of the table here, which takes hours and tens of gigabytes; goes on where it was.
verify-versions: .venv/dev
	$(BIN)/python tools/verify_versions.py $(ARGS)
	$(BIN)/python -m tools.docs

# What a release publishes, in build/release: both packages, checked, installed and used, and their SBOM. It needs no
# network but to set up .venv. RELEASE_TAG checks that it is all there for this tag.
release-check: .venv/dev
	rm -rf build/release
	$(BIN)/python -m build --no-isolation --outdir build/release .
	$(BIN)/python -m tools.release build/release
	TFCOMPARE_PACKAGES="$(CURDIR)/build/release" PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/python -m pytest -q tests/install/test_offline.py tests/unit/tools/test_release.py $(ARGS)

# By tools/alone.py, so that two at once do not disturb each other.
.venv/made:
	@test -n "$(PYTHON)" || { echo "tfcompare needs Python 3.11 or newer with venv: install one, or name it: make PYTHON=..."; exit 2; }
	@$(PYTHON) tools/alone.py $@ -- '$(PYTHON) -m venv --clear .venv'

# What builds tfcompare lies in a folder of its own: the environment holds what a user of the wheel has, and no more.
.venv/run: .venv/made requirements/run.txt requirements/build.txt pyproject.toml
	@$(BIN)/python tools/alone.py $@ $^ -- \
		'$(PIP) --require-hashes -r requirements/run.txt' \
		'$(PIP) --require-hashes --upgrade --target .venv/build -r requirements/build.txt' \
		'PYTHONPATH=.venv/build $(PIP) --no-deps --no-build-isolation --editable .'

.venv/gpu: .venv/run requirements/gpu.txt
	@$(BIN)/python tools/alone.py $@ $^ -- '$(PIP) --require-hashes -r requirements/gpu.txt'

.venv/lowest/made: .venv/run requirements/lowest.txt
	@$(BIN)/python tools/alone.py $@ $^ -- \
		'$(BIN)/uv venv --quiet --clear --python 3.11 .venv/lowest' \
		'$(PIP_IN_LOWEST) --require-hashes -r requirements/lowest.txt' \
		'PYTHONPATH=.venv/build $(PIP_IN_LOWEST) --no-deps --no-build-isolation --editable .'

.venv/dev: .venv/run requirements/dev.txt
	@$(BIN)/python tools/alone.py $@ $^ -- '$(PIP) --require-hashes -r requirements/dev.txt'

clean:
	rm -rf .venv build dist
