# The commands of this repository; `make` alone lists them. CI calls the same ones.
#
# Caches live outside the clone, so that a clean clone is quick: BERTH_CACHE, and
# within it cargo's target folder and a node_modules for each lock file.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

export BERTH_CACHE ?= $(HOME)/.cache/berth
export CARGO_TARGET_DIR ?= $(BERTH_CACHE)/target
export BERTH_TOOLS ?= $(BERTH_CACHE)/tools

HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
DENY_VERSION := 0.20.2
# `dist` is what sites install and `make bench` measures: smaller and faster, and minutes longer to build.
PROFILE ?= release
RELEASE = $(CARGO_TARGET_DIR)/$(PROFILE)
AGENT := $(CARGO_TARGET_DIR)/$(HOST)/agent/envd-agent

WEB_INPUTS := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)
SCRIPTS := .ci/run images/with-host-ca $(shell find deploy images tests -name '*.sh' -not -path '*/node_modules/*' 2>/dev/null)

# Names the step at hand; .ci/run adds up how long each took.
step = @echo "== $(1)" >&2; if [[ -n "$${BERTH_STEPS:-}" ]]; then echo "$$EPOCHREALTIME $(1)" >>"$$BERTH_STEPS"; fi

.PHONY: help up down build test test-long bench check openapi images fmt clean
.PHONY: docker tools-begin test-packages web web-modules programs agent copy browser deny advisories scripts

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name what; do printf '  make %-9s %s\n' "$$name" "$$what"; done

up: ## set up and start Berth in the foreground; Ctrl-C stops it, not the instances
	@deploy/up/up.sh

down: ## stop the Berth that `make up` started elsewhere
	@deploy/up/down.sh

build: web ## build gateway, envd, envd-agent and berth into bin/; PROFILE=dist to install them
	@mkdir -p bin $(CARGO_TARGET_DIR)
	@flock $(CARGO_TARGET_DIR)/.build-and-copy $(MAKE) programs agent copy

