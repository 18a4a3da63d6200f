# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# What the shell tests have in common: TAP, the links of the sample HCA, and how
# the modules are loaded again. Sourced by a script that has set plan, the number
# of its tests. Unloads nothing itself.

ksft_skip=4
n=0
failed=0

echo "TAP version 13"

skip_all() {
	echo "1..0 # SKIP $*"
	exit $ksft_skip
}

# ok WHAT STATUS [EXPECTED [GOT]]
ok() {
	n=$((n + 1))
	if [ "$2" = 0 ]; then
		echo "ok $n $1"
	else
		failed=$((failed + 1))
		[ $# -lt 4 ] || echo "# FAIL expected '$3', got '$4'"
		echo "not ok $n $1"
	fi
}

same() {
	if [ "$2" = "$3" ]; then ok "$1" 0; else ok "$1" 1 "$2" "$3"; fi
}

skipped() {
	n=$((n + 1))
	echo "ok $n $1 # SKIP $2"
}

# Prints the totals; the status is that of the program.
totals() {
	echo "# Totals: pass:$((n - failed)) fail:$failed"
	[ $failed = 0 ]
}

# Lines "NAME NETDEV" of the links of our type.
links() {
	for d in /sys/class/infiniband/*; do
		[ "$(cat "$d/hca_type" 2>/dev/null)" = sample_hca ] || continue
		name=${d##*/}
		echo "$name $(rdma link show "$name/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p')"
	done
}

# Sets load to the command that loads both modules, or ends as skipped: in the VM
# it is scripts/guest/load, elsewhere modprobe.
need_load() {
	if [ -n "${SELFTEST_LOAD:-}" ]; then
		load=$SELFTEST_LOAD
	elif [ -r /run/gift-modules ]; then
		load=$(dirname "$0")/../scripts/guest/load
	elif modprobe -n sample_hca 2>/dev/null; then
		load="modprobe sample_hca"
	else
		skip_all "cannot load the modules again; SELFTEST_LOAD says how"
	fi
}

# load_again LINKS: both modules, and the links that were there.
load_again() {
	$load >/dev/null
	echo "$1" | while read -r name netdev; do
		[ -z "$name" ] || [ -e "/sys/class/infiniband/$name" ] ||
			rdma link add "$name" type sample_hca netdev "$netdev"
	done
}
