# make run   the main job: train, tabulate, draw, report     make test  the tests
# Everything is set up in .venv of this checkout from the locks in requirements/.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
UV_VERSION := 0.13.8
export PYTHONPATH := $(CURDIR)/src
# runs on the board, so it keeps Python 3.6 grammar (docs/decisions/0003)
BOARD_SIDE := $(addprefix src/epochwatt/,__init__.py columns.py errors.py board)
SNAKEMAKE := $(PY) -m snakemake --profile profiles/host

.DEFAULT_GOAL := help
.PHONY: run score validate test release artifact paper lint format bench mutation golden gpu-check virtual-board board-env browser container-image slurm setup-jetson remove-jetson report docs docs-site dist lock clean help

run: $(VENV)/host-ready ## train for real, make every table, figure and the report
	@[ ! -d measured ] || $(PY) -m epochwatt discard --shared --within-s 60 2>/dev/null || true
	@EPOCHWATT_COMMAND="make run" $(SNAKEMAKE); status=$$?; \
	  [ $$status -eq 0 ] || [ -f results/not_made.json ] || exit $$status; \
	  $(PY) -m epochwatt report || status=1; \
	  $(PY) -m epochwatt summary || status=1; exit $$status

score: $(VENV)/workflow-ready ## judge all prediction methods on a Jetson TX1's 736 power modes, measured by others
	@$(PY) -m epochwatt score translucence-tx1-5000

report: $(VENV)/host-ready ## results/report.html, remade only when something it shows is newer
	@$(PY) -m epochwatt report

validate: $(VENV)/host-ready ## fit the simulated boards' power anew, take-away by take-away (minutes): config/twin/; TIMES=1: times, too
	@$(SNAKEMAKE) workloads
	@$(PY) -m benchmarks.calibration overlaps
	@OPENBLAS_NUM_THREADS=1 $(PY) -m epochwatt calibrate-twin --folds $(if $(TIMES),,--only-power)
	@OPENBLAS_NUM_THREADS=1 $(PY) -m benchmarks.calibration priors
	@$(SNAKEMAKE) results/twin/validation.csv

test: $(VENV)/dev-ready ## unit, rule and end-to-end tests; with THOROUGH=1 further variants, minutes longer
	@$(PY) -m pytest -rs -n 2 $(if $(THOROUGH),,-m "not thorough") || $(call again,$$?)
	@echo "tests passed; where they are and how to add one: CONTRIBUTING.md"

# Some tests measure this machine. A test that fails while others run beside it runs once more, alone.
again = { [ $(1) -eq 1 ] || exit $(1); echo "what failed runs once more, alone"; \
  $(PY) -m pytest -rs --last-failed --last-failed-no-failures none; }

setup-jetson: $(VENV)/workflow-ready ## on a Jetson: install the root helper and link the profile (asks for your password)
	@sudo "$(CURDIR)/$(PY)" -B -m epochwatt.maintenance.board_setup setup

fleet-check: $(VENV)/workflow-ready ## check every board of a Slurm or behind ssh, and say what to do (docs/how-to/fleet.md)
	@$(PY) -m epochwatt fleet-check

remove-jetson: $(VENV)/workflow-ready ## put the board's settings back and take the root helper away
	@sudo "$(CURDIR)/$(PY)" -B -m epochwatt.maintenance.board_setup remove

board-env: .venv-board/ready ## Python 3.6 with torch 1.8 for the tests of the board side, where a python3.6 is there

browser: ## a Chromium for the test of the report, where none is installed (Debian's, unpacked in .cache)
	@if [ -n "$(CHROMIUM)" ]; then echo "the report is tested in $(CHROMIUM)"; \
	  elif sh tests/workflow/fetch_chromium.sh .cache/chromium; then echo "a Chromium is in .cache/chromium"; \
	  else echo "no Chromium here, and none could be fetched: the test of the report in a browser will be skipped"; fi
CHROMIUM = $(shell for b in .cache/chromium/chromium chromium-headless-shell chromium google-chrome; do \
  command -v $$b && break; done)

