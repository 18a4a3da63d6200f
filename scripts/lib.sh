# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Owns what every script here shares: where things are, how messages look, how
# root is reached, how apt is asked. Never does a step of its own: it is sourced.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
BUILD=$ROOT/build
export ROOT BUILD
# modprobe and depmod are not in an ordinary user's path.
PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=scripts/versions
. "$ROOT/scripts/versions"

PROG=${0##*/}

say() { printf '%s: %s\n' "$PROG" "$*"; }
warn() { printf '%s: %s\n' "$PROG" "$*" >&2; }
die() {
	warn "$*"
	exit "${DIE_STATUS:-1}"
}

# as_root CMD...: runs CMD as root; returns 99 when there is no way to.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 99
	fi
}

# lock NAME: serialises runs of the calling script until it exits, so that two
# makes in one tree do not unpack into the same folder.
lock() {
	mkdir -p "$BUILD"
	exec 9>"$BUILD/.lock-$1"
	flock -n 9 || {
		say "waiting for another run ($1)"
		flock 9
	}
}

# apt_private CMD...: apt-get or apt-cache with lists and cache of the
# project's own, made from the host's sources. Needs no root and leaves the
# host's apt state alone.
apt_private() {
	local state=$BUILD/apt/host tool=$1
	shift
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	"$tool" -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" \
		-o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
}

# apt_q TOOL ARGS...: asks apt with the host's lists, or, once use_private_lists
# has been called, with the project's own.
APT_PRIVATE=
apt_q() {
	if [ -n "$APT_PRIVATE" ]; then
		apt_private "$@"
	else
		local tool=$1
		shift
		"$tool" -o APT::Sandbox::User= "$@"
	fi
}

# use_private_lists: for a host whose package lists are absent or too old.
use_private_lists() {
	[ -n "$APT_PRIVATE" ] && return
	say "the host's package lists do not answer: fetching them to build/apt"
	apt_private apt-get -q update >&2 || warn "apt-get update: some lists failed"
	apt_private apt-get -q clean
	APT_PRIVATE=1
}
