#!/bin/sh
# Makes a node image: a root file system from Debian packages, for engines and tools.
#
#   make-image.sh DIRECTORY SUITE SOURCE PACKAGE,PACKAGE... installed|unpacked
#
# SOURCE is a mirror's address or a line for sources.list. To install packages takes root, for the scripts that come with
# them. DIRECTORY appears whole or not at all. Two at once: the second waits and finds it made. Options for apt come in
# MAKE_IMAGE_APT_OPTIONS, one a line.
set -eu
destination=$1 suite=$2 source=$3 packages=$4 mode=$5

# What a making that is killed has mounted goes with it: the next one removes the half of a tree that it left, and nothing else.
if [ "$(id -u)" = 0 ] && [ "${MAKE_IMAGE_MOUNTS:-}" != own ]; then
  MAKE_IMAGE_MOUNTS=own exec unshare --mount --pid --mount-proc --fork --kill-child sh "$0" "$@"
fi

mkdir -p "$(dirname "$destination")"
exec 9>"$destination.lock"
flock 9
[ ! -d "$destination" ] || exit 0

partial=$destination.partial
rm -rf "$partial"

# Maintainer scripts must start no daemon and make no database cluster, and images must not share a machine id.
prepare='mkdir -p "$1/etc/postgresql-common" "$1/usr/sbin"; '\
'echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"; '\
'echo "#!/bin/sh" > "$1/usr/sbin/policy-rc.d"; echo "exit 101" >> "$1/usr/sbin/policy-rc.d"; '\
'chmod 755 "$1/usr/sbin/policy-rc.d"'
# Extensions that a database's owner may create although upstream does not mark them so: their scripts run no query over
# objects of the caller, and what they add reads no file and makes no connection.
trusted='autoinc bloom dict_xsyn earthdistance insert_username moddatetime pg_buffercache pg_freespacemap pg_prewarm '\
'pg_stat_statements pg_visibility pgrowlocks pgstattuple sslinfo vector'
# What only this host has is not the image's: its name, its resolvers, where its packages came from. A key that was made here
# would be the same on every machine. Engines need no program that gives rights to whoever runs it.
finish() {
  for name in $trusted; do
    for control in "$1"/usr/share/postgresql/*/extension/"$name.control"; do
      [ ! -e "$control" ] || printf '\ntrusted = true\n' >>"$control"
    done
  done
  # Databases of PostgreSQL are UTF-8, and so are the names of their locales: en_US.UTF-8 is en_US.utf8 here.
  [ ! -d "$1/usr/lib/locale" ] || find "$1/usr/lib/locale" -mindepth 1 -maxdepth 1 ! -name '*.utf8' -exec rm -rf {} +
  : >"$1/etc/machine-id"
  rm -f "$1/etc/hostname" "$1/etc/resolv.conf" "$1/etc/ssl/certs/ssl-cert-snakeoil.pem"
  : >"$1/etc/resolv.conf"
  rm -rf "$1"/etc/apt "$1"/etc/ssl/private/* "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/*
  find "$1" -xdev -type f -perm /6000 -exec chmod ug-s {} +
  mkdir -p "$1/data" "$1/holdfast" "$1/var/lib/holdfast"
}

excluded='/usr/share/man /usr/share/doc /usr/share/locale /usr/share/info /usr/share/lintian'

set -- --quiet --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"'
if [ "$mode" = installed ]; then
  set -- "$@" --variant=essential --setup-hook="$prepare" --dpkgopt=force-unsafe-io
  for path in $excluded; do
    set -- "$@" --dpkgopt="path-exclude=$path/*"
  done
else
  # Engines run without what these do, but for the lists of users below.
  set -- "$@" --mode=chrootless --variant=extract --include='?essential'
fi
while IFS= read -r option; do
  [ -z "$option" ] || set -- "$@" --aptopt="$option"
done <<OPTIONS
${MAKE_IMAGE_APT_OPTIONS:-}
OPTIONS

mmdebstrap "$@" "$suite" "$partial" "$source" </dev/null 9>&-
if [ "$mode" = unpacked ]; then
  for path in $excluded; do
    rm -rf "$partial$path"
  done
  for list in passwd group; do
    cp "$partial/usr/share/base-passwd/$list.master" "$partial/etc/$list"
  done
fi
finish "$partial"
chmod 755 "$partial"
mv "$partial" "$destination"
