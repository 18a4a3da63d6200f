#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ib_gift with every_driver comes and goes: before and after ib_uverbs and rxe, with
# the parameter at load time, with a hooked region, beside a live patch. Unloads
# ib_gift, sample_hca and rxe, and ends with the modules, links and switch that it found.

# shellcheck source=selftests/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"
plan=29

root=$(dirname "$0")/..
built=${OUTPUT:-$root/build/selftests}
param=/sys/module/ib_gift/parameters/every_driver
functions=/sys/kernel/tracing/enabled_functions
netdev=giftload
link=giftrxe4
livepatch=${GIFT_LIVEPATCH:-$root/build/livepatch/${KERNEL:-6.1}/gift_livepatch.ko}

[ "$(id -u)" = 0 ] || skip_all "needs root"
need_load
modinfo rdma_rxe >/dev/null 2>&1 || skip_all "this kernel has no rxe"
if [ -r /run/gift-modules ]; then
	gift=$(cat /run/gift-modules)/ib_gift.ko
else
	gift=$(modinfo -n ib_gift) || skip_all "no ib_gift.ko"
fi
before=$(links)
was=$(cat $param 2>/dev/null)
[ -e $functions ] || mount -t tracefs none /sys/kernel/tracing 2>/dev/null

# What is redirected, and to whom: "ib_umem_get get_hook" and so on.
hooks() {
	sed -n 's/^\(ib_umem_get\|ib_umem_release\) .*>\([a-z_]*\)+.*/\1 \2/p' $functions |
		sort | tr '\n' ' '
}
BOTH="ib_umem_get get_hook ib_umem_release release_hook "

make_link() {
	modprobe rdma_rxe
	ip link add $netdev type dummy
	sysctl -qw net.ipv6.conf.$netdev.accept_dad=0
	ip link set $netdev up
	rdma link add $link type rxe netdev $netdev
}

drop_link() {
	rdma link delete $link
	ip link delete $netdev
	modprobe -r rdma_rxe
} 2>/dev/null

# hold: starts a process with a region on rxe, whose words are in $said.
hold() {
	coproc HOLDER { exec "$built/gift_hold" $link; }
	said=
	read -r -t 60 said <&"${HOLDER[0]}" || said=nothing
}

let_go() {
	local pid=$HOLDER_PID
	eval "exec ${HOLDER[1]}>&-"
	wait "$pid"
}

HELD="1 regions, 64 zero pages"
NOT_HELD="0 regions, 0 zero pages"

# fails WHAT WORDS COMMAND...: COMMAND fails, and says WORDS.
fails() {
	local what=$1 words=$2 out
	shift 2
	if out=$("$@" 2>&1); then
		ok "$what" 1 "failure: $words" success
	elif [[ $out == *$words* ]]; then
		ok "$what" 0
	else
		ok "$what" 1 "$words" "$out"
	fi
}

switch() { echo "$1" >$param; }

# log_has WORDS: since the last mark, of which each is different.
marks=0
mark() {
	marks=$((marks + 1))
	echo "load.sh: mark $$ $marks" >/dev/kmsg
}
log_has() { dmesg | sed "1,/load.sh: mark $$ $marks\$/d" | grep -q "$1"; }

unload_all() {
	drop_link
	[ ! -e /sys/module/sample_hca ] || rmmod sample_hca
	[ ! -e /sys/module/ib_gift ] || rmmod ib_gift
}

