#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# load_test.sh [BUILD_DIR]: loads the provider into the distribution's libibverbs
# without a kernel device and prints TAP. BUILD_DIR is build/userspace. Owns a made-up sysfs, /dev and
# /etc/libibverbs.d, all in a mount namespace of its own. Never touches the host's
# files and never loads a module.

set -u
self=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")
root=$(cd "$(dirname "$self")/../../.." && pwd -P)
build=$(cd "${1-$root/build/userspace}" && pwd -P) || exit 1
abi_header=$root/uapi/rdma/sample_hca-abi.h
public_header=$root/userspace/include/infiniband/sample_hca.h
plan=16

host_state() { ls -la --time-style=full-iso /dev/infiniband /etc/libibverbs.d 2>&1; }

# Outer half: into the namespace, and afterwards a look at the host.
if [ -z "${SHCA_LOAD_TEST_DIR-}" ]; then
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	enter=(unshare --mount --propagation private)
	[ "$(id -u)" = 0 ] || enter+=(--map-root-user)
	if ! why=$("${enter[@]}" mount -t tmpfs none "$work" 2>&1); then
		echo "1..0 # SKIP no mount namespace here: $why"
		exit 4
	fi
	echo "1..$plan"
	before=$(host_state)
	SHCA_LOAD_TEST_DIR=$work "${enter[@]}" "$self" "$build"
	status=$?
	if [ "$before" = "$(host_state)" ] && [ -z "$(ls -A "$work")" ]; then
		echo "ok $plan the host's /dev/infiniband and /etc/libibverbs.d are as before"
	else
		echo "not ok $plan the host's /dev/infiniband and /etc/libibverbs.d are as before"
		status=1
	fi
	exit $status
fi

# Inner half.
work=$SHCA_LOAD_TEST_DIR
number=0
failed=0

# check OK NAME: one line of TAP; after a failure, what the probe said.
check() {
	number=$((number + 1))
	if [ "$1" = 1 ]; then
		echo "ok $number $2"
		return
	fi
	failed=1
	echo "not ok $number $2"
	sed 's/^/# out: /' "$work/out"
	sed 's/^/# err: /' "$work/err"
}

# says FILE PATTERN, says_not FILE PATTERN: 1 or 0 for check. A probe that did not
# get to its end says nothing, and that is not what says_not asks for.
says() { if grep -Eq -- "$2" "$work/$1"; then echo 1; else echo 0; fi; }
says_not() { if grep -Eq -- "$2" "$work/$1"; then echo 0; else says out '^done$'; fi; }
same() { if [ "$1" = "$2" ]; then echo 1; else echo 0; fi; }

# device NAME ABI [TYPE]: sysfs with one device; without TYPE it has no hca_type.
device() {
	local sys=$work/sys/class
	rm -rf "$work/sys"
	mkdir -p "$sys/infiniband_verbs/uverbs0" "$sys/infiniband/$1"
	echo 6 >"$sys/infiniband_verbs/abi_version"
	echo "$1" >"$sys/infiniband_verbs/uverbs0/ibdev"
	echo 231:192 >"$sys/infiniband_verbs/uverbs0/dev"
	echo "$2" >"$sys/infiniband_verbs/uverbs0/abi_version"
	echo "1: CA" >"$sys/infiniband/$1/node_type"
	echo 0000:0000:0000:0001 >"$sys/infiniband/$1/node_guid"
	[ $# -lt 3 ] || echo "$3" >"$sys/infiniband/$1/hca_type"
}

# probe [VAR=VALUE...]: what a program sees, in $work/out and $work/err.
probe() {
	env SYSFS_PATH="$work/sys" "$@" "$build/load-probe" >"$work/out" 2>"$work/err"
}
plugin=IBV_DRIVERS=$build/libsample_hca

mount -t tmpfs none "$work" || exit 1
mkdir -p "$work/dev/infiniband" "$work/etc"
: >"$work/dev/infiniband/uverbs0"
for node in null zero urandom; do
	: >"$work/dev/$node"
	mount --bind "/dev/$node" "$work/dev/$node" || exit 1
done
mount --bind "$work/etc" /etc/libibverbs.d || exit 1
mount --rbind "$work/dev" /dev || exit 1

version=$(sed -n 's/^#define SHCA_ABI_VERSION[^0-9]*\([0-9]*\)$/\1/p' "$abi_header")
newer=$((version + 1))

device shca0 "$version" sample_hca
probe
check "$(same "$(cat "$work/out")" "done")" "without the provider nobody claims the device"

probe "$plugin"
check "$(says out '^device shca0$')" "the provider claims a device whose hca_type is sample_hca"
check "$(says_not err .)" "and libibverbs has nothing to warn about"

for name in roce7 mlx5_bond_0; do
	device $name "$version" sample_hca
	probe "$plugin"
	check "$(says out "^device $name\$")" "whatever its name is: $name"
done

device shca0 "$version" other_hca
probe "$plugin"
check "$(says_not out '^device')" "a device of another type is left alone, whatever its name is"

for type in sample_hc sample_hca2; do
	device shca0 "$version" $type
	probe "$plugin"
	check "$(says_not out '^device')" "so is one of a type that only looks alike: $type"
done

device shca0 "$version"
probe "$plugin"
check "$(says_not out '^device')" "so is one that does not say its type"

device shca0 "$newer" sample_hca
probe "$plugin"
check "$(says_not out '^device')" "a driver with another ABI version is refused"
check "$(says err "sample_hca.* ABI of $newer .*supports $version to $version.*shca0")" \
	"and the message names both versions and the device"

device shca0 "$version" sample_hca
probe "$plugin" LD_PRELOAD="$build/libsample_hca.so.1"
check "$(same "$(grep -c ^library "$work/out")$(says out '^device shca0$')" 11)" \
	"a program that links to the provider has one copy of it, not two"

# Installed where a distribution would put it, by the .driver file alone.
DESTDIR=$work/root cmake --install "$build" >"$work/out" 2>"$work/err"
plugin_dir=$(cd "$work/root" 2>/dev/null && find . -name 'libsample_hca-rdmav*.so' -printf '%h\n')
mount --bind "$work/root/etc/libibverbs.d" /etc/libibverbs.d
probe LD_LIBRARY_PATH="$work/root/$plugin_dir"
check "$(says out '^device shca0$')" "the installed provider is found by its .driver file"

"$build/register-probe" "$(echo "$build"/libsample_hca-rdmav*.so)" >"$work/out" 2>"$work/err"
check "$(same "$(tail -n 1 "$work/out")" "table ends")" \
	"the provider has a match table for libibverbs to walk"

# Every function that the public header declares, under the one version.
nm -D --defined-only "$build/libsample_hca.so.1" >"$work/out" 2>"$work/err"
declared=$(sed -n 's/^int \(shca_[a-z_]*\)(.*/\1@@SAMPLE_HCA_1.0/p' "$public_header" | sort)
check "$(same "$(awk '$2 == "T" { print $3 }' "$work/out" | sort)" "${declared:-none}")" \
	"the library exports the functions of its public header and nothing else"

exit $failed
