# make setup, generate, generate-gateway, build, demo, test, docs, simulate, test-interop, test-avatar, test-kernel, gateway, gateway-tests, demo-gateway, test-gateway, test-fleet, bench-fleet, test-web, test-sensors, soak-gateway, programs, gateway-order, install, deb, test-deb, fixtures, fuzz, embedded, bench, lint, clean: see Docs/Testing.md.

SHELL := /bin/bash
SWIFT ?= swift
BLE := .build/release/ble
# Options of `swift test` for optimized tests, with the checks of debug builds.
OPTIMIZED := -c release --scratch-path .build-tests -Xswiftc -enable-testing -Xswiftc -DDEBUG
# The documented modules: the list in .spi.yml.
DOCUMENTED := $(shell sed -n "s/^ *- \([A-Za-z0-9]*\)$$/\1/p" .spi.yml)

# The sources of the gateway, which is a package of its own.
GATEWAY_SOURCES := Gateway/Sources Gateway/Tests Gateway/Package.swift
# The Debian packages that it is built with.
GATEWAY_PACKAGES := libmosquitto-dev libsqlite3-dev
# The functions that a running gateway uses.
FUNCTIONS := Gateway/Packaging/functions.order
# Programs with packed relocations need glibc 2.36.
PACKED_RELOCATIONS := $(shell getconf GNU_LIBC_VERSION | awk '$$2 >= 2.36 { print "-Xlinker -z -Xlinker pack-relative-relocs" }')
# Options of `swift build` for the programs of the package. lld packs the relocations, which are all read at the start, exports
# no symbols, and places the functions that a gateway uses next to each other. So little of a program is in memory.
STATIC := -c release --static-swift-stdlib --package-path Gateway --disable-local-rpath --scratch-path Gateway/.build-deb \
	-Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections -Xswiftc -use-ld=lld \
	-Xlinker --gc-sections -Xlinker --no-export-dynamic $(PACKED_RELOCATIONS) \
	-Xlinker '--symbol-ordering-file=$(CURDIR)/$(FUNCTIONS)' -Xlinker --no-warn-symbol-ordering

.PHONY: setup generate generate-gateway build demo test docs simulate simulate-month simulate-report endurance test-interop test-avatar test-kernel fixtures large-capture fuzz fuzz-coverage embedded
.PHONY: gateway gateway-tests demo-gateway test-gateway test-fleet bench-fleet test-web test-sensors soak-gateway programs gateway-order install deb test-deb
.PHONY: bench-gateway
.PHONY: bench bench-compare bench-store bench-timing bench-descriptor bench-process bench-memory bench-size bench-bluez lint format clean

setup: ## Installs libbluetooth-dev if it is missing.
	@./.ci/setup

generate: ## Generates Swift from Sources/BLEHCI/Tables.
	$(SWIFT) run hci-generator

generate-gateway: ## Generates Swift from Gateway/Sources/ESPHomeMessages/esphome.proto; needs protoc (protobuf-compiler).
	$(SWIFT) build --package-path Gateway --product protoc-gen-swift
	cd Gateway/Sources/ESPHomeMessages && protoc --plugin=../../.build/debug/protoc-gen-swift \
		--swift_opt=Visibility=Public --swift_out=. esphome.proto

build: setup
	$(SWIFT) build -c release --product ble

# A debug build: its parts are those of `make test`, and BoringSSL takes much longer to optimize.
demo: setup
	$(SWIFT) build --product ble
	@.build/debug/ble demo

test: setup
	$(SWIFT) test

docs: setup ## Builds the documentation of the libraries as a static site in .build/docs. Fails if a link is broken.
	SWIFT_BLE_DOCS=1 $(SWIFT) package --allow-writing-to-directory .build/docs generate-documentation \
		$(addprefix --target ,$(DOCUMENTED)) --output-path .build/docs --warnings-as-errors \
		--enable-experimental-combined-documentation --experimental-skip-synthesized-symbols

simulate: setup ## Runs SEEDS=n random worlds from FIRST=0, or the world of SEED=n with captures in .build/simulation. OPTIMIZE=1 optimizes.
	SIMULATION_SEEDS=$(SEEDS) SIMULATION_FIRST_SEED=$(FIRST) SIMULATION_SEED=$(SEED) $(SWIFT) test $(if $(OPTIMIZE),$(OPTIMIZED)) --filter SimulationTests.SimulationTests

