#!/bin/sh
# Runs a program of a node image as another user, on the host's network. Called by `inImage` in new mount and PID
# namespaces (without root in a user namespace too), as their root.
#
#   enter-image.sh root|user IMAGE UID [--low-ports] [--bind PATH]... -- PROGRAM ARGUMENT...
#
# The program's root has the image's /usr and /etc, read-only, an empty /tmp, and each PATH at its host path. The program
# becomes PID 1 of its namespace, so that all its processes end with it. With --low-ports it may listen on ports below
# 1024, if the invoker is root.
set -eu
umask 022
invoker=$1 image=$2 uid=$3
shift 3

# The tmpfs is only a mount point, and exists only in this namespace.
root=$image/tmp
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p usr etc proc dev tmp run var/tmp
chmod 1777 tmp run var/tmp
for directory in usr etc; do
  mount --bind "$image/$directory" "$directory"
  mount -o remount,bind,ro "$directory"
done
for link in bin lib lib64 sbin; do
  ln -s "usr/$link" "$link"
done
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm

# initdb needs a passwd entry for its user.
{ cat "$image/etc/passwd"; echo "holdfast:x:$uid:$uid::/tmp:/bin/sh"; } > run/passwd
mount --bind run/passwd etc/passwd

capabilities=
if [ "$1" = --low-ports ]; then
  capabilities="--inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service --bounding-set=-all,+net_bind_service"
  shift
fi
while [ "$1" = --bind ]; do
  mkdir -p "./$2"
  mount --bind "$2" "./$2"
  shift 2
done
shift

# Unmounts the host's file systems in this namespace: otherwise a disk that the host unmounts would remain in use.
pivot_root . .
umount --lazy .
cd /

# A change of user clears the parent-death signal, so setpriv sets it again: with `unshare`, the program is killed too.
if [ "$invoker" = root ]; then
  exec /usr/bin/setpriv --reuid "$uid" --regid "$uid" --clear-groups $capabilities --no-new-privs --pdeathsig KILL "$@"
fi
# Engines refuse to run as root: a second user namespace maps this user to another id.
exec unshare --user --map-user="$uid" --map-group="$uid" /usr/bin/setpriv --no-new-privs --pdeathsig KILL "$@"
