# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The front door: every target here is one call. Owns names and help texts;
# scripts/steps owns what they do. Everything built goes under build/.

include scripts/versions

KERNEL ?= $(KERNEL_DEFAULT)
V ?=
export KERNEL V

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-migration check check-long check-debug ci modules userspace selftests vm lint \
	debug-kernel rdma-core check-rdma-core rdma-core-each clean distclean

help: ## this list
	@echo 'make TARGET [KERNEL=6.1|6.12|debug|folder] [V=1]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 19

setup: ## install the Debian packages that are missing
	@scripts/setup

demo: ## show what registration costs and what send with invalidate does, in a VM
	@scripts/steps demo

demo-migration: ## migrate QEMU guests over RDMA in a VM, with GIFT and without, and compare
	@scripts/steps demo-migration

check: ## build with warnings as errors, then static checks and every test in a VM; the last line is the total
	@scripts/steps check

check-long: ## the GIFT selftests on larger memory, in all combinations, for more turns (most of an hour)
	@scripts/steps check-long

check-debug: ## selftests and KUnit on a kernel with KASAN, lockdep, kmemleak, UBSAN ...; a fuzzer on the provider
	@scripts/steps check-debug

ci: ## what .ci/run runs: check, then the half of check-debug that an hour leaves time for
	@scripts/steps ci

modules: ## ib_gift.ko and sample_hca.ko for KERNEL, in build/modules/KERNEL; KUNIT=y adds the KUnit suites
	@scripts/steps modules

userspace: ## the C++ provider, the programs and the unit tests, in build/userspace
	@scripts/steps userspace

selftests: ## build the kselftest programs, in build/selftests (check runs them)
	@scripts/steps selftests

vm: ## a shell in a VM that has the modules and the provider loaded
	@scripts/steps vm

lint: ## the static checks alone: sparse, checkpatch, clang-tidy, shellcheck ... (part of check)
	@scripts/steps lint

rdma-core: ## rdma-core with the patches of userspace/rdma-core, in build/rdma-core-series
	@scripts/steps rdma-core

check-rdma-core: ## tests of the patched rdma-core in a VM: when a device has send with invalidate, GIFT, Python tests
	@scripts/steps check-rdma-core

rdma-core-each: ## build each patch of the series by itself, in order, warnings being errors (5 to 15 minutes)
	@scripts/steps rdma-core-each

debug-kernel: ## build the kernel that check-debug runs on (5 to 20 minutes), in build/kernel/debug
	@scripts/steps debug-kernel

clean: ## remove what was built; downloads stay
	@rm -rf build/modules build/userspace build/selftests build/check build/check-debug build/check-long \
		build/detector build/fuzz build/lint build/livepatch build/userspace-sanitized \
		build/check-rdma-core build/rdma-core-series \
		build/log build/results build/vm

distclean: ## remove build/ with the downloads
	@rm -rf build