# of containers/bases.csv; what is built is called epochwatt:NAME
NAME ?= host
ENGINE ?= podman
BASE = $(shell awk -F, '$$1 == "$(NAME)" { print $$4 }' containers/bases.csv)
container-image: ## an image to train in, epochwatt:NAME; NAME=r35.2.1 ENGINE=docker on a board, else for this host
	@[ -n "$(BASE)" ] || { echo "NAME=$(NAME) is not in containers/bases.csv, which has:"; cut -d, -f1 containers/bases.csv | tail -n +2; exit 1; }
	$(ENGINE) build --build-arg BASE=$(BASE) -t epochwatt:$(NAME) \
	  -f containers/$(if $(filter host,$(NAME)),host,jetson).Containerfile .

slurm: ## a Slurm for the tests of a fleet, where none is installed (Debian's, unpacked in .cache)
	@if command -v slurmctld >/dev/null && command -v munged >/dev/null; then echo "a fleet is tested on the Slurm that is installed"; \
	  elif sh tests/workflow/fetch_slurm.sh .cache/slurm; then echo "a Slurm is in .cache/slurm"; \
	  else echo "no Slurm here, and none could be fetched: the tests of a fleet will be skipped"; fi

lint: $(VENV)/dev-ready ## formatting, style, types, who imports whom, board-side grammar, Snakemake's own lint
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-cache
	$(PY) -m snakefmt --check Snakefile workflow
	$(VENV)/bin/vermin --quiet --no-tips --target=3.6- --violations $(BOARD_SIDE)
	$(PY) -m snakemake --lint
	$(FORM)github-workflows .github/workflows/*.yml
	$(FORM)github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(FORM)dependabot .github/dependabot.yml
	$(FORM)citation-file-format CITATION.cff
FORM := $(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.

format: $(VENV)/dev-ready ## put the sources into the form that lint asks for
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m snakefmt Snakefile workflow

bench: $(VENV)/dev-ready ## measure the instrument and the workflow: a table and results/benchmarks.json
	@$(PY) -m benchmarks

COSMIC_RAY := 8.7.0
mutation: $(VENV)/dev-ready .cache/mutation/$(COSMIC_RAY) ## change the code in small ways; a test has to notice (hours): COUNT=30 PACKAGES="board/records claims"
	@$(PY) -m benchmarks.mutation $(if $(COUNT),--count $(COUNT)) $(PACKAGES)

.cache/mutation/$(COSMIC_RAY):
	@$(PY) -m venv --clear .cache/mutation
	@.cache/mutation/bin/python -m pip install -qq --disable-pip-version-check cosmic-ray==$(COSMIC_RAY)
	@touch $@

golden: run ## compare every simulated number of results/ with the frozen ones in tests/golden/
	@$(PY) -m tests.golden

gpu-check: $(VENV)/host-ready ## check all that wants an NVIDIA GPU (under eight minutes); says so where there is none
	@$(PY) -m benchmarks.gpu_check

# BOARD="agx_orin-jp5 orin_nano-jp6.2": others; KERNEL=6.1: another than one of the age of their JetPack;
# JOB=1: the whole job with torch in place of the checks, JOB=set-up, study or ssh: a part of it
virtual-board: $(VENV)/workflow-ready ## boot a made-up board in QEMU, check our code on the kernel's own drivers: docs/how-to/virtual-board.md
	@nice $(PY) -m tests.virtual_board

docs: $(VENV)/dev-ready ## rewrite the generated tables of docs/ and config/
	@$(PY) -m epochwatt.maintenance.reference

docs-site: $(VENV)/docs-ready ## the documentation as a website in site/, offline; a broken link is an error
	@rm -rf site
	@$(PY) -m sphinx -b html -j auto -q -W --keep-going -d .cache/doctrees docs site
	@echo "site/index.html   (opens in any browser, offline)"

dist: $(VENV)/dev-ready ## wheel and source archive in dist/, checked, installed and run on every Python that is here
	@rm -rf dist
	@PYTHON=$(PY) .ci/build-packages dist
	@$(PY) -m twine check --strict dist/*
	@$(VENV)/bin/check-wheel-contents dist/*.whl
	@EPOCHWATT_DIST=$(CURDIR)/dist $(PY) -m pytest -rs tests/unit/test_wheel.py tests/workflow/test_elsewhere.py
	@ls -sh dist

lock: ## resolve the locked versions anew
	$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install -q uv==$(UV_VERSION)
	echo "uv==$(UV_VERSION)" | $(LOCK) - -o requirements/uv.txt
	printf '%s\n' $(PEERS) | $(subst --generate-hashes,--no-annotate,$(LOCK)) - -o requirements/peers.txt
	$(LOCK) pyproject.toml --extra workflow -o requirements/workflow.txt
	$(LOCK) pyproject.toml --extra host -c requirements/workflow.txt -o requirements/host.txt
	$(LOCK) pyproject.toml --extra host --extra dev -c requirements/host.txt -o requirements/dev.txt
	$(LOCK) pyproject.toml --extra host --extra docs -c requirements/host.txt -o requirements/docs.txt
	$(LOCK) pyproject.toml --extra workflow --extra flower -o requirements/flower.txt
PEERS := zeus codecarbon perun traceml-ai carbontracker
LOCK := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes

release: $(VENV)/workflow-ready ## make VERSION=1.0.0: number, date, changelog; prints the text of its tag, commits nothing
	@$(PY) -m release.version "$(VERSION)"

artifact: $(VENV)/host-ready ## one archive for evaluators in artifact/: code, locks, wheels, results, a page to open first (docs/how-to/artifact.md)
	@$(PY) -m release.artifact

paper: $(VENV)/workflow-ready ## write the numbers of benchmarks/tables/ into paper/paper.md
	@$(PY) -m release.paper

clean: ## remove results/ and caches; measured/ and data/ are never touched
	rm -rf results site dist .snakemake .pytest_cache .ruff_cache .mypy_cache .hypothesis

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# -- the environment ---------------------------------------------------------------------------
# A stamp holds the checkout's path: a checkout moved elsewhere is set up again (from uv's cache).
ifneq ($(shell cat $(VENV)/path 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/path
endif

$(VENV)/path:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "epochwatt needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make run PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) (once; about 7 GB where torch and its CUDA libraries are wanted)"
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@echo "$(CURDIR)" > $@

$(VENV)/%-ready: requirements/%.txt pyproject.toml $(VENV)/path
	@echo "installing requirements/$*.txt"
	@$(call alive,$(PY) -m uv pip install --quiet --compile-bytecode --python $(PY) --require-hashes -r requirements/$*.txt)
	@$(PY) -m uv pip install --quiet --python $(PY) --no-deps --editable .
	@$(call relative,$(VENV)/lib/python3*/site-packages/epochwatt.pth)
	@$(PY) -m compileall -q src
	@touch $@

