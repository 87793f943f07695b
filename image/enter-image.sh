#!/bin/sh
# Runs a program of a node image as another user, on the host's network. Called by `inImage` in new mount and PID
# namespaces (without root in a user namespace too), as their root.
#
#   enter-image.sh root|user IMAGE UID [--bind PATH]... -- PROGRAM ARGUMENT...
#
# The program sees an empty root with the image's /usr and /etc in it, read-only, a /tmp of its own, and each PATH where
# the host has it. It becomes PID 1 of its namespace, so that its end is the end of all that it started.
set -eu
umask 022
invoker=$1 image=$2 uid=$3
shift 3

# Only a place to mount on, in this namespace.
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

# initdb wants a name for the user that it runs as.
{ cat "$image/etc/passwd"; echo "holdfast:x:$uid:$uid::/tmp:/bin/sh"; } > run/passwd
mount --bind run/passwd etc/passwd

while [ "$1" = --bind ]; do
  mkdir -p "./$2"
  mount --bind "$2" "./$2"
  shift 2
done
shift

# The host's mounts go from this namespace: a disk that the host unmounts while this program runs must come free.
pivot_root . .
umount --lazy .
cd /

# A change of user takes the parent's-death signal away, so setpriv sets it again: with `unshare` killed, all is gone.
if [ "$invoker" = root ]; then
  exec /usr/bin/setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs --pdeathsig KILL "$@"
fi
# Engines refuse to run as root: a second user namespace maps this user to one that is not.
exec unshare --user --map-user="$uid" --map-group="$uid" /usr/bin/setpriv --no-new-privs --pdeathsig KILL "$@"
