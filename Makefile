# SPDX-License-Identifier: GPL-2.0
#
# timerwheel: what one wants to do, one target each; `make help' lists them.
# What a target needs (packages, kernels) it installs or fetches, the latter
# into ~/.cache/timerwheel.

# The running kernel's headers where they are installed, else those of the
# guest's kernel, "stock".
RUNNING	:= /lib/modules/$(shell uname -r)/build
KDIR	?= $(if $(wildcard $(RUNNING)/Makefile),$(RUNNING),stock)

# How long check-debug fuzzes, and how long it makes each race last.
FUZZ_SECONDS	?= 600
RACE_SECONDS	?= 10

# Unless asked for, no word about the folders that make enters.
MAKEFLAGS += --no-print-directory

# build FOLDER: say so if there is anything to do; commands only with V=1.
define build
	@$(MAKE) -q -C $(1) >/dev/null 2>&1 || echo 'building $(1)'
	@$(MAKE) $(if $(V),,-s) -C $(1)
endef

all: module tools selftests ## Build the module and all programs

module: ## Build timerwheel.ko for the kernel with the headers in KDIR
	@ko=$$(scripts/vm/module '$(KDIR)') && { cmp -s $$ko timerwheel.ko || cp $$ko .; }

lib: | need-build ## Build the library and its examples
	$(call build,lib)
	$(call build,lib/examples)

tools: lib ## Build the programs in tools/ and bench/
	$(call build,tools)
	$(call build,bench)

selftests: | need-build ## Build the programs in selftests/
	$(call build,selftests)

load: ## Build the module for this machine's kernel and load it
	@scripts/load

unload: ## Take the module out of this machine's kernel
	@scripts/load --unload

demo: ## Show what it does: a million timeouts, and a server with real clients
	@tools/demo/run

check: ## Run the tests of module, library and tools: lint, in user space, in guests
	@scripts/vm/check

check-system: ## Run those of whole systems: packages, a Debian system, servers, fuzzing, mutants
	@scripts/vm/check --system

check-quick: ## Run the tests that take less than a few minutes
	@scripts/vm/check --quick

check-debug: ## Run the guest tests in kernels with KASAN, lockdep, KCSAN, ... (built once)
	@scripts/vm/check-debug $(KERNELS:%=--kernel %) --fuzz $(FUZZ_SECONDS) --race $(RACE_SECONDS)

check-model: ## Prove protocols between CPUs, memory order and arithmetic in model checkers
	@selftests/model/check

check-mutants: ## Put faults into module, library and tools: do the tests notice each? (two hours)
	@$(MAKE) -s -C selftests/unit/wheel mutants
	@$(MAKE) -s -C selftests/unit/table mutants
	@tools/mutants/run
	@lib/check-host mutants
	@selftests/mutants/run
	@selftests/lib/mutants-device
	@bindings/go/tap mutants:bindings/go/mutants

check-matrix: ## Build for, boot and test every kernel that people run (an hour or more)
	@scripts/vm/matrix

check-configs: ## Compile the module for kernels of many configurations, with gcc and clang (an hour)
	@scripts/vm/configs

bench: ## Measure what timeouts cost, beside every peer: tables and plots (QUICK=1, TWICE=1)
	@bench/run $(if $(QUICK),--quick) $(if $(TWICE),--twice)

bench-quick: ## The same with a tenth of the timers, in some minutes
	@bench/run --quick $(if $(TWICE),--twice)

upstream: ## Make a series of patches for the kernel's tree, build and test it (an hour or two at first)
	@upstream/run

lint: ## Check the source: warnings, sparse, checkpatch, kernel-doc, header, scripts, manuals
	@scripts/lint/run

lines: ## Count the instructions and the lines of memory of each operation (valgrind, a minute)
	@bench/lines/run

quick: ## Run the tests nearest to what differs from the last commit, in seconds
	@scripts/quick

include packaging/install.mk

clean: ## Remove what was built; what was fetched stays
	@rm -rf build timerwheel.ko
	@$(MAKE) -s -C lib clean
	@$(MAKE) -s -C tools clean
	@$(MAKE) -s -C bench clean
	@$(MAKE) -s -C selftests clean

help: ## Print this list
	@sed -n 's/^\([a-z_-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

need-build:
	@scripts/vm/need build

.PHONY: all module lib tools selftests load unload demo check check-system check-quick check-debug \
	check-model check-matrix check-configs check-mutants upstream bench bench-quick lint lines quick clean help need-build
