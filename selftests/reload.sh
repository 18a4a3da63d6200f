#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The modules are unloaded with links that nobody uses, loaded again, and work.
# Runs where it knows how to load them: in the VM by scripts/guest/load, elsewhere
# by modprobe. Ends with the links that it found.

ksft_skip=4
plan=5
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

# Lines "NAME NETDEV" of the links of our type.
links() {
	for d in /sys/class/infiniband/*; do
		[ "$(cat "$d/hca_type" 2>/dev/null)" = sample_hca ] || continue
		name=${d##*/}
		echo "$name $(rdma link show "$name/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p')"
	done
}

[ "$(id -u)" = 0 ] || skip_all "needs root"
before=$(links)
[ -n "$before" ] || skip_all "no sample_hca device; make one with rdma link add"
if [ -n "${SELFTEST_LOAD:-}" ]; then
	load=$SELFTEST_LOAD
elif [ -r /run/gift-modules ]; then
	load=$(dirname "$0")/../scripts/guest/load
elif modprobe -n sample_hca 2>/dev/null; then
	load="modprobe sample_hca"
else
	skip_all "cannot load the modules again; SELFTEST_LOAD says how"
fi

echo "1..$plan"
rmmod sample_hca
ok "sample_hca is unloaded with links that nobody uses" $?
same "its devices are gone with it" "" "$(links)"
rmmod ib_gift
ok "ib_gift is unloaded once nobody needs it" $?
if [ -e /dev/ib_gift ]; then present=present; else present=gone; fi
same "/dev/ib_gift is gone with it" gone "$present"

$load >/dev/null
echo "$before" | while read -r name netdev; do
	[ -e "/sys/class/infiniband/$name" ] ||
		rdma link add "$name" type sample_hca netdev "$netdev"
done
same "loaded again, the same links can be made" "$before" "$(links)"

echo "# Totals: pass:$((n - failed)) fail:$failed"
[ $failed = 0 ]
