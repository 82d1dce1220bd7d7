# `make test` and `make demo` do all of their set-up themselves, on a fresh machine too.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-releases test-wheel test-cluster mutants kills fuzz examples device lint format docs site bench fixtures device-library clean

help:
	@echo "targets: demo test test-slow test-all lint format docs site fixtures device-library clean"
	@echo "that take long: test-releases test-wheel test-cluster mutants kills fuzz examples device bench"

# One stamp for the environment, so that a changed dependency rebuilds it.
EXTRAS := dev
.venv/stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

# The install is a no-op when the toolchain is there; it lives in the user's cache, not here.
.PHONY: pinned
pinned: .venv/stamp
	$(BIN)/tlcheck toolchain install pinned

# The first check must find the bug of the release that made the snapshot: exit code 1, or the demo is broken.
demo: pinned
	@echo '--- TileLang 0.1.7, from a saved snapshot: an AtomicAddx2 whose lanes are not neighbours'
	$(BIN)/tlcheck check tests/fixtures/demo/attention_full_0.1.7.snapshot.json; \
	  code=$$?; echo "exit code $$code"; test $$code -eq 1
	@echo '--- the same kernel, lowered now with the pinned release'
	$(BIN)/tlcheck check cases/attention_sink_bwd.py::full --arch sm_90 --toolchain pinned --blocks 1 --seeds 1

# One process more than there are processors: tests of processes wait for these. CI prints the slowest tests.
TESTERS = $$(($$(nproc) + 1))
SLOWEST = $(if $(CI),--durations=30)

test: pinned
	$(BIN)/python -m pytest -n $(TESTERS) $(SLOWEST) -m "not slow"

# Commands from end to end, with real compilers. Every change must pass these as well.
test-slow: pinned
	$(BIN)/python -m pytest -n $(TESTERS) $(SLOWEST) -m slow

# Both in one run, as in CI: collected once, with the same workers and the kernels that these have lowered.
test-all: pinned
	$(BIN)/python -m pytest -n $(TESTERS) $(SLOWEST)

# What the tests lower with besides the pinned release; those whose release is missing are skipped. The first install
# brings the torch that all share.
.PHONY: toolchains
toolchains: pinned
	printf '%s\n' 0.1.6.post2 0.1.7 0.1.7.post3 0.1.9 0.1.12 0.1.14 | xargs -n 1 -P $$(nproc) $(BIN)/tlcheck toolchain install

# Every release for real: downloads and installs what is missing. Not in CI.
test-releases: pinned
	$(BIN)/tlcheck toolchain install $$($(BIN)/python -c 'from tlcheck.toolchain.releases import RELEASES; print(*RELEASES)')
	EVERY_RELEASE=1 $(BIN)/python -m pytest tests/releases tests/cpu/worker/test_lowering.py

# The wheel in an empty environment, by the words of the docs: downloads what tlcheck depends on.
test-wheel: pinned
	$(BIN)/python -m pytest tests/wheel

# A Ray cluster of separate processes on this machine: installs Ray.
test-cluster: pinned
	$(BIN)/pip install --quiet --constraint constraints.txt -e '.[cluster]'
	$(BIN)/tlcheck toolchain install 0.1.9
	$(BIN)/python -m pytest tests/cluster

# Slow measurements, of which `make test` takes a fixed sample.
mutants: .venv/stamp
	$(BIN)/python -m pytest -n auto tests/mutants

# Installs killed at ten moments.
kills: .venv/stamp
	EVERY_MOMENT=1 $(BIN)/python -m pytest tests/cpu/toolchain/test_kills.py

# Snapshots that no compiler made, ten thousand of them: none may raise, hang or take much memory.
fuzz: .venv/stamp
	$(BIN)/python benchmarks/fuzz.py

# TileLang's own examples and tests, from a checkout: make examples TILELANG=DIR. results/README.md says what for.
examples: pinned
	test -d "$(TILELANG)/examples" || { echo "no examples: make examples TILELANG=a checkout of tile-ai/tilelang"; exit 2; }
	$(BIN)/python benchmarks/examples.py "$(TILELANG)" build/examples
	$(BIN)/python benchmarks/execute.py --scripts "$(TILELANG)"/examples/*/

# Kernels on a GPU. Captured ones too, with make device PACK=FILE HEADERS=DIR: results/h200/README.md says how to make both.
device: pinned
	$(BIN)/python -m pytest tests/gpu
	test -z "$(PACK)" || $(BIN)/python -m tests.hardware.captured run "$(PACK)" "$(HEADERS)" results/h200/captured-0.1.15.json

lint: .venv/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/docs: .venv/stamp
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# The pages that are made from code, then the site.
docs: .venv/stamp
	$(BIN)/python -m tlcheck.cli.reference docs/reference
	$(BIN)/python docs/rules/make.py
	$(BIN)/python -m tlcheck.verdicts.rules.rule_pages docs/rules
	$(BIN)/python -m tlcheck.reasons docs/reasons.md
	$(BIN)/python -m tlcheck.report.schemas docs/schemas
	$(BIN)/python docs/pictures/make.py
	$(BIN)/python docs/findings/make.py
	$(MAKE) site

# build/site: a link or an anchor that leads nowhere is an error.
site: .venv/docs
	$(BIN)/python docs/site.py build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: pinned
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/execute.py
	$(BIN)/tlcheck toolchain install 0.1.7
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/crosscheck.py

fixtures: .venv/stamp
	$(BIN)/python -m tests.fixtures.make

# Needs nvcc: `make device-library RELEASES="0.1.16"`, and ARCHS for others than sm_80 and sm_90.
RELEASES ?= $$($(BIN)/python -c 'from tlcheck.toolchain.releases import RELEASES; print(*RELEASES)')
device-library: .venv/stamp
	$(BIN)/tlcheck toolchain install $(RELEASES)
	nice $(BIN)/python benchmarks/device_library.py $(RELEASES) $(if $(ARCHS),--arch $(ARCHS))

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist build
