# One word per job; each makes .venv first when it is missing or out of date.
.PHONY: help setup demo test test-slow test-cluster faults image crash-test soak bench-store bench-status check format golden protos dashboards metrics-doc lock clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## the virtual environment .venv, from the lock file
	@scripts/setup

demo: setup ## train a small detector and evaluate its checkpoints, live, in under five minutes
	@scripts/demo

test: setup ## the fast tests
	@scripts/test

test-slow: setup ## the slow ones: whole runs with real processes
	@scripts/test -m "slow or soak"

test-cluster: setup ## charts and services on a real Kubernetes node, which it makes; needs root
	@scripts/test-cluster

ACCELERATOR ?= cpu
image: ## the container image localhost/tandem:dev: make image ACCELERATOR=cpu|gpu|tpu
	@scripts/image $(ACCELERATOR)

SCHEDULES ?= 2000
SEED ?= 1
crash-test: setup ## the run store under crashes, stalls and unclear answers: make crash-test SCHEDULES=20000
	@scripts/crash-test --schedules $(SCHEDULES) --seed $(SEED)

ROUNDS ?= 10
STORE ?= gcs
soak: setup ## real processes under kills and faults: make soak ROUNDS=200 STORE=gcs|local
	@scripts/soak --rounds $(ROUNDS) --seed $(SEED) --store $(STORE)

ONLY ?=
faults: setup ## inject 24 faults and ask tandem status about each; needs root: make faults ONLY=3,11
	@scripts/faults $(if $(ONLY),--only $(ONLY))

bench-store: setup ## what saving costs training, and the store against plain copies
	@.venv/bin/python -m bench.store

bench-status: setup ## how long tandem status takes, from a cold process
	@.venv/bin/python -m bench.status

check: setup ## format, lint, types, layers
	@scripts/check

format: setup ## put the code into its form
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

golden: setup ## compare our models with stored outputs of the original: make golden CASES="FOLDER ..."
	@scripts/golden $(CASES)

protos: setup ## generate tandem/protos from protos/
	@scripts/protos

dashboards: setup ## generate the charts' Grafana dashboards from deploy/dashboards
	@.venv/bin/python -m deploy.dashboards

metrics-doc: setup ## generate docs/metrics.md from the metrics' definitions
	@scripts/metrics

lock: ## resolve requirements/dev.lock anew
	@scripts/lock

clean: ## remove what the targets above made, runs/ included
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
