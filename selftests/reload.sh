#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The modules are unloaded with links that nobody uses, loaded again, and work.
# Runs where it knows how to load them: in the VM by scripts/guest/load, elsewhere
# by modprobe. Ends with the links that it found.

# shellcheck source=selftests/lib/tap.sh
. "$(dirname "$0")/lib/tap.sh"
plan=5

[ "$(id -u)" = 0 ] || skip_all "needs root"
before=$(links)
[ -n "$before" ] || skip_all "no sample_hca device; make one with rdma link add"
need_load

echo "1..$plan"
rmmod sample_hca
ok "sample_hca is unloaded with links that nobody uses" $?
same "its devices are gone with it" "" "$(links)"
rmmod ib_gift
ok "ib_gift is unloaded once nobody needs it" $?
if [ -e /dev/ib_gift ]; then present=present; else present=gone; fi
same "/dev/ib_gift is gone with it" gone "$present"

load_again "$before"
same "loaded again, the same links can be made" "$before" "$(links)"

totals