simulate-month: setup ## Runs a gateway for DAYS=30 days of a simulated world with faults, from SEED=1.
	SIMULATION_DAYS=$(or $(DAYS),30) SIMULATION_SEED=$(or $(SEED),1) $(SWIFT) test $(OPTIMIZED) --filter SimulationTests.GatewaySimulationTests

simulate-report: setup ## Prints the cost of a world of 200 advertisers and 32 connections.
	SIMULATION_REPORT=1 $(SWIFT) test $(OPTIMIZED) --filter SimulationTests.CrowdTests

endurance: setup ## Runs a gateway with 20 links and a failing controller for TIME=7200 seconds; its memory must not grow.
	$(SWIFT) build -c release --product endurance-host
	@Tests/Endurance/run $(or $(TIME),7200)

test-interop: build
	@Tests/InteropTests/run

test-kernel: build
	$(SWIFT) build -c release --product hci-harness
	@Tests/KernelTests/run

test-avatar: setup ## Runs Avatar's LE host and LE security suites: our device behind a Pandora server, against Bumble.
	$(SWIFT) build --package-path Tests/Avatar --product pandora-server
	@Tests/Avatar/run

gateway: setup ## Builds `ble-gateway` into Gateway/.build/release; see Docs/Gateway.md.
	@./.ci/setup $(GATEWAY_PACKAGES)
	$(SWIFT) build -c release --package-path Gateway --product ble-gateway

demo-gateway: gateway ## Serves simulated sensors and a lamp to Home Assistant.
	@Gateway/.build/release/ble-gateway demo

gateway-tests: setup ## Builds the tests of `ble-gateway`.
	@./.ci/setup $(GATEWAY_PACKAGES)
	$(SWIFT) build --build-tests --package-path Gateway

test-gateway: build ## Tests `ble-gateway`: by itself, then with the clients of Home Assistant and bleak, and with an MQTT broker.
	@./.ci/setup $(GATEWAY_PACKAGES) mosquitto mosquitto-clients openssl faketime prometheus
	$(SWIFT) test --package-path Gateway
	@BLE_GATEWAY=$${BLE_GATEWAY:-Gateway/.build/debug/ble-gateway} Gateway/Tests/run

test-fleet: gateway ## Tests `ble-gateway fleet` with 50 gateways and 2,000 tags, at mosquitto and at three nodes of nats-server that are killed.
	@./.ci/setup mosquitto nats-server
	@Gateway/Tests/fleet mosquitto nats

bench-fleet: gateway ## Measures CPU and memory of `ble-gateway fleet` for 5 to 50 gateways.
	@./.ci/setup mosquitto
	@Gateway/Tests/fleet cost

test-web: build gateway ## Tests the status page of `ble-gateway` in headless Chromium, which needs 414 MB of disk.
	@./.ci/setup chromium
	@Gateway/Tests/run --with chromium

test-sensors: setup ## Compares the decoders of sensors with those of PyPI, for COUNT=10000 advertisements of each format.
	@./.ci/setup $(GATEWAY_PACKAGES)
	@Gateway/Tests/Sensors/run $(or $(COUNT),10000)

soak-gateway: build gateway ## Runs a gateway with 20 links and 1,000 advertisements a second for MINUTES=30.
	@Gateway/Tests/run --soak $(or $(MINUTES),30)

programs: setup ## Builds `ble-gateway` and `ble` with the Swift runtime in them, into Gateway/.build-deb/release.
	@./.ci/setup $(GATEWAY_PACKAGES)
	@for program in Gateway/.build-deb/release/ble{,-gateway}; do [[ $(FUNCTIONS) -ot $$program ]] || rm -f $$program; done
	$(SWIFT) build $(STATIC) --product ble
	$(SWIFT) build $(STATIC) --product ble-gateway

gateway-order: programs ## Finds the functions that a running gateway uses again; review the difference, then build again.
	@Gateway/Benchmarks/order
	git diff --stat -- $(FUNCTIONS)

install: ## Installs the built programs, manual pages, completions and the unit into DESTDIR and PREFIX=/usr/local.
	@DESTDIR=$(DESTDIR) PREFIX=$(or $(PREFIX),/usr/local) Gateway/Packaging/install Gateway/.build-deb/release

