# The commands of this repository; `make` alone lists them. CI calls the same ones.
#
# Caches live outside the clone, so a clean clone starts fast: BERTH_CACHE, and in
# it cargo's target folder, the built console and a node_modules for each lock file.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

export BERTH_CACHE ?= $(HOME)/.cache/berth
export CARGO_TARGET_DIR ?= $(BERTH_CACHE)/target
export BERTH_TOOLS ?= $(BERTH_CACHE)/tools
# `:=`: computed once, not again for each recipe.
ifndef BERTH_BEGAN
export BERTH_BEGAN := $(shell date +%s)
endif
# Only the thin binaries contain it: a new commit compiles nothing else again.
ifndef BERTH_COMMIT
export BERTH_COMMIT := $(shell git describe --always --dirty --exclude='*' 2>/dev/null)
endif

HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
DENY_VERSION := 0.20.2
NEXTEST_VERSION := 0.9.151
# `dist` is what sites install and `make bench` measures: smaller and faster, and minutes longer to build.
PROFILE ?= release
RELEASE = $(CARGO_TARGET_DIR)/$(PROFILE)
PROGRAMS := gateway envd berth

SCRIPTS := .ci/run images/with-host-ca $(shell find deploy images tests -name '*.sh' -not -path '*/node_modules/*' 2>/dev/null)

# The steps of each goal, in order; deploy/up/step.sh numbers them.
PLAN_build := console;programs;agent
PLAN_images := Docker;images
PLAN_check := console;dependencies;scripts;format;clippy;console lints
PLAN_test := Docker;packages;test runner;$(PLAN_build);images;console tests;bench statistics;tests;image smoke tests
export BERTH_PLAN ?= $(foreach goal,$(MAKECMDGOALS),$(PLAN_$(goal));)
step = @deploy/up/step.sh "$(1)"

.PHONY: help up down build test test-one test-fast test-long bench check openapi images fmt clean
.PHONY: docker test-packages console programs agent nextest deny scripts

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name what; do printf '  make %-9s %s\n' "$$name" "$$what"; done

up: ## set up and start Berth in the foreground; Ctrl-C stops it, not the instances
	@deploy/up/up.sh

down: ## stop the Berth that `make up` started elsewhere
	@deploy/up/down.sh

build: console ## build gateway, envd, envd-agent and berth into bin/; PROFILE=dist to install them
	@mkdir -p bin $(CARGO_TARGET_DIR)
	@flock $(CARGO_TARGET_DIR)/.build-and-copy $(MAKE) programs agent

