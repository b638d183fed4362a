# make setup, generate, build, demo, test, simulate, test-interop, test-kernel, fixtures, fuzz, embedded, bench, lint, clean: see README.md.

SHELL := /bin/bash
SWIFT ?= swift
BLE := .build/release/ble

.PHONY: setup generate build demo test simulate simulate-report test-interop test-kernel fixtures large-capture fuzz fuzz-coverage embedded
.PHONY: bench bench-compare bench-store bench-timing bench-descriptor bench-process bench-memory bench-size lint format clean

setup: ## Installs what is missing: libbluetooth-dev.
	@./.ci/setup

generate: ## Writes the Swift that follows from Sources/HCI/Tables.
	$(SWIFT) run hci-generator

build: setup
	$(SWIFT) build -c release --product ble

demo: build
	@$(BLE) demo

test: setup
	$(SWIFT) test

simulate: setup ## Runs SEEDS=n random worlds, or the one of SEED=n, whose captures it writes to .build/simulation.
	SIMULATION_SEEDS=$(SEEDS) SIMULATION_SEED=$(SEED) $(SWIFT) test --filter SimulationTests.SimulationTests

simulate-report: setup ## Prints what a world of 200 advertisers and 32 connections costs.
	SIMULATION_REPORT=1 $(SWIFT) test -c release -Xswiftc -enable-testing --filter SimulationTests.CrowdTests

test-interop: build
	@Tests/InteropTests/run

test-kernel: build
	$(SWIFT) build -c release --product hci-harness
	@Tests/KernelTests/run

fuzz: setup ## Fuzzes each target of TARGET (att, smp, host ...), or all, for TIME=60 seconds.
	@TIME=$(or $(TIME),60) JOBS=$(JOBS) Tests/Fuzz/run $(TARGET)

fuzz-coverage: setup ## Prints by file what the corpora of TARGET, or of all targets, reach.
	@Tests/Fuzz/coverage $(TARGET)

fixtures: build ## Stores anew what `ble decode` says of each capture in Fixtures; the difference is to be reviewed.
	for capture in Fixtures/*.btsnoop; do $(BLE) decode --json $$capture >$${capture%.btsnoop}.json || exit; done
	git diff --stat -- Fixtures

large-capture: build ## Measures what reading 1 GB takes, beside tshark and btmon.
	@Tests/InteropTests/large_capture.py

bench-descriptor: build ## Measures hosts over sockets: operations per second, latency, CPU, context switches, memory.
	$(SWIFT) build -c release --package-path Benchmarks/Descriptor
	Benchmarks/Descriptor/measure throughput

bench-process: ## Measures what a minimal gateway costs that does little, and how fast it starts.
	$(SWIFT) build -c release --package-path Benchmarks/Descriptor
	Benchmarks/Descriptor/measure process

bench-memory: setup ## Measures the resident memory of a minimal gateway that is idle, by how it is linked.
	@./.ci/setup valgrind
	@Benchmarks/Descriptor/small

bench-size: ## Prints the sizes of `ble` and of a minimal gateway, linked statically and stripped, and of the codec rooms.
	@Benchmarks/Descriptor/sizes

embedded: ## Compiles the codec rooms in Embedded Swift.
	@./.ci/embedded

bench: setup ## Prints what each case of Benchmarks costs, or those whose names begin with PART, beside C and the budgets.
	@./.ci/setup valgrind
	@Benchmarks/bench table $(PART)

bench-compare: setup ## Fails where instructions or allocations are more than those stored.
	@./.ci/setup valgrind
	@Benchmarks/bench compare $(PART)

bench-store: setup ## Stores instructions and allocations; the difference is to be reviewed.
	@./.ci/setup valgrind
	@Benchmarks/bench store $(PART)
	git diff --stat -- Benchmarks/Baselines

bench-timing: setup ## Times the cases by the public benchmark library: PART is a regular expression then.
	cd Benchmarks && BENCHMARKS_WITH_LIBRARY=1 $(SWIFT) package --scratch-path .build-timing benchmark --filter '$(or $(PART),.*)'

lint:
	$(SWIFT) format lint --strict --recursive --parallel Sources Tests Benchmarks/Sources Benchmarks/Benchmarks Benchmarks/Package.swift Package.swift

format:
	$(SWIFT) format --in-place --recursive --parallel Sources Tests Benchmarks/Sources Benchmarks/Benchmarks Benchmarks/Package.swift Package.swift

clean:
	rm -rf .build .build-* .venv .vm Benchmarks/.build* Benchmarks/Descriptor/.build*
