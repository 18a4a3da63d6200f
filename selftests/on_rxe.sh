#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# gift_matrix, gift_stale and gift_access, a part of each, on a stock rxe while
# every_driver is on: the kinds of memory, how their pages are taken, what a peer reads,
# what is stale after every change, what is refused. Says what those programs say, under
# numbers of its own.

# shellcheck source=selftests/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"

built=${OUTPUT:-$(dirname "$0")/../build/selftests}
param=/sys/module/ib_gift/parameters/every_driver
netdev=giftreg
link=giftrxe3

drop() {
	rdma link delete $link
	ip link delete $netdev
} 2>/dev/null

# However it ends.
put_back() {
	[ -z "$was" ] || echo "$was" >$param
	drop
}

was=
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -e $param ] || skip_all "no ib_gift with every_driver"
modprobe -q rdma_rxe || skip_all "this kernel has no rxe"
was=$(cat $param)
trap put_back EXIT
drop
ip link add $netdev type dummy || skip_all "no dummy network interfaces"
sysctl -qw net.ipv6.conf.$netdev.accept_dad=0
# Large packets: rxe is slow by the packet.
ip link set $netdev mtu 9000 up
rdma link add $link type rxe netdev $netdev || skip_all "cannot make a link of rxe"
echo 1 >$param || skip_all "every_driver cannot be switched on"

# Results of the programs; a program that dies has one that is not ok.
results() {
	export SHCA_DEV=$link MATRIX_SMALL=$((448 * 4096))
	run gift_matrix "untouched memory: GIFT" "untouched memory: nothing happens" \
		"written memory: GIFT" "written memory: nothing happens" \
		"written memory: other processes write" \
		"by KSM: GIFT" "by KSM: nothing happens" \
		"memory shared by fork, region in the parent: GIFT" \
		"memory shared by fork, region in the parent: nothing happens" \
		"in the cache: GIFT" "in the cache: nothing happens" "an unaligned range: nothing happens"
	run gift_stale "untouched memory:" "written memory:" "by KSM:" \
		"memory shared by fork, region in the parent:" "in the cache:"
	run gift_access "is refused with EINVAL" "ON_DEMAND" "RDMA WRITE to a gift" \
		"not readable"
}

run() {
	local program=$1 rc
	shift
	"$built/$program" "$@"
	rc=$?
	[ $rc = 0 ] || [ $rc = 1 ] || echo "not ok 0 $program ends with status $rc"
}

while IFS= read -r line; do
	case $line in
	ok\ * | not\ ok\ *)
		n=$((n + 1))
		verdict=ok
		[ "${line#not }" = "$line" ] || verdict="not ok" failed=$((failed + 1))
		line=${line#not }
		line=${line#ok }
		echo "$verdict $n on rxe: ${line#* }"
		;;
	"# Totals"* | TAP* | 1..*) ;;
	*) echo "$line" ;;
	esac
done < <(results)

# Words that no case has would run none.
[ "$n" -ge 25 ]
ok "the cases of the programs were found" $?
if echo 0 >$param; then switched=0; else switched=1; fi
ok "every_driver can be switched off afterwards" $switched
echo "1..$n"
totals
