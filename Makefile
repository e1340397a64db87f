# Everything here needs Python >= 3.11 with pip, and make; the rest goes into a virtual environment.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))
ARGS    ?=
WHEEL_TESTS := tests/test_packaging.py tests/bnp_models/cli/test_command.py tests/bnp_models/data/test_package_docs.py
BIN     = $(VENV)/bin
# half of the installation would be compiling modules, most of which are never imported
PIP_FLAGS := --quiet --no-compile
# Programs that are compiled by the hundred and run for a moment. XLA's newer way to emit fusions
# takes twice as long; jaxlib 0.12 has no other, and a process ends by a flag that it does not know.
EMITTERS = $$($(BIN)/python -c 'from importlib.metadata import version; \
  print("--xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10."))')
# Tests and later runs share compiled programs. `make clean` removes them.
PROGRAMS := $(or $(JAX_COMPILATION_CACHE_DIR),$(CURDIR)/build/programs)
SHARED  := JAX_COMPILATION_CACHE_DIR="$(PROGRAMS)" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
QUICK   = $(SHARED) XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=0 $(EMITTERS)"
PYTEST  = $(BIN)/pytest -n $(WORKERS) --dist=worksteal
# what arguments and results are, compared with the annotations: takes a fifth of the time
TYPES   := --jaxtyping-packages=bnp_kernels,bnp_models,beartype.beartype
NBMAKE  ?= --nbmake --nbmake-timeout=600
OUTPUTS := docs/_build/$(if $(BNP_SMOKE),smoke,full)
NOTEBOOKS = BNP_SMOKE=1 $(SHARED) $(PYTEST) $(NBMAKE)

unexport PYTHONPATH
.NOTPARALLEL:
.PHONY: help demo readme test test-all test-fast test-newest lint format notebooks docs bench wheel-test clean

help:
	@echo "make demo        install the project and run its demo; ARGS=--hdp for another model"
	@echo "make readme      run the demo for the README: its picture, its numbers, docs/demo.json; all measured tables"
	@echo "make test        check an installation: lint, types, fast tests, every schedule"
	@echo "make test-all    everything: long statistical tests, wrong kernels, notebooks"
	@echo "make test-fast   the tests that take seconds; ARGS='-k lda' goes to pytest, here and above"
	@echo "make test-newest install the newest versions of all dependencies, fit each model once with them"
	@echo "make lint        ruff, pyright, notebooks without outputs"
	@echo "make format      let ruff rewrite what it can"
	@echo "make notebooks   run the notebooks with few draws"
	@echo "make docs        build the documentation, docs/_build/html; BNP_SMOKE=1 for few draws"
	@echo "make bench       run the benchmarks against other libraries; ARGS=--quick for a small size"
	@echo "make wheel-test  build the wheel, install it outside the checkout and use it there"
	@echo "make clean       remove the virtual environment and everything generated"
	@echo "PYTHON=python3.12 picks the interpreter, WORKERS=2 the number of test processes."

demo: $(VENV)/.installed
	$(BIN)/bnp-models demo $(ARGS)

readme: $(VENV)/.installed
	$(BIN)/python docs/readme_demo.py
	$(BIN)/python docs/measured_tables.py