# Python 3.11 reads the path of the checkout from a file, as text of the locale: letters beyond ASCII end it
# where there is no locale. From that file's folder to src/ there are none.
relative = for pth in $(1); do echo ../../../../src >"$$pth"; done

# A command that says nothing for minutes, and now and then a line that it is still there. The sleep
# has let go of the output, else whoever reads that would wait for it at the end.
alive = every=30; [ -t 1 ] && every=10; start=$$(date +%s); \
  space() { df -Pm $(VENV) | awk 'END { print $$4 }'; }; before=$$(space); \
  (while sleep $$every >/dev/null 2>&1; do \
    echo "  still installing after $$(($$(date +%s) - start)) s; $$((before - $$(space))) MB written to the disk"; \
  done) & beat=$$!; trap 'kill $$beat' EXIT; $(1)

# -- the oldest software of a board, for one test ------------------------------------------------
# a shim may lie on the PATH and lead nowhere, so each candidate is asked for its version
PYTHON36 ?= $(shell for p in python3.6 $$HOME/.pyenv/versions/3.6*/bin/python; do \
  "$$p" --version >/dev/null 2>&1 && { echo "$$p"; break; }; done)

.venv-board/ready: requirements/board-oldest.txt
	@if [ -z "$(PYTHON36)" ]; then echo "no python3.6 here: the test of the oldest board software will be skipped"; else \
	  "$(PYTHON36)" -m venv --clear .venv-board && \
	  .venv-board/bin/python -m pip install --quiet --disable-pip-version-check pip==21.3.1 && \
	  .venv-board/bin/python -m pip install --quiet --no-deps -r requirements/board-oldest.txt && touch $@; fi
