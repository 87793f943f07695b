#!/bin/sh
# Installs Incus and its dependencies on this host, as root: install-incus.sh CACHE. Does nothing if all are installed.
#
# If the release has no Incus, it comes from the release's backports, with package lists below CACHE: the host's apt
# configuration does not change. The packages belong to the host and remain when an installation is removed.
set -eu
cache=$1
packages='incus-base btrfs-progs nftables xfsprogs iproute2'

has_all() {
  [ -x /usr/libexec/incus/incusd ] || return 1
  for program in btrfs nft mkfs.xfs ip tar; do
    PATH=/usr/sbin:/sbin:$PATH command -v "$program" >/dev/null || return 1
  done
}

! has_all || exit 0
[ "$(id -u)" = 0 ] || { echo "Incus can only be installed by root. Run this as root." >&2; exit 1; }
command -v apt-get >/dev/null || { echo "This host has no apt-get. Install Incus with the host's package manager." >&2; exit 1; }

mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
exec 9>"$cache/apt/lock"
flock --wait 300 9
! has_all || exit 0

# Prevents packages from starting daemons; without systemd this covers init scripts too.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
quick='-o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-unsafe-io -o Acquire::Languages=none'
quick="$quick -o Acquire::http::Timeout=30 -o Acquire::Retries=2 -o Dir::Cache::Archives=$cache/apt/archives"

. /etc/os-release
codename=${VERSION_CODENAME:-}
has_candidate() {
  apt-cache policy incus-base 2>/dev/null | grep -q 'Candidate: [0-9]'
}
own=
has_candidate || [ "$codename" = bookworm ] || apt-get -qq $quick update
if ! has_candidate; then
  [ "$codename" = bookworm ] || { echo "No package of Incus is known for this release (${codename:-unknown}). Install Incus yourself." >&2; exit 1; }
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -E '/debian/?$' | head -n 1)
  [ -n "$mirror" ] || { echo "apt has no Debian mirror (a URI that ends in /debian). Add one to its sources." >&2; exit 1; }
  signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  for suite in bookworm bookworm-backports; do
    echo "deb $signed $mirror $suite main"
  done >"$cache/apt/sources.list"
  own="-o Dir::Etc::SourceList=$cache/apt/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$cache/apt/lists"
  apt-get -qq $quick $own update
  # Only Incus and its two libraries come from backports.
  packages="incus-base/bookworm-backports libcowsql0/bookworm-backports libraft0/bookworm-backports ${packages#incus-base }"
fi
apt-get -qq -y $quick $own --no-install-recommends install $packages </dev/null 9>&-
has_all || { echo "apt-get succeeded, but a program of Incus is missing." >&2; exit 1; }
