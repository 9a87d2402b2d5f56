# Everything starts from these targets; `make` alone lists them.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# The Python that makes the environment: PYTHON=..., or the one it was made with, or the first that will do.
PROBE  = import os, sys; v = sys.version_info; (3, 11) <= v < (3, 14) and print(os.path.realpath(sys.executable), "%d.%d" % v[:2])
TRY   := $(or $(PYTHON),.venv/bin/python python3 python3.13 python3.12 python3.11 python)
FOUND := $(shell for p in $(TRY); do $$p -c '$(PROBE)' 2>/dev/null && break; done)
# One stamp for the lock, one for the project's own settings, named by content: file times mean nothing after a clone.
# The lock's has the place, too: the scripts of an environment that was copied or moved run the other checkout's code.
LOCKED := .venv/.locked-$(lastword $(FOUND))-$(shell { pwd; cat requirements.txt; } | cksum | tr ' ' -)
READY  := .venv/.ready-$(shell cksum < pyproject.toml | tr ' ' -)
# A second environment, for what the book is measured beside: `make benchmark NAMES=others`.
OTHERS := _build/others/.locked-$(lastword $(FOUND))-$(shell cksum < benchmarks/others/requirements.txt | tr ' ' -)
# A third, for Bambi: `make benchmark NAMES=tables`.
BAMBI  := _build/bambi/.locked-$(lastword $(FOUND))-$(shell cksum < benchmarks/tables/requirements.txt | tr ' ' -)
BIN    := .venv/bin
# A worker has files of its own: what a file has compiled, or opened, its tests share. How many: `tests/conftest.py`.
# They come in their order: by number of tests, files of few and slow ones would come last, and one worker would wait.
SIDE_BY_SIDE := --numprocesses auto --dist loadfile --no-loadscope-reorder
# Modules are compiled when they are first imported, and kept, whatever the caller does elsewhere.
export PYTHONDONTWRITEBYTECODE :=
# What the caller's Python would import, or change, is not what the book is made with.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONHASHSEED PYTHONOPTIMIZE PYTHONWARNINGS
# Jupyter, ArviZ, Matplotlib and pip keep things in the home folder; where it cannot be written, in _build.
ifeq ($(shell [ -w "$$HOME" ] && echo yes),)
export HOME := $(CURDIR)/_build/home
$(shell mkdir -p _build/home)
endif
# XLA's compiled programs are kept: chapters share some of them, and a second run compiles none.
export JAX_COMPILATION_CACHE_DIR := $(CURDIR)/_build/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES := -1
ifneq ($(PYTHON),)
ifeq ($(FOUND),)
$(error Python 3.11, 3.12 or 3.13 is needed, and $(PYTHON) is none of them)
endif
endif

$(LOCKED):
	$(if $(FOUND),,$(error Python 3.11, 3.12 or 3.13 is needed: name one with PYTHON=/path/to/python))
	@# `--clear` would follow a link and empty the environment of another checkout.
	@[ ! -L .venv ] || { echo '.venv is a link, and the environment there is not of this folder and lock: remove the link' >&2; exit 1; }
	$(firstword $(FOUND)) -m venv --clear .venv
	# The lock is complete, so nothing is to be resolved; and most modules are never imported, so none is compiled ahead.
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements.txt
	touch $@

$(READY): $(LOCKED)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	touch $@

$(OTHERS):
	$(if $(FOUND),,$(error Python 3.11, 3.12 or 3.13 is needed: name one with PYTHON=/path/to/python))
	$(firstword $(FOUND)) -m venv --clear _build/others
	_build/others/bin/python -m pip install --disable-pip-version-check --no-deps --require-hashes -r benchmarks/others/requirements.txt
	touch $@

$(BAMBI):
	$(if $(FOUND),,$(error Python 3.11, 3.12 or 3.13 is needed: name one with PYTHON=/path/to/python))
	$(firstword $(FOUND)) -m venv --clear _build/bambi
	_build/bambi/bin/python -m pip install --disable-pip-version-check --no-deps --require-hashes -r benchmarks/tables/requirements.txt
	touch $@

.PHONY: help environment first-hour page book test check-site shake results check-results check-peers status benchmark stills lab class lint pair lock lock-others lock-tables clean distclean cite pdf

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 12

environment: $(READY) ## make the environment alone: .venv

first-hour: $(READY) ## execute the first chapter alone and make a page of it: _build/one/first-hour/_build/html/index.html
	@$(BIN)/python tools/execute.py first-hour
	@$(BIN)/python tools/alone.py build $(BIN)/python tools/one_page.py first-hour

page: $(READY) ## build one page alone, in seconds where its code is executed: NAME=svi
	@$(BIN)/python tools/alone.py build $(BIN)/python tools/one_page.py '$(NAME)'

book: $(READY) ## execute what changed and build the website: _build/html/index.html
	@$(BIN)/python tools/execute.py
	@$(BIN)/python tools/alone.py build sh -c 'rm -rf _build/html && exec $(BIN)/jupyter-book build . --all -W -n --keep-going'

test: $(READY) ## execute what changed, then unit tests and the rules of the book
	@$(BIN)/python tools/execute.py; executed=$$?; $(BIN)/pytest $(SIDE_BY_SIDE) tests; tested=$$?; \
	  [ $$executed = 0 ] || cat _build/executed/stopped.txt; exit $$((executed | tested))  # what stopped is said last

