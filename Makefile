# Two commands matter: `make demo` (set up and run the main job) and `make test`.
PYTHON ?= python3
VENV   ?= .venv
CACHE  ?= .cache
# More CMake options for llama.cpp, for example LLAMA_OPTIONS=-DGGML_CUDA=ON on a Jetson.
LLAMA_OPTIONS ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
EDGE    := $(BIN)/edge-run
STAMP   := $(VENV)/.installed
TESTED  := $(VENV)/.test-installed
export OMP_WAIT_POLICY ?= passive

.PHONY: help demo test check fmt models samples clean

help:
	@echo "make demo     set up .venv, fetch the default models, read samples/ (first time: some minutes)"
	@echo "make test     install what the tests need and run them"
	@echo "make check    ruff and pyright"
	@echo "make fmt      format the code"
	@echo "make samples  draw samples/ again"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt tools/build_llama.py | $(VENV)/bin/python
	wheel=$$($(BIN)/python tools/build_llama.py --out $(CACHE)/llama --print-path -- $(LLAMA_OPTIONS)) \
	  && $(PIP) install --quiet -c constraints.txt "$$wheel"
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

$(TESTED): $(STAMP)
	$(PIP) install --quiet -c constraints.txt -e '.[test]'
	@touch $@

models: $(STAMP)
	$(EDGE) models pull --default
	$(EDGE) models optimize

demo: models
	$(EDGE) ocr samples/receipt.png --schema receipt
	@echo
	$(EDGE) ocr samples/invoice.png --schema invoice

test: $(TESTED) models
	$(BIN)/python -m pytest

check: $(TESTED)
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

fmt: $(TESTED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

samples: $(STAMP)
	$(BIN)/python tools/make_samples.py

clean:
	rm -rf $(VENV) $(CACHE) build dist