# With the programs, not after them: the largest crate is compiled once for each, on a core of its own.
test: export ALSO = --all-targets
test: docker tools-begin build images browser test-packages ## do all set-up and run every test
	$(call step,test: images)
	@export BERTH_BIN="$(CURDIR)/bin"; for smoke in images/*/smoke.sh; do "$$smoke"; done
	$(call step,test: web)
	@cd web && npm run --silent test
	$(call step,test: statistics of the bench)
	@python3 -m unittest discover -q -s tests/bench -p '*_test.py'
	$(call step,test: rust and end to end)
	@export BERTH_BIN="$(CURDIR)/bin"; \
	if cargo nextest --version >/dev/null 2>&1; then \
	  cargo nextest run --release --workspace --no-fail-fast; \
	else \
	  cargo test --release --workspace --no-fail-fast; \
	fi

test-long: docker build images browser test-packages ## the tests that take long: kills, odd requests and spoilt packets by the thousand, ten gigabytes
	$(call step,test: a hundred kills)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_CRASH_ROUNDS=$${BERTH_CRASH_ROUNDS:-100} BERTH_ENGINE_CRASH_ROUNDS=$${BERTH_ENGINE_CRASH_ROUNDS:-20}; \
	cargo test --release --workspace --test e2e -- crash:: --nocapture
	$(call step,test: fifty kills during saves)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_SAVE_ROUNDS=$${BERTH_SAVE_ROUNDS:-50}; \
	cargo test --release --workspace --test e2e -- save::a_save_survives --nocapture
	$(call step,test: every page in each language, theme and size)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_ALL_PAGES=1; \
	cargo test --release --workspace --test e2e -- console::every_page --nocapture
	$(call step,test: images with frameworks for CPUs)
	@images/frameworks/test.sh
	$(call step,test: ten thousand spoilt packets, a hundred thousand channels, ten gigabytes by SFTP)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_SSH_ROUNDS=$${BERTH_SSH_ROUNDS:-10000} BERTH_SSH_CHANNELS=$${BERTH_SSH_CHANNELS:-100000} BERTH_SSH_MIB=$${BERTH_SSH_MIB:-10240}; \
	cargo test --release --workspace --test e2e -- ssh_bad::spoilt ssh_bad::channels ssh_load:: --test-threads 1 --nocapture
	$(call step,test: twenty gigabytes to and from an app)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_BODY_MIB=$${BERTH_BODY_MIB:-20480}; \
	cargo test --release --workspace --test e2e -- apps::large_bodies --nocapture
	$(call step,test: a log of five gigabytes)
	@export BERTH_BIN="$(CURDIR)/bin" BERTH_LOG_MIB=$${BERTH_LOG_MIB:-5120}; \
	cargo test --release --workspace --test e2e -- job_logs::a_large_log --nocapture
	$(call step,test: ten thousand odd requests)
	@deploy/up/packages.sh python3-venv
	@BERTH_BIN="$(CURDIR)/bin" tests/schemathesis/run.sh
	$(call step,test: four thousand refused sign-ins)
	@BERTH_BIN="$(CURDIR)/bin" tests/timing/run.sh

bench: export PROFILE = dist
bench: docker build images ## measure it side by side with its peers; ROW=ssh-down for one row, FULL=1 for all rounds
	$(call step,bench: peers)
	@tests/bench/peers.sh
	@cargo build --profile $(PROFILE) --workspace --bins --examples
	@python3 -m unittest discover -q -s tests/bench -p '*_test.py'
	$(call step,bench: rows)
	@BERTH_BIN="$(CURDIR)/bin" BERTH_LOAD="$(RELEASE)/load" tests/bench/run.py --out $(CARGO_TARGET_DIR)/bench \
	  $(foreach row,$(ROW),--row $(row)) $(if $(FULL),--full) $(if $(RECORD),--record)

check: web deny advisories scripts ## formats, lints, types, licences; warnings are errors
	$(call step,check: format)
	@cargo fmt --all --check
	$(call step,check: clippy)
	@cargo clippy --release --workspace --all-targets -- -D warnings
	$(call step,check: web)
	@cd web && npm run --silent check

openapi: programs ## write down the API's description and the console's types, after a change of the API
	@$(RELEASE)/gateway openapi >gateway/api/openapi.json.new && mv gateway/api/openapi.json.new gateway/api/openapi.json
	@cd web && npm run --silent types

images: docker ## make the images that instances start from, and the tools that they mount
	$(call step,images)
	@images/build.sh
	@deploy/up/tools.sh $(BERTH_CACHE)/tools

fmt: web-modules ## format everything
	@cargo fmt --all
	@cd web && npm run --silent format

clean: ## remove what was built in this clone; the caches stay
	@rm -rf bin web/dist web/node_modules tests/browser/node_modules

docker:
	$(call step,docker)
	@deploy/up/docker.sh

# The slowest of the images, begun beside cargo; `images` waits for it, or builds it
# again where this failed.
tools-begin: docker
	@mkdir -p $(BERTH_CACHE)
	@nice images/build.sh tools >$(BERTH_CACHE)/tools.log 2>&1 </dev/null &

# The console is embedded in the gateway, so it is built before anything of Rust.
web: web-modules web/dist/index.html

web-modules:
	@deploy/up/node-modules.sh web

web/dist/index.html: $(WEB_INPUTS)
	$(call step,build: web)
	@cd web && npm run --silent build
	@touch $@

# The whole workspace, as the tests do: with fewer crates the dependencies would
# have other features and be compiled a second time.
programs:
	$(call step,build: programs)
	@cargo build --profile $(PROFILE) --workspace $(ALSO)

# Static: it runs in any image, also in one that holds nothing else.
agent:
	$(call step,build: agent)
	@RUSTFLAGS='-C target-feature=+crt-static' cargo build --profile agent --target $(HOST) -p envd-agent
	@headers=$$(readelf -lW $(AGENT)); if [[ $$headers == *INTERP* ]]; then echo "envd-agent is not static" >&2; exit 1; fi

# By rename, so that a running program is left in peace. Clones share the target
# folder: `build` holds a lock from building to copying.
copy:
	@for program in $(RELEASE)/{gateway,envd,berth} $(AGENT); do \
	  name=$${program##*/}; \
	  if ! cmp -s "$$program" "bin/$$name"; then cp "$$program" "bin/.$$name.new" && mv -f "bin/.$$name.new" "bin/$$name"; fi; \
	done

browser:
	$(call step,browser)
	@deploy/up/packages.sh chromium fonts-noto-cjk openssh-client
	@if [[ -f tests/browser/package.json ]]; then deploy/up/node-modules.sh tests/browser; fi

# What tests make small images and engines of their own from.
test-packages:
	@deploy/up/packages.sh busybox-static curl docker-registry iproute2 pebble podman skopeo umoci util-linux \
	  dropbear-bin openssh-client putty-tools python3-asyncssh python3-paramiko python3-yaml rsync ssh-audit systemd

deny:
	$(call step,check: dependencies)
	@cargo deny --version >/dev/null 2>&1 || \
	  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
	  cargo install --locked --target-dir $(CARGO_TARGET_DIR)/tools cargo-deny@$(DENY_VERSION)
	@cargo deny --log-level error check --hide-inclusion-graph bans licenses sources

# The database of advisories is on GitHub, which not every build machine reaches.
advisories: deny
	@if timeout 30 cargo deny --log-level off fetch db >/dev/null 2>&1; then \
	  cargo deny --log-level error check --disable-fetch advisories; \
	else \
	  echo "advisories not checked: their database cannot be fetched from here" >&2; \
	fi

scripts:
	$(call step,check: scripts)
	@if command -v shellcheck >/dev/null || deploy/up/packages.sh shellcheck; then \
	  shellcheck -x $(SCRIPTS); \
	else \
	  echo "scripts not checked: there is no shellcheck" >&2; \
	fi