check-site: $(READY) ## look at the built website in headless Chromium, network blocked
	$(BIN)/pytest $(SIDE_BY_SIDE) --dist loadgroup -o python_files='check_*.py' tests/site

shake: $(READY) ## execute every chapter under perturbations, hours, and tabulate how far claims are from breaking
	$(BIN)/python tools/shake.py

results: $(READY) ## compute stored results on all cores, or NAMES=... of them; what is finished is kept in .units
	@$(BIN)/python tools/alone.py results $(BIN)/python -m experiments.engine $(NAMES)

check-results: $(READY) ## compute one unit of every stored result again, and compare within the errors of both
	@$(BIN)/python tools/alone.py results $(BIN)/python -m experiments.engine --check $(NAMES)

check-peers: $(READY) ## draw from posteriors with known answers, beside NumPyro and BlackJAX, and judge the verdicts: an hour
	$(BIN)/python -m benchmarks.peers $(ARGUMENTS)

status: $(READY) ## say of each stored result whether the code as it is made it
	@$(BIN)/python -m experiments.engine --status

benchmark: $(READY) $(if $(filter others,$(NAMES)),$(OTHERS)) $(if $(filter tables,$(NAMES)),$(BAMBI)) ## measure gradients, samplers and the playground: benchmarks/*, or NAMES=... of them; others takes hours
	for name in $(or $(NAMES),gradient sgfs sampler playground); do \
	  $(BIN)/python -m benchmarks.$$name $(ARGUMENTS) || exit; done

stills: $(READY) ## draw the playground's static pictures, for pages and notebooks: assets/playground; needs Chromium
	$(BIN)/python tools/stills.py

pdf: $(READY) ## print the website that was built as one book: _build/pdf; needs Chromium
	@[ -d _build/html ] || $(MAKE) book
	@$(BIN)/python tools/alone.py build $(BIN)/python tools/pdf.py

cite: $(READY) ## write CITATION.cff and the README's BibTeX from pyproject.toml
	$(BIN)/python tools/book_identity.py

lab: $(READY) ## open numbered copies of all notebooks in JupyterLab: notebooks/; builds the book where it is not built
	@[ -d _build/html/_sources/notebooks ] || $(MAKE) book
	$(BIN)/python tools/lab.py $(ARGUMENTS)

class: $(READY) ## write the notebooks without solutions for students, and apart solutions and slides: _build/class; builds the book where it is not built
	@[ -d _build/html/_sources/notebooks ] || $(MAKE) book
	@$(BIN)/python tools/classroom.py

lint: $(READY) ## ruff over Python files and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

pair: $(READY) ## format the code cells of book/*.md and derive book/*.ipynb from them
	$(BIN)/jupytext --quiet --pipe-fmt ipynb --pipe '$(BIN)/ruff format --quiet --stdin-filename book/chapter.ipynb -' $$($(BIN)/python tools/chapters.py)
	$(BIN)/jupytext --quiet --to ipynb --update $$($(BIN)/python tools/chapters.py)
	$(BIN)/jupyter nbconvert --log-level=WARN --clear-output --inplace book/*.ipynb

lock: ## compile requirements.txt anew from pyproject.toml; UPGRADE=--upgrade for newer versions
	$(if $(FOUND),,$(error Python 3.11, 3.12 or 3.13 is needed: name one with PYTHON=/path/to/python))
	$(firstword $(FOUND)) -m venv --clear _build/uv && _build/uv/bin/python -m pip install --quiet --require-hashes -r tools/uv.txt
	_build/uv/bin/uv pip compile --quiet --universal --generate-hashes --all-extras --python-version 3.11 --no-header $(UPGRADE) \
	  pyproject.toml -o requirements.txt
	(echo '# Compiled from pyproject.toml by `make lock`; do not edit.'; cat requirements.txt) > _build/uv/lock.txt
	mv _build/uv/lock.txt requirements.txt

lock-others: FOLDER = others
lock-tables: FOLDER = tables
lock-others: ## compile benchmarks/others/requirements.txt anew from its requirements.in; UPGRADE=--upgrade for newer versions
lock-tables: ## the same of benchmarks/tables
lock-others lock-tables:
	$(if $(FOUND),,$(error Python 3.11, 3.12 or 3.13 is needed: name one with PYTHON=/path/to/python))
	$(firstword $(FOUND)) -m venv --clear _build/uv && _build/uv/bin/python -m pip install --quiet --require-hashes -r tools/uv.txt
	cp benchmarks/$(FOLDER)/requirements.txt _build/uv/$(FOLDER).txt
	cd benchmarks/$(FOLDER) && $(CURDIR)/_build/uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header $(UPGRADE) \
	  requirements.in -o $(CURDIR)/_build/uv/$(FOLDER).txt
	(echo '# Compiled from requirements.in by `make lock-$(FOLDER)`; do not edit.'; grep -v '^# Compiled' _build/uv/$(FOLDER).txt) > benchmarks/$(FOLDER)/requirements.txt

clean: ## remove what was built; the environment and finished units of results stay
	rm -rf _build *.egg-info

distclean: clean ## remove everything made here, the environment and finished units too
	rm -rf .venv .units
