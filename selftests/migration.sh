#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Two unmodified QEMUs migrate a small guest over RDMA, plainly and under gift-run: a
# few of the migrations of demo-migration, whose claims are the tests. What it needs
# is in USERSPACE, where `make userspace` builds.

ksft_skip=4
here=$(dirname "$0")
demo=$here/../userspace/tools/demo-migration/demo-migration
built=${USERSPACE:-$here/../build/userspace}

skip_all() {
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -e /sys/module/ib_gift ] || skip_all "ib_gift is not loaded"
# A kernel without kprobes has no way to time registrations, which the demo reads.
[ -w /sys/kernel/tracing/kprobe_events ] || skip_all "no /sys/kernel/tracing/kprobe_events: a kernel without kprobe events"
command -v qemu-system-x86_64 >/dev/null || skip_all "no qemu-system-x86_64"
for file in writer.rom gift-run; do
	[ -e "$built/$file" ] || skip_all "no $file in $built: make userspace, or set USERSPACE"
done
exec "$demo" --check --rom "$built/writer.rom" --gift-run "$built/gift-run"
