PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
INSTALLED := $(VENV)/.installed
GENERATED := src/joulemap/generated/sql/header.jsonl
STAMP := $(INSTALLED) $(GENERATED)
SOURCES := $(shell find queries -type d -o -type f -name '*.sql' -o -name '*.toml'; \
	find src/joulemap benchmarks/tools -name generated -prune -o -type f -name '*.py' -print)
TOOL := PYTHONPATH=benchmarks $(BIN)/python -m tools
BUNDLE := src/joulemap/catalog/data/bundle/version.json
FORMULAS := $(shell find src/joulemap/physics src/joulemap/bundle src/joulemap/catalog src/joulemap/trace src/joulemap/plan src/joulemap/wing \
	-path src/joulemap/catalog/data/bundle -prune -o -name generated -prune -o -type f \( -name '*.py' -o -name '*.toml' -o -name '*.csv' \) -print)
WINGS := decoder embed explore file fleet here hub llm pipeline place tab train verify
PYTHONS := 3.11 3.12 3.13 3.14
UV ?= build/uv/bin/uv
RELEASE := build/release

.PHONY: demo install lock test tests test-core test-slow tests-slow test-newest test-oldest test-versions test-models lint type format bench models rows zoo profile scoreboard accuracy calibration bundle doubt pages questions examples laws campaign night ladder ladder-models docs wheel release-check clean

demo: $(GENERATED)  ## install the package alone if needed, then compare resnet18 on four chips
	$(BIN)/joulemap compare resnet18

install: $(STAMP)  ## create .venv with everything, at the versions of lock/

# An installation generates code; so does every target after a change of what it is made from.
$(GENERATED): $(SOURCES) | $(BASE)
	$(TOOL).generate

