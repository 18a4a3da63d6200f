#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Links as an administrator meets them: what rdma link add refuses and says, a
# device that moves to another network namespace and back, and one of another
# driver beside it. Runs on links of its own and ends with those that it found.

plan=14
# shellcheck source=selftests/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"
built=${OUTPUT:-$(dirname "$0")/../build/selftests}
dev=shcalinks
netdev=shcalinks
ns=shcalinks

# refuses WHAT PATTERN COMMAND...: fails, says why, and makes no device.
refuses() {
	what=$1 pattern=$2
	shift 2
	said=$("$@" 2>&1)
	status=$?
	if [ $status != 0 ] && [ $status -lt 126 ] &&
	   echo "$said" | grep -Eq "$pattern"; then
		ok "$what" 0
	else
		ok "$what" 1 "a failure that says '$pattern'" "$status: $said"
	fi
}

# works DEVICE: a program finds it and moves bytes through it.
works() {
	SHCA_DEV=$1 "$built/rc_ops" "a fenced SEND" >/tmp/links.out 2>&1 &&
		grep -q '^ok' /tmp/links.out
}

cleanup() {
	ip netns del $ns 2>/dev/null
	rdma system set netns shared 2>/dev/null
	rdma link delete $dev 2>/dev/null
	rdma link delete rxelinks 2>/dev/null
	ip link delete $netdev 2>/dev/null
}

[ "$(id -u)" = 0 ] || skip_all "needs root"
rdma link show >/dev/null 2>&1 || skip_all "no rdma tool (package iproute2)"
[ -d /sys/module/sample_hca ] || skip_all "sample_hca is not loaded"
ip link add $netdev type dummy 2>/dev/null ||
	skip_all "no dummy network interfaces"
ip addr add 10.79.0.1/24 dev $netdev
ip link set $netdev up
trap cleanup EXIT

echo "1..$plan"

long=$(printf '%0100d' 0)
before=$(rdma link show | wc -l)
refuses "a netdev that is not there is refused by name" "nosuchdev|No such device|Wrong" \
	rdma link add shcabad type sample_hca netdev nosuchdev
refuses "a link type that nobody has is refused" "supported|No such|Invalid" \
	rdma link add shcabad type nosuchtype netdev $netdev
refuses "a name too long is refused" "Invalid|range|long" \
	rdma link add "$long" type sample_hca netdev $netdev
refuses "a name that is a pattern is refused" "Invalid argument" \
	rdma link add "shca%d" type sample_hca netdev $netdev
rdma link add $dev type sample_hca netdev $netdev
refuses "a name that is taken is refused as such" "File exists" \
	rdma link add $dev type sample_hca netdev $netdev
same "of all that was refused nothing is left" $((before + 1)) "$(rdma link show | wc -l)"

works $dev
ok "the device works before it moves" $?
if rdma system set netns exclusive 2>/dev/null && ip netns add $ns; then
	rdma dev set $dev netns $ns
	ok "a device moves to another network namespace" $?
	works $dev && status=1 || status=0
	ok "it is then not to be found where it was" $status
	# Its netdev stays behind, and with it the addresses to connect by: what is
	# asked is that a program can open it, and register, plainly and with GIFT.
	SHCA_DEV=$dev ip netns exec $ns "$built/gift_limits" "charged to one account" \
		>/tmp/links.out 2>&1 && grep -q '^ok' /tmp/links.out
	ok "it can be opened there, and memory registered" $?
	ip netns exec $ns rdma dev set $dev netns 1 2>/dev/null ||
		ip netns del $ns
	i=0
	while [ ! -e /sys/class/infiniband/$dev ] && [ $i -lt 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	works $dev
	ok "it works where it came back to" $?
	ip netns del $ns 2>/dev/null
	rdma system set netns shared
	same "namespaces share devices again" "netns shared" \
		"$(rdma system show | grep -o 'netns [a-z]*')"
else
	for what in "a device moves" "it is gone from where it was" \
		    "it can be opened there" "it comes back" "shared again"; do
		skipped "$what" "no exclusive network namespaces here"
	done
fi

if modprobe rdma_rxe 2>/dev/null &&
   rdma link add rxelinks type rxe netdev $netdev 2>/dev/null; then
	works $dev
	ok "it works beside a device of rdma_rxe on the same netdev" $?
	works rxelinks
	ok "and so does the other" $?
else
	skipped "it works beside a device of rdma_rxe" "no rdma_rxe"
	skipped "and so does the other" "no rdma_rxe"
fi

totals