# What is compiled quickly, then what is compiled as users compile: one exact posterior for each
# schedule of each model. The long statistical tests are marked "slow"; test-all has the notebooks, too.
# The kernels have long tests of their own, in test-all.
KERNELS := $(filter-out %/test_matrix.py %/test_evidence.py,$(wildcard tests/kernels/*))
test: NBMAKE =
test: lint
	$(call run_tests, and not slow,$(addprefix --ignore=,$(KERNELS)),tests/kernels tests/skeleton/tests/kernels)

test-all: lint
	$(call run_tests,,$(TYPES))

test-fast: $(VENV)/.installed-test
	$(QUICK) $(PYTEST) -m "not optimised and not slow" $(ARGS)

# The newest compiler may need hours for a program that today's compiles in seconds. These versions
# have an environment of their own, which each run brings up to date; `make clean` removes it.
test-newest: VENV = build/newest
test-newest: PIP_FLAGS += --upgrade --upgrade-strategy eager
test-newest:
	$(check_python)
	@test "$$($(BIN)/python -V 2>&1)" = "$$("$(PYTHON)" -V)" || rm -rf $(VENV)
	$(call install,.[test])
	@$(BIN)/python -c 'import platform; from importlib.metadata import version; \
	  print("python", platform.python_version(), *(f"{name} {version(name)}" \
	  for name in ("jax", "jaxlib", "numpyro", "arviz")))'
	$(SHARED) $(PYTEST) tests/test_first_fit.py $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(if $(wildcard notebooks/*.ipynb),$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb)

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(if $(wildcard notebooks/*.ipynb),$(BIN)/nbstripout --keep-id notebooks/*.ipynb)

notebooks: $(VENV)/.installed-test
	$(NOTEBOOKS) notebooks

# Notebooks run once and again when their code changes; `make clean` forgets their outputs, too.
# They run side by side; one that fails runs again in the build of the pages, which says why.
docs: $(VENV)/.installed-docs
	@mkdir -p $(OUTPUTS)
	@$(BIN)/jcache notebook -p $(OUTPUTS) add notebooks/*.ipynb
	@$(BIN)/jcache project -p $(OUTPUTS) execute -e local-parallel -t 1200
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -j 1 \
	  -c docs -d docs/_build/doctrees . docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/.installed-bench
	$(BIN)/python experiments/benchmarks/speed.py $(ARGS)

# What the wheel leaves out would be missing here: the checkout and its editable installation come
# behind it on the path, which the first command checks. Dependencies are those of the tests.
wheel-test: $(VENV)/.installed-test
	@set -e; \
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	echo "building the wheel"; \
	rm -rf dist; $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .; \
	echo "installing it outside the checkout"; \
	$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --target "$$scratch/site" dist/*.whl; \
	export PYTHONPATH="$$scratch/site"; \
	$(BIN)/python -P -c 'import bnp_models, bnp_kernels, sys; \
	  found = bnp_models.__path__[0], bnp_kernels.__path__[0]; print(*found); \
	  sys.exit(not all(path.startswith(sys.argv[1]) for path in found))' "$$scratch"; \
	"$$scratch/site/bin/bnp-models" models; \
	$(QUICK) $(PYTEST) -m "not slow" $(WHEEL_TESTS) $(ARGS)

clean:
	rm -rf $(VENV) build dist demo-output docs/_build docs/_api .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installing again takes a change of pyproject.toml: the install is editable.
$(VENV)/.installed: pyproject.toml
	$(call install,.)
	@echo "importing it once, which compiles the modules that are used"
	@$(BIN)/python -c "import bnp_models.cli.demo"
	@touch $@

$(VENV)/.installed-test: pyproject.toml
	$(call install,.[test])
	@touch $(VENV)/.installed $@

$(VENV)/.installed-docs: pyproject.toml
	$(call install,.[docs])
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: pyproject.toml
	$(call install,.[bench])
	@touch $(VENV)/.installed $@

# Sweeps of statistical tests are optimised all the same, see bnp_models/testing/together.py.
# pytest ends with 5 if ARGS leave nothing to run, which may happen in one of both stages.
define run_tests
@most=0; $(QUICK) $(PYTEST) $2 -m "not optimised$1" --durations=10 $(ARGS) || most=$$?; \
test $$most -eq 0 -o $$most -eq 5 || exit $$most; \
rest=0; $(NOTEBOOKS) $3 -m "optimised$1" $(ARGS) || rest=$$?; \
test $$rest -eq 0 -o $$rest -eq 5 -a $$most -eq 0 || exit $$rest
endef

define check_python
@command -v "$(PYTHON)" >/dev/null || \
  { echo "There is no '$(PYTHON)' here. Name a Python >= 3.11: make PYTHON=/path/to/python" >&2; exit 1; }
@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Python >= 3.11 is needed, $(PYTHON) is $$($(PYTHON) -V). Name another: make PYTHON=/path/to/python" >&2; exit 1; }
@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || "$(PYTHON)" -c 'import venv, pip' 2>/dev/null || \
  { echo "$(PYTHON) has no venv or no pip module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

# some distributions leave out ensurepip; then the pip that is there fills the environment
make_venv = "$(PYTHON)" -m venv --clear $1 2>/dev/null || \
  { "$(PYTHON)" -m venv --clear --without-pip $1 && "$(PYTHON)" -m pip --python $1/bin/python install --quiet pip; }

define install
$(check_python)
@test -x $(BIN)/pip || { $(call make_venv,$(VENV)); }
@echo "installing $1 into $(VENV), which takes some minutes the first time"
@$(BIN)/python -m pip install $(PIP_FLAGS) --editable "$1"
endef
