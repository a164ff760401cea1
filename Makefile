# Everything runs in .venv, which `make setup` makes from requirements.lock.
PYTHON ?= python3
export HUDI_VERSION ?= 1.2.0
HUDI_OF_EMR := 1.0.2
# Of `make nightly`; where a version manager has it: its path.
NEWEST_PYTHON ?= python3.12
# A registry may not answer for minutes: pip's own default ends after ten seconds or so.
export PIP_RETRIES ?= 10
BIN := .venv/bin
CLASSES := .venv/classes/$(HUDI_VERSION).jsa
JARS := .venv/jars-$(HUDI_VERSION)
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup s3 demo live dashboard stack status stop cluster package ingest build \
  compact docs test test-all test-servers classes downloads nightly nightly-storms \
  nightly-mutants nightly-python nightly-hudi lint lint-sql lint-python lint-aws lint-dbt lock clean

help: ## show what there is
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 11

setup: .venv/installed $(JARS) ## make .venv from the lock file; fetch Java and Hudi

s3: .venv/s3/jars ## fetch the jars that s3a:// needs (280 MB)
	@echo "LAKE_JARS=$$(ls .venv/s3/jars/*.jar | paste -sd,)"

demo: setup ## recorded events to gold, on the screen and a page
	@python -m lab.demo

live: setup ## a real PostgreSQL, Debezium and Kafka to gold, change by change
	@python -m lab.demo.live

dashboard: setup ## gold as one HTML page
	@python -m cdc_lakehouse dashboard

stack: setup ## start PostgreSQL with Northwind, Kafka, Connect with Debezium
	@python -m lab.stack start

status: setup ## health of the stack's services, lag of the ingest
	@python -m lab.stack status

stop: setup ## stop the stack
	@python -m lab.stack stop

cluster: setup s3 ## start Spark, a metastore and S3 as local servers: docs/cluster.md
	@python -m lab.cluster start

package: setup ## what spark-submit runs on a cluster, as files in dist/
	@python -m deploy.package

ingest: setup ## bring files into bronze: make ingest FILES="PATH…"
	@python -m ingest files $(FILES)

build: setup ## dbt build: bronze to gold
	@dbt build --profiles-dir profiles

compact: setup ## merge the logs of merge-on-read tables into their files
	@dbt run-operation compact --quiet --profiles-dir profiles

docs: setup ## dbt's documentation, with lineage, as target/static_index.html
	@dbt docs generate --static --profiles-dir profiles

test: setup $(CLASSES) ## the tests that need nothing but Python (minutes)
	@python -m pytest --junitxml=reports/test.xml
	@echo "not run: the tests of real servers (PostgreSQL, Kafka, Trino, a browser): make test-all"

test-all: setup s3 $(CLASSES) ## every test, also those of real servers, but for make nightly's
	@python -m pytest tests examples -m 'not nightly' --junitxml=reports/test-all.xml

test-servers: setup s3 $(CLASSES) downloads ## of each real server the smallest test that notices that it broke, and all histories
	@python -m pytest tests/servers -m smoke --junitxml=reports/test-servers.xml

classes: $(CLASSES)

downloads: setup
	@python -m tests.downloads

nightly: setup s3 $(CLASSES) ## storms, crashes, mutants, new seeds, Python 3.12, Hudi 1.0.2; hours
	@python -m tests.nightly $(PARTS)

# Its parts: storms with faults, crashes at every point, ten new seeds;
nightly-storms: setup s3 $(CLASSES)
	@python -m pytest tests/lake tests/servers --ignore tests/servers/test_mutants.py \
	  -m nightly --junitxml=reports/nightly-storms.xml

# wrong changes, each of which a test notices, one for each process at a time;
nightly-mutants: setup s3 $(CLASSES)
	@export CDC_TEST_SEED="$${CDC_TEST_SEED:-$$(shuf -i 0-999999999 -n 1)}"; \
	echo "CDC_TEST_SEED=$$CDC_TEST_SEED repeats the sample; CDC_TEST_MUTANTS is its size"; \
	python -m pytest tests/servers/test_mutants.py -m nightly --dist load \
	  --junitxml=reports/nightly-mutants.xml

# `make test` by the newest Python that is supported (every other run has the oldest), in a clone;
nightly-python:
	@clone="$$(mktemp -d)"; trap 'rm -rf "$$clone"' EXIT; \
	git clone --quiet . "$$clone" && $(MAKE) -C "$$clone" test PYTHON=$(NEWEST_PYTHON); code=$$?; \
	mkdir -p reports; cp "$$clone/reports/test.xml" reports/nightly-python.xml 2> /dev/null; \
	exit $$code

