# SPDX-License-Identifier: GPL-2.0
#
# timerwheel: one target for each task; `make help' lists them. A target installs
# the packages that it needs, and downloads kernels into ~/.cache/timerwheel.

# The headers of the running kernel if they are installed, otherwise the headers
# of the guest's kernel, "stock".
RUNNING	:= /lib/modules/$(shell uname -r)/build
KDIR	?= $(if $(wildcard $(RUNNING)/Makefile),$(RUNNING),stock)

# Seconds that check-debug fuzzes, and seconds of each scenario of race.
FUZZ_SECONDS	?= 600
RACE_SECONDS	?= 10

# By default make does not print the folders that it enters.
MAKEFLAGS += --no-print-directory

# build FOLDER: print a line if there is anything to build, and commands only with V=1.
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

unload: ## Unload the module from this machine's kernel
	@scripts/load --unload

demo: ## Run a demonstration: a million timeouts, and a server with real clients
	@tools/demo/run

check: ## Test the module, the library and the tools: lint, in user space, in guests
	@scripts/vm/check

check-system: ## Test whole systems: packages, a Debian system, servers, fuzzing, mutants
	@scripts/vm/check --system

check-quick: ## Run the tests that take less than a few minutes
	@scripts/vm/check --quick

check-debug: ## Run the guest tests in kernels with KASAN, lockdep, KCSAN, ... (built once)
	@scripts/vm/check-debug $(KERNELS:%=--kernel %) --fuzz $(FUZZ_SECONDS) --race $(RACE_SECONDS)

check-model: ## Prove protocols between CPUs, memory order and arithmetic in model checkers
	@selftests/model/check

check-mutants: ## Insert faults, each of which the tests must detect (two hours)
	@$(MAKE) -s -C selftests/unit/wheel mutants
	@$(MAKE) -s -C selftests/unit/table mutants
	@tools/mutants/run
	@lib/check-host mutants
	@selftests/mutants/run
	@selftests/lib/mutants-device
	@bindings/go/tap mutants:bindings/go/mutants

check-matrix: ## Build for, boot and test every kernel that people run (an hour or more)
	@scripts/vm/matrix

check-kernel: ## Try to build for the headers in KDIR (default: the running kernel), report what is missing
	@scripts/check-kernel $(if $(filter stock,$(KDIR)),,'$(KDIR)')

check-configs: ## Compile the module for kernels of many configurations, with gcc and clang (an hour)
	@scripts/vm/configs

bench: ## Measure the cost of timeouts and of the alternatives: tables and plots (QUICK=1, TWICE=1)
	@bench/run $(if $(QUICK),--quick) $(if $(TWICE),--twice)

bench-quick: ## Run bench with a tenth of the timers, in several minutes
	@bench/run --quick $(if $(TWICE),--twice)

bench-native: ## Measure timers in real time beside event libraries, on this machine (several minutes)
	@bench/native/run $(if $(QUICK),--quick)

upstream: ## Make a series of patches for the kernel's tree, build and test it (an hour or two at first)
	@upstream/run

lint: ## Check the source: warnings, sparse, checkpatch, kernel-doc, header, scripts, manuals
	@scripts/lint/run

lines: ## Count the instructions and the lines of memory of each operation (valgrind, a minute)
	@bench/lines/run

quick: ## Run the tests most closely related to your changes since the last commit, in seconds
	@scripts/quick

include packaging/install.mk

clean: ## Remove build results; downloads stay
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
	check-model check-matrix check-configs check-kernel check-mutants upstream bench \
	bench-quick bench-native lint lines quick clean help need-build
