#!/bin/sh
# First process of a machine's namespaces: creates the machine's root, enters it and becomes the keeper. Each command
# adds a millisecond to every start, so all mounts are one table in the format of fstab(5), written by the provider.
#
#   MACHINE_MOUNTS  the table, with targets below the machine's root
#   MACHINE_OWNER   uid:gid of the engine; empty without root
#   MACHINE_CONTAINERS  "yes": the machine has the devices that containers and their networks need
#   MACHINE_GROW    "yes": grow the file system of /data to its disk
set -eu

# /proc is still the host's, with this process's host pid.
read -r stat </proc/self/stat
after_name=${stat##*) }
echo "init ${stat%% *} $(set -- $after_name; echo "${20}")" >>"$MACHINE_RUN"

root=$MACHINE_DIR/root
mount -t tmpfs -o mode=755 machine "$root"
cd "$root"
mkdir -p usr etc proc dev sys/fs/cgroup/cpu sys/fs/cgroup/memory sys/fs/cgroup/cpuacct run/holdfast var/lib/holdfast data holdfast/checkout holdfast/node holdfast/code
mkdir -m 1777 dev/shm tmp var/tmp
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
: >dev/null >dev/zero >dev/full >dev/random >dev/urandom
mount --all --fstab "$MACHINE_MOUNTS" --target-prefix .

# A node of the machine's own: the host's may be for root alone.
if [ "$MACHINE_CONTAINERS" = yes ]; then
  mkdir dev/net
  mknod -m 666 dev/net/tun c 10 200
  mknod -m 666 dev/tty c 5 0
fi

[ -z "$MACHINE_OWNER" ] || chown "$MACHINE_OWNER" data

# pivot_root(2) stacks the old root over the new one; unmount it. A chroot would forbid the user namespaces that engines
# may need.
pivot_root . .
umount --lazy .
cd /
[ "$MACHINE_GROW" != yes ] || sh /holdfast/checkout/compute/src/process/grow-data.sh

(echo up >&3) 2>/dev/null || :
exec 3>&-
exec env -i "$@"