# pip needs hashes for all packages or for none, so joulemap itself is installed apart, without its dependencies.
$(BASE): pyproject.toml hatch_build.py lock/base.txt lock/build.txt
	$(PYTHON) -m venv $(VENV)
	@version=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		test -f lock/python$$version.txt || \
		{ echo "joulemap supports Python $(PYTHONS), not $$version: make install PYTHON=python3.12" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --require-hashes --requirement lock/build.txt --requirement lock/base.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(INSTALLED): $(BASE) $(wildcard lock/python*.txt)
	$(BIN)/python -m pip install --quiet --require-hashes \
		--requirement lock/python$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt
	$(BIN)/joulemap hardware list --db $(VENV)/none.duckdb > /dev/null
	touch $@

$(UV): lock/uv.txt
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install --quiet --require-hashes --requirement lock/uv.txt
	touch $@

COMPILE = $(UV) pip compile --quiet --upgrade --universal --generate-hashes --custom-compile-command 'make lock'

lock: $(UV)  ## write the versions and hashes that `make install` takes: the newest within pyproject.toml and lock/*.in
	$(COMPILE) --python-version 3.11 lock/uv.in --output-file lock/uv.txt
	$(COMPILE) --python-version 3.11 lock/build.in --output-file lock/build.txt
	$(COMPILE) --python-version 3.11 lock/release.in --output-file lock/release.txt
	$(COMPILE) --python-version 3.11 --constraint lock/build.txt pyproject.toml --output-file lock/base.txt
	for version in $(PYTHONS); do \
		$(COMPILE) --python-version $$version \
			--constraint lock/constraint.in --constraint lock/build.txt --constraint lock/base.txt \
			--extra dev pyproject.toml --output-file lock/python$$version.txt || exit 1; \
	done

define SPEND
import os, subprocess, sys, time
began = time.monotonic()
code = subprocess.call(sys.argv[1:])
spent, took = os.times(), time.monotonic() - began
told = f"{spent.children_user + spent.children_system:.0f} s of processor time in {took:.0f} s"
print(f"{sys.argv[-1]}: {told}", file=sys.stderr)
sys.exit(code)
endef
export SPEND
# where an environment forbids to keep compiled modules, every process of the tests would compile all of them anew
export PYTHONDONTWRITEBYTECODE =

test: $(STAMP)  ## install if needed, then lint, types and tests
	@$(BIN)/python -c "$$SPEND" $(MAKE) --no-print-directory lint type tests

tests: $(STAMP) $(BUNDLE)  # rewritten assertions cost 10 s a worker and say why one fails: what failed is run again with them
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --assert=plain || \
		{ OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; exit 1; }

test-core: $(STAMP) $(BUNDLE)  ## tests of the core, in a copy of the tree without wings
	rm -rf build/core
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory $$(mkdir -p build/core && echo build/core)
	cd build/core && rm -rf src/joulemap/wing && for wing in $(WINGS); do rm -r tests/$$wing; done
	cd build/core && for made in generate bundle; do PYTHONPATH=src:benchmarks $(CURDIR)/$(BIN)/python -m tools.$$made || exit 1; done
	cd build/core && OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/build/core/src \
		$(CURDIR)/$(BIN)/python -m pytest -n 2 --dist loadfile --assert=plain

test-slow: $(STAMP)  ## sweeps and properties with many examples (over 40 minutes of processor time), then test-newest and test-oldest; SLICE=3/12: a twelfth of the sweeps alone
	@for target in tests-slow $(if $(SLICE),,test-newest test-oldest); do \
		$(BIN)/python -c "$$SPEND" $(MAKE) --no-print-directory $$target || exit 1; \
	done

tests-slow: $(STAMP) $(BUNDLE)  # a slice leaves out the many examples and the mark `long`, to stay within eight minutes of processor time
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -o faulthandler_timeout=7200 \
		$(if $(SLICE),-m slow --slice $(SLICE),-m 'slow or hypothesis' --hypothesis-profile thorough)

# An environment of its own, made anew, in which the suite runs; lint and types are those of the locked set.
define RUN_IN
	$(UV) venv --quiet --clear --python $(PYTHON) $(1)
	$(UV) pip install --quiet --python $(1)/bin/python $(2) --editable '.[dev,models]'
	$(UV) pip list --quiet --python $(1)/bin/python | grep -E '^(duckdb|numpy|pyarrow|torch|transformers|typer) '
	OPENBLAS_NUM_THREADS=1 $(1)/bin/python -m pytest -n 2 --dist loadfile
endef

test-newest: $(UV) $(BUNDLE)  ## the suite on the newest release of every dependency, in .venv-newest
	$(call RUN_IN,.venv-newest,--upgrade)

test-oldest: $(UV) $(BUNDLE)  ## the suite on the lowest release that pyproject.toml allows of every dependency, in .venv-oldest
	$(call RUN_IN,.venv-oldest,--resolution lowest-direct)

define NEED_MODELS
$(BIN)/python -c 'import diffusers, timm, transformers' 2> /dev/null || \
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[models]'
endef

test-versions: $(UV)  ## the suite on each supported Python that is installed; names the others
	@for version in $(PYTHONS); do \
		if command -v python$$version > /dev/null; \
		then $(MAKE) --no-print-directory test-newest PYTHON=$$version || exit 1; \
		else echo "python$$version is not installed: not tested"; fi; \
	done

test-models: $(STAMP)  ## trace all of timm and transformers and others (an hour or two); ONLY=timm LIMIT=50 NAMES=timm:resnet18
	$(NEED_MODELS)
	$(BIN)/python benchmarks/breadth.py $(if $(ONLY),--only $(ONLY)) $(if $(LIMIT),--limit $(LIMIT)) $(if $(NAMES),--names $(NAMES))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) $(BUNDLE)  ## print every benchmark's ratios
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/evaluate.py
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/operator_rate.py
	$(BIN)/python benchmarks/tracing.py --all
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/digest.py
	$(BIN)/python benchmarks/query.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/fusion.py
	$(BIN)/python benchmarks/durability.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/serving.py

models: $(STAMP)  ## rewrite the table of models from the installed torchvision
	$(TOOL).model > .zoo.csv
	mv .zoo.csv src/joulemap/catalog/data/model/zoo.csv

rows: $(STAMP)  ## generate SQL, row types and stubs of public names again, and rewrite the JSON Schema
	$(TOOL).generate
	$(TOOL).schema