bench-gateway: build gateway ## Measures `ble-gateway`: CPU of advertisements and reads, latency, memory; PART selects.
	@Gateway/Benchmarks/measure $(PART)

deb: programs ## Makes the Debian package of `ble-gateway` and `ble` in Gateway/.build-deb.
	@./.ci/setup binutils dpkg-dev python3
	@Gateway/Packaging/deb Gateway/.build-deb/release Gateway/.build-deb

test-deb: deb ## Tests the Debian package in a minimal system; needs root.
	@./.ci/setup debootstrap systemd-container lintian groff mandoc man-db zsh fish
	@Gateway/Packaging/Tests/run $$(ls -t Gateway/.build-deb/*.deb | head -n 1)

fuzz: setup ## Fuzzes each target of TARGET (att, smp, gateway ...), or all, for TIME=60 seconds.
	@TIME=$(or $(TIME),60) JOBS=$(JOBS) Tests/Fuzz/run $(TARGET)

fuzz-coverage: setup ## Prints the coverage of the corpora of TARGET, or of all targets, by file.
	@Tests/Fuzz/coverage $(TARGET)

fixtures: build ## Stores the output of `ble decode` for each capture in Fixtures again; review the difference.
	for capture in Fixtures/*.btsnoop; do $(BLE) decode --json $$capture >$${capture%.btsnoop}.json || exit; done
	git diff --stat -- Fixtures

large-capture: build ## Measures the reading of a capture of 1 GB, compared with tshark and btmon.
	@Tests/InteropTests/large_capture.py

bench-descriptor: build ## Measures hosts over sockets, beside a host in C: operations per second, latency, CPU, context switches, memory.
	$(SWIFT) build -c release --package-path Benchmarks/Descriptor
	Benchmarks/Descriptor/measure compare
	Benchmarks/Descriptor/measure throughput

bench-process: ## Measures the cost of a minimal gateway with little work, and its start.
	$(SWIFT) build -c release --package-path Benchmarks/Descriptor
	Benchmarks/Descriptor/measure process

bench-memory: setup ## Measures the resident memory of an idle minimal gateway, for several ways to link it.
	@./.ci/setup valgrind
	@Benchmarks/Descriptor/small

bench-size: ## Prints the sizes of `ble` and of a minimal gateway, linked statically and stripped, and of the codec modules.
	@Benchmarks/Descriptor/sizes

bench-bluez: setup ## Compares the cost of advertisements and GATT operations with BlueZ, D-Bus and bleak, in a virtual machine.
	$(SWIFT) build -c release --package-path Benchmarks/Descriptor
	@Benchmarks/BlueZ/measure

embedded: ## Compiles the codec modules in Embedded Swift.
	@./.ci/embedded

bench: setup ## Prints the costs of each case of Benchmarks, or of those whose names begin with PART, with C and the budgets.
	@./.ci/setup valgrind
	@Benchmarks/bench table $(PART)

bench-compare: setup ## Fails if instructions or allocations exceed the stored ones.
	@./.ci/setup valgrind
	@Benchmarks/bench compare $(PART)

bench-store: setup ## Stores instructions and allocations; review the difference.
	@./.ci/setup valgrind
	@Benchmarks/bench store $(PART)
	git diff --stat -- Benchmarks/Baselines

bench-timing: setup ## Times the cases with the public benchmark library; here PART is a regular expression.
	cd Benchmarks && BENCHMARKS_WITH_LIBRARY=1 $(SWIFT) package --scratch-path .build-timing benchmark --filter '$(or $(PART),.*)'

lint:
	$(SWIFT) format lint --strict --recursive --parallel Sources Tests Benchmarks/Sources Benchmarks/Benchmarks Benchmarks/Package.swift Package.swift $(GATEWAY_SOURCES)
	@.ci/module-names

format:
	$(SWIFT) format --in-place --recursive --parallel Sources Tests Benchmarks/Sources Benchmarks/Benchmarks Benchmarks/Package.swift Package.swift $(GATEWAY_SOURCES)
	@.ci/module-names

clean:
	rm -rf .build .build-* .venv .venv-gateway .vm Gateway/.build* Benchmarks/.build* Benchmarks/Descriptor/.build* Tests/Avatar/.build* Tests/Avatar/.venv