# the tests of lakes on the Hudi that EMR ships.
nightly-hudi: setup s3
	@HUDI_VERSION=$(HUDI_OF_EMR) python -m cdc_lakehouse setup
	@HUDI_VERSION=$(HUDI_OF_EMR) python -m pytest tests/lake --junitxml=reports/nightly-hudi.xml

lint: lint-dbt lint-sql lint-python lint-aws ## sqlfluff, ruff, mypy, cfn-lint, dbt parse

# Macros' files are Jinja, which decides their indentation and the length of their lines.
lint-sql: setup
	@sqlfluff lint --disable-progress-bar models analyses tests/dbt examples/*/models examples/*/analyses examples/*/tests
	@sqlfluff lint --disable-progress-bar --exclude-rules layout.indent,layout.long_lines macros

lint-python: setup
	@ruff check . && ruff format --check .
	@mypy

lint-aws: setup
	@cfn-lint deploy/aws/*.yml

# In a target folder of its own, as another dbt may run.
lint-dbt: export DBT_TARGET_PATH := $(CURDIR)/.venv/lint
lint-dbt: setup
	@dbt --warn-error parse --profiles-dir profiles --no-partial-parse --quiet
	@for project in examples/*/dbt_project.yml; do (cd $${project%/*} && \
	  dbt --warn-error parse --no-partial-parse --quiet) || exit 1; done

lock: setup ## write requirements.lock anew from pyproject.toml
	@uv pip compile --quiet --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock

clean: ## stop the stack and the cluster; remove the lake and what dbt made
	@root="$${LAKE_ROOT:-.lake}"; for lock in "$$root"/*.lock "$$root"/live/*.lock; do \
	  if [ -f "$$lock" ] && command -v flock > /dev/null && ! flock -n "$$lock" true; then \
	    name="$$(basename "$$lock" .lock)"; holder="$$(cat "$$lock")"; \
	    echo "clean: $$name (process $$holder) is at work on $$(dirname "$$lock");" \
	      "wait until it is done, or stop it with: kill $$holder" >&2; \
	    exit 1; \
	  fi; \
	done
	@root="$${LAKE_ROOT:-.lake}"; for lake in "$$root" "$$root/live"; do \
	  if [ -f "$$lake/stack/made-by-cdc-lakehouse" ]; then \
	    LAKE_ROOT="$$lake" python -m lab.stack stop --remove || exit 1; \
	  elif [ -d "$$lake/stack" ]; then \
	    LAKE_ROOT="$$lake" python -m lab.stack stop || exit 1; \
	  fi; \
	  if [ -d "$$lake/cluster" ]; then \
	    LAKE_ROOT="$$lake" python -m lab.cluster stop || exit 1; \
	  fi; \
	done
	@root="$${LAKE_ROOT:-.lake}"; marker="$$root/made-by-cdc-lakehouse.list"; \
	if [ -f "$$marker" ]; then \
	  while read -r name; do \
	    case "$$name" in ""|*/*|.*) ;; *) rm -rf "$$root/$$name" || exit 1 ;; esac; \
	  done < "$$marker"; \
	  rm "$$marker" || exit 1; \
	fi; \
	if [ -d "$$root" ] && ! rmdir "$$root" 2>/dev/null; then \
	  echo "clean: $$root holds what no command here has noted as its own; left alone:"; \
	  ls -A "$$root"; \
	fi
	@rm -rf target logs reports

.venv/installed: requirements.lock pyproject.toml
	@echo "setup: making .venv from requirements.lock"
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if (3, 11) <= v < (3, 13) \
	  else "setup: Python 3.11 or 3.12 is needed, this is %d.%d; name one: make PYTHON=…" % v[:2])'
	@$(PYTHON) -m venv .venv
	@pip install --disable-pip-version-check --require-hashes --no-deps \
	  -r requirements.lock > .venv/setup.log 2>&1 & process=$$!; \
	while kill -0 $$process 2> /dev/null; do sleep 5; \
	  echo "setup:   $$(grep -c ^Collecting .venv/setup.log) packages"; done; \
	wait $$process || { tail -n 5 .venv/setup.log; exit 1; }
	@pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings editable_mode=compat -e .
	@touch $@

$(JARS): .venv/installed cdc_lakehouse/spark/settings.py
	@python -m cdc_lakehouse setup
	@touch $@

.venv/s3/jars: .venv/installed
	@python -m cdc_lakehouse setup --s3 > /dev/null

$(CLASSES): $(JARS)
	@echo "tests: recording the JVM's class archive by a demonstration (a minute)"
	@lake=$$(mktemp -d) && LAKE_ROOT=$$lake/lake python -m lab.demo > .venv/setup.log 2>&1 \
	  || { cat .venv/setup.log; exit 1; }; rm -rf $$lake