load_before_and_after() {
	if modprobe -r rdma_ucm ib_uverbs 2>/dev/null && [ ! -e /sys/module/ib_uverbs ]; then
		fails "ib_gift is not loaded without ib_uverbs, whose functions it calls" \
			"Unknown symbol" insmod "$gift"
	else
		skipped "ib_gift is not loaded without ib_uverbs, whose functions it calls" \
			"ib_uverbs is in use"
	fi
	modprobe ib_uverbs
	insmod "$gift"
	same "ib_gift is loaded with every_driver off" N "$(cat $param)"
	same "and then nothing is redirected" "" "$(hooks)"
	fails "ib_uverbs cannot be unloaded while ib_gift is there" "in use" rmmod ib_uverbs
	rmmod ib_gift
	fails "a parameter that is no truth value is refused at load time" \
		"Invalid parameters" insmod "$gift" every_driver=perhaps
	insmod "$gift" every_driver
	same "the parameter without a value says on" Y "$(cat $param)"
	rmmod ib_gift
	insmod "$gift" every_driver=1
	same "ib_gift loaded before rxe with every_driver on: both functions are redirected" \
		"$BOTH" "$(hooks)"
	make_link
	hold
	same "and rxe, loaded later, honours GIFT" "$HELD" "$said"
	let_go
	drop_link
	same "which outlives rxe's unloading" "$BOTH" "$(hooks)"
	rmmod ib_gift
	ok "ib_gift is unloaded with every_driver on" $?
	same "and nothing is redirected any more" "" "$(hooks)"

	make_link
	hold
	same "without ib_gift a stock kernel drops GIFT" "nothing" "$said"
	let_go
	insmod "$gift"
	hold
	same "ib_gift loaded after rxe: GIFT is dropped until every_driver is on" \
		"$NOT_HELD" "$said"
	switch 1
	ok "which is possible with regions that stock made" $?
	let_go
	hold
	same "ib_gift loaded after rxe: GIFT is honoured then" "$HELD" "$said"
}

unload_refused() {
	fails "ib_gift is not unloaded while a hooked region lives" "in use" rmmod ib_gift
	same "and goes on redirecting" "$BOTH" "$(hooks)"
	fails "nor is it switched off" "busy" switch 0
	kill -9 "$HOLDER_PID"
	wait "$HOLDER_PID" 2>/dev/null
	rmmod ib_gift
	ok "once its process is gone ib_gift is unloaded" $?
}

# What others have open of a module whose loading fails, they have without a module.
failed_load_is_not_open() {
	local opened=/run/gift-opened try
	rm -f $opened
	sysctl -qw kernel.ftrace_enabled=0
	setpriv --reuid 65534 --clear-groups python3 -c '
import os
while True:
    try:
        os.open("/dev/ib_gift", os.O_RDONLY)
    except OSError:
        continue
    print("open", flush=True)
    break' >$opened &
	local opener=$!
	for try in 1 2 3 4 5; do
		! insmod "$gift" every_driver=1 2>/dev/null || break
	done
	same "every_driver=1 is refused at load time where ftrace is off" 5 \
		"$([ -e /sys/module/ib_gift ] && echo "try $try succeeds" || echo "$try")"
	kill $opener
	wait $opener 2>/dev/null
	same "and meanwhile nobody could open what was not going to stay" "" "$(cat $opened)"
	rm -f $opened
	sysctl -qw kernel.ftrace_enabled=1
}

patch() { insmod "$livepatch" function="$1"; }

unpatch() {
	local tries=300
	echo 0 >/sys/kernel/livepatch/gift_livepatch/enabled
	while [ -e /sys/kernel/livepatch/gift_livepatch ] && [ $((tries--)) -gt 0 ]; do
		sleep 0.1
	done
	rmmod gift_livepatch
} 2>/dev/null

beside_livepatch() {
	local function
	insmod "$gift"
	for function in ib_umem_get ib_umem_release; do
		if [ ! -e "$livepatch" ] || ! patch $function; then
			skipped "a live patch of $function keeps every_driver off" "no $livepatch"
			skipped "with a clear message" "the same"
			skipped "and without half a hook" "the same"
			continue
		fi
		mark
		fails "a live patch of $function keeps every_driver off" busy switch 1
		log_has "ib_gift: every_driver: $function cannot be redirected.*live-patched"
		ok "with a clear message" $?
		same "and without half a hook" "$function klp_ftrace_handler " "$(hooks)"
		unpatch
	done
	if [ ! -e "$livepatch" ]; then
		skipped "every_driver keeps a live patch out" "no $livepatch"
	else
		switch 1
		fails "every_driver keeps a live patch out" busy patch ib_umem_get
	fi
	rmmod ib_gift
}

echo "1..$plan"
unload_all >/dev/null 2>&1
load_before_and_after
unload_refused
failed_load_is_not_open
beside_livepatch
drop_link
load_again "$before"
[ "$was" != Y ] || switch 1
same "loaded again, the same links can be made" "$before" "$(links)"

totals