test: export TARGETS = --all-targets
test: export BERTH_BIN = $(CURDIR)/bin
test: docker test-packages nextest build images ## do all set-up and run every test
	$(call step,console tests)
	@deploy/up/node-modules.sh web && cd web && npm run --silent test
	$(call step,bench statistics)
	@python3 -m unittest discover -q -s tests/bench -p '*_test.py'
	$(call step,tests)
	@$(NEXTEST) env -u BERTH_STEPS cargo nextest run --release --workspace --no-fail-fast
	$(call step,image smoke tests)
	@for smoke in images/*/smoke.sh; do "$$smoke"; done

test-one: export BERTH_BIN = $(CURDIR)/bin
test-one: nextest build ## run the tests whose names contain NAME, with their output
	@$(NEXTEST) cargo nextest run --release --workspace --no-capture -E 'test($(NAME))'

test-fast: nextest ## run lints and unit tests of what changed since BASE; needs neither Docker nor root
	@$(NEXTEST) tests/fast.py $(BASE)

test-long: export BERTH_BIN = $(CURDIR)/bin
# `--no-capture` runs one test at a time: each of these loads the machine alone. A filter that matches nothing fails.
test-long: LONG = $(NEXTEST) cargo nextest run --release --profile long --workspace --no-capture -E
test-long: docker nextest build images test-packages ## run the tests that take hours: kills, odd requests and broken packets by the thousand, gigabytes
	$(call step,100 kills)
	@export BERTH_CRASH_ROUNDS=$${BERTH_CRASH_ROUNDS:-100} BERTH_ENGINE_CRASH_ROUNDS=$${BERTH_ENGINE_CRASH_ROUNDS:-20} BERTH_LAUNCH_KILLS=$${BERTH_LAUNCH_KILLS:-28}; \
	$(LONG) 'test(/^crash::(killed|whatever)/)'
	$(call step,50 kills during saves)
	@export BERTH_SAVE_ROUNDS=$${BERTH_SAVE_ROUNDS:-50}; \
	$(LONG) 'test(/^save::a_save_survives/)'
	@export BERTH_VFS_SAVE_ROUNDS=$${BERTH_VFS_SAVE_ROUNDS:-10}; \
	$(LONG) 'test(/^save_vfs::/)'
	$(call step,hundreds of jobs on GPUs and in the queue and under a quota)
	@export BERTH_GPU_JOBS=$${BERTH_GPU_JOBS:-100} BERTH_GPU_KILLS=$${BERTH_GPU_KILLS:-6}; \
	$(LONG) 'test(/^gpus::no_card/)'
	@export BERTH_QUEUE_JOBS=$${BERTH_QUEUE_JOBS:-200}; \
	$(LONG) 'test(/^job_queue::jobs_start/)'
	@export BERTH_QUOTA_JOBS=$${BERTH_QUOTA_JOBS:-24}; \
	$(LONG) 'test(/^quotas::parallel/)'
	$(call step,every page in each language and theme and size)
	@export BERTH_ALL_PAGES=1; \
	$(LONG) 'test(/^console::every_page/)'
	$(call step,images with frameworks for CPUs)
	@images/frameworks/test.sh
	$(call step,10000 broken SSH packets and 100000 channels and 500 sessions and 10 GiB by SFTP)
	@export BERTH_SSH_ROUNDS=$${BERTH_SSH_ROUNDS:-10000} BERTH_SSH_CHANNELS=$${BERTH_SSH_CHANNELS:-100000}; \
	$(LONG) 'test(/^ssh_bad::(spoilt|channels)/)'
	@export BERTH_SSH_SESSIONS=$${BERTH_SSH_SESSIONS:-500} BERTH_SSH_MIB=$${BERTH_SSH_MIB:-10240}; \
	$(LONG) 'test(/^ssh_load::/)'
	$(call step,20 GiB to and from an app)
	@export BERTH_BODY_MIB=$${BERTH_BODY_MIB:-20480}; \
	$(LONG) 'test(/^apps::large_bodies/)'
	$(call step,a log of 5 GiB)
	@export BERTH_LOG_MIB=$${BERTH_LOG_MIB:-5120}; \
	$(LONG) 'test(/^job_logs::a_large_log/)'
	$(call step,10000 odd requests)
	@deploy/up/packages.sh python3-venv
	@tests/schemathesis/run.sh
	$(call step,4000 refused sign-ins)
	@tests/timing/run.sh

bench: export PROFILE = dist
bench: docker build images ## measure it side by side with its peers; ROW=ssh-down for one row, FULL=1 for all rounds
	$(call step,bench peers)
	@tests/bench/peers.sh
	@cargo build --profile $(PROFILE) --workspace --bins --examples
	@python3 -m unittest discover -q -s tests/bench -p '*_test.py'
	$(call step,bench rows)
	@BERTH_BIN="$(CURDIR)/bin" BERTH_LOAD="$(RELEASE)/load" tests/bench/run.py --out $(CARGO_TARGET_DIR)/bench \
	  $(foreach row,$(ROW),--row $(row)) $(if $(FULL),--full) $(if $(RECORD),--record)

check: console deny scripts ## check formats, lints, types and licences; warnings are errors
	$(call step,format)
	@cargo fmt --all --check
	$(call step,clippy)
	@cargo clippy --release --workspace --all-targets -- -D warnings
	$(call step,console lints)
	@deploy/up/node-modules.sh web && cd web && npm run --silent check

openapi: build ## write the API's description and the console's types, after a change of the API
	@bin/gateway openapi >gateway/api/openapi.json.new && mv gateway/api/openapi.json.new gateway/api/openapi.json
	@deploy/up/node-modules.sh web && cd web && npm run --silent types

images: docker ## make the images that instances start from, and the tools that they mount
	$(call step,images)
	@images/build.sh
	@deploy/up/tools.sh $(BERTH_TOOLS)

fmt: ## format everything
	@cargo fmt --all
	@deploy/up/node-modules.sh web && cd web && npm run --silent format

clean: ## remove what was built in this clone; the caches stay
	@rm -rf bin web/dist web/dist.key web/node_modules tests/browser/node_modules

docker:
	$(call step,Docker)
	@deploy/up/docker.sh

# The gateway embeds the console, so it is built before anything of Rust.
console:
	$(call step,console)
	@deploy/up/console.sh

# The whole workspace, also for one program: with fewer packages the dependencies
# would have other features and be compiled a second time.
programs:
	$(call step,programs)
	@cargo build --profile $(PROFILE) --workspace $(or $(TARGETS),$(addprefix --bin ,$(PROGRAMS)))
	@$(call copy,$(RELEASE),$(PROGRAMS))

# Static: it runs in any image, also in an empty one. PROFILE=dist compiles it and its
# dependencies once more, for size and speed.
agent:
	$(call step,agent)
ifeq ($(PROFILE),dist)
	@RUSTFLAGS='-C target-feature=+crt-static' cargo build --profile agent --target $(HOST) -p envd-agent
	@$(call copy,$(CARGO_TARGET_DIR)/$(HOST)/agent,envd-agent)
else
	@cargo rustc --profile $(PROFILE) -p envd-agent --bin envd-agent -- -C target-feature=+crt-static
	@$(call copy,$(RELEASE),envd-agent)
endif
	@headers=$$(readelf -lW bin/envd-agent); if [[ $$headers == *INTERP* ]]; then echo "envd-agent is not static" >&2; exit 1; fi

# By rename: a running program keeps its file. Clones share the target folder, so
# `build` holds a lock from compiling to copying.
copy = for name in $(2); do \
	  if ! cmp -s "$(1)/$$name" "bin/$$name"; then cp "$(1)/$$name" "bin/.$$name.new" && mv -f "bin/.$$name.new" "bin/$$name"; fi; \
	done

# The browser, SSH clients, and the programs that tests build small images and engines with.
test-packages:
	$(call step,packages)
	@deploy/up/packages.sh chromium fonts-noto-cjk openssh-client \
	  busybox-static curl docker-registry iproute2 pebble podman skopeo umoci util-linux \
	  dropbear-bin putty-tools python3-asyncssh python3-paramiko python3-yaml rsync ssh-audit systemd
	@deploy/up/node-modules.sh tests/browser

# Every test runs in a process of its own, with the groups and limits of .config/nextest.toml.
NEXTEST = PATH="$$(deploy/up/nextest.sh $(NEXTEST_VERSION)):$$PATH"
nextest:
	$(call step,test runner)
	@deploy/up/nextest.sh $(NEXTEST_VERSION) >/dev/null

# The database of advisories is on GitHub, which not every build machine reaches.
deny:
	$(call step,dependencies)
	@[[ $$(cargo deny --version 2>/dev/null) == "cargo-deny $(DENY_VERSION)" ]] || \
	  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
	  cargo install --locked --target-dir $(CARGO_TARGET_DIR)/tools cargo-deny@$(DENY_VERSION)
	@cargo deny --log-level error check --hide-inclusion-graph bans licenses sources
	@if timeout 30 cargo deny --log-level off fetch db >/dev/null 2>&1; then \
	  cargo deny --log-level error check --disable-fetch advisories; \
	else \
	  echo "advisories not checked: their database cannot be fetched from here" >&2; \
	fi

scripts:
	$(call step,scripts)
	@if command -v shellcheck >/dev/null || deploy/up/packages.sh shellcheck; then \
	  shellcheck -x $(SCRIPTS); \
	else \
	  echo "scripts not checked: there is no shellcheck" >&2; \
	fi
