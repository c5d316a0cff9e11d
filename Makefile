# Two commands set everything up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
# Compiled modules are kept, whatever the environment says: without them every process compiles torch and transformers
# again, which takes 20 seconds.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# Python compiles a module when it is first imported: most of the 17,000 that pip installs never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# Models that tests load, downloaded once into the user's cache (docs/models.md): 166 MB.
MODELS := bge-small reranker smollm2

.DEFAULT_GOAL := help
.PHONY: help demo test lint check format recipes faults bench clean

help:
	@echo "make demo    install, then run the main job on the embedded defaults (no hub, no data needed)"
	@echo "make test    install, then check format, lint and types, and run the tests"
	@echo "make check   format, lint, types, import order"
	@echo "make recipes run every table of the papers on small models and few sentences (some minutes)"
	@echo "make faults  the fault bench: kills, full disks, damaged files by the thousand (over an hour; the next run resumes)"
	@echo "make bench   speed and memory against sentence-transformers (about 15 minutes)"
	@echo "make format  format the code"
	@echo "make clean   remove the environment and what was built"

# An environment for users, one with the tools of developers, and one with what the fault bench and the benchmarks need.
# Each includes the one before, in one call of pip. A stamp makes the second call start at once.
$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "== installing sentloom and its embedded parts into $(VENV) (some minutes, once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip  # the one that comes with Python 3.11 takes a minute longer to resolve
	$(PIP) --editable '.[embedded,onnx]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	@echo "== installing sentloom and the tools for tests and checks into $(VENV) (some minutes, once)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) --editable '.[dev]'
	$(BIN)/sentloom models get $(MODELS)
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	@echo "== installing what the fault bench and the benchmarks need into $(VENV) (once)"
	$(PIP) --editable '.[bench]'
	@touch $@

demo: $(VENV)/.installed
	@echo "== sentloom demo"
	@HF_HUB_OFFLINE=1 $(BIN)/sentloom demo -o out/demo

# Collecting compiles what the tests import, on the core that mypy leaves idle.
test: $(VENV)/.installed-dev
	@HF_HUB_OFFLINE=1 $(BIN)/python -m pytest --collect-only --quiet > /dev/null 2>&1 & \
		$(MAKE) --no-print-directory lint && wait
	@echo "== tests"
	@HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal

lint: $(VENV)/.installed-dev
	@echo "== format, lint and types"
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --num-workers 2

check: lint
	$(BIN)/python -m pytest --quiet tests/test_imports.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# SENTLOOM_DATA may name a data folder, from which sentences and sets then come.
recipes: $(VENV)/.installed-dev
	@echo "== every row of every table, at the scale tiny; tables go to out/recipes"
	@HF_HUB_OFFLINE=1 $(BIN)/sentloom lab reproduce bsl cross-lingual gense self-guided sentence-t5 --scale tiny -o out/recipes

faults: $(VENV)/.installed-bench
	@echo "== fault bench (over an hour on two cores; the same command resumes); its table goes to docs/faults.md"
	@HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -p tests.faults.table --faults-table=docs/faults.md \
		-m "fault or long" --hypothesis-profile long --continue-on-collection-errors \
		--verbose --numprocesses 2 --dist worksteal

SPEED := encode_speed encode_targets encode_scale read_memory train_step cache_memory decoder_first probes \
	evaluate_speed near_duplicates source_cache synthesis_speed synthesis_memory

bench: $(VENV)/.installed-bench
	@for script in $(SPEED); do echo "== $$script"; HF_HUB_OFFLINE=1 $(BIN)/python benchmarks/$$script.py || exit 1; done

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