zoo: $(STAMP)  ## trace every model and rewrite the workloads that ship (five minutes), also if those are outdated; installs diffusers, timm, transformers
	$(NEED_MODELS)
	$(TOOL).zoo

scoreboard: $(STAMP)  ## score rows that no coefficient saw beside other predictors, tell what changed, rewrite its page (minutes)
	$(BIN)/python benchmarks/scoreboard.py --write

accuracy: $(STAMP)  ## score everything measured and rewrite docs/accuracy.md (minutes)
	$(BIN)/python benchmarks/accuracy.py

ladder: $(STAMP)  ## what each effect of the GPU model buys on shapes and boards that it was not fitted to (three minutes)
	$(BIN)/python benchmarks/ladder.py --every 16 --boards

ladder-models: $(STAMP)  ## the same on whole models, each family left out in turn (ten minutes)
	$(BIN)/python benchmarks/ladder.py --models

pages: $(STAMP)  ## write what docs/ and the catalogue restate of the code: tables, counts of actions
	$(TOOL).page

docs: $(STAMP) $(BUNDLE)  ## docs/ as a site in build/site, with figures and references, and with PYODIDE=FOLDER a page that predicts
	$(TOOL).site build/site $(if $(PYODIDE),--embed try)
	$(if $(PYODIDE),$(BIN)/joulemap page build/site/try --pyodide $(PYODIDE))

questions: $(STAMP) $(BUNDLE)  ## put today's answers under the questions of docs/sql.md and the commands of README and docs
	$(BIN)/python benchmarks/question.py --write

examples: $(STAMP) $(BUNDLE)  ## run all printed commands in order, each in a process of its own (half an hour)
	$(BIN)/python benchmarks/examples.py --docs

laws: $(STAMP) $(BUNDLE)  ## try all laws on random networks, chips, settings and commands (ten minutes); SEED=7 SECONDS=60 LAW="units"; exit code 1 if one is broken without a known reason
	cd tests && OPENBLAS_NUM_THREADS=1 PYTHONPATH=support ../$(BIN)/python -m laws $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(LAW),--law "$(LAW)")

campaign: $(STAMP)  ## try to lose data, to lock people out and to surprise (half an hour), rewrite docs/reliability.md
	cd tests && ../$(BIN)/python -m campaign --write

night: $(STAMP) $(UV)  ## all that takes hours, at most three: slow suite, other versions, campaign, examples, growth, accuracy; build/night/page.md compares with the last
	$(BIN)/python benchmarks/night.py

profile: $(STAMP)  ## match the profiles that ship to traced operators again
	$(TOOL).profile

calibration: $(STAMP)  ## fit the calibrations that ship to the measurements that ship (two minutes), also if those are outdated
	$(BIN)/joulemap calibrate h200_sxm --db $(VENV)/none.duckdb \
		--output src/joulemap/catalog/data/calibration/h200_sxm.toml

bundle: $(BUNDLE)  ## write the chips that `joulemap.predict` reads, if formulas or the catalogue have changed (15 s)

$(BUNDLE): $(FORMULAS) | $(STAMP)
	$(TOOL).bundle

doubt: $(STAMP)  ## fit what intervals follow from to all that was measured (minutes)
	$(TOOL).interval

wheel: $(STAMP) $(BUNDLE)  ## build/wheel: the wheel, with the database that a first answer would take seconds to make, and the source archive
	$(TOOL).wheel build/wheel

$(RELEASE)/bin/twine: lock/release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --require-hashes --requirement lock/release.txt
	touch $@

release-check: $(STAMP) $(RELEASE)/bin/twine  ## whether this commit could be released: suites on all versions, two equal builds, metadata, bill of materials, licence (an hour)
	@$(MAKE) --no-print-directory test test-core test-versions test-oldest
	@$(TOOL).release $(RELEASE)

clean:
	rm -rf $(VENV) .venv-newest .venv-oldest build dist src/joulemap/generated src/joulemap/wing/*/generated src/joulemap/catalog/data/bundle .mypy_cache .pytest_cache .ruff_cache .hypothesis
