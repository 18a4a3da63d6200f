# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The front door: every target here is one call. Owns names and help texts;
# scripts/steps owns what they do. Everything built goes under build/.

include scripts/versions

KERNEL ?= $(KERNEL_DEFAULT)
V ?=
export KERNEL V

.DEFAULT_GOAL := help
.PHONY: help setup demo check check-debug modules userspace selftests vm lint \
	debug-kernel rdma-core check-rdma-core clean distclean

help: ## this list
	@echo 'make TARGET [KERNEL=6.1|6.12|debug|folder] [V=1]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 19

setup: ## install the Debian packages that are missing
	@scripts/setup

demo: ## show what registration costs and what send with invalidate does, in a VM
	@scripts/steps demo

check: ## build with warnings as errors and run every test; the last line is the total
	@scripts/steps check

check-debug: ## the selftests and KUnit on a kernel with every checker on
	@scripts/steps check-debug

modules: ## ib_gift.ko and sample_hca.ko for KERNEL, in build/modules/KERNEL
	@scripts/steps modules

userspace: ## the provider, the programs and the unit tests, in build/userspace
	@scripts/steps userspace

selftests: ## the kselftest programs, in build/selftests
	@scripts/steps selftests

vm: ## a shell in the VM with everything loaded
	@scripts/steps vm

lint: ## shellcheck, checkpatch, clang-format, sparse
	@scripts/steps lint

rdma-core: ## the patched rdma-core, in build/rdma-core-series
	@scripts/steps rdma-core

check-rdma-core: ## its tests in the VM: the gate, GIFT, Python tests
	@scripts/steps check-rdma-core

debug-kernel: ## build that kernel (about 15 minutes), in build/kernel/debug
	@scripts/steps debug-kernel

clean: ## remove what was built; downloads stay
	@rm -rf build/modules build/userspace build/selftests build/check build/check-debug \
		build/detector build/fuzz build/lint build/userspace-sanitized \
		build/check-rdma-core build/rdma-core-series \
		build/log build/results build/vm

distclean: ## remove build/ with the downloads
	@rm -rf build
